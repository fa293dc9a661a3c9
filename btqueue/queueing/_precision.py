"""Double precision for entry points, without touching JAX's global configuration."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from btqueue.queueing._jax_cache import keep_room

Function = TypeVar("Function", bound=Callable[..., Any])


def _to_numpy(leaf: Any) -> Any:
    concrete = isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer)
    return np.asarray(leaf) if concrete else leaf


def in_float64(function: Function) -> Function:
    """Run ``function`` with JAX's 64-bit types switched on for the length of the call.

    Queue-length laws span ten and more orders of magnitude; single precision loses the tail that a loss
    probability is read from. The caller's own JAX precision is left as it was; a caller in single precision
    gets its results as numpy arrays, which JAX would otherwise round in the next operation.
    """

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        outermost = jnp.result_type(float) != jnp.float64
        if outermost and not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((args, kwargs))):
            keep_room()
        with jax.enable_x64(True):
            result = function(*args, **kwargs)
        return jax.tree.map(_to_numpy, result) if outermost else result

    return cast(Function, wrapper)
