"""For each model of the solver the points at which it is laid beside the simulator.

A module has `points()`, the scenarios by name, and `REASONS`: where the model is worse, and why, in Markdown.
"""
