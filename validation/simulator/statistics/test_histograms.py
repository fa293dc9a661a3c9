"""Delay histograms: every time is counted once, in the bin whose edges hold it, and what is read of them."""

import numpy as np
import pytest

from btqueue.simulator.statistics.histograms import BINS, edges, quantiles

LAWS = {
    "exponential": lambda random, size: random.exponential(0.05, size),
    "lognormal": lambda random, size: random.lognormal(-3, 1, size),
    "two peaks": lambda random, size: (
        np.where(random.random(size) < 0.7, 0.01, 1.0) * random.gamma(20, 0.05, size)
    ),
}


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("law", LAWS)
def test_quantiles_agree_with_those_of_the_sample_within_a_bin(law, share):
    times = LAWS[law](np.random.default_rng(4), 20_000)
    exact = np.quantile(times, share) * 1e9
    limits = edges()
    found = quantiles(np.histogram(times * 1e9, limits)[0][None], np.array([share]))[0, 0]
    place = np.searchsorted(limits, exact) - 1
    # the sample's quantile may lie at an edge: then the neighbour's bin is as good
    assert limits[place - 1] <= found <= limits[place + 2]


def test_flows_are_independent_and_an_empty_one_has_no_quantile():
    histograms = np.zeros((3, BINS), np.int64)
    histograms[0, 50] = 10
    histograms[2, 60] = 10
    found = quantiles(histograms, np.array([0.5]))[:, 0]
    limits = edges()
    assert limits[50] < found[0] < limits[51]
    assert np.isnan(found[1])
    assert limits[60] < found[2] < limits[61]


def bin_of(plain, time):
    """Count one time and return the bin that it fell into."""
    histogram = np.zeros(plain.histograms.BINS, np.int64)
    plain.histograms.count(histogram, time)
    assert histogram.sum() == 1
    return int(histogram.argmax())


def test_every_edge_begins_its_bin(plain):
    edges = plain.histograms.edges()
    assert [bin_of(plain, int(edge)) for edge in edges[:-1]] == list(range(plain.histograms.BINS))
    assert [bin_of(plain, int(edge) - 1) for edge in edges[1:]] == list(range(plain.histograms.BINS))


def test_times_outside_fall_into_the_first_and_the_last_bin(plain):
    assert {bin_of(plain, time) for time in (0, 1, 2**13 - 1)} == {0}
    assert {bin_of(plain, time) for time in (2**53, 2**60, 2**62)} == {plain.histograms.BINS - 1}


def test_the_bins_are_narrow_enough_for_quantiles_within_three_percent(plain):
    edges = plain.histograms.edges()
    assert len(edges) == plain.histograms.BINS + 1
    half_widths = np.diff(edges) / 2 / ((edges[1:] + edges[:-1]) / 2)
    assert half_widths.max() < 0.0304
