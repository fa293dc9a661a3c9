"""The ring's model: values worked out by hand, its sequences and channels, limits, and invariants.

That the recursion is the simulator's network, event by event, is in
`validation/crosscheck/test_ring_against_simulation.py`.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from tcp_chains.lockstep import lockstep_rates
from tcp_chains.loss_process import LossProcess

import btqueue as bt
from btqueue.baseband import PACKET_TYPES, SLOT_S
from btqueue.channel import TwoStateChannel, packet_error_rate
from btqueue.network.opening import new_sender
from btqueue.network.ring_piconet import orbit
from btqueue.network.ring_piconet.model import answer
from btqueue.network.ring_piconet.network import network_of
from btqueue.network.ring_piconet.radio import is_hit, level
from btqueue.network.ring_piconet.records import ITEM, PERIPHERAL, at_rest, written
from btqueue.network.ring_piconet.runs import Connections, Run
from btqueue.network.ring_piconet.sequences import ERRORS, MESSAGES, PERIOD, USES, gap, quantile


def scenario(**changes):
    return bt.load("venugopal-2006/piconet").with_(run__jitter_s=0.005, **changes)


def solve(**changes) -> dict:
    return answer(scenario(**changes))[0]


# ---------------------------------------------------------------------------------------------- sequences


def test_gaps_are_exponential_quantiles_in_an_irregular_order():
    for number in (0, 1, 13):
        gaps = np.array([gap(number, MESSAGES, count) for count in range(PERIOD)])
        assert gaps.mean() == pytest.approx(1.0, abs=2e-3)
        assert gaps.var() == pytest.approx(1.0, abs=0.02)
        assert len(set(np.round(gaps, 12))) == PERIOD
        for lag in (1, 2, 3):
            assert abs(np.corrcoef(gaps[:-lag], gaps[lag:])[0, 1]) < 0.06  # 3.5 standard errors
        # counts in intervals vary as those of a Poisson process do
        counts = np.histogram(np.cumsum(gaps), np.arange(0.0, 3200.0, 8.0))[0]
        assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.2)


def test_sequences_have_nothing_to_do_with_each_other():
    values = np.array([[quantile(0, use, n) for n in range(PERIOD)] for use in range(USES)])
    correlations = np.corrcoef(values)[np.triu_indices(USES, 1)]
    assert np.abs(correlations).max() < 0.06  # 3.5 standard errors


# ------------------------------------------------------------------------------------------ radio and voice


def test_a_channel_has_the_transition_probabilities_of_its_markov_chain():
    asked = scenario(radio__model="gilbert-elliott")
    radio = network_of(asked).radio
    channel = TwoStateChannel(ber_good=0.0, ber_bad=0.0, good_s=asked.radio.good_s, bad_s=asked.radio.bad_s)
    rng, looks = np.random.default_rng(7), 40_000
    for typical in (0.01, 0.1, 1.0):
        state = at_rest(network_of(asked), 8, 4, 1)
        elapsed = rng.choice([typical / 2, typical], looks)
        found = np.array([level(state.links[0], radio, now) for now in np.cumsum(elapsed)])
        for step in (typical / 2, typical):
            expected = channel.transition(step)
            for before in (0, 1):
                these = (elapsed[1:] == step) & (found[:-1] == before)
                error = 4 * (expected[before, 1] * expected[before, 0] / these.sum()) ** 0.5
                assert found[1:][these].mean() == pytest.approx(expected[before, 1], abs=error)


@pytest.mark.parametrize("bit_error_rate", [1e-6, 1e-5, 3e-4])
def test_packets_are_damaged_as_often_as_their_error_rate_says(bit_error_rate: float):
    asked = scenario(radio__model="constant", radio__ber=bit_error_rate)
    net = network_of(asked)
    state = at_rest(net, 8, 4, 1)
    state.links["left"] = gap(0, ERRORS, 0)
    packet = np.zeros(1, ITEM).view(np.recarray)[0]  # the first of a segment: a DH5
    hits = np.array([is_hit(state, net.radio, 0, packet, 0.0) for _ in range(20_000)])
    expected = float(packet_error_rate(PACKET_TYPES["DH5"], np.array(bit_error_rate)))
    assert hits.mean() == pytest.approx(expected, abs=4 * (expected / hits.size) ** 0.5)


def test_packets_are_damaged_on_either_hop():
    one_kind = {"link__packets": ("DH5",), "flow_control__enabled": False}
    found = solve(radio__model="constant", radio__ber=1e-5, **one_kind)
    through = 1.0 - float(packet_error_rate(PACKET_TYPES["DH5"], np.array(1e-5)))
    assert found["loss_radio"] == pytest.approx(1.0 - through**2, rel=0.03)
    assert solve(**one_kind)["loss_radio"] == 0.0


def test_beside_voice_a_packet_a_period_is_all_there_is():
    """Four free slots carry a DH3 and its answer: 9 and 1 of them on both hops, 120 slots for a segment."""
    found = solve(
        network__peripherals=1,
        voice__packet="HV3",
        voice__links=1,
        link__packets=("DH3",),
        traffic__source="greedy",
        flow_control__enabled=False,
        flow_control__baseband_packets=1000,
    )
    assert found["goodput_kbps"] == pytest.approx(11.68 / (120 * SLOT_S), rel=1e-3)
    assert found["slot_utilisation"] == pytest.approx(3 / 6, rel=1e-3)


def test_two_stations_beside_voice_leave_the_second_one_two_slots_for_ever():
    found = solve(voice__packet="HV3", voice__links=1, link__packets=("DH3",), traffic__load_kbps=5)
    assert found["goodput_kbps"] == 0.0


# ----------------------------------------------------------------------------------------- whole answers


def test_a_light_load_is_carried_at_the_round_trip_of_a_lone_segment():
    """By hand: half a frame of waiting, 46 slots to the other end, NULL, POLL, and twice three slots back."""
    alone = {"network__peripherals": 1, "traffic__load_kbps": 1.0, "flow_control__token_rate_kbps": 400}
    light = answer(bt.load("venugopal-2006/piconet").with_(**alone))[0]
    assert light["goodput_kbps"] == pytest.approx(1.0)
    assert light["throughput_kbps"] == pytest.approx(1.0, rel=1e-3)
    assert light["rtt_s"] == pytest.approx((1 + 46 + 1 + 1 + 6) * SLOT_S, rel=0.01)


def test_queues_that_are_too_small_grow(monkeypatch: pytest.MonkeyPatch):
    asked = scenario()

    def elapsed() -> float:
        run = Run(Connections(network_of(asked), new_sender(asked), 8, 0.0), 0)
        run.follow(2)
        return run.elapsed

    before = elapsed()
    monkeypatch.setattr(Connections, "places", 4)
    assert elapsed() == before


def test_messages_that_the_window_leaves_no_room_for_count_with_what_is_expected():
    own = np.zeros(3, PERIPHERAL)
    own["messages"], own["message"], own["interval"] = 5, [10.0, 17.0, np.inf], [2.0, 2.0, 0.0]
    assert written(own, 16.0) == pytest.approx([5 + 1 + 3, 5, 5])


def test_a_window_of_one_is_its_round_trip():
    greedy: Callable[..., dict] = partial(solve, traffic__source="greedy", flow_control__enabled=False)
    one = greedy(transport__receive_window_segments=1)
    assert one["goodput_kbps"] / 11.68 * one["rtt_s"] == pytest.approx(1.0, rel=0.01)
    assert one["segment_loss"] == one["timeouts_per_s"] == 0.0
    assert one["goodput_kbps"] < network_of(scenario()).ring.air_capacity * 11.68


def test_round_trips_grow_with_the_load():
    found = [solve(traffic__load_kbps=load)["rtt_s"] for load in (20, 60, 100, 140)]
    assert found == sorted(found)


def test_a_radio_without_errors_is_a_perfect_one():
    assert solve(radio__model="constant", radio__ber=0.0)["rtt_s"] == solve()["rtt_s"]
    rare = solve(radio__model="constant", radio__ber=1e-9)
    assert rare["goodput_kbps"] == pytest.approx(solve()["goodput_kbps"], rel=1e-3)


def test_two_states_that_are_alike_are_one():
    """The errors come at the same places of the sequences."""
    one = solve(radio__model="constant", radio__ber=1e-5)
    two = solve(radio__model="gilbert-elliott", radio__ber_good=1e-5, radio__ber_bad=1e-5)
    assert two == one


def test_goodput_falls_with_the_bit_error_rate():
    rates = [1e-6, 3e-6, 1e-5, 3e-5, 1e-4]
    found = [solve(radio__model="constant", radio__ber=rate)["goodput_kbps"] for rate in rates]
    assert found == sorted(found, reverse=True)
    assert found[0] > 100.0 > 1.0 > found[-1]


def test_one_channel_for_all_links_is_better_than_one_for_each():
    """Both hops are good at the same time then."""
    errors = bt.load("venugopal-2006/piconet-errors")
    apart = answer(errors)[0]["goodput_kbps"]
    assert answer(errors.with_(radio__fading="per-piconet"))[0]["goodput_kbps"] > 1.1 * apart


def test_a_radio_that_lets_nothing_through_stalls():
    found = solve(radio__model="constant", radio__ber=1e-2)
    assert found["goodput_kbps"] == 0.0
    assert found["segment_loss"] == 1.0
    assert np.isnan(found["rtt_s"])


@pytest.mark.parametrize("name", ["piconet", "piconet-errors"])
def test_a_larger_token_buffer_is_no_worse(name: str):
    def goodput(places: int) -> float:
        asked = bt.load(f"venugopal-2006/{name}").with_(
            network__peripherals=6,
            flow_control__token_rate_kbps=80,
            traffic__load_kbps=80,
            flow_control__buffer_packets=places,
            run__jitter_s=0.005,
        )
        return answer(asked)[0]["goodput_kbps"]

    found = [goodput(places) for places in (5, 10, 20)]
    assert found == sorted(found)
    assert found[1] > 1.1 * found[0]


@pytest.mark.parametrize("window", [2, 8])
def test_little_where_nothing_is_lost(window: int):
    """A full window is in the network all the time; what is inside at the ends of a run is counted once."""
    found = solve(
        traffic__source="greedy",
        flow_control__enabled=False,
        flow_control__baseband_packets=1000,
        transport__receive_window_segments=window,
    )
    inside = found["goodput_kbps"] / 11.68 * found["rtt_s"]
    assert inside == pytest.approx(window, rel=2 * window / 7_500)


def test_buffers_too_small_for_any_segment_stall_the_connection():
    found = solve(
        flow_control__enabled=False,
        flow_control__baseband_packets=1,
        radio__model="constant",
        radio__ber=1e-5,
    )
    assert found["goodput_kbps"] == 0.0
    assert np.isnan(found["rtt_s"])


def test_runs_that_differ_are_followed_by_more():
    assert answer(scenario(traffic__load_kbps=80))[1]["iterations"] == orbit.RUNS
    often_stalled = answer(scenario(traffic__load_kbps=120, flow_control__buffer_packets=5))
    assert orbit.RUNS < often_stalled[1]["iterations"] <= orbit.MOST_RUNS


# ------------------------------------------------------------------------------------ the lock-step chain


def test_room_on_the_path_limits_the_chain():
    loss = LossProcess.independent(0.05, 0.01)
    solve_with = partial(lockstep_rates, window=6, loss=loss, rtt=0.1)
    free = solve_with()
    found = [solve_with(room=room) for room in (1, 2, 3, 4, 5, 6)]
    assert found[-1].goodput == pytest.approx(free.goodput)
    goodputs = [rates.goodput for rates in found]
    assert goodputs == sorted(goodputs)
    assert all(rates.segment_loss >= free.segment_loss - 1e-12 for rates in found)
    # Without radio errors and with room for one: one arrives, of the next two the second is refused.
    alone = lockstep_rates(window=4, loss=LossProcess.independent(1e-12), rtt=0.1, room=1)
    assert alone.timeouts > 0.0
    assert alone.goodput < 10.0
