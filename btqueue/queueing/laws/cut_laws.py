"""Arithmetic with laws that are known up to some length only: what is beyond is carried along, never dropped.

A vector is a law known everywhere (zero beyond its end); a `CutLaw` is one known exactly on ``0..n-1``, with
the mass of everything beyond. Results follow the same contract wherever it can be kept: a sum is known as far
as both summands are. Where it cannot (a sum of a random number of terms whose largest numbers are unknown;
moments), the answer is a pair of bounds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced
from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.lattice import CutLaw

Law = ArrayLike | CutLaw


class Bounds(NamedTuple):
    """A number known to lie between two others (equal where nothing was cut)."""

    lower: Array
    upper: Array


class UncertainLaw(NamedTuple):
    """A law of which some mass could not be placed.

    The probability of any event lies between what ``law`` gives and that plus ``unplaced``.
    """

    law: CutLaw
    unplaced: Array


def _parts(law: Law) -> tuple[Array, Array]:
    if isinstance(law, CutLaw):
        return jnp.asarray(law.probabilities), jnp.asarray(law.tail)
    head = jnp.asarray(law)
    return head, jnp.zeros(head.shape[:-1], head.dtype)


def _known(*laws: Law) -> int | None:
    """Length up to which all laws are known; ``None`` if everywhere."""
    return min((np.shape(law.probabilities)[-1] for law in laws if isinstance(law, CutLaw)), default=None)


@in_float64
def cut(law: Law, length: int) -> CutLaw:
    """A law on ``0..length-1`` and its mass beyond.

    Raises:
        ValueError: if a `CutLaw` is not known as far as that.
    """
    known = _known(law)
    if known is not None and known < length:
        raise ValueError(f"length must not exceed {known}, up to where the law is known, got {length}")
    head, tail = _parts(law)
    shorter = lattice.truncate(head, length)
    return CutLaw(shorter.probabilities, shorter.tail + tail)


@in_float64
def survival(law: CutLaw) -> Array:
    """``Pr(L > e)`` for ``e = 0..n-1``, exact, summed from the far end; the last one is the tail."""
    head, tail = _parts(law)
    return jnp.concatenate([lattice.survival(head), jnp.zeros_like(head[..., :1])], -1) + tail[..., None]


@in_float64
def convolve(first: Law, second: Law, *, direct: bool = True) -> CutLaw:
    """Law of the sum of two independent quantities, as far as both are known.

    Args:
        first: a law.
        second: another one.
        direct: term by term (``O(n m)``, every entry relatively accurate), or else by FFT (absolute error of
            a few ``eps``).
    """
    known = _known(first, second)
    (head, tail), (other, other_tail) = _parts(first), _parts(second)
    total = lattice.convolve_direct(head, other) if direct else lattice.convolve(head, other)
    # at least one of the two is beyond: disjoint cases, so that nothing is subtracted
    beyond = tail * (other.sum(-1) + other_tail) + head.sum(-1) * other_tail
    return cut(CutLaw(total, beyond), total.shape[-1] if known is None else min(known, total.shape[-1]))


@in_float64
def mixture(weights: ArrayLike | Sequence[float], laws: Sequence[Law]) -> CutLaw:
    """Law that is ``laws[i]`` with probability ``weights[i]``, as far as all of them are known.

    Raises:
        ValueError: if the weights are not probabilities, or not one for each law.
    """
    known = _known(*laws)
    longest = max(_parts(law)[0].shape[-1] for law in laws)
    parts = [cut(law, longest if known is None else known) for law in laws]
    probabilities = lattice.mixture(weights, [part.probabilities for part in parts])
    tails = jnp.stack([part.tail for part in parts])
    return CutLaw(probabilities, jnp.tensordot(jnp.asarray(weights, tails.dtype), tails, axes=1))


@in_float64
def compound(counts: Law, summand: Law, length: int) -> UncertainLaw:
    """Law on ``0..length-1`` of a random number of independent summands.

    A number beyond where ``counts`` is known has a sum that may lie anywhere (at ``n`` or beyond if every
    summand is at least one, which then places it): that mass is returned as ``unplaced``.

    Raises:
        ValueError: if ``summand`` is a `CutLaw` known on fewer than ``length`` points.
    """
    head, tail = _parts(counts)
    known = lattice.compound(head, summand, length)
    first = _parts(summand)[0][..., 0]
    beyond = (first == 0.0) & (head.shape[-1] >= length)
    law = CutLaw(known.probabilities, known.tail + jnp.where(beyond, tail, 0.0))
    return UncertainLaw(law, jnp.where(beyond, 0.0, tail))


@in_float64
def moment_bounds(law: Law, order: int = 1, *, longest: ArrayLike = jnp.inf) -> Bounds:
    """Bounds of ``E[L**order]``: the tail lies at the cut at least, and at ``longest`` at most.

    Without ``longest`` the upper bound is infinite as soon as there is a tail.
    """
    head, tail = _parts(law)
    known = lattice.moment(head, order)
    length = head.shape[-1]
    farthest = jnp.where(tail > 0, jnp.where(tail > 0, tail, 1.0) * jnp.asarray(longest, float) ** order, 0.0)
    return Bounds(known + tail * float(length) ** order, known + farthest)


@in_float64
def quantile(law: Law, level: ArrayLike) -> Array:
    """Smallest ``k`` with ``Pr(L <= k) >= level``; infinity where it lies beyond the cut and is not known.

    Raises:
        ValueError: if a level is outside 0..1.
    """
    head, tail = _parts(law)
    found = lattice.quantile(jnp.concatenate([head, tail[..., None]], axis=-1), level)
    return jnp.where((found >= head.shape[-1]) & (tail > 0), jnp.inf, found)


@in_float64
def equilibrium_residual(law: Law, mean: ArrayLike | None = None) -> CutLaw:
    """Law of the whole slots still to come, ``Pr(R = k) = Pr(L > k) / E[L]``, known as far as ``law`` is.

    A cut law does not determine its mean: whoever made it knows it and gives it here.

    Raises:
        ValueError: if ``law`` is cut and ``mean`` is missing, or below what the known part already gives.
    """
    if not isinstance(law, CutLaw):
        residual = lattice.equilibrium_residual(law)
        return CutLaw(residual, jnp.zeros(residual.shape[:-1], residual.dtype))
    if mean is None:
        raise ValueError("mean must be given for a law that is cut: its tail may lie anywhere")
    least = moment_bounds(law).lower
    if not is_traced(law, mean) and bool(jnp.any(jnp.asarray(mean) < least * (1.0 - 1e-12))):
        raise ValueError(f"mean must be at least {least}, which the known part of the law gives, got {mean}")
    above = survival(law)
    mean = jnp.asarray(mean, above.dtype)
    # E[L] = sum of all survivals; those from n on belong to the tail
    return CutLaw(above / mean[..., None], jnp.maximum(mean - above.sum(-1), 0.0) / mean)
