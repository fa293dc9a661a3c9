"""Connections that overflow their token buffers in cycles (`piconet.overflow`)."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import btqueue as bt
from btqueue.network import slopes
from btqueue.network.piconet.covers import overflows_in_cycles
from btqueue.network.piconet.overflow import PLACES, by_tokens, cycle_of, take_tokens
from btqueue.network.piconet.ports import piconet_of
from btqueue.scenario import Scenario


class Bucket:
    depth, token_rate, buffer = 3000.0, 10_000.0, 6


def ring(**changes: object) -> Scenario:
    keys = {
        "network.peripherals": 4, "flow_control.token_rate_kbps": 70, "flow_control.buffer_packets": 25,
        "traffic.load_kbps": 80,    }  # fmt: skip
    return bt.load("venugopal-2006/piconet").changed(keys | changes)


def answered_in_cycles(scenario: Scenario) -> bool:
    return "cycle" in bt.solve(scenario).attrs["method"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 0.5), st.floats(1.0, 2000.0)), min_size=1, max_size=60))
def test_packets_leave_the_bucket_as_a_plain_queue_of_tokens_says(arrivals: list) -> None:
    bucket, queue, releases = np.array([Bucket.depth, 0.0]), np.zeros(2, int), np.zeros(PLACES)
    now, missing, last, waiting = 0.0, 0.0, 0.0, []
    for gap, price in arrivals:
        now += gap
        missing = max(missing - Bucket.token_rate * gap, 0.0)  # tokens, in the place of the bucket's level
        waiting = [time for time in waiting if time > now]
        delay = max(missing + price - Bucket.depth, 0.0) / Bucket.token_rate
        found = take_tokens(Bucket, bucket, queue, releases, price, now)
        if delay > 1e-9 and len(waiting) >= Bucket.buffer:
            assert found == inf
            continue
        assert found == pytest.approx(now + delay, abs=1e-9)
        assert found >= last - 1e-9
        missing, last = missing + price, found
        if found > now:
            waiting.append(found)


def test_a_window_that_the_buffer_holds_loses_nothing_and_is_carried_by_the_tokens() -> None:
    scenario = ring(**{"flow_control.buffer_packets": 48})  # six packets for each segment of the window
    found, net = cycle_of(scenario, piconet_of(scenario)), piconet_of(scenario)
    assert net.ack is not None
    assert found.timeouts == found.fast_retransmits == 0.0
    assert found.delivered == pytest.approx(net.token_rate / (net.data.tokens + net.ack.tokens), rel=2e-3)
    assert found.delivered * found.round_trip_s == pytest.approx(8.0, rel=0.01)  # Little's law
    assert found.sent == pytest.approx(found.delivered, rel=0.01)
    assert not answered_in_cycles(scenario)


@pytest.mark.parametrize("buffer", [15, 25, 40])
def test_a_cycle_keeps_the_laws_of_every_network(buffer: int) -> None:
    scenario = ring(**{"flow_control.buffer_packets": buffer})
    found = cycle_of(scenario, piconet_of(scenario))
    assert found.delivered <= found.sent
    assert found.delivered * (1539 + 183) <= piconet_of(scenario).token_rate * 1.002
    assert found.delivered * found.round_trip_s <= 8.0
    # each timeout keeps the flow silent for the least timer, but for the burst before
    assert found.timeouts < 1.0
    assert found.timeouts + found.fast_retransmits > 0.0


def test_the_same_question_has_the_same_answer() -> None:
    scenario = ring()
    assert cycle_of(scenario, piconet_of(scenario)) == cycle_of(scenario, piconet_of(scenario))


def test_a_scale_of_time_changes_nothing_but_times() -> None:
    # half the tokens, slots and timers twice as long: the same cycle, half as fast
    scenario = ring(**{"network.peripherals": 3})
    net = piconet_of(scenario)
    slow = scenario.changed(
        {
            "flow_control.token_rate_kbps": 35,
            "transport.min_rto_s": 2.0,
            "transport.initial_rto_s": 6.0,
            "transport.max_rto_s": 128.0,
        }
    )
    twice = replace(piconet_of(slow), slot_s=2.0 * net.slot_s)
    fast, slowed = cycle_of(scenario, net), cycle_of(slow, twice)
    np.testing.assert_allclose(
        [slowed.delivered * 2, slowed.sent * 2, slowed.round_trip_s / 2, slowed.timeouts * 2],
        [fast.delivered, fast.sent, fast.round_trip_s, fast.timeouts],
        rtol=0.02,  # rounding decides between packets that come at once
    )


@pytest.mark.parametrize(
    "other",
    [
        {"radio.model": "constant", "radio.ber": 1e-5},
        {"flow_control.buffer_packets": 10},
        {"flow_control.buffer_packets": 48},  # windows fit
        {"flow_control.token_rate_kbps": 130},  # more than the slots carry
        {"flow_control.bucket_bytes": 12_000},
        {"polling.discipline": "exhaustive"},
        {"network.flows": "downlink"},
        {"transport.variant": "reno"},
        {"transport.delayed_ack": True},
    ],
)
def test_it_is_not_asked_where_it_is_not_known_to_hold(other: dict) -> None:
    def known(scenario: Scenario) -> bool:
        return overflows_in_cycles(scenario) and by_tokens(piconet_of(scenario))

    assert known(ring())
    assert not known(ring(**other))


def test_a_load_that_is_carried_is_no_cycle() -> None:
    assert answered_in_cycles(ring())
    assert not answered_in_cycles(ring(**{"traffic.load_kbps": 20}))


def test_two_stations_are_in_doubt() -> None:
    pair = ring(**{"network.peripherals": 2, "flow_control.token_rate_kbps": 150, "traffic.load_kbps": 200})
    found = bt.solve(pair)
    assert any("keep step" in warning for warning in found.attrs["warnings"])
    assert not any("keep step" in warning for warning in bt.solve(ring()).attrs["warnings"])


def test_cycles_have_no_derivatives_to_offer() -> None:
    assert slopes(ring(), ["goodput_kbps"]) == {}
