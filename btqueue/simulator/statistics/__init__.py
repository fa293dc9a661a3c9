"""Counts and the results from them: metrics, intervals, series, the warm-up, conservation."""
