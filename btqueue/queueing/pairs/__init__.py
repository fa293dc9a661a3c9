"""A server that visits stations in turn, each with a queue in either direction, and moves frame pairs."""
