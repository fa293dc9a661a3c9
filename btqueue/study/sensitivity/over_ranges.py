"""Which keys a metric's spread comes from while all keys vary over their ranges at once: Sobol, by SALib.

Inputs of a function are shares: each lies between 0 and 1, evenly, and the function turns them into values. A
function may have no value at a point (NaN). Points belong together in blocks; a block with a missing value is
left out whole, and counted.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from btqueue.scenario import ScenarioError
from btqueue.simulator.traces.extras import require
from btqueue.study.evaluate import Answer
from btqueue.study.sensitivity.factors import Factor, coordinates
from btqueue.study.sensitivity.local import Solver, active_factors

Function = Callable[[np.ndarray], np.ndarray]
"""From shares, shape (points, inputs), to values, shape (points, outputs); NaN where there is none."""
CONFIDENCE = 0.95
RESAMPLES = 200
"""Bootstrap samples for the intervals."""
SOBOL = {"first": "S1", "first_ci95": "S1_conf", "total": "ST", "total_ci95": "ST_conf"}
"""Our names of the indices, and SALib's."""
CONSTANT = 1e-9
"""Relative variation of an output that is none."""
LEAST_KEPT = 0.5
"""Share of the blocks that must be complete."""
SAMPLES = 256
"""Blocks by default."""
MOST_POINTS = 1_000_000
"""A study of more points is surely a slip."""


class TooFewPoints(RuntimeError):
    """Too many points have no value for an index that means anything; the message says how many."""


def sobol_indices(function: Function, names: Sequence[str], samples: int, seed: int) -> dict[str, np.ndarray]:
    """Return Sobol's shares of the variance, by Saltelli's scheme (2010), with bootstrapped 95 % intervals.

    ``first``: the share of the variance that fixing this input alone would remove. ``total``: the share that
    would be left if all others were fixed. The difference is interaction. ``first_ci95`` and ``total_ci95``
    are half-widths.

    Args:
        function: see `Function`.
        names: names of its inputs.
        samples: blocks of (inputs + 2) points; taken up to the next power of 2, which Sobol's sequence needs.
        seed: seed of the scrambling and of the bootstrap.

    Returns:
        By name the indices, shape (outputs, inputs); NaN for an output that does not vary. ``missing``: how
        many points have no value of an output, and ``kept``: how many blocks were used, both of shape
        (outputs,).

    Raises:
        MissingPackage: SALib is not installed.
        TooFewPoints: fewer than half of the blocks are complete.
    """
    sample, analyze = (
        require(f"SALib.{part}.sobol", "Sobol indices", "sensitivity") for part in ("sample", "analyze")
    )
    problem = {"num_vars": len(names), "names": list(names), "bounds": [[0.0, 1.0]] * len(names)}
    values = function(sample.sample(problem, _power_of_two(samples), calc_second_order=False, seed=seed))
    missing, block = np.isnan(values), len(values) // _power_of_two(samples)
    complete = ~np.any(missing.reshape(-1, block, values.shape[1]), axis=1)
    kept = complete.sum(axis=0)
    if kept.min() < max(LEAST_KEPT * len(complete), 2):
        raise TooFewPoints(
            f"{int(missing.any(axis=1).sum())} of {len(values)} points have no answer, and only {kept.min()} "
            f"of {len(complete)} groups of points are complete: choose narrower spreads"
        )
    outputs, inputs = values.shape[1], len(names)
    indices = {name: np.full((outputs, inputs), math.nan) for name in SOBOL}
    for place in range(outputs):
        column = values[np.repeat(complete[:, place], block), place]
        if np.ptp(column) > CONSTANT * np.abs(column).max():
            found = analyze.analyze(
                problem, column, calc_second_order=False, num_resamples=RESAMPLES, conf_level=CONFIDENCE,
                seed=seed + 1,  # SALib takes 0 for none
            )  # fmt: skip
            for ours, theirs in SOBOL.items():
                indices[ours][place] = np.ma.filled(np.ma.asarray(found[theirs], float), math.nan)
    return {**indices, "missing": missing.sum(axis=0), "kept": kept}


def _power_of_two(samples: int) -> int:
    return 1 << max(1, math.ceil(math.log2(samples)))


def shares_of_variance(
    solver: Solver, varied: list[Factor], samples: int, seed: int, *, chosen: bool
) -> xr.Dataset:
    """Return Sobol's indices, as `btqueue.study.sensitivity.sensitivity` describes them.

    Args:
        solver: of the scenario, with the metrics.
        varied: the keys.
        samples: blocks.
        seed: seed of the points and of the intervals' bootstrap.
        chosen: whether the user named the keys; else keys with an effect are taken.
    """
    names = tuple(solver.quantities)
    if not chosen:  # where an end has no answer, a default range would mostly fail
        varied = [
            f
            for f in active_factors(varied, names, solver)
            if f.spread and all(solver.at({f.key: end}).failure is None for end in f.ends)
        ]
    if not varied:
        raise ScenarioError("no key changes a metric within its spread: give wider spreads")
    for key in (factor.key for factor in varied if factor.spread is None):
        raise ScenarioError(f"{key} = 0: give its spread, as in --spread {key}=0..1e-3", key)
    points = _power_of_two(samples) * (len(varied) + 2)
    if points > MOST_POINTS:
        raise ScenarioError(f"{points:,} points are too many: take fewer samples (--samples)")
    answers, about = list[Answer](), solver.about

    def values(shares: np.ndarray) -> np.ndarray:
        """Return the metrics, shape (points, metrics), at shares of the spreads, shape (points, keys)."""
        spreads = [(factor.key, factor.spread) for factor in varied if factor.spread is not None]
        places = [
            {key: spread.at(share) for (key, spread), share in zip(spreads, row, strict=True)}
            for row in shares.tolist()
        ]
        solver.solve_all(places, "solve")
        answers.extend(map(solver.at, places))
        return np.array([[answer.mean(name) for name in names] for answer in answers])

    found = sobol_indices(values, [factor.key for factor in varied], samples, seed)
    reasons = Counter(str(answer.failure) for answer in answers if answer.failure is not None)
    doubts = [answer.notes["warnings"][0] for answer in answers if answer.notes.get("warnings")]
    attrs = {
        "study": "sobol", "points": points, "groups": _power_of_two(samples), "samples": samples,
        "seed": seed, "failed": sum(reasons.values()), "reasons": dict(reasons.most_common(5)),
        **about, "doubted": len(doubts), "doubt": doubts[0] if doubts else "",
        "simulated": sum(answer.notes.get("answered_by") == "simulation" for answer in answers),
    }  # fmt: skip
    labels = coordinates(names, varied, missing=found.pop("missing"), kept=found.pop("kept"))
    return xr.Dataset({name: (("metric", "key"), v) for name, v in found.items()}, labels, attrs)
