"""Answers of theory: whether they are doubted, and how near they are to simulated ones."""

import numpy as np
import pytest

import btqueue as bt
from btqueue.scenario.metrics import Results


def doubted(scenario: bt.Scenario, words: str) -> bool:
    """Return whether a doubt of theory about the scenario has these words."""
    return any(words in doubt for doubt in bt.solve(scenario).attrs["why"])


def average(found: Results, metric: str) -> float:
    return float(np.nanmean(np.asarray(found[metric], float)))


def mean(scenario: bt.Scenario, metric: str) -> float:
    """Return the mean over flows of a metric by theory."""
    return average(bt.solve(scenario), metric)


def near_simulation(scenario: bt.Scenario, **within: float) -> Results:
    """Check that means over flows are within these shares of simulated ones; return theory's answer."""
    solved, simulated = bt.solve(scenario), bt.simulate(scenario)
    for metric, share in within.items():
        assert average(solved, metric) == pytest.approx(average(simulated, metric), rel=share), metric
    return solved
