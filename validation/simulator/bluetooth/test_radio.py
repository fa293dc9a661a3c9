"""Levels of every kind of channel, looked at when a packet has been received, and what spoils a packet."""

import math

import numpy as np
import pytest
from state_tables import tables

SECOND = 1_000_000_000
STATE, ERROR, PICONET = range(3)


def network(plain, rates, **fields):
    """One port and its channel; `rates`: error rates of the only packet type and of POLL, for each level."""
    records = plain.records
    sim = tables(records, settings=1, ports=1, piconets=2, channels=1)
    sim.streams, sim.error_rates = plain.random_streams.make_streams(5, 0, 3), np.roll(rates, 1, axis=1)
    sim.trace_levels = np.zeros(0, np.int64)
    sim.piconets.stream = PICONET
    channel = sim.channels[0]
    channel.lossy, channel.state_stream, channel.error_stream = True, STATE, ERROR
    channel.stationary_good = 1.0
    for name, value in fields.items():
        sim.channels[name] = value
    return sim


def test_a_two_state_channel_draws_its_state_and_then_the_error(plain):
    # Two-state Markov process with rates a = 1/good_s, b = 1/bad_s:
    # P(good at t | good at 0) = b/(a+b) + a/(a+b) exp(-(a+b)t), by Kolmogorov's forward equation
    a, b = 1 / 0.4375, 1 / 0.0558
    stays = {"stationary_good": b / (a + b), "relaxation_rate": a + b}
    sim = network(plain, [[0.3, 0.0], [0.6, 0.0]], model=plain.records.TWO_STATE, **stays)
    state, error = sim.streams[STATE].copy(), sim.streams[ERROR].copy()
    good, sampled_at, seen = True, 0, set()
    for now in np.cumsum([SECOND // 1000, 3 * SECOND // 100, SECOND // 5] * 1000).tolist():
        memory = math.exp(-(a + b) * (now - sampled_at) / SECOND)
        chance = b / (a + b) + (a / (a + b) * memory if good else -b / (a + b) * memory)
        good, sampled_at = plain.random_streams.uniform(state) < chance, now
        expected = plain.random_streams.uniform(error) < (0.3 if good else 0.6)
        assert plain.radio.is_hit(sim, 0, 0, now) == expected
        assert sim.channels[0].level == (0 if good else 1)
        seen.add((good, expected))
    assert len(seen) == 4, "both states, with errors and without"
    assert (sim.streams[STATE], sim.streams[ERROR]) == (state, error)


def test_poll_and_null_use_the_last_column(plain):
    sim = network(plain, [[0.0, 1.0]])
    assert not plain.radio.is_hit(sim, 0, 0, 0)
    assert plain.radio.is_hit(sim, 0, plain.records.NOTHING, 0)


def test_an_alternating_channel_changes_at_every_step(plain):
    step = 7 * SECOND
    sim = network(plain, [[0.0, 0.0]] * 2, model=plain.records.ALTERNATING, step=step)
    times = [0, step - 1, step, 2 * step - 1, 2 * step, 101 * step]
    assert [plain.radio.level(sim, 0, now) for now in times] == [0, 0, 1, 1, 0, 1]


def test_a_trace_is_played_again_and_again_from_its_own_place(plain):
    # two traces one after the other; this channel plays the second, whose levels are 0, 2, 1
    sim = network(plain, [[0, 0], [0, 0], [0, 0], [0, 0], [1, 1]], model=plain.records.TRACE, step=100)
    sim.trace_levels = np.array([9, 9, 0, 2, 1])
    sim.channels.trace_first, sim.channels.trace_length, sim.channels.first_level = 2, 3, 2
    times = [0, 99, 100, 199, 200, 299, 300, 400, 500, 3_000_000_100]
    assert [plain.radio.level(sim, 0, now) for now in times] == [0, 0, 2, 2, 1, 1, 0, 2, 1, 2]
    assert [plain.radio.is_hit(sim, 0, 0, now) for now in (99, 100, 200)] == [False, True, False]


def test_the_fate_of_a_packet_is_drawn_once_and_remembered_for_the_bit_it_carries(plain):
    sim = network(plain, [[1.0, 0.0]])
    sim.piconets.packet = 3
    assert plain.radio.reception_fails(sim, 0, 0, SECOND)
    before = sim.streams.copy()
    assert plain.radio.feedback_is_hit(sim, 0, SECOND)
    assert (sim.streams == before).all()


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_the_bit_carried_by_poll_or_null_is_lost_at_their_own_rate(plain, rate):
    sim = network(plain, [[1.0 - rate, rate]])
    sim.piconets.packet, sim.piconets.hit = plain.records.NOTHING, rate == 0.0
    assert plain.radio.feedback_is_hit(sim, 0, SECOND) == (rate == 1.0)
