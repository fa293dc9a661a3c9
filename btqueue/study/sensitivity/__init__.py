"""The keys that an answer depends on, and how much.

Locally (derivatives and elasticities at one operating point), in closed form, and over whole ranges of the
keys (Sobol's shares of variance).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from btqueue.scenario import Scenario, ScenarioError
from btqueue.study.points import Progress
from btqueue.study.sensitivity.factors import SHARE, factors
from btqueue.study.sensitivity.formulas import Evaluated, formula, formulas_of
from btqueue.study.sensitivity.local import Solver, derivatives
from btqueue.study.sensitivity.over_ranges import SAMPLES, shares_of_variance

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Evaluated", "formula", "formulas_of", "sensitivity"]


def sensitivity(
    scenario: Scenario,
    method: Literal["local", "sobol"] = "local",
    metrics: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    spread: Mapping[str, Any] | None = None,
    *,
    share: float = SHARE,
    samples: int | None = None,
    seed: int = 1,
    workers: int | None = None,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Return how metrics depend on keys, with dimensions (metric, key).

    "local": derivatives and elasticities. Where theory stands they are its derivatives
    (`btqueue.network.variation.Plan`), or the reason why there is none; whole numbers get the differences of
    one step. Elsewhere they are slopes between simulations at 0.9 and 1.1 times the key's value, with a 95 %
    interval.

    "sobol": shares of variance while all keys vary at once and independently, evenly over their spreads
    (whole numbers: each equally likely). Points without an answer are counted, with their reasons; a block
    with such a point is left out, and the indices then hold for the part of the ranges that has answers.

    Args:
        scenario: the operating point.
        method: "local" or "sobol".
        metrics: names, or quantities, as ``"p95(delay_s, sensors)"``; by default goodput, round-trip
            time, message delay (of a source with a load), segment loss and timeouts. A metric stands for its
            mean over flows.
        keys: dotted; by default every key with an effect, but none of `[run]`.
        spread: plausible range by key, as ``{"radio.ber": "1e-6..1e-4"}``; ``"log(a,b)"`` is even in the
            logarithm.
        share: half the range of all other keys, as a share of their value.
        samples: blocks of points of "sobol", 256 by default.
        seed: seed of the points of "sobol", and of the intervals' bootstrap.
        workers: processes; by default this one alone, or all cores where there is much to do.
        progress: called with the points done and the points known to be needed.

    Returns:
        Dataset with the keys that have an effect on any of the metrics, in the order of the scenario.
        Coordinates: `value`, `low` and `high` of each key. Attributes: how the scenario itself was answered
        (`answered_by`, `why`, `warnings`), and more. Of "local":

        - `derivative` (in the metric's unit over the key's), its `error`, `left` and `right`, and `kind`, as
          `btqueue.study.sensitivity.local.Derivative` has them;
        - `elasticity`: relative change of the metric over a small relative change of the key; NaN if either
          is 0, if the simulations do not show the sign of the slope, or if a step of a whole number below
          and one above differ much, as where another packet is needed;
        - `effect`: the largest change of the metric at the ends of the spread, in the metric's unit;
        - `at_low`, `at_high`: the metric where the key is at the ends of its spread, NaN without an answer;
        - `note`: why something is missing;
        - coordinate `base`, the metric in the scenario; attributes `without_effect` (keys that change no
          metric within their spread), `without_range` (keys that are 0, of which a share is no range; they
          are left out unless *keys* or *spread* name them), `not_varied` (keys in entries of lists, as of
          single flows, which are varied only if *keys* names them; entries of `factors.LINKS` are always
          varied), `failed` (keys for which there is no answer beside the scenario itself, and why), `solved`
          (points).

        Of "sobol" the indices of `btqueue.study.sensitivity.over_ranges.sobol_indices`; attributes: how many
        points there were, how many had no answer and why, how many had warnings and the first warning, and
        how many were simulated because theory does not stand there.

    Raises:
        ScenarioError: a key, a range or a metric is wrong, or theory and simulation have no model of the
            scenario.
        NoConvergence: there is no operating point, and the scenario cannot be simulated.
        TooFewPoints: too many points of "sobol" have no answer.
        MissingPackage: SALib, for "sobol", is not installed.
    """
    if method not in ("local", "sobol"):
        raise ScenarioError(f'method = "{method}": must be one of local, sobol')
    for name, given in (("metrics", metrics), ("keys", keys)):
        if isinstance(given, str):
            raise ScenarioError(f'{name} = "{given}": must be a list, as in ["{given}"]')
    if samples is not None and (method == "local" or samples < 2):
        raise ScenarioError(f"samples = {samples}: 2 or more go with the method sobol")
    varied = factors(scenario, keys, spread, share)
    solver = Solver(scenario, metrics, workers, progress)
    if method == "sobol":
        return shares_of_variance(solver, varied, samples or SAMPLES, seed, chosen=keys is not None)
    return derivatives(solver, varied, keys, set(spread or ()))
