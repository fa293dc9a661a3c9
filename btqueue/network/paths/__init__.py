"""Greedy TCP over outside links and a piconet: closed networks, and renewal chains of the window."""
