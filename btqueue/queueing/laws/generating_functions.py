"""Generating functions: evaluating them, differentiating them at 1, and getting the law back.

In an infinite queue nearly everything is known through its generating function ``P(z) = sum_k p_k z^k``. Two
rules keep the arithmetic free of cancellation. ``1 - P(z)`` is never formed by itself near ``z = 1`` but as
``(1 - z) excess(p, z)``, where ``excess(p, z) = sum_k Pr(N > k) z^k`` has positive coefficients and is E[N]
at 1. And a law is read from its function on a circle inside the unit disc, where the function is smooth.

Source: Abate & Whitt, Oper. Res. Letters 12 (1992) (the circle).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.lattice import CutLaw

TransformFunction = Callable[[Array], Array]

# points on the circle for each wanted coefficient, and what may fold back from beyond all of them
OVERSAMPLING = 8
FOLDED = 1e-15
DECAY_SERIES = 1.0 / np.cumprod(np.arange(1.0, 31.0))
"""Coefficients of (1 - exp(-x)) / x, without signs."""


def evaluate(law: ArrayLike, z: ArrayLike) -> Array:
    """``P(z)`` of a law on ``0..n-1``, real or complex ``z`` of any shape.

    Example:
        >>> from btqueue.queueing.laws.generating_functions import evaluate
        >>> float(evaluate([0.5, 0.25, 0.25], 0.5))
        0.6875
    """
    return jnp.polyval(jnp.asarray(law)[::-1], jnp.asarray(z), unroll=2)


def excess(law: ArrayLike, z: ArrayLike) -> Array:
    """``(1 - P(z)) / (1 - z) = sum_k Pr(N > k) z^k``; the mean at ``z = 1``.

    Example:
        >>> from btqueue.queueing.laws.generating_functions import excess
        >>> float(excess([0.5, 0.25, 0.25], 1.0))
        0.75
    """
    return evaluate(lattice.survival(law), z)


def mean_decay(x: ArrayLike) -> Array:
    """``(1 - exp(-x)) / x``, the mean of ``exp(-x u)`` over u uniform on (0, 1), smooth at ``x = 0``.

    By its power series, meant for ``|x|`` of a few units at most (30 terms: 1e-23 at 2, 1e-15 at 4).

    Example:
        >>> import jax
        >>> from btqueue.queueing.laws.generating_functions import mean_decay
        >>> with jax.enable_x64(True):
        ...     round(float(mean_decay(1.0)), 6)
        0.632121
    """
    return evaluate(DECAY_SERIES, -jnp.asarray(x))


def circle(length: int) -> Array:
    """Upper half of the circle on which ``length`` coefficients are read, ``(4 * length + 1,)``.

    Example:
        >>> from btqueue.queueing.laws.generating_functions import circle
        >>> circle(4).shape
        (17,)
    """
    points = OVERSAMPLING * length
    radius = FOLDED ** (1.0 / points)
    turn = jnp.arange(points // 2 + 1) / points
    return radius * jnp.exp(-2j * jnp.pi * turn)


def coefficients(values: Array, length: int) -> CutLaw:
    """The law on ``0..length-1`` whose generating function takes ``values`` on `circle`, and the mass beyond.

    Mass beyond ``8 * length`` folds back weighted by 1e-15 and rounding grows by at most 75, so entries are
    right to about 1e-14, absolute; smaller ones are noise, and negative noise is set to zero. A law that may
    be infinite has the probability of infinity in its tail.

    Example:
        >>> from btqueue.queueing.laws.generating_functions import circle, coefficients, evaluate
        >>> law = coefficients(evaluate([0.5, 0.25, 0.25], circle(3)), 3)
        >>> law.probabilities.round(6).tolist()
        [0.5, 0.25, 0.25]
    """
    points = OVERSAMPLING * length
    radius = FOLDED ** (1.0 / points)
    folded = jnp.fft.irfft(values, points)[:length]
    law = jnp.maximum(folded * radius ** -jnp.arange(length), 0.0)
    return CutLaw(law, jnp.maximum(1.0 - law.sum(), 0.0))


def moments(laplace: TransformFunction) -> tuple[Array, Array]:
    """Mean and mean square from ``E[exp(-s T)]``, differentiated twice at ``s = 0``.

    Example:
        >>> from btqueue.queueing.laws.generating_functions import moments
        >>> import jax.numpy as jnp
        >>> [round(float(value), 6) for value in moments(lambda s: jnp.exp(-3 * s))]
        [3.0, 9.0]
    """

    def slope(s: Array) -> Array:
        return jax.jvp(laplace, (s,), (jnp.ones_like(s),))[1]

    zero = jnp.zeros(())
    first, second = jax.jvp(slope, (zero,), (jnp.ones_like(zero),))
    return -first, second
