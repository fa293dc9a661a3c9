"""Maxima and steps whose corners are rounded off, so that every answer has derivatives."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ORDER = 8
"""Order of the norm that stands for a maximum."""


def positive(x: Array, width: Array | float) -> Array:
    """Return max(x, 0), with a parabola in the place of the corner within `width` of it."""
    near = np.clip((x + width) / (2.0 * np.asarray(width)), 0.0, 1.0)
    return np.where(x >= width, x, width * near**2)


def longer(one: Array, other: Array, width: Array | float) -> Array:
    """Return the larger of two numbers, rounded off by `width` where they are equal."""
    return other + positive(one - other, width)


def greater(one: Array, other: Array) -> Array:
    """Return about the larger of two numbers that are not negative, and just that if the other is 0.

    It is their norm of order `ORDER`, 9 % more where they are equal.
    """
    most = np.maximum(np.maximum(one, other), np.finfo(np.float64).tiny)
    return most * ((one / most) ** ORDER + (other / most) ** ORDER) ** (1.0 / ORDER)


def shorter(one: Array, other: Array, width: Array | float) -> Array:
    """Return the lesser of two numbers, rounded off by `width` where they are equal."""
    return one - positive(one - other, width)


def step(x: Array) -> Array:
    """Return a step from 0 to 1 between x = 0 and 1."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)
