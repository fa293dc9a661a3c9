"""Grids of systems that several models answer."""
