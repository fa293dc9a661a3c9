"""Packets that wait for tokens: losses, waits and what passes."""
