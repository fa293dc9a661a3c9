"""The two-state channel: its law, and exact success of packets and trains on it."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from btqueue.baseband import PACKET_TYPES, SLOT_S, PacketType, packet_types, segment
from btqueue.channel import (
    Bits,
    Observation,
    TwoStateChannel,
    packet_error_rate,
    train_success,
)

OBSERVATIONS: tuple[Observation, ...] = get_args(Observation)
CONVENTIONS: tuple[Bits, ...] = get_args(Bits)
DH5, DH3 = packet_types(["DH5", "DH3"])
DATA = tuple(fragment.packet for fragment in segment(1504, [DH5, DH3]))

HIGH = TwoStateChannel(ber_good=6.8979e-5, ber_bad=1.263e-3, good_s=0.4375, bad_s=0.0558)

channels = st.builds(
    TwoStateChannel,
    ber_good=st.floats(0, 1e-3),
    ber_bad=st.floats(0, 1e-2),
    good_s=st.floats(1e-3, 10),
    bad_s=st.floats(1e-3, 10),
)
packets = st.sampled_from(list(PACKET_TYPES.values()))


def test_stationary_law_and_memory() -> None:
    assert HIGH.stationary.sum() == pytest.approx(1, rel=1e-15)
    assert HIGH.stationary[0] == pytest.approx(0.4375 / 0.4933, rel=1e-15)
    assert pytest.approx(0.0494881, abs=5e-8) == HIGH.correlation_s


@pytest.mark.parametrize("time_s", [0.0, 1e-6, 0.01, 0.3, 5.0])
def test_transition_matrix_is_the_matrix_exponential(time_s: float) -> None:
    generator = np.array([[-1 / 0.4375, 1 / 0.4375], [1 / 0.0558, -1 / 0.0558]])
    np.testing.assert_allclose(HIGH.transition(time_s), expm(generator * time_s), rtol=1e-12)
    np.testing.assert_allclose(HIGH.transition(np.inf), np.tile(HIGH.stationary, (2, 1)), rtol=1e-15)


@given(channels, st.floats(0, 5), st.floats(0, 5))
def test_transition_matrix_is_a_stochastic_semigroup(channel: TwoStateChannel, s: float, t: float) -> None:
    both = channel.transition([s, t])
    assert both.shape == (2, 2, 2)
    np.testing.assert_allclose(both.sum(axis=-1), 1, rtol=1e-14)
    assert np.all(both >= 0)
    np.testing.assert_allclose(channel.stationary @ both[0], channel.stationary, rtol=1e-13)
    np.testing.assert_allclose(both[0] @ both[1], channel.transition(s + t), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize(("good_s", "bad_s", "ber"), [(0.5, 0.0, 6.8979e-5), (0.0, 0.5, 1.263e-3)])
def test_a_state_that_never_shows_does_not_matter(
    observation: Observation, good_s: float, bad_s: float, ber: float
) -> None:
    channel = TwoStateChannel(ber_good=6.8979e-5, ber_bad=1.263e-3, good_s=good_s, bad_s=bad_s)
    np.testing.assert_array_equal(channel.transition(0.0), np.eye(2))
    expected = np.prod([1 - packet_error_rate(packet, ber) for packet in DATA])
    assert train_success(channel, DATA, observation=observation) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"ber_good": -0.1}, "ber_good"),
        ({"ber_bad": 1.1}, "ber_bad"),
        ({"ber_bad": float("nan")}, "ber_bad"),
        ({"good_s": -1.0}, "good_s"),
        ({"bad_s": float("inf")}, "bad_s"),
        ({"good_s": 0.0, "bad_s": 0.0}, "both"),
    ],
)
def test_bad_parameters_are_named(change: dict[str, float], named: str) -> None:
    good = {"ber_good": 1e-5, "ber_bad": 1e-3, "good_s": 0.4, "bad_s": 0.1}
    with pytest.raises(ValueError, match=named):
        TwoStateChannel(**(good | change))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"observation": "all"}, "sampled, published"),
        ({"bits": "all"}, "payload, on-air"),
        ({"packets": []}, "at least one packet"),
        ({"gap_s": [0.1, 0.1]}, "4 gaps, not 2"),
        ({"hops": 0}, "hops"),
        ({"gap_s": -1.0}, "negative"),
    ],
)
def test_bad_options_are_named(wrong: dict[str, Any], named: str) -> None:
    arguments: dict[str, Any] = {"packets": DATA} | wrong
    with pytest.raises(ValueError, match=named):
        train_success(HIGH, **arguments)


def test_train_agrees_with_sojourns_drawn_one_by_one() -> None:
    """Draw the sojourns, look up the state at the end of each packet, compare with the matrices."""
    channel = TwoStateChannel(ber_good=1e-5, ber_bad=2e-3, good_s=0.02, bad_s=0.005)
    rng = np.random.default_rng(7)
    n_runs, n_sojourns = 20_000, 40
    first_bad = rng.random(n_runs) > channel.stationary[0]
    state = (np.arange(n_sojourns) + first_bad[:, None]) % 2
    ends = np.cumsum(rng.exponential(np.where(state == 1, channel.bad_s, channel.good_s)), axis=1)

    log_success, now = np.zeros(n_runs), 0.0
    for packet in DATA:
        end = now + packet.slots * SLOT_S
        seen = np.take_along_axis(state, (ends < end).sum(axis=1)[:, None], axis=1)[:, 0]
        log_success += packet.payload_bits * np.log1p(-channel.bers[seen])
        now += (packet.slots + 1) * SLOT_S
    assert np.all(ends[:, -1] > now)
    success = np.exp(log_success)
    standard_error = success.std() / np.sqrt(n_runs)
    exact = train_success(channel, DATA)
    assert abs(success.mean() - exact) < 4 * standard_error
    assert abs(exact - train_success(channel, DATA, observation="published")) > 20 * standard_error


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("bits", CONVENTIONS)
@pytest.mark.parametrize("packet", PACKET_TYPES.values(), ids=lambda p: p.name)
def test_equal_states_are_independent_errors(
    packet: PacketType, bits: Bits, observation: Observation
) -> None:
    channel = TwoStateChannel(ber_good=2e-4, ber_bad=2e-4, good_s=0.3, bad_s=0.1)
    expected = 1 - float(packet_error_rate(packet, 2e-4, bits=bits))
    found = train_success(channel, [packet], observation=observation, bits=bits)
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_long_gaps_make_packets_independent(observation: Observation) -> None:
    alone = np.prod([train_success(HIGH, [packet], observation=observation) for packet in DATA])
    assert train_success(HIGH, DATA, gap_s=60.0, observation=observation) == pytest.approx(alone, rel=1e-12)


def test_published_formula_is_the_limit_of_a_fast_channel() -> None:
    fast = TwoStateChannel(ber_good=6.8979e-5, ber_bad=1.263e-3, good_s=4.375e-9, bad_s=0.558e-9)
    published = train_success(HIGH, DATA, observation="published")
    assert train_success(fast, DATA) == pytest.approx(published, rel=1e-12)


@given(
    channels,
    st.lists(packets, min_size=1, max_size=5),
    st.sampled_from(OBSERVATIONS),
    st.sampled_from(CONVENTIONS),
)
def test_success_is_a_probability_that_falls_with_every_packet(
    channel: TwoStateChannel, train: list[PacketType], observation: Observation, bits: Bits
) -> None:
    success = train_success(channel, train, observation=observation, bits=bits)
    longer = train_success(channel, [*train, DH3], observation=observation, bits=bits)
    assert 0.0 <= longer <= success + 1e-12 <= 1.0 + 2e-12


@given(channels, st.floats(0, 0.2), st.floats(0, 0.2))
def test_equal_packets_close_together_succeed_together(
    channel: TwoStateChannel, first: float, second: float
) -> None:
    """The state is positively correlated in time: two equal packets do better the closer they are."""
    near, far = sorted((first, second))
    pair = (DH3, DH3)
    assert train_success(channel, pair, gap_s=near) >= train_success(channel, pair, gap_s=far) - 1e-12
    independent = train_success(channel, pair, observation="published")
    assert train_success(channel, pair, gap_s=far) >= independent - 1e-12
