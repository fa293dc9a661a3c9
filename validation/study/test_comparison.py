"""Summaries and the comparison, on datasets small enough to check by hand."""

import json
import math

import numpy as np
import pytest
import xarray as xr
from thesis import thesis, thesis_of

from btqueue.scenario import METRICS
from btqueue.study import side_by_side, summarise
from btqueue.study.comparison import axis_label

SCENARIO = thesis(title="by hand")
GOODPUT = np.array([[100.0, 110.0], [120.0, 110.0], [90.0, 130.0]])
"""Means over flows: 105, 115, 110."""
QUEUES = ["token_buffer", "uplink", "downlink"]


def simulated() -> xr.Dataset:
    variables = {
        "fairness": ("replication", np.array([1.0, 0.9, 0.8])),
        "queue_packets": (("replication", "queue"), np.array([[1.0, 2, 3], [2, 3, 4], [3, 4, 5]])),
        "goodput_kbps": (("replication", "flow"), GOODPUT),
        "loss_radio": (("replication", "flow"), np.zeros((3, 2))),
        "rtt_s": (("replication", "flow"), np.array([[np.nan, 0.2], [0.4, np.nan], [np.nan, np.nan]])),
        "delay_s": (("replication", "flow"), np.full((3, 2), np.nan)),
    }
    return xr.Dataset(variables, coords={"queue": QUEUES}, attrs={"events": 7, "seed": 1})


def solved(**variables: object) -> xr.Dataset:
    attrs = {"converged": True, "residual": 1e-9, "iterations": 5, "method": "by hand", "warnings": []}
    return xr.Dataset(variables, coords={"queue": QUEUES}, attrs=attrs)


@pytest.mark.parametrize(
    ("metric", "mean", "ci95", "means"),
    [
        # standard deviation 5, t quantile 4.302653 for two degrees of freedom
        ("goodput_kbps", 110, 4.302652729911275 * 5 / math.sqrt(3), (310 / 3, 350 / 3)),
        # two replications are left
        ("rtt_s", 0.3, 12.706204736 * 0.1, (0.4, 0.2)),
    ],
)
def test_intervals_are_students_over_the_replications_with_an_observation(metric, mean, ci95, means):
    summary = summarise(simulated())[metric]
    assert (summary.mean, summary.ci95) == pytest.approx((mean, ci95))
    assert summary.means == pytest.approx(means)


def test_a_metric_without_any_observation_is_left_out_and_order_is_the_vocabularys():
    names = list(summarise(simulated()))
    assert names == ["goodput_kbps", "rtt_s", "loss_radio", "queue_packets", "fairness"]
    assert names == [name for name in METRICS if name in names]


def test_headings_of_quantities():
    for row, label in {
        "max(delay_p95_s, sensors)": "greatest message delay, 95 %, sensors (s)",
        "max(rtt_s, sensors (near))": "greatest round-trip time, sensors (near) (s)",
        "min(goodput_kbps)": "least goodput (kbit/s)",
    }.items():
        assert axis_label(row) == label


def test_both_sides_are_compared_over_the_same_flows():
    """Theory knows the second flow only; the simulation's mean over both would be another quantity."""
    model = solved(goodput_kbps=("flow", [np.nan, 114.0]))
    row = side_by_side(SCENARIO, model, simulated()).sel(metric="goodput_kbps")
    assert (float(row["model"]), float(row["simulation"])) == pytest.approx((114.0, 350 / 3))
    assert str(row["long_name"].values) == "goodput (1 of 2 flows)"


def test_comparison_of_hand_made_results():
    model = solved(goodput_kbps=("flow", [108.0, 114.0]), rtt_s=("flow", [2.0, 2.0]), cycle_s=((), 0.03))
    result = side_by_side(SCENARIO, model, simulated())
    goodput = result.sel(metric="goodput_kbps")
    found = [goodput[name].item() for name in ("model", "relative_difference", "inside")]
    assert found == pytest.approx([111, 1 / 110, True]) and goodput["units"].item() == "kbit/s"
    assert not bool(result["inside"].sel(metric="rtt_s"))  # 2 s against 0.3 ± 1.27 s
    about = ("model_method", "simulation_events", "simulation_replications")
    assert [result.attrs[name] for name in about] == ["by hand", 7, 3]
    assert thesis_of(json.loads(result.attrs["scenario"])) == SCENARIO


def test_what_a_side_cannot_give_is_named_and_never_zero():
    model = solved(goodput_kbps=("flow", [108.0, 114.0]), cycle_s=((), 0.03), delay_s=("flow", [np.nan] * 2))
    result = side_by_side(SCENARIO, model, simulated())
    queues = [f"queue_packets[{queue}]" for queue in QUEUES]
    assert result.attrs["model_missing"] == ["rtt_s", "loss_radio", *queues, "fairness"]
    assert result.attrs["simulation_missing"] == ["cycle_s"]
    assert "delay_s" not in result["metric"].values
    assert np.isnan(result["model"].sel(metric=result.attrs["model_missing"])).all()
    assert np.isnan(result["simulation"].sel(metric="cycle_s"))
    assert not result["inside"].sel(metric=["rtt_s", "cycle_s"]).any()


def test_queues_are_compared_by_name():
    model = solved(queue_packets=("queue", [2.0, 30.0, 4.0]))
    result = side_by_side(SCENARIO, model, simulated())
    assert bool(result["inside"].sel(metric="queue_packets[downlink]"))
    assert not bool(result["inside"].sel(metric="queue_packets[uplink]"))
    names = result["long_name"]
    assert names.sel(metric="queue_packets[token_buffer]").item() == "queue length, token buffer"


def test_a_simulated_zero_is_compared_without_dividing_by_it():
    for loss, inside in ((0.0, True), (0.1, False)):
        result = side_by_side(SCENARIO, solved(loss_radio=("flow", [loss, loss])), simulated())
        row = result.sel(metric="loss_radio")
        assert np.isnan(row["relative_difference"])
        assert bool(row["inside"]) == inside
