"""Loads over outside links and at most one piconet, carried or not."""
