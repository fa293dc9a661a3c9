"""What is counted and what comes of it: metrics, intervals, series, the warm-up, conservation."""
