"""Queues with no network around them, to hold the simulator against queueing theory."""
