"""The checks of arguments that models in JAX share."""

from typing import Any

import jax
from jax.core import Tracer


def is_traced(*values: Any) -> bool:
    """True if any value is abstract (under ``jit``, ``grad`` or ``vmap``) and cannot be inspected.

    Example:
        >>> from btqueue.queueing.errors import is_traced
        >>> is_traced(1.0)
        False
    """
    return any(isinstance(leaf, Tracer) for leaf in jax.tree_util.tree_leaves(values))


def require_count(value: float, name: str, *, least: int = 1) -> None:
    """Raise ``ValueError`` unless ``value`` is a whole number of at least ``least``.

    Example:
        >>> from btqueue.queueing.errors import require_count
        >>> require_count(3, "limit")
    """
    if int(value) != value or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value}")
