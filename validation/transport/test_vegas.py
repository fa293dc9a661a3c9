"""The resting window of TCP Vegas: hand cases, and the sender of the simulator on the same path."""

from math import inf

import pytest

import btqueue as bt
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


@pytest.mark.parametrize("opens", [1, 2])
@pytest.mark.parametrize("limit", [1, 5])
@pytest.mark.parametrize("flows", ["uplink", "downlink"])
def test_round_trips_of_a_lone_link_are_those_of_the_simulator(opens, limit, flows):
    """Nothing is random on a perfect radio: both engines have the same window, and round trips within 1 %."""
    keys = {"network.peripherals": 1, "network.flows": flows, "traffic.source": "greedy"}
    keys |= {"transport.variant": "vegas", "transport.initial_window_segments": opens, "polling.limit": limit}
    keys |= {"traffic.message_bytes": 1000, "transport.mss_bytes": 1000, "transport.delayed_ack": False}
    keys |= {"run.duration_s": 60.0, "run.warmup_s": 10.0, "run.replications": 1}
    scenario = bt.Scenario().changed(keys)
    answer = bt.solve(scenario)
    simulated = float(bt.simulate(scenario)["rtt_s"].mean())
    assert not any("Vegas" in why for why in answer.attrs["why"])
    assert float(answer["rtt_s"].mean()) == pytest.approx(simulated, rel=0.01)
