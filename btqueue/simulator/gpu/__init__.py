"""Replications on a GPU, all at once, by the same event loop."""
