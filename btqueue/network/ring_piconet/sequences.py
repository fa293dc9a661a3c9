"""Fixed sequences in the place of random numbers, for what is irregular: messages, delays, radio errors.

Everything irregular has sequences of its own, by what they are for. A sequence runs through `PERIOD`
quantiles of a law, each once, so that its mean is exact; the order is that of three rounds of cubing modulo
this prime, with multiples of the sequence's key added before each, as in the cipher MiMC (Albrecht et al.,
ASIACRYPT 2016). What is averaged over them is an integral over the laws, and the same question has the same
answer.
"""

from math import log

import numpy as np

from btqueue.transport.compilation import part

PERIOD = 3329
"""Places after which a sequence repeats: a prime, 2 modulo 3, so that cubing is one-to-one."""
MESSAGES, DELAYS, STATES, STAYS, ERRORS = range(5)
"""What sequences of one number are for: times between messages, processing delays, and of a link the states
that its channel is found in, how long it stays in them, and its errors."""
USES = 5


CUBES = (np.arange(2 * PERIOD) % PERIOD) ** 3 % PERIOD
CUBES = CUBES.astype(np.int16)
"""Cubes modulo the prime of all sums of two of its remainders."""


@part
def quantile(number, use, count):
    """Return a value between 0 and 1, evenly spread over the counts."""
    key = USES * number + use
    first, second, third = (count + 17 * key) % PERIOD, key % PERIOD, (2 * key + 1) % PERIOD
    place = int(CUBES[int(CUBES[int(CUBES[first]) + second]) + third])
    return (place + 0.5) / PERIOD


@part
def gap(number, use, count):
    """Return a quantile of the exponential law with mean 1."""
    return -log(quantile(number, use, count))
