"""The solver's answer and the simulator's, side by side."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from btqueue.scenario import METRICS, Scenario
from btqueue.scenario.metrics import Metric, Results
from btqueue.study.provenance import attributes
from btqueue.study.summary import NOTHING, Estimate, by_queue, labels_of, of_groups, of_same_flows, summarise

if TYPE_CHECKING:
    import xarray as xr


def compare(
    scenario: Scenario, threads: int | None = None, progress: Callable[[float], None] | None = None
) -> xr.Dataset:
    """Solve and simulate *scenario* and lay the results side by side.

    Args:
        scenario: the scenario that both engines answer.
        threads: replications simulated at once; the number of cores by default.
        progress: called with the share of a replication that has been finished since the last call.

    Returns:
        As `side_by_side`.

    Raises:
        NotBuiltYet: an engine does not cover the scenario.
        NoConvergence: the solver has no answer.
        InvariantViolated: the simulator's counts are inconsistent (a bug).
    """
    from btqueue.network import solve  # JAX and numba are loaded only when something is computed
    from btqueue.simulator import simulate

    solved = solve(scenario)
    return side_by_side(scenario, solved, simulate(scenario, threads=threads, progress=progress))


def side_by_side(
    scenario: Scenario, solved: Results | xr.Dataset, simulated: Results | xr.Dataset
) -> xr.Dataset:
    """Return the comparison of a solution with a simulation of the same scenario.

    Values are means over flows. If one side has no value of a flow, the means of both sides leave this flow
    out. Each queue has a row, as `queue_packets[uplink]`. Where flows differ, each group of flows has a row,
    as `goodput_kbps[sensors]`, with its least and its greatest flow, and metrics of links have a least and a
    greatest link.

    Returns:
        Dataset over `metric` (coordinates `units` and `long_name`) with

        - `model` and `simulation`: NaN where a side cannot give the metric; attributes `model_missing` and
          `simulation_missing` of the dataset name these;
        - `ci95`: half-width of the simulation's interval over replications; NaN for a single one;
        - `relative_difference`: (model - simulation) / simulation; NaN where the simulation's mean is 0;
        - `inside`: whether the model lies in the simulation's interval; False too where `model`, `simulation`
          or `ci95` is NaN and nothing can be said.

        Attributes: the scenario as JSON, how each side computed its answer, and provenance.
    """
    import xarray as xr

    model, simulation = rows_of(solved), rows_of(simulated)
    for name in model.keys() & simulation.keys():
        model[name], simulation[name] = of_same_flows(model[name], simulation[name])
    every = list({**model, **simulation})  # by the vocabulary; queues of one metric as they first appear
    names = sorted(every, key=lambda name: (list(METRICS).index(name.partition("[")[0]), every.index(name)))
    answer = np.array([model.get(name, NOTHING).mean for name in names])
    mean = np.array([simulation.get(name, NOTHING).mean for name in names])
    ci95 = np.array([simulation.get(name, NOTHING).ci95 for name in names])
    difference = np.divide(answer - mean, mean, out=np.full_like(mean, np.nan), where=mean != 0)
    columns = {
        "model": (answer, "solution of the model"),
        "simulation": (mean, "mean over flows and replications"),
        "ci95": (ci95, "half-width of the 95 % interval of the simulation"),
        "relative_difference": (difference, "(model - simulation) / simulation"),
        "inside": (np.abs(answer - mean) <= ci95, "the model lies in the simulation's interval"),
    }
    if "group" in simulated.variables:
        every_row = ((name, simulation.get(name, NOTHING)) for name in names)
        parts = (one if has_spread(name, one) else NOTHING for name, one in every_row)
        least, greatest = np.array([least_and_greatest(one) for one in parts]).T
        columns |= {
            "least": (least, "simulation of the least flow of a group, or of the least link"),
            "greatest": (greatest, "simulation of the greatest flow of a group, or of the greatest link"),
        }
    return xr.Dataset(
        {name: ("metric", values, {"description": text}) for name, (values, text) in columns.items()},
        coords={
            "metric": names,
            "units": ("metric", [metric_of(name).unit for name in names]),
            "long_name": ("metric", [heading(name, simulation.get(name, NOTHING)) for name in names]),
        },
        attrs={
            "title": scenario.title,
            **{f"model_{key}": value for key, value in solved.attrs.items() if value is not None},
            "model_missing": [name for name in names if name not in model],
            **{f"simulation_{key}": value for key, value in simulated.attrs.items() if value is not None},
            "simulation_replications": simulated.sizes["replication"],
            "simulation_missing": [name for name in names if name not in simulation],
            **attributes(scenario),
        },
    )


ROW = re.compile(r"(?:(\w+)\()?(\w+)(?:\[(.*)\]|, (.*?))?\)?")
"""A row of a table: function, metric, and the queue, flow or group that is meant."""
OF_SESSIONS = tuple(name for name in METRICS if "session" in name or name == "connect_time_s")
FUNCTIONS = {"min": "least ", "max": "greatest ", "sum": "total "}
"""In words."""


def metric_of(row: str) -> Metric:
    """Return the metric of a row: a name, one queue as `queue_packets[uplink]`, or a quantity of a metric."""
    return METRICS[metric_name(row)]


def metric_name(row: str) -> str:
    """Return the name of the metric of a row."""
    return _parts(row)[1]


def _parts(row: str) -> tuple[str, str, str]:
    """Return the function in words, the metric, and the queue, flow or group that is meant."""
    found = ROW.fullmatch(row)
    function, metric, who, among = found.groups("") if found else ("", row, "", "")
    return FUNCTIONS.get(function, ""), metric, who or among


def long_name(row: str) -> str:
    """Return the heading of a row, such as "queue length, uplink"."""
    function, metric, who = _parts(row)
    who = who.replace("_", " ") if metric == "queue_packets" else who
    return f"{function}{METRICS[metric].long_name}{who and f', {who}'}"


def axis_label(row: str) -> str:
    """Return name and unit of a row, such as ``goodput (kbit/s)``; a ratio has no unit."""
    unit = metric_of(row).unit
    return long_name(row) if unit == "1" else f"{long_name(row)} ({unit})"


def rows_of(results: Results | xr.Dataset) -> dict[str, Estimate]:
    """Return one estimate a row of a table: the queues of a metric, or the groups of flows, one by one.

    Before groups stands the mean over all flows, which `shown_rows` leaves out.
    """
    rows: dict[str, Estimate] = {}
    for name, found in summarise(results).items():
        queues, groups = by_queue(results, found), of_groups(found, labels_of(results, "group"))
        rows |= {} if queues else {name: found}
        rows |= {f"{name}[{part}]": one for part, one in (queues | groups).items()}
    return rows


def shown_rows(rows: Iterable[str]) -> list[str]:
    """Return the rows that tables show: no mean over all flows where there are groups."""
    every = list(rows)
    grouped = {metric_name(row) for row in every if "[" in row}
    return [row for row in every if row not in grouped]


def heading(row: str, estimate: Estimate) -> str:
    """Return the heading of a row, with the number of flows that have a value if some flows have none.

    Of sessions, only the flow that carries the requests has values.
    """
    known, count = sum(not math.isnan(mean) for mean in estimate.means), len(estimate.means)
    some = estimate.part == "flow" and known < count and metric_name(row) not in OF_SESSIONS
    return long_name(row) + (f" ({known} of {count} flows)" if some else "")


def has_spread(row: str, estimate: Estimate) -> bool:
    """Whether a row of a table by groups shows least and greatest values: a row of a group, or of links."""
    return "[" in row or estimate.part == "link"


def least_and_greatest(estimate: Estimate) -> tuple[float, float]:
    """Return the values of the least and the greatest flow (or link) of a group; NaN in a group of one."""
    known = [mean for mean in estimate.means if not math.isnan(mean)]
    return (min(known), max(known)) if len(known) > 1 else (math.nan, math.nan)
