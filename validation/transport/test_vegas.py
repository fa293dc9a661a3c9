"""Vegas behind a bottleneck: how many segments it lets wait there, from below and from above."""

import pytest

from btqueue.transport.vegas import Round, settled

PIPE = 40
"""Segments that the path holds; one is served in a hundredth of a second."""


@pytest.mark.parametrize(("start", "low", "high"), [(2.0, 1.0, 3.0), (float(PIPE), 2.0, 3.0)])
def test_alpha_to_beta_segments_wait_and_no_more_than_beta_where_there_were_more(start, low, high):
    """From above it stops at the last whole step of a window before beta, or on it."""
    cwnd = settled(
        lambda window: Round(max(PIPE, window) / 100, window, window),
        alpha=1.0, beta=3.0, gamma=1.0, window=200, start=start,
    )  # fmt: skip
    assert PIPE + low <= cwnd <= PIPE + high
