"""The two-state channel: its law, and exact success of packets and trains on it."""

from itertools import product
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


@given(
    channels,
    st.lists(packets, min_size=1, max_size=4),
    st.none() | st.floats(0, 60) | st.lists(st.floats(0, 0.2), min_size=3, max_size=3),
    st.integers(1, 3),
    st.sampled_from(OBSERVATIONS),
    st.sampled_from(CONVENTIONS),
)
def test_success_is_the_sum_over_all_the_states_in_which_packets_end(
    channel: TwoStateChannel,
    train: list[PacketType],
    gap_s: float | list[float] | None,
    hops: int,
    observation: Observation,
    bits: Bits,
) -> None:
    gaps = np.broadcast_to(SLOT_S if gap_s is None else gap_s, 3)[: len(train) - 1]
    generator = np.array([[-1, 1], [1, -1]]) / [[channel.good_s], [channel.bad_s]]
    moves = [
        np.tile(channel.stationary, (2, 1)) if observation == "published" else expm(generator * time_s)
        for time_s in np.append(0, gaps) + [packet.slots * SLOT_S for packet in train]
    ]
    received = [1 - packet_error_rate(packet, channel.bers, bits=bits) for packet in train]
    expected = 0.0
    for first, *states in product(range(2), repeat=1 + len(train)):
        steps = zip(moves, received, [first, *states], states, strict=False)
        expected += channel.stationary[first] * np.prod([m[i, j] * r[j] for m, r, i, j in steps])
    options: dict[str, Any] = {"hops": hops, "observation": observation, "bits": bits}
    if gap_s is not None:
        options["gap_s"] = gap_s[: len(train) - 1] if isinstance(gap_s, list) else gap_s
    assert train_success(channel, train, **options) == pytest.approx(expected**hops, rel=1e-9, abs=1e-14)
