"""Independent streams of random numbers: xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021).

A stream is a separate record, so it can be compiled for any machine and belongs to one use in one
replication: a source's arrivals do not change when a channel draws more numbers (common random numbers).
numpy's `SeedSequence` spreads (seed, replication, use) into the initial states.
"""

import math
from functools import lru_cache

import numpy as np

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.run import stream_dtype

TO_UNIT_INTERVAL = 2.0**-53
"""Makes 53 random bits a number from 0 to 1."""


# Constants of numpy's SeedSequence: how it scrambles the last part of a key, and the words that it gives out.
_KEY = np.array([0x43B0D7E5 * 0x931E8875**power % 2**32 for power in range(20, 25)], np.uint32)[:, None]
_OUT = np.array([0x8B51F9DD * 0x58F38DED**power % 2**32 for power in range(9)], np.uint32)[:, None]
_OLD, _NEW = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)


def make_streams(seed: int, replication: int, count: int) -> np.recarray:
    """Return `count` independent streams, shape (count,), for one replication of a run with this seed.

    Stream i has the words of `np.random.SeedSequence(seed, spawn_key=(replication, i))`, which are computed
    here for all streams at once.
    """
    return _first_states(seed, replication, count).copy()


@lru_cache(maxsize=64)  # the points of a study have the seed in common
def _first_states(seed: int, replication: int, count: int) -> np.recarray:
    pool = np.random.SeedSequence(seed, spawn_key=(replication,)).pool[:, None]
    key = _scramble(np.arange(count, dtype=np.uint32), _KEY)
    mixed = pool * _OLD - key * _NEW
    mixed ^= mixed >> 16
    words = _scramble(np.concatenate([mixed, mixed]), _OUT)
    return words.T.copy().view(stream_dtype)[:, 0].view(np.recarray)


def _scramble(words: np.ndarray, factors: np.ndarray) -> np.ndarray:
    scrambled = (words ^ factors[:-1]) * factors[1:]
    return scrambled ^ scrambled >> 16


@compiled
def rotate_left(word, bits):
    """Rotate a 64-bit word."""
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@compiled
def uniform(stream):
    """Draw from [0, 1), with 53 random bits."""
    result = rotate_left(stream.s0 + stream.s3, 23) + stream.s0
    shifted = stream.s1 << np.uint64(17)
    stream.s2 ^= stream.s0
    stream.s3 ^= stream.s1
    stream.s1 ^= stream.s2
    stream.s0 ^= stream.s3
    stream.s2 ^= shifted
    stream.s3 = rotate_left(stream.s3, 45)
    return (result >> np.uint64(11)) * TO_UNIT_INTERVAL


@compiled
def exponential(stream, mean):
    """Draw from the exponential law with this mean; finite because `uniform` is below 1."""
    return -mean * math.log(1.0 - uniform(stream))
