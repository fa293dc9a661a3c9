"""Vegas behind a bottleneck: how many segments it lets wait there, from below and from above."""

import pytest

from btqueue.transport.vegas import Round, window_walk

PIPE = 40
"""Segments that the path holds; one is served in a hundredth of a second."""


def path(sd: float):
    """Return the round trips behind the bottleneck, by the window."""
    return lambda window: Round(max(PIPE, window) / 100, sd * (window > PIPE), PIPE / 100, window, window)


@pytest.mark.parametrize("sd", [0.0, 1e-6])
@pytest.mark.parametrize(("start", "low", "high"), [(2.0, 1.0, 3.0), (float(PIPE), 2.0, 3.0)])
def test_alpha_to_beta_segments_wait_and_no_more_than_beta_where_there_were_more(sd, start, low, high):
    """From above it stops at the last whole step of a window before beta, or on it."""
    found = window_walk(path(sd), alpha=1.0, beta=3.0, gamma=1.0, window=200, start=start)
    assert PIPE + low <= found.cwnd <= PIPE + high


def test_random_round_trips_keep_the_mean_window_between_the_bounds():
    """Below alpha the walk goes up more often than down, above beta down more often than up."""
    found = window_walk(path(0.02), alpha=1.0, beta=3.0, gamma=1.0, window=200, start=float(PIPE))
    assert PIPE + 1.0 < found.cwnd < PIPE + 3.0
