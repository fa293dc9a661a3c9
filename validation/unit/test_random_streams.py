"""Random streams against xoshiro256++ in Python's whole numbers, and against the laws they draw from.

Statistical checks have a fixed seed; the false-alarm rate stated is that of a fresh seed.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

MASK = 2**64 - 1


def xoshiro256plusplus(state):
    """Yield the 64-bit outputs of the published algorithm, independent of the simulator's source."""
    s = list(state)

    def rotl(x, k):
        return ((x << k) & MASK) | (x >> (64 - k))

    while True:
        yield (rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)


def stream_with(plain, state):
    stream = np.zeros(1, plain.records.stream_dtype).view(np.recarray)
    stream[0] = tuple(state)
    return stream[0]


def test_the_independent_implementation_gives_the_published_outputs():
    # Test vector in wide use among implementations: state 1, 2, 3, 4.
    outputs = xoshiro256plusplus([1, 2, 3, 4])
    assert [next(outputs) for _ in range(5)] == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
    ]


@given(state=st.tuples(*[st.integers(0, MASK)] * 4).filter(any))
def test_uniform_is_the_upper_53_bits_of_each_output(plain, state):
    stream = stream_with(plain, state)
    outputs = xoshiro256plusplus(state)
    for _ in range(20):
        assert plain.random_streams.uniform(stream) == (next(outputs) >> 11) / 2**53


def test_uniform_never_reaches_one(plain):
    # s0 + s3 rotated plus s0 is all ones: the largest output there is
    largest = stream_with(plain, (MASK, 0, 0, 1))
    assert plain.random_streams.uniform(largest) == 1 - 2**-53
    assert math.isfinite(plain.random_streams.exponential(stream_with(plain, (MASK, 0, 0, 1)), 1.0))


def test_streams_depend_on_seed_replication_and_use_only(plain):
    make = plain.random_streams.make_streams
    few, many = make(7, 3, 2), make(7, 3, 5)
    assert (few == many[:2]).all(), "more uses leave the first ones as they were"
    states = [tuple(row) for seed in (7, 8) for rep in (0, 1) for row in make(seed, rep, 3).tolist()]
    assert len(set(states)) == len(states)


@pytest.fixture(scope="module")
def draws(plain):
    with np.errstate(over="ignore"):
        streams = plain.random_streams.make_streams(1, 0, 2)
        return np.array([[plain.random_streams.uniform(stream) for _ in range(20_000)] for stream in streams])


def test_draws_are_uniform(draws):
    # chi-square over 50 cells for each of two streams; false-alarm rate 2 x 5e-5 = 1e-4
    for values in draws:
        counts = np.histogram(values, bins=50, range=(0, 1))[0]
        assert stats.chisquare(counts).pvalue > 5e-5


def test_successive_draws_and_two_streams_are_uncorrelated(draws):
    # Each correlation is about normal with deviation 1/sqrt(n); 4.06 deviations twice: false-alarm rate 1e-4
    first, second = draws
    bound = 4.06 / math.sqrt(len(first))
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < bound
    assert abs(np.corrcoef(first, second)[0, 1]) < bound


def test_exponential_draws_follow_their_law(plain):
    # Kolmogorov-Smirnov, false-alarm rate 1e-4
    stream = plain.random_streams.make_streams(2, 0, 1)[0]
    values = [plain.random_streams.exponential(stream, 3.0) for _ in range(20_000)]
    assert stats.kstest(values, stats.expon(scale=3.0).cdf).pvalue > 1e-4
