"""Answers of theory: whether they are doubted, and how near they are to simulated ones."""

import numpy as np
import pytest

import btqueue as bt
from btqueue.scenario.metrics import Results


def doubted(scenario: bt.Scenario, words: str) -> bool:
    """Return whether a doubt of theory about the scenario has these words."""
    return any(words in doubt for doubt in bt.solve(scenario).attrs["why"])


def near_simulation(scenario: bt.Scenario, **within: float) -> Results:
    """Check that means over flows are within these shares of simulated ones; return theory's answer."""
    solved, simulated = bt.solve(scenario), bt.simulate(scenario)
    for metric, share in within.items():
        theory, truth = (float(np.nanmean(np.asarray(found[metric], float))) for found in (solved, simulated))
        assert theory == pytest.approx(truth, rel=share), metric
    return solved
