"""The two-state channel, looked at only when a packet has been received.

Sampled frequencies are compared with exact probabilities at 4.06 standard deviations, a false-alarm rate of
5e-5 for each comparison with a fresh seed; the seeds are fixed.
"""

import math

import numpy as np
import pytest

SECOND = 1_000_000_000
GOOD_S, BAD_S = 0.4375, 0.0558
DEVIATIONS = 4.06


@pytest.fixture
def streams(plain):
    return plain.random_streams.make_streams(5, 0, 2)


def channel_of(plain, *, stationary_good=GOOD_S / (GOOD_S + BAD_S), lossy=True):
    channel = np.zeros(1, plain.records.channel_dtype).view(np.recarray)[0]
    channel.lossy, channel.good = lossy, True
    channel.stationary_good = stationary_good
    channel.relaxation_rate = 1 / GOOD_S + 1 / BAD_S
    return channel


def packet_type_of(plain, per_good, per_bad):
    kind = np.zeros(1, plain.records.packet_type_dtype).view(np.recarray)[0]
    kind.per_good, kind.per_bad = per_good, per_bad
    return kind


@pytest.mark.parametrize("start_good", [True, False])
@pytest.mark.parametrize("elapsed_s", [0.001, 0.03, 0.2])
def test_the_state_follows_the_exact_transition_probability(plain, streams, start_good, elapsed_s):
    # Two-state Markov process with rates a = 1/good_s, b = 1/bad_s:
    # P(good at t | good at 0) = b/(a+b) + a/(a+b) exp(-(a+b)t), by Kolmogorov's forward equation
    a, b = 1 / GOOD_S, 1 / BAD_S
    memory = math.exp(-(a + b) * elapsed_s)
    exact = b / (a + b) + (a / (a + b) * memory if start_good else -b / (a + b) * memory)
    channel = channel_of(plain)
    draws, good = 4000, 0
    for _ in range(draws):
        channel.good, channel.sampled_at = start_good, 0
        good += plain.radio.sample_state(channel, streams[0], round(elapsed_s * SECOND))
    assert abs(good / draws - exact) < DEVIATIONS * math.sqrt(exact * (1 - exact) / draws)


def test_with_no_time_between_two_looks_the_state_stays(plain, streams):
    channel = channel_of(plain)
    for start in (True, False):
        channel.good, channel.sampled_at = start, 7 * SECOND
        assert [plain.radio.sample_state(channel, streams[0], 7 * SECOND) for _ in range(50)] == [start] * 50


def test_the_state_decides_the_error_rate(plain, streams):
    channel = channel_of(plain)
    kind = packet_type_of(plain, per_good=0.0, per_bad=1.0)
    for now in range(0, SECOND, SECOND // 200):
        corrupted = plain.radio.is_corrupted(channel, kind, streams[0], streams[1], now)
        assert corrupted == (not channel.good)


def test_constant_error_rate_draws_no_state(plain, streams):
    channel = channel_of(plain, stationary_good=1.0)
    kind = packet_type_of(plain, per_good=0.2, per_bad=1.0)
    before = streams[0].copy()
    hits = sum(plain.radio.is_corrupted(channel, kind, streams[0], streams[1], now) for now in range(5000))
    assert streams[0] == before
    assert abs(hits / 5000 - 0.2) < DEVIATIONS * math.sqrt(0.2 * 0.8 / 5000)


def test_a_perfect_channel_draws_nothing_at_all(plain, streams):
    channel = channel_of(plain, lossy=False)
    before = streams.copy()
    kind = packet_type_of(plain, per_good=0.5, per_bad=0.5)
    assert not plain.radio.is_corrupted(channel, kind, streams[0], streams[1], SECOND)
    assert (streams == before).all()
