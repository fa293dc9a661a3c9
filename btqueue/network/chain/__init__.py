"""Chains of hops with adaptive packet types (Chen 2004)."""
