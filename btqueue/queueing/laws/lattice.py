"""Probability laws on the lattice of slots: a vector whose entry ``k`` is the probability of ``k``.

Everything in slotted queueing is such a vector: how long a packet is sent, how long the server stays away,
how many packets join meanwhile. Two operations recur: adding independent quantities (convolution) and
counting what arrives during a random time (a compound law, evaluated by Horner's rule because
``sum_l w[l] a(z)**l`` is a polynomial in the law ``a`` of one slot). A law cut off at some length keeps its
first entries exact; the mass beyond is returned beside it and never spread over the rest.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64


class CutLaw(NamedTuple):
    """A law known exactly on ``0..n-1``, and the mass that lies beyond."""

    probabilities: Array  # (..., n)
    tail: Array  # (...)


def point(value: int) -> np.ndarray:
    """The law of a constant ``value`` (slots or packets), as a vector of length ``value + 1``.

    Example:
        >>> from btqueue.queueing.laws.lattice import point
        >>> point(2).tolist()
        [0.0, 0.0, 1.0]
    """
    law = np.zeros(value + 1)
    law[value] = 1.0
    return law


def uniform(low: int, high: int) -> np.ndarray:
    """The uniform law on ``low..high``, both included.

    Example:
        >>> from btqueue.queueing.laws.lattice import uniform
        >>> uniform(1, 4).tolist()
        [0.0, 0.25, 0.25, 0.25, 0.25]
    """
    law = np.zeros(high + 1)
    law[low:] = 1.0 / (high - low + 1)
    return law


def geometric(mean: float, *, tail: float = 1e-15) -> np.ndarray:
    """The geometric law on ``1, 2, ...`` with the given mean, cut where less than ``tail`` is left.

    The mass that was cut is put on the last point, so that the law sums to one.

    Raises:
        ValueError: if ``mean`` is not above 1.

    Example:
        >>> from btqueue.queueing.laws.lattice import geometric
        >>> geometric(2.0)[:4].round(4).tolist()
        [0.0, 0.5, 0.25, 0.125]
    """
    if not mean > 1.0:
        raise ValueError(f"mean of a geometric law on 1, 2, ... must be above 1, got {mean}")
    failure = 1.0 - 1.0 / mean
    longest = int(np.ceil(np.log(tail) / np.log(failure))) + 1
    law = np.concatenate(([0.0], failure ** np.arange(longest) / mean))
    law[-1] += failure**longest
    return law


@in_float64
def mean(law: ArrayLike) -> Array:
    """Mean of a law on its last axis, ``(..., n) -> (...)``.

    Example:
        >>> from btqueue.queueing.laws.lattice import mean
        >>> float(mean([0.5, 0.25, 0.25]))
        0.75
    """
    law = jnp.asarray(law)
    return law @ jnp.arange(law.shape[-1], dtype=law.dtype)


@in_float64
def second_moment(law: ArrayLike) -> Array:
    """Mean square of a law on its last axis, ``(..., n) -> (...)``.

    Example:
        >>> from btqueue.queueing.laws.lattice import second_moment
        >>> float(second_moment([0.5, 0.25, 0.25]))
        1.25
    """
    law = jnp.asarray(law)
    return law @ jnp.arange(law.shape[-1], dtype=law.dtype) ** 2


@in_float64
def survival(law: ArrayLike) -> Array:
    """``Pr(L > e)`` for ``e = 0..n-2``, summed from the far end so that small tails keep their digits.

    Example:
        >>> from btqueue.queueing.laws.lattice import survival
        >>> survival([0.5, 0.25, 0.25]).tolist()
        [0.5, 0.25]
    """
    law = jnp.asarray(law)
    return jnp.cumsum(law[..., ::-1], axis=-1)[..., ::-1][..., 1:]


@in_float64
def truncate(law: ArrayLike, length: int) -> CutLaw:
    """The first ``length`` entries of a law (padded with zeros where it is shorter), and the mass beyond.

    Example:
        >>> from btqueue.queueing.laws.lattice import truncate
        >>> law, tail = truncate([0.5, 0.25, 0.25], 2)
        >>> (law.tolist(), float(tail))
        ([0.5, 0.25], 0.25)
    """
    law = jnp.asarray(law)
    head = law[..., :length]
    head = jnp.pad(head, [(0, 0)] * (law.ndim - 1) + [(0, length - head.shape[-1])])
    return CutLaw(head, law[..., length:].sum(axis=-1))


@in_float64
def convolve(first: ArrayLike, second: ArrayLike) -> Array:
    """Law of the sum of two independent quantities, by FFT.

    Entries carry an absolute error of a few ``eps log2(n + m)``.

    Shapes ``(..., n)`` and ``(..., m)`` give ``(..., n + m - 1)``.

    Example:
        >>> from btqueue.queueing.laws.lattice import convolve
        >>> convolve([0.5, 0.5], [0.5, 0.5]).round(6).tolist()
        [0.25, 0.5, 0.25]
    """
    first, second = jnp.asarray(first), jnp.asarray(second)
    length = first.shape[-1] + second.shape[-1] - 1
    spectrum = jnp.fft.rfft(first, length) * jnp.fft.rfft(second, length)
    return jnp.fft.irfft(spectrum, length)


def rising(weights: Array) -> Array:
    """Matrices with ``weights[j - i]`` on and above the diagonal, ``(..., n) -> (..., n, n)``.

    Example:
        >>> from btqueue.queueing.laws.lattice import rising
        >>> import jax.numpy as jnp
        >>> rising(jnp.array([0.5, 0.25, 0.25])).tolist()
        [[0.5, 0.25, 0.25], [0.0, 0.5, 0.25], [0.0, 0.0, 0.5]]
    """
    shift = jnp.arange(weights.shape[-1])[None, :] - jnp.arange(weights.shape[-1])[:, None]
    return jnp.where(shift >= 0, weights[..., jnp.maximum(shift, 0)], 0.0)


def _addition(law: Array, tail: Array) -> Array:
    """Matrix that adds one summand: ``A[i, j] = law[j - i]`` below ``n``, and column ``n`` for all beyond."""
    known = rising(law)
    beyond = tail + jnp.concatenate([jnp.zeros(1), jnp.cumsum(law[::-1])[:-1]])
    column = jnp.append(beyond, 1.0)
    return jnp.concatenate([jnp.pad(known, ((0, 1), (0, 0))), column[:, None]], axis=1)


@in_float64
@partial(jax.jit, static_argnames=("length",))
def compound(counts: ArrayLike, summand: ArrayLike | CutLaw, length: int) -> CutLaw:
    """Law of a sum of a random number of independent summands, on ``0..length-1``.

    ``sum_l counts[l] summand^{*l}`` by Horner's rule, ``O(len(counts) * length**2)``. Cutting after every
    step is exact: an entry below ``length`` never depends on one above. ``counts`` may be any non-negative
    weights and may carry leading axes (several laws at once). The tail is carried through every step, without
    a subtraction; what a vector ``summand`` lacks of one is taken to lie at ``length`` or beyond.

    With ``counts`` the law of a duration in slots and ``summand`` the law of the arrivals of one slot, this
    is the law of the arrivals during that time; with ``survival(duration)`` it is the occupancy integral.

    Raises:
        ValueError: if ``summand`` is a `CutLaw` known on fewer than ``length`` points.

    Example:
        >>> from btqueue.queueing.laws.lattice import compound
        >>> compound([0.5, 0.5], [0.0, 0.5, 0.5], 3).probabilities.round(6).tolist()
        [0.5, 0.25, 0.25]
    """
    counts = jnp.asarray(counts)
    if isinstance(summand, CutLaw):
        if summand.probabilities.shape[-1] < length:
            raise ValueError(f"summand is known on {summand.probabilities.shape[-1]} points, {length} needed")
        head, beyond = truncate(summand.probabilities, length)
        step = _addition(head, beyond + summand.tail)
    else:
        head, beyond = truncate(summand, length)
        step = _addition(head, beyond + jnp.maximum(1.0 - jnp.sum(jnp.asarray(summand)), 0.0))
    start = jnp.zeros((*counts.shape[:-1], length + 1), counts.dtype)

    def horner(partial: Array, weight: Array) -> tuple[Array, None]:
        return (partial @ step).at[..., 0].add(weight), None

    total, _ = jax.lax.scan(horner, start, jnp.moveaxis(counts, -1, 0), reverse=True)
    return CutLaw(total[..., :length], total[..., length])


@in_float64
@jax.jit
def filling_matrix(arrivals: CutLaw) -> Array:
    """Transition matrix of a queue that only fills: ``q -> min(q + arrivals, K)``.

    ``arrivals`` is known on ``0..K`` (shape ``(..., K + 1)``); the result has shape ``(..., K + 1, K + 1)``.
    Applying the capacity once to the sum is exact, because nothing leaves in between. Row sums equal the
    total mass, so the same function turns occupancy integrals into time spent at each content.

    Example:
        >>> from btqueue.queueing.laws.lattice import CutLaw, filling_matrix
        >>> import jax.numpy as jnp
        >>> filling_matrix(CutLaw(jnp.array([0.5, 0.25]), jnp.array(0.25))).tolist()
        [[0.5, 0.5], [0.0, 1.0]]
    """
    law, tail = arrivals
    beyond = tail[..., None] + jnp.cumsum(law[..., ::-1], axis=-1)[..., ::-1]  # Pr(arrivals >= k)
    return rising(law).at[..., -1].set(beyond[..., ::-1])
