"""Sweeps: points through stand-in engines to one labelled dataset, in files and back."""

import json
import math
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from thesis import thesis

from btqueue.scenario import NotBuiltYet, Problem, Scenario, ScenarioError, load
from btqueue.study.evaluate import Answer, Failure, PointResult
from btqueue.study.points import grid
from btqueue.study.summary import Estimate
from btqueue.study.sweep import failures, sweep
from btqueue.study.sweep_files import assemble, read_sweep, table
from btqueue.study.sweep_store import StoreError

LIMIT, SIZE = "polling.limit", "network.peripherals"
SOME = {LIMIT: [1, 2, 3], "traffic.load_kbps": [100, 200]}


@pytest.fixture
def formula(engines):
    """A solver whose goodput is the load over the limit; neither engine answers limit 2 with load 200."""

    def solve(scenario: Scenario) -> xr.Dataset:
        limit, load = scenario.polling.limit, scenario.traffic.load_kbps
        if (limit, load) == (2, 200):
            raise engines.network.NoConvergence("no point\n of operation")
        flows = np.arange(1, scenario.network.peripherals + 1)
        variables = {"goodput_kbps": ("flow", load / limit * flows), "cycle_s": ((), limit / 7)}
        attrs = {"converged": True, "residual": 0.0, "iterations": 3, "method": "formula", "warnings": []}
        return xr.Dataset(variables, {"flow": flows}, attrs)

    simulated = engines.simulator.simulate

    def simulate(scenario: Scenario, **options: Any) -> xr.Dataset:
        if (scenario.polling.limit, scenario.traffic.load_kbps) == (2, 200):
            raise NotBuiltYet(Problem("not simulated"))
        return simulated(scenario, **options)

    engines.network.solve, engines.simulator.simulate = solve, simulate
    return engines


def test_a_sweep_is_labelled_by_its_keys_counts_its_points_and_keeps_reasons_of_failures(formula):
    seen: list[tuple[int, int]] = []
    found = sweep(thesis(), SOME, workers=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 6) for done in range(7)]
    assert found["goodput_kbps"].dims == (LIMIT, "traffic.load_kbps")
    assert found["goodput_kbps"].sel({LIMIT: 3, "traffic.load_kbps": 100}) == pytest.approx(50)
    assert found["goodput_kbps_per_flow"].sel({LIMIT: 1, "flow": 2}).values.tolist() == [200, 400]
    assert found["goodput_kbps"].attrs["units"] == found["goodput_kbps_per_flow"].attrs["units"] == "kbit/s"
    assert "goodput_kbps_ci95" not in found
    assert (found.attrs["answered"], found.attrs["failed"]) == (5, 1)
    assert json.loads(found.attrs["scenario"]) == thesis().to_dict()
    failed = found.sel({LIMIT: 2, "traffic.load_kbps": 200})
    assert str(failed["failure"].values) == "no convergence: no point of operation"
    assert math.isnan(failed["goodput_kbps"]) and failed["iterations"] == failed["converged"] == -1
    assert failures(found) == {"no convergence: no point of operation": 1}


def test_an_error_that_nobody_expected_fails_one_point_and_says_where(engines):
    good = engines.network.solve
    engines.network.solve = lambda scenario: good(scenario) if scenario.polling.limit < 3 else {}["a bug"]
    (reason,) = failures(sweep(thesis(), {LIMIT: [1, 2, 3]}, workers=1))
    assert reason.startswith("error: KeyError: 'a bug' (test_sweep.py, line ")


def test_a_value_that_does_not_go_with_others_fails_its_point_alone(formula):
    least, most = "transport.min_rto_s", "transport.max_rto_s"
    found = sweep(thesis(), {least: [1, 100], most: [64, 128]}, workers=1)
    reasons = [str(reason) for reason in found["failure"].values.flat]
    assert [bool(reason) for reason in reasons] == [False, False, True, False]
    assert reasons[2].startswith("scenario: [transport]")


def test_a_sweep_in_which_nothing_can_run_is_refused_before_it_starts(engines):
    """As the simulator covers no device in nine piconets."""
    engines.network.solve = None
    piconets = [{"name": f"n{n}", "central": f"c{n}", "peripherals": ["x"]} for n in range(9)]
    network = {"topology": "custom", "piconet_list": piconets, "flows": [{"from": "c0", "to": "c1"}]}
    with pytest.raises(ScenarioError, match="none of the 2 points can be run"):
        sweep(Scenario.from_dict({"network": network}), {LIMIT: [8, 9]}, engine="simulate", workers=1)
    unknown: Any = "guess"
    with pytest.raises(ScenarioError, match="not 'guess'"):
        sweep(thesis(), {LIMIT: [1]}, engine=unknown)


def test_both_engines_share_metrics_and_points(formula):
    found = sweep(thesis(run={"replications": 4}), {LIMIT: [1, 2]}, engine="both", workers=1)
    assert found["goodput_kbps"].dims == ("engine", LIMIT)
    assert found["goodput_kbps"].sel(engine="simulate").values.tolist() == [100, 100]
    assert np.isnan(found["goodput_kbps_ci95"].sel(engine="solve")).all()
    assert (found["goodput_kbps_ci95"].sel(engine="simulate") > 0).all()
    assert np.isnan(found["rtt_s"].sel(engine="solve")).all()
    assert found["replications"].sel(engine="simulate").values.tolist() == [4, 4]
    assert list(found["queue"].values) == ["token_buffer", "uplink", "downlink"]
    rows = table(found)
    assert rows["engine"].tolist() == ["solve", "solve", "simulate", "simulate"]
    assert rows[LIMIT].tolist() == [1, 2, 1, 2]


def test_columns_of_a_table_are_named_as_in_expressions():
    dataset = xr.Dataset(
        {"goodput_kbps_per_flow": (("polling.limit", "flow"), [[1.0, 2.0]])},
        {"polling.limit": [1], "flow": [1, 2], "flow_name": ("flow", ["map", "p1.2>c1"])},
    )
    assert list(table(dataset)) == ["polling.limit", "goodput_kbps[map]", "goodput_kbps[p1.2>c1]"]
    alike = dataset.assign_coords(flow_name=("flow", ["map", "map"]))
    assert list(table(alike))[1:] == ["goodput_kbps[flow 1]", "goodput_kbps[flow 2]"]


def test_a_point_at_which_theory_lacks_a_metric_that_is_asked_for_is_simulated():
    """Under Nagle's algorithm theory gives no delay of a message, although its answer stands."""
    ward = load("practice/ward", {"run.duration_s": 10.0, "run.warmup_s": 1.0, "run.replications": 2})
    over = {"traffic.load_kbps": [2.0]}
    assert "delay_s" not in sweep(ward, over, workers=1)
    found = sweep(ward, over, metrics=["delay_s"], workers=1)
    assert found["answered_by"].values.tolist() == ["simulation"] and found["delay_s"].values[0] > 0.0
    assert found["why"].values.tolist() == ["theory gives no delay_s here"]
    assert sweep(ward, over, metrics=["rtt_s"], workers=1)["answered_by"].values.tolist() == ["theory"]
    nobody = sweep(ward, over, metrics=["cwnd_segments"], workers=1)
    assert ("cwnd_segments" in nobody) == (nobody["answered_by"].values.tolist() == ["simulation"])


def test_a_sampled_answer_of_theory_is_given_only_where_the_simulator_has_none(monkeypatch):
    keys = {"traffic.load_kbps": 200.0, "run.duration_s": 5.0, "run.warmup_s": 1.0, "run.replications": 2}
    full, over = load("venugopal-2006/piconet", keys), {LIMIT: [5]}
    found = sweep(full, over, workers=1)
    assert found["answered_by"].values.tolist() == ["simulation"] and "was sampled" in found["why"].item()

    def simulate(scenario: Scenario, **options: Any) -> None:
        raise NotBuiltYet(Problem("not simulated"))

    monkeypatch.setattr("btqueue.simulator.simulate", simulate, raising=False)
    found = sweep(full, over, workers=1)
    assert found["answered_by"].values.tolist() == ["theory"] and "was sampled" in found["why"].item()


def test_points_with_unequal_numbers_of_flows_have_means_only(formula):
    found = sweep(thesis(), {SIZE: [2, 3]}, workers=1)
    assert "goodput_kbps_per_flow" not in found and "flow" not in found.dims
    assert found["goodput_kbps"].notnull().all()


def point(number: int, **queues: float) -> PointResult:
    metrics = {
        "goodput_kbps": Estimate(number / 3, 0.1, "flow", (number / 3, 1.0), (0.1, 0.2)),
        "queue_packets": Estimate(1.0, 0.0, "queue", tuple(queues.values()), (0.0,) * len(queues)),
    }
    names = {"flow": ("a>b", "b>a"), "queue": tuple(queues)}
    return PointResult(number, {"simulate": Answer(metrics, names, {"events": number, "warnings": ["w"]})})


POINTS = grid({LIMIT: range(1, 6)})
RESULTS = [
    point(0, up=1, down=2),
    point(1, down=3, side=4),
    PointResult(2, {"simulate": Answer(failure=Failure("worker", "gone"))}),
    point(3, up=5),
]
"""Point 4 is not evaluated."""


@given(st.permutations(RESULTS))
@settings(max_examples=20)
def test_queues_are_matched_by_name_and_missing_points_say_so_in_whatever_order_points_are_finished(results):
    found = assemble(POINTS, ("simulate",), lambda: results)
    assert found.equals(assemble(POINTS, ("simulate",), lambda: RESULTS))
    assert found["queue"].values.tolist() == ["up", "down", "side"]
    queues = found["queue_packets_per_queue"].values
    np.testing.assert_array_equal(queues[:2], [[1, 2, np.nan], [np.nan, 3, 4]])
    assert found["failure"].values.tolist() == ["", "", "worker: gone", "", "not evaluated"]
    assert found["flow_name"].values.tolist() == ["a>b", "b>a"]
    assert found["warnings"].values.tolist() == ["w", "w", "", "w", ""]


def test_files_hold_every_bit_and_a_finished_sweep_is_not_computed_again(formula, tmp_path):
    target, said, over = tmp_path / "result.nc", [], SOME | {"link.arq": ["none"]}
    written = sweep(thesis(), over, out=target, workers=1)
    read = read_sweep(target)
    assert read.equals(written) and read["goodput_kbps"].attrs["units"] == "kbit/s"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    formula.network.solve = None  # a call would fail
    again = sweep(thesis(), over, out=target, workers=1, notes=said.append)
    assert again.equals(written) and "complete already" in said[0]


def test_equal_scenarios_whose_points_differ_are_other_sweeps(tmp_path, formula):
    """A point changes what was written: a window that follows the segments is another one than its value."""
    plain = thesis()
    written = plain.with_(transport__initial_window_segments=plain.transport.initial_window_segments)
    assert plain == written
    over = {"transport.mss_bytes": [500, 1460]}
    sweep(plain, over, out=tmp_path / "found.nc", workers=1)
    with pytest.raises(StoreError, match="written"):
        sweep(written, over, out=tmp_path / "found.nc", workers=1)
