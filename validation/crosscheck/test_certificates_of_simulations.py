"""The certificates of answers, held against simulations of every shipped scenario: no true answer is refused.

Most laws hold on every path of a network, up to what is under way when measuring begins and ends: a window of
segments for each flow, of all that a flow delivers in the run. Only the load is met on average: so many
messages come in a run that chance goes beyond five standard deviations once in three million.
"""

import math

import numpy as np
import pytest
from grids import modules, points_of

import btqueue as bt
from btqueue.network.bounds import window_of
from btqueue.network.certificates import certificates
from btqueue.scenario import Scenario, list_models
from btqueue.scenario.topology import topology

REPLICATIONS, SECONDS = 3, 40.0
OF_LOAD = ("more than is offered", "over load and repetitions")
DEVIATIONS = 5.0


def slacks(scenario: Scenario, goodput_kbps: np.ndarray) -> tuple[float, float]:
    """Return the slack for what is under way at the ends of a run, and that with the chance of arrivals."""
    window = max(window_of(scenario, flow) for flow in topology(scenario).flows)
    delivered = goodput_kbps.min() * SECONDS / (scenario.transport.mss_bytes * 8e-3)
    ends = (window + 1.0) / max(delivered, window + 1.0)
    messages = goodput_kbps.min() * SECONDS / (scenario.traffic.message_bytes * 8e-3)
    scattered = scenario.traffic.scv if scenario.traffic.source == "ibp" else 1.0
    return ends, ends + DEVIATIONS * math.sqrt(max(scattered, 1.0) / max(messages, 1.0))


@pytest.mark.parametrize("name", list_models())
def test_simulated_answers_keep_the_certificates_of_solved_ones(name):
    scenario = bt.load(name).with_(
        run__replications=REPLICATIONS, run__duration_s=SECONDS, run__warmup_s=10.0, traffic__load_schedule=[]
    )
    simulated = bt.simulate(scenario)
    looked_at = 0
    for number in range(REPLICATIONS):
        one_run = simulated.isel(replication=number)
        ends, load = slacks(scenario, one_run.goodput_kbps.values)
        for one in certificates(scenario, one_run):
            slack = load if any(words in one.sentence for words in OF_LOAD) else ends
            assert not one.value > one.bound + slack * max(one.bound, 1.0), one.sentence
            looked_at += bool(np.isfinite(one.bound))
    assert looked_at > 10 * REPLICATIONS


@pytest.mark.long
@pytest.mark.parametrize("grid", modules())
def test_the_points_at_which_errors_were_measured_are_answered_and_not_refused(grid):
    for point, scenario in points_of(grid):
        assert bt.solve(scenario).attrs["answered_by"] == "theory", point
