"""The bins of the delay histograms: every time is counted once, in the bin whose edges hold it."""

import numpy as np


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
