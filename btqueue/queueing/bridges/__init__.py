"""Servers that visit two groups of queues in turn, and what passes between the groups."""
