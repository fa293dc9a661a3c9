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


def make_streams(seed: int, replication: int, count: int) -> np.recarray:
    """Return `count` independent streams, shape (count,), for one replication of a run with this seed."""
    words = [_first_words(seed, replication, index) for index in range(count)]
    return np.array(words, np.uint64).reshape(count, 4).view(stream_dtype)[:, 0].view(np.recarray)


@lru_cache(maxsize=1 << 14)  # the points of a study have the seed in common
def _first_words(seed: int, replication: int, index: int) -> tuple[int, ...]:
    words = np.random.SeedSequence(seed, spawn_key=(replication, index)).generate_state(4, np.uint64)
    return tuple(words.tolist())


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
