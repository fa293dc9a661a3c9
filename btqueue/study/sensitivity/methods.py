"""All methods behind one function: derivatives, shares of variance, effects over ranges, simulated slopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from btqueue.scenario import Problem, Scenario, ScenarioError
from btqueue.study.sensitivity.by_simulation import simulated_slopes
from btqueue.study.sensitivity.local import local_sensitivity
from btqueue.study.sensitivity.over_ranges import global_sensitivity
from btqueue.study.sensitivity.solving import Progress

if TYPE_CHECKING:
    import xarray as xr


def sensitivity(
    scenario: Scenario,
    method: Literal["local", "sobol", "morris", "simulate"] = "local",
    metrics: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    spread: Mapping[str, Any] | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    **more: Any,
) -> xr.Dataset:
    """Return how metrics depend on keys, with dimensions (metric, key).

    Args:
        scenario: the operating point.
        method: "local" (derivatives and elasticities, `local_sensitivity`), "sobol" or "morris" (over the
            spreads of all keys, `global_sensitivity`), or "simulate" (`simulated_slopes`).
        metrics: names, or quantities, as ``"p95(delay_s, sensors)"``; by default goodput, round-trip
            time, message delay (of a source with a load), segment loss and timeouts.
        keys: dotted; by default all that matter.
        spread: plausible range by key, as ``{"radio.ber": "1e-6..1e-4"}``.
        workers: processes or threads at once.
        progress: called with the points done and the points known to be needed.
        more: further arguments of the method: *share*; *samples*, *pairs* and *seed* of "sobol" and "morris".

    Raises:
        ScenarioError: as the method's function, like other errors.
    """
    if method not in (methods := ("local", "sobol", "morris", "simulate")):
        raise ScenarioError(Problem(f'method = "{method}": must be one of {", ".join(methods)}'))
    for name, given in (("metrics", metrics), ("keys", keys)):
        if isinstance(given, str):
            raise ScenarioError(Problem(f'{name} = "{given}": must be a list, as in ["{given}"]'))
    wanted: dict[str, Any] = {"metrics": metrics, "keys": keys, "spread": spread, "progress": progress}
    wanted |= more
    if method == "local":
        return local_sensitivity(scenario, **wanted, workers=workers).dataset()
    if method == "simulate":
        return simulated_slopes(scenario, **wanted, threads=workers)
    return global_sensitivity(scenario, method, **wanted, workers=workers)
