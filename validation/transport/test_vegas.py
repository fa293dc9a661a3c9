"""The resting window of TCP Vegas: hand cases, and the sender of the simulator on the same path."""

from math import inf

import pytest

import btqueue as bt
from btqueue.network.stations.description import network_of
from btqueue.network.stations.transport import resting_window
from btqueue.transport.vegas import settled

BOUNDS = (1.0, 3.0, 1.0)


@pytest.mark.parametrize(
    ("least", "opens", "window", "rests"),
    [
        (1.0, 1, 44, 4.0),  # 1, 2, 4 segments in every other round; 3 of 4 wait, which is beta
        (5.5, 2, 44, 8.0),  # 8: 2.5 wait, between the bounds
        (3.5, 2, 44, 6.0),  # 4: half a segment waits, less than gamma; 8: more than beta; 6: 2.5
        (7.5, 2, 6, 6.0),  # the window of the receiver
    ],
)
def test_window_rests_with_one_to_three_segments_in_queues(least, opens, window, rests):
    assert settled(least, BOUNDS, opens, window) == (rests, True)


def test_window_that_slow_start_left_far_above_the_bounds_has_not_come_to_rest():
    """From 64 segments on a path of 40 it falls by a part of a segment in two round trips."""
    found, at_rest = settled(40.0, BOUNDS, 2, 200)
    assert not at_rest
    assert 43.0 < found < 64.0


def test_delayed_acknowledgements_lengthen_the_shortest_round_trip_by_a_segment():
    assert settled(5.5, BOUNDS, 2, 44, every=2, delay=inf)[0] == settled(6.5, BOUNDS, 2, 44)[0]


def lone_link(**changes):
    keys = {"network.peripherals": 1, "traffic.source": "greedy", "transport.variant": "vegas"}
    keys |= {"traffic.message_bytes": 1000, "transport.mss_bytes": 1000}
    keys |= {"run.duration_s": 60.0, "run.warmup_s": 10.0, "run.replications": 1}
    return bt.Scenario().changed(keys | {key.replace("__", "."): value for key, value in changes.items()})


def test_rounding_decides_no_comparison():
    """At an odd window with shared acknowledgements the excess is gamma: 12 segments, or 9 by rounding."""
    scenario = lone_link(transport__delayed_ack=True, transport__initial_window_segments=2)
    (flow,) = network_of(scenario).flows
    trips_s = [(8.0 + n / 100.0) / 76.0 for n in range(1, 10)]
    assert len({resting_window(flow, 76.0, trip_s).window for trip_s in trips_s}) == 1


def test_polls_decide_where_vegas_with_shared_acknowledgements_rests_on_a_long_path():
    scenario = lone_link(
        transport__delayed_ack=True, transport__initial_window_segments=1, network__flows="downlink"
    )
    answer = bt.solve(scenario.changed({"link.baseband_delay_s": 0.033}))
    assert any("Vegas" in why for why in answer.attrs["why"])


@pytest.mark.parametrize("opens", [1, 2])
@pytest.mark.parametrize("limit", [1, 5])
@pytest.mark.parametrize("flows", ["uplink", "downlink"])
@pytest.mark.parametrize("delayed", [False, True])
def test_round_trips_of_a_lone_link_are_those_of_the_simulator(opens, limit, flows, delayed):
    """Nothing is random on a perfect radio: both engines have the same window, and round trips within 1 %."""
    scenario = lone_link(
        network__flows=flows,
        transport__initial_window_segments=opens,
        polling__limit=limit,
        transport__delayed_ack=delayed,
    )
    answer = bt.solve(scenario)
    simulated = float(bt.simulate(scenario)["rtt_s"].mean())
    assert not any("Vegas" in why for why in answer.attrs["why"])
    assert float(answer["rtt_s"].mean()) == pytest.approx(simulated, rel=0.01)
