"""The single-server queue with room for K packets, batch arrivals, first come first served.

M/G/1/K, M^X/G/1/K and Geo/G/1/K, with services of whole slots and the two time axes of `single_queue`. A
batch too big for the room left is accepted in part, or refused as a whole. Nothing leaves during a service,
so the queue moves through it slot by slot with one matrix; the queue left behind by departures is a Markov
chain on ``0..K-1``. What an accepted packet waits follows by counting: the rest of the service in progress
and the services of the packets ahead of it. Exact at any load.

Sources: Takagi, Queueing Analysis, vol. 2 (1993) (M/G/1/K) and vol. 3 (1993) (Geo/G/1/K);
Manfield & Tran-Gia, IEEE Trans. Commun. 30 (1982) (batches, both ways of acceptance).
"""

import math
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.elimination import stationary_law
from btqueue.queueing.errors import is_traced, require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic import arrivals as arrival_laws
from btqueue.queueing.traffic import batch_streams
from btqueue.queueing.traffic.arrivals import BernoulliBatches
from btqueue.queueing.traffic.batch_streams import BatchStream

Acceptance = Literal["partial", "whole"]

HALVINGS = 6
TERMS = 20
"""A slot is doubled up from 2**-6 of one, where 20 terms of the series do up to 60 batches a slot."""


class FiniteQueueSolution(eqx.Module):
    """Steady state of a queue with room for K packets; times in slots.

    Laws of times count whole slots: on the slotted axis from the end of the slot of arrival, in continuous
    time rounded up. Moments are of the times themselves, from the moment of arrival.

    Attributes:
        load: work offered a slot.
        throughput: packets served a slot.
        packet_loss: share of the packets offered that are lost.
        batch_loss: share of the batches not accepted in full.
        batch_refusal: share of the batches of which nothing is accepted.
        at_departures: law of the packets left behind by a departure, ``(K,)``.
        at_arrivals: law of the packets found by an accepted packet, those before it in its batch included,
            ``(K,)``.
        at_slot_starts: law at slot starts, the packet in service included, ``(K + 1,)``; in continuous time
            the same as ``occupancy``.
        occupancy: law at a random moment, which is also what a batch finds, ``(K + 1,)``.
        mean_queue: mean of ``occupancy``.
        wait: law of an accepted packet's wait, ``(K * len(service),)``.
        sojourn: law of its wait plus service.
        mean_wait: mean time from arrival to start of service.
        second_moment_wait: its mean square.
        mean_sojourn: mean time from arrival to end of service.
    """

    load: Array
    throughput: Array
    packet_loss: Array
    batch_loss: Array
    batch_refusal: Array
    at_departures: Array
    at_arrivals: Array
    at_slot_starts: Array
    occupancy: Array
    mean_queue: Array
    wait: Array
    sojourn: Array
    mean_wait: Array
    second_moment_wait: Array
    mean_sojourn: Array


class _Slot(NamedTuple):
    """How the content grows while nothing leaves, ``(K + 1, K + 1)`` matrices."""

    whole: Array  # over a slot
    part: Array  # (3, ...) up to an arrival at u of the way, weighted by (1 - u)**j for j = 0, 1, 2


def _batch_step(sizes: Array, capacity: int, acceptance: Acceptance) -> Array:
    """Transition matrix of the content when a batch comes."""
    laws = lattice.truncate(sizes, capacity + 1)
    if acceptance == "partial":
        return lattice.filling_matrix(laws)
    return jnp.diag(_too_big(sizes, capacity)) + lattice.rising(laws.probabilities)


def _too_big(sizes: Array, capacity: int) -> Array:
    """``Pr(X > K - q)`` for ``q = 0..K``."""
    return jnp.where(arrival_laws.too_big(sizes, capacity), sizes, 0.0).sum(axis=1)


def _slot(arrivals: BatchStream, step: Array) -> _Slot:
    """Matrices of one slot. For Poisson batches ``exp(rate u (step - 1))``, doubled up from a short interval.

    Sums of products of non-negative numbers only. The integrals over the interval are by Gauss's rule, exact
    for the polynomials that are kept.
    """
    unit = jnp.eye(step.shape[0])
    rate = batch_streams.batch_rate(arrivals)
    if isinstance(arrivals, BernoulliBatches):
        nothing = jnp.zeros_like(unit)
        return _Slot((1.0 - rate) * unit + rate * step, jnp.stack([unit, nothing, nothing]))
    short = 2.0**-HALVINGS
    powers = jax.lax.scan(lambda power, _: (power @ step, power), unit, None, length=TERMS)[1]
    nodes, weights = np.polynomial.legendre.leggauss(16)
    nodes, weights = short * (1.0 + nodes) / 2.0, short * weights / 2.0
    order = jnp.arange(TERMS)
    factorial = jnp.exp(jax.lax.lgamma(order + 1.0))

    def batches_within(time: ArrayLike) -> Array:
        expected = rate * jnp.asarray(time)[..., None]
        return jnp.exp(-expected) * expected**order / factorial

    whole = jnp.tensordot(batches_within(short), powers, 1)
    ages = (short - nodes) ** np.arange(3)[:, None] * weights
    part = jnp.tensordot(ages @ batches_within(nodes), powers, 1)
    for doubling in range(HALVINGS):
        time = short * 2.0**doubling
        first = jnp.stack(
            [part[0], part[1] + time * part[0], part[2] + 2 * time * part[1] + time**2 * part[0]]
        )
        part = first + whole @ part
        whole = whole @ whole
    return _Slot(whole, part)


def _polynomial(weights: Array, matrix: Array) -> Array:
    """``sum_l weights[l] matrix**l`` with about ``2 sqrt(n)`` products (Paterson & Stockmeyer)."""
    size = math.isqrt(weights.shape[0] - 1) + 1
    blocks = jnp.pad(weights, (0, -weights.shape[0] % size)).reshape(-1, size)
    giant, baby = jax.lax.scan(
        lambda power, _: (power @ matrix, power), jnp.eye(matrix.shape[0]), None, length=size
    )

    def horner(total: Array, block: Array) -> tuple[Array, None]:
        return total @ giant + jnp.tensordot(block, baby, 1), None

    return jax.lax.scan(horner, jnp.zeros_like(matrix), blocks, reverse=True)[0]


def _accepted(sizes: Array, capacity: int, acceptance: Acceptance) -> Array:
    """Mean packets accepted with exactly ``m`` ahead of them, of a batch that finds ``q``, ``(K + 1, K)``."""
    beyond = lattice.truncate(lattice.survival(sizes), capacity + 1).probabilities
    accepted = lattice.rising(beyond)
    if acceptance == "whole":  # not those of batches too big for the room
        accepted = accepted - jnp.triu(jnp.broadcast_to(_too_big(sizes, capacity)[:, None], accepted.shape))
    return accepted[:, :capacity]


def _wait_law(idle: Array, busy: Array, service: Array, rounded: int) -> Array:
    """Sum over ``m`` of ``m`` services after an idle server, or a residual and ``m - 1`` after a busy one.

    ``idle`` is ``(K,)`` and ``busy`` ``(n, K)`` by residual and ``m``; by FFT, right to a few 1e-16 absolute.
    """
    size = idle.shape[0] * service.shape[0]
    one = jnp.fft.rfft(service, size)
    residuals = jnp.fft.rfft(jnp.pad(busy, ((rounded, 0), (0, 0))), size, axis=0)
    terms = jnp.pad(residuals[:, 1:], ((0, 0), (0, 1))) + idle

    def horner(total: Array, term: Array) -> tuple[Array, None]:
        return total * one + term, None

    spectrum = jax.lax.scan(horner, jnp.zeros_like(one), terms.T, reverse=True)[0]
    return jnp.maximum(jnp.fft.irfft(spectrum, size), 0.0)


@eqx.filter_jit
def _solve(
    arrivals: BatchStream, service: Array, capacity: int, acceptance: Acceptance, slotted: bool
) -> FiniteQueueSolution:
    sizes = jnp.asarray(arrivals.batch_size)
    step = _batch_step(sizes, capacity, acceptance)
    slot = _slot(arrivals, step)
    mean_service = lattice.mean(service)

    # the chain of departures, and a service start for each
    opening = slot.whole[0, 1:] if slotted else step[0, 1:]
    mean_idle = 1.0 / (opening.sum() * (1.0 if slotted else batch_streams.batch_rate(arrivals)))
    starts = jnp.eye(capacity, capacity + 1).at[0].set(jnp.append(0.0, opening / opening.sum()))
    left = stationary_law((starts @ _polynomial(service, slot.whole))[:, 1:])
    idle = left[0] * mean_idle
    cycle = idle + mean_service

    # the content in each slot of a service, weighted by the services that last so long
    longest = service.shape[0] - 1
    ages = jax.lax.scan(lambda law, _: (law @ slot.whole, law), left @ starts, None, length=longest)[1]
    empty = jnp.eye(capacity + 1)[0]
    at_slot_starts = (idle * empty + lattice.survival(service) @ ages) / cycle
    moving = lattice.survival(service) @ ages @ slot.part[0]
    occupancy = (idle * (empty @ slot.part[0] if slotted else empty) + moving) / cycle

    # accepted packets by the time to the slot's end (j), the slots of service left after it, and those ahead
    accept = _accepted(sizes, capacity, acceptance) / lattice.mean(sizes) / cycle
    rest = jnp.arange(longest)[:, None] + jnp.arange(longest)[None, :] + 1
    remaining = jnp.where(rest <= longest, service[jnp.minimum(rest, longest)], 0.0)
    busy = remaining @ (ages @ slot.part) @ accept
    waking = jnp.array([1.0, 0.0, 0.0])[:, None] * empty if not slotted else slot.part[:, 0]
    at_once = idle * waking @ accept
    accepted = busy[0].sum() + at_once[0].sum()
    ahead = jnp.arange(capacity)
    variance = lattice.second_moment(service) - mean_service**2

    def power_sums(weights: Array, time: Array, services: Array) -> tuple[Array, Array]:
        """Mean and mean square of ``time + services + rest of slot``, weighted."""
        mean = time + services * mean_service
        square = mean**2 + services * variance
        return (weights[0] * mean + weights[1]).sum(), (
            weights[0] * square + 2.0 * weights[1] * mean + weights[2]
        ).sum()

    waits_busy = power_sums(busy, jnp.arange(longest)[:, None], jnp.maximum(ahead - 1, 0))
    waits_idle = power_sums(at_once, jnp.zeros(()), ahead)
    mean_wait, second_wait = ((a + b) / accepted for a, b in zip(waits_busy, waits_idle, strict=True))
    wait = _wait_law(at_once[0], busy[0], service, 0 if slotted else 1) / accepted
    batch_loss = arrival_laws.batch_loss(occupancy, sizes)
    return FiniteQueueSolution(
        load=batch_streams.offered_load(arrivals, service),
        throughput=1.0 / cycle,
        packet_loss=arrival_laws.packet_loss(occupancy, sizes, whole=acceptance == "whole"),
        batch_loss=batch_loss,
        batch_refusal=occupancy[capacity] if acceptance == "partial" else batch_loss,
        at_departures=left,
        at_arrivals=(busy[0].sum(axis=0) + at_once[0]) / accepted,
        at_slot_starts=at_slot_starts if slotted else occupancy,
        occupancy=occupancy,
        mean_queue=lattice.mean(occupancy),
        wait=wait,
        sojourn=lattice.convolve(wait, service),
        mean_wait=mean_wait,
        second_moment_wait=second_wait,
        mean_sojourn=mean_wait + mean_service,
    )


@in_float64
def finite_queue(
    *,
    arrivals: BatchStream,
    service: ArrayLike,
    capacity: int,
    acceptance: Acceptance = "partial",
    slotted: bool = True,
) -> FiniteQueueSolution:
    """Exact steady state of the queue with room for ``capacity`` packets, at any load.

    The cost is ``O(capacity**3 sqrt(len(service)))``.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per slot; up to 60 Poisson batches a slot.
        service: law of a packet's service, in slots, at least one.
        capacity: largest queue K, packet in service included.
        acceptance: what becomes of a batch too big for the room left: accepted in ``"partial"``, or refused
            as a ``"whole"``.
        slotted: whether service begins at slot boundaries only.

    Raises:
        ValueError: if an argument is out of range, Bernoulli batches are given in continuous time, or no
            batch ever fits.

    Example:
        >>> from btqueue.queueing.single.finite_queue import finite_queue
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> found = finite_queue(
        ...     arrivals=PoissonBatches(0.2, [0.0, 1.0]), service=[0.0] * 6 + [1.0], capacity=3, slotted=False
        ... )
        >>> round(float(found.packet_loss), 6)
        0.25488
    """
    batch_streams.require_stream(arrivals, service, slotted)
    require_count(capacity, "capacity")
    if acceptance not in ("partial", "whole"):
        raise ValueError(f"acceptance must be 'partial' or 'whole', got {acceptance!r}")
    sizes = arrivals.batch_size
    if acceptance == "whole" and not is_traced(sizes) and not np.asarray(sizes)[: capacity + 1].any():
        raise ValueError(f"capacity must leave room for the smallest batch, got {capacity}")
    return _solve(arrivals, jnp.asarray(service), capacity, acceptance, slotted)
