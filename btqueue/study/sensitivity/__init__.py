"""The keys that an answer depends on, and how much.

Locally (derivatives and elasticities at one operating point), in closed form, and over whole ranges of the
keys (Sobol's shares of variance).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from btqueue.scenario import Scenario, ScenarioError
from btqueue.study.points import Progress
from btqueue.study.sensitivity.formulas import Evaluated, formula, formulas_of
from btqueue.study.sensitivity.local import local_sensitivity
from btqueue.study.sensitivity.over_ranges import global_sensitivity

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Evaluated", "formula", "formulas_of", "global_sensitivity", "local_sensitivity", "sensitivity"]


def sensitivity(
    scenario: Scenario,
    method: Literal["local", "sobol"] = "local",
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
        method: "local" (derivatives and elasticities, `local_sensitivity`), or "sobol" (shares of variance
            over the spreads of all keys, `global_sensitivity`).
        metrics: names, or quantities, as ``"p95(delay_s, sensors)"``; by default goodput, round-trip
            time, message delay (of a source with a load), segment loss and timeouts.
        keys: dotted; by default every key with an effect.
        spread: plausible range by key, as ``{"radio.ber": "1e-6..1e-4"}``.
        workers: processes at once.
        progress: called with the points done and the points known to be needed.
        more: further arguments of the method: *share*; *samples* and *seed* of "sobol".

    Raises:
        ScenarioError: as the method's function, like other errors.
    """
    methods = {"local": local_sensitivity, "sobol": global_sensitivity}
    if method not in methods:
        raise ScenarioError(f'method = "{method}": must be one of {", ".join(methods)}')
    for name, given in (("metrics", metrics), ("keys", keys)):
        if isinstance(given, str):
            raise ScenarioError(f'{name} = "{given}": must be a list, as in ["{given}"]')
    more |= {"metrics": metrics, "keys": keys, "spread": spread, "workers": workers, "progress": progress}
    return methods[method](scenario, **more)
