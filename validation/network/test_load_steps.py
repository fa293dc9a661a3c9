"""A load in steps: means over the steps, each weighted as its metric wants."""

import numpy as np
import pytest
from thesis import thesis

import btqueue
from btqueue.network.load_steps import Step, answer_in_steps, offered_kbps, steps_of
from btqueue.scenario.topology import topology

SCHEDULE = [{"at_s": 60, "load_kbps": 120}, {"at_s": 120, "load_kbps": 160}, {"at_s": 900, "load_kbps": 1}]
SCENARIO = thesis().with_(
    traffic__load_kbps=80, traffic__load_schedule=SCHEDULE, run__warmup_s=30, run__duration_s=270
)


def test_steps_count_as_long_as_the_measurement_sees_them():
    assert steps_of(SCENARIO) == [Step(80, 30, opening=True), Step(120, 60), Step(160, 180)]
    assert steps_of(SCENARIO.with_(run__warmup_s=60, run__duration_s=60)) == [Step(120, 60)]


OWN = [{"from": "p1.1", "to": "c1", "load_kbps": 20.0}, {"from": "p1.2", "to": "c1"}]
"""Flows of which one has a load of its own."""


def offered(scenario):
    """An answer that carries everything: what the flows are offered, by the word of the scenario."""
    loads = [flow.load_kbps or scenario.traffic.load_kbps for flow in scenario.network.flows]
    notes = {"method": "m", "converged": True, "residual": 0.0, "iterations": 1, "warnings": []}
    return {"goodput_kbps": np.array(loads)}, notes


def test_a_change_is_one_of_every_flow_and_before_it_a_flow_has_its_own_load():
    scenario = SCENARIO.with_(network__flows=OWN)
    metrics, notes = answer_in_steps(scenario, offered)
    late = 120 * 60 + 160 * 180
    np.testing.assert_allclose(metrics["goodput_kbps"], [(20 * 30 + late) / 270, (80 * 30 + late) / 270])
    assert notes["warnings"] == [], "each flow carries what it is offered"


@pytest.mark.parametrize("warmup", [0.0, 10.0])
def test_both_engines_offer_a_flow_the_same_in_each_step(warmup):
    scenario = SCENARIO.with_(
        network__flows=OWN, traffic__load_kbps=40, traffic__load_schedule=[{"at_s": 10, "load_kbps": 60}],
        traffic__source="periodic", run__warmup_s=warmup, run__duration_s=40, run__replications=2,
    )  # fmt: skip
    solved, _ = answer_in_steps(scenario, offered)
    simulated = btqueue.simulate(scenario).goodput_kbps
    # a window of messages may be under way at either end; no more, for the load is light and periodic
    window = scenario.transport.receive_window_segments * scenario.traffic.message_bytes * 8e-3 / 40
    assert (abs(simulated - solved["goodput_kbps"]) <= window).all()


def of_one_step(scenario):
    """An answer whose round trip is the load over 100, and whose cycle is the load over 1000."""
    load = scenario.traffic.load_kbps
    carried = min(load, 150)
    metrics = {
        "goodput_kbps": np.full(2, carried),
        "throughput_kbps": 2.0 * carried,
        "rtt_s": load / 100,
        "rtt_p90_s": 1.0,
        "cwnd_segments": load / 50,
        "window_segments": load / 50,
        "segment_loss": load / 1000,
        "cycle_s": load / 1000,
        "queue_packets": {"uplink": load},
    }
    notes = {"method": "m", "converged": True, "residual": load / 1e9, "iterations": 2, "warnings": ["rough"]}
    return metrics, notes


def test_rates_are_means_over_time_delays_over_segments_and_cycles_are_counted():
    metrics, notes = answer_in_steps(SCENARIO, of_one_step)
    loads, carried, time = np.array([80, 120, 160]), np.array([80, 120, 150]), np.array([30, 60, 180])
    np.testing.assert_allclose(metrics["goodput_kbps"], np.full(2, carried @ time / 270))
    np.testing.assert_allclose(metrics["rtt_s"], (loads * carried) @ time / (carried @ time) / 100)
    np.testing.assert_array_equal(metrics["window_segments"], metrics["cwnd_segments"])  # means over ACKs
    np.testing.assert_allclose(metrics["segment_loss"], (loads * carried) @ time / (carried @ time) / 1000)
    assert metrics["cycle_s"] == pytest.approx(270 / (time / (loads / 1000)).sum())
    assert metrics["queue_packets"]["uplink"] == pytest.approx(loads @ time / 270)
    assert "rtt_p90_s" not in metrics
    assert (notes["residual"], notes["iterations"], notes["converged"]) == (1.6e-7, 6, True)
    assert notes["warnings"][0] == "at a load of 80 kbit/s: rough"


def test_an_overloaded_step_before_the_last_one_is_warned_of():
    _, notes = answer_in_steps(SCENARIO, of_one_step)
    assert not any("more than is carried" in warning for warning in notes["warnings"])
    _, notes = answer_in_steps(SCENARIO.with_(run__duration_s=1000), of_one_step)
    assert any("160 kbit/s is more than is carried" in warning for warning in notes["warnings"])


def test_equal_steps_are_no_steps():
    scenario = btqueue.load("johansson-2000/smooth").with_(run__warmup_s=0, run__duration_s=100)
    load = scenario.traffic.load_kbps
    plain = btqueue.solve(scenario)
    stepped = btqueue.solve(scenario.with_(traffic__load_schedule=[{"at_s": 40, "load_kbps": load}]))
    assert {"goodput_kbps", "rtt_s"} <= set(stepped.data_vars) <= set(plain.data_vars)
    for name in stepped.data_vars:
        np.testing.assert_allclose(stepped[name], plain[name], rtol=1e-12, err_msg=str(name))
    assert stepped.attrs["method"].startswith("quasi-stationary")


def test_loads_of_flows_that_repeat_the_table_are_those_of_their_own_scenario():
    ways = [{"from": "c1", "to": "p1.1"}, {"from": "p1.1", "to": "c1"}]
    for load in (40.0, 100.0):  # networks that are equal: no flow differs from its table
        own = {"network.flows": [ways[0], ways[1] | {"load_kbps": load}], "traffic.load_kbps": load}
        scenario = btqueue.Scenario().changed(own | {"network.peripherals": 1, "transport.protocol": "none"})
        (step,) = steps_of(scenario)
        assert [offered_kbps(scenario, flow, step) for flow in topology(scenario).flows] == [load, load]
