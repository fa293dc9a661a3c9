"""Independent streams of random numbers: xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021).

A stream is a separate record, so it can be compiled for any machine and belongs to one use in one
replication: a source's arrivals do not change when a channel draws more numbers (common random numbers).
numpy's `SeedSequence` spreads (seed, replication, use) into the initial states.
"""

import math
from functools import lru_cache

import numpy as np

from btqueue.simulator.machinery.numba_cache import compiled, entry_point
from btqueue.simulator.records.arrays import record_type
from btqueue.simulator.records.run import stream_dtype

TO_UNIT_INTERVAL = 2.0**-53
"""Makes 53 random bits a number from 0 to 1."""


# Constants of numpy's SeedSequence: how it scrambles the two parts of a key, and the words that it gives out.
_KEY = np.array([0x43B0D7E5 * 0x931E8875**power % 2**32 for power in range(16, 25)], np.uint64)
_OUT = np.array([0x8B51F9DD * 0x58F38DED**power % 2**32 for power in range(9)], np.uint64)
_OLD, _NEW, _WORD, _HALF = (np.uint64(number) for number in (0xCA01F9DD, 0x4973F715, 2**32 - 1, 16))


def make_streams(seed: int, replication: int, count: int) -> np.recarray:
    """Return `count` independent streams, shape (count,), for one replication of a run with this seed.

    Stream i has the words of `np.random.SeedSequence(seed, spawn_key=(replication, i))`, which are computed
    here for all streams at once.
    """
    streams = np.empty(count, record_type(stream_dtype))
    write_states(_pool(seed), replication, streams.view(np.uint32).reshape(count, -1))
    return streams.view(np.recarray)


@lru_cache(maxsize=16)
def _pool(seed: int) -> np.ndarray:
    return np.random.SeedSequence(seed).pool.astype(np.uint64)


@entry_point
def write_states(pool, replication, words):
    """Write the words of streams, shape (streams, 8), from the four words of a seed."""
    for stream in range(len(words)):
        for place in range(4):
            mixed = mix(mix(pool[place], np.uint64(replication), place), np.uint64(stream), 4 + place)
            words[stream, place] = scramble(mixed, _OUT, place)
            words[stream, 4 + place] = scramble(mixed, _OUT, 4 + place)


@compiled
def mix(word, key, place):
    """Mix a part of a key into a word."""
    mixed = (word * _OLD - scramble(key, _KEY, place) * _NEW) & _WORD
    return mixed ^ mixed >> _HALF


@compiled
def scramble(word, factors, place):
    """Scramble a word."""
    scrambled = (word ^ factors[place]) * factors[place + 1] & _WORD
    return scrambled ^ scrambled >> _HALF


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
