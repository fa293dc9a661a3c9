"""Which inputs of a function its spread comes from, over their whole ranges: Sobol and Morris, by SALib.

Inputs are shares: each lies between 0 and 1, evenly, and the function turns them into values. A function may
have no value at a point (NaN). Both methods are made of groups of points that belong together, a Sobol block
or a Morris trajectory; a group with a missing value is left out whole, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from btqueue.simulator.traces.extras import require

Function = Callable[[np.ndarray], np.ndarray]
"""From shares, shape (points, inputs), to values, shape (points, outputs); NaN where there is none."""

CONFIDENCE = 0.95
RESAMPLES = 200
"""Bootstrap samples for the intervals."""

SOBOL = {"first": "S1", "first_ci95": "S1_conf", "total": "ST", "total_ci95": "ST_conf"}
PAIRS = {"pair": "S2", "pair_ci95": "S2_conf"}
MORRIS = {"mean": "mu", "absolute": "mu_star", "absolute_ci95": "mu_star_conf", "deviation": "sigma"}
"""Our names of the indices, and SALib's."""

LEVELS = 4
"""Of each input in Morris's method."""

CONSTANT = 1e-9
"""Relative variation of an output that is none."""

LEAST_KEPT = 0.5
"""Share of the groups that must be complete."""


class TooFewPoints(RuntimeError):
    """Too many points have no value for an index that means anything; the message says how many."""


@dataclass(frozen=True)
class Indices:
    """The indices that a method found.

    Attributes:
        values: by name of the index, shape (outputs, inputs), of pairs (outputs, inputs, inputs); NaN for an
            output that does not vary, and for an input paired with itself.
        points: points that were evaluated.
        missing: of these, how many have no value of an output, shape (outputs,).
        groups: blocks or trajectories.
        kept: of these, how many were used, shape (outputs,).
    """

    values: dict[str, np.ndarray]
    points: int
    missing: np.ndarray
    groups: int
    kept: np.ndarray


def sobol_points(inputs: int, samples: int, pairs: bool = False) -> int:
    """Return how many points `sobol_indices` needs."""
    return _power_of_two(samples) * _sobol_block(inputs, pairs)


def _sobol_block(inputs: int, pairs: bool) -> int:
    """Return the points of one block: two, and for each input one that mixes them, for pairs one each way."""
    return 2 + (2 * inputs if pairs else inputs)


def morris_points(inputs: int, samples: int) -> int:
    """Return how many points `morris_effects` needs."""
    return samples * (inputs + 1)


def sobol_indices(
    function: Function, names: Sequence[str], samples: int, seed: int, *, pairs: bool = False
) -> Indices:
    """Return Sobol's shares of the variance, by Saltelli's scheme (2010), with bootstrapped 95 % intervals.

    ``first``: the share of the variance that fixing this input alone would remove. ``total``: the share that
    would be left if all others were fixed. The difference is interaction; ``pair`` is the share of the
    interaction of two inputs. ``first_ci95``, ``total_ci95`` and ``pair_ci95`` are half-widths.

    Args:
        function: see `Function`.
        names: of its inputs.
        samples: blocks of (inputs + 2) points, with pairs of (2 inputs + 2); taken up to the next power of 2,
            which Sobol's sequence needs.
        seed: of the scrambling and of the bootstrap.
        pairs: whether to find the indices of pairs.

    Raises:
        MissingPackage: SALib is not installed.
        TooFewPoints: fewer than half of the blocks are complete.
    """
    sample = require("SALib.sample.sobol", "Sobol indices", "sensitivity")
    analyze = require("SALib.analyze.sobol", "Sobol indices", "sensitivity")
    problem = _problem(names)
    shares = sample.sample(problem, _power_of_two(samples), calc_second_order=pairs, seed=seed)

    def indices(kept: np.ndarray, values: np.ndarray) -> Mapping[str, Any]:
        return analyze.analyze(
            problem, values, calc_second_order=pairs, num_resamples=RESAMPLES, conf_level=CONFIDENCE,
            seed=seed + 1,  # SALib takes 0 for none
        )  # fmt: skip

    wanted = SOBOL | PAIRS if pairs else SOBOL
    block = _sobol_block(len(names), pairs)
    found = _over_outputs(function(shares), shares, block, indices, wanted, constant=math.nan)
    both = {name: _both_ways(found.values[name]) for name in PAIRS if pairs}
    return replace(found, values=found.values | both)


def _both_ways(upper: np.ndarray) -> np.ndarray:
    """Return symmetric matrices from their parts above the diagonal, where the rest of *upper* is NaN."""
    return np.where(np.isnan(upper), upper.swapaxes(-1, -2), upper)


def morris_effects(function: Function, names: Sequence[str], samples: int, seed: int) -> Indices:
    """Return Morris's elementary effects (1991): changes of the output over the whole range of an input.

    ``mean``: their mean; ``absolute``: the mean of their sizes, with the half-width ``absolute_ci95`` of its
    bootstrapped 95 % interval; ``deviation``: their standard deviation, which is 0 where the input acts
    linearly and alone.

    Args:
        function: see `Function`.
        names: of its inputs.
        samples: trajectories of (inputs + 1) points.
        seed: of the trajectories and of the bootstrap.

    Raises:
        MissingPackage: SALib is not installed.
        TooFewPoints: fewer than half of the trajectories are complete.
    """
    sample = require("SALib.sample.morris", "Morris's effects", "sensitivity")
    analyze = require("SALib.analyze.morris", "Morris's effects", "sensitivity")
    problem = _problem(names)
    shares = sample.sample(problem, samples, num_levels=LEVELS, seed=seed)

    def effects(kept: np.ndarray, values: np.ndarray) -> Mapping[str, Any]:
        return analyze.analyze(
            problem, kept, values, num_resamples=RESAMPLES, conf_level=CONFIDENCE, num_levels=LEVELS,
            seed=seed + 1,
        )  # fmt: skip

    return _over_outputs(function(shares), shares, len(names) + 1, effects, MORRIS, constant=0.0)


def _problem(names: Sequence[str]) -> dict[str, Any]:
    return {"num_vars": len(names), "names": list(names), "bounds": [[0.0, 1.0]] * len(names)}


def _power_of_two(samples: int) -> int:
    return 1 << max(1, math.ceil(math.log2(samples)))


def _over_outputs(
    values: np.ndarray,
    shares: np.ndarray,
    group: int,
    analyse: Callable[[np.ndarray, np.ndarray], Mapping[str, Any]],
    names: Mapping[str, str],
    constant: float,
) -> Indices:
    """Analyse each output with its complete groups; outputs that do not vary get *constant*."""
    missing = np.isnan(values)
    complete = ~np.any(missing.reshape(-1, group, values.shape[1]), axis=1)
    kept = complete.sum(axis=0)
    if kept.min() < max(LEAST_KEPT * len(complete), 2):
        raise TooFewPoints(
            f"{int(missing.any(axis=1).sum())} of {len(values)} points have no answer, and only {kept.min()} "
            f"of {len(complete)} groups of points are complete: choose narrower spreads"
        )
    inputs = shares.shape[1]
    indices = {
        name: np.full((values.shape[1], *(inputs,) * (2 if name in PAIRS else 1)), constant) for name in names
    }
    for place in range(values.shape[1]):
        rows = np.repeat(complete[:, place], group)
        column = values[rows, place]
        if np.ptp(column) > CONSTANT * np.abs(column).max():
            found = analyse(shares[rows], column)
            for ours, theirs in names.items():
                indices[ours][place] = np.ma.filled(np.ma.asarray(found[theirs], float), math.nan)
    return Indices(indices, len(values), missing.sum(axis=0), len(complete), kept)
