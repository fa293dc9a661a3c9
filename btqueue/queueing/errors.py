"""The checks of arguments that the queueing models share."""

from typing import Any

import jax
import numpy as np
from jax.core import Tracer


def is_traced(*values: Any) -> bool:
    """True if any value is abstract (under ``jit``, ``grad`` or ``vmap``) and cannot be inspected.

    Example:
        >>> from btqueue.queueing.errors import is_traced
        >>> is_traced(1.0)
        False
    """
    return any(isinstance(leaf, Tracer) for leaf in jax.tree_util.tree_leaves(values))


def require_law(law: Any, name: str, *, atol: float = 1e-9) -> None:
    """Raise ``ValueError`` unless the last axis of ``law`` holds probabilities that sum to one.

    A traced value passes: its numbers are not known yet.

    Example:
        >>> from btqueue.queueing.errors import require_law
        >>> require_law([0.5, 0.5], "service")
    """
    if is_traced(law):
        return
    probabilities = np.asarray(law, dtype=float)
    if probabilities.ndim == 0 or probabilities.shape[-1] == 0:
        raise ValueError(f"{name} must be a vector of probabilities, got shape {probabilities.shape}")
    if not np.isfinite(probabilities).all() or (probabilities < -atol).any():
        raise ValueError(f"{name} must hold finite, non-negative probabilities")
    totals = probabilities.sum(axis=-1)
    if np.abs(totals - 1.0).max() > atol:
        raise ValueError(f"{name} must sum to one, got {totals}")


def require_no_mass_at_zero(law: Any, name: str) -> None:
    """Raise ``ValueError`` if ``law`` gives the value 0 a positive probability (a traced one passes).

    Example:
        >>> from btqueue.queueing.errors import require_no_mass_at_zero
        >>> require_no_mass_at_zero([0.0, 1.0], "service")
    """
    if not is_traced(law) and (np.asarray(law)[..., 0] > 0).any():
        raise ValueError(f"{name} must give no probability to zero")


def require_positive(value: Any, name: str) -> None:
    """Raise ``ValueError`` unless ``value`` is a positive finite number (a traced one passes).

    Example:
        >>> from btqueue.queueing.errors import require_positive
        >>> require_positive(3.0, "rate")
    """
    if not is_traced(value) and not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, got {value}")


def require_count(value: float, name: str, *, least: int = 1) -> None:
    """Raise ``ValueError`` unless ``value`` is a whole number of at least ``least``.

    Example:
        >>> from btqueue.queueing.errors import require_count
        >>> require_count(3, "limit")
    """
    if int(value) != value or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value}")
