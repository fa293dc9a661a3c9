"""Real time: real programs over a modelled network (Linux)."""
