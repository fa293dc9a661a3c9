"""Polling with finite buffers, exactly: the chain of all queues at the instants when the server comes.

The joint law of the queues is carried through one cycle: in a visit to queue ``i`` every service fills all
queues during the same time and takes one customer of queue ``i``; a walk fills all queues. Nothing leaves
during either, so each capacity may be applied once at its end. The number of joint states, the product of
``K_i + 1``, has to be small (up to about 500): two queues of 20, three of 7. Any mixture of exhaustive, gated
and limited queues, and any laws on slots; overload is no exception.

Memory: ``states**2 * (longest law)`` numbers are not kept, only ``states**2``; time: one product of matrices
of that size for each service of a limited or gated visit, a linear solve for an exhaustive one.
"""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains import markov
from btqueue.queueing.errors import require_count, require_law, require_no_mass_at_zero
from btqueue.queueing.laws import lattice
from btqueue.queueing.polling.finite_measures import FinitePolling
from btqueue.queueing.polling.model import DISCIPLINES, Values

LARGEST = 1000
"""Joint states from which on the chain is refused: a dense matrix of its square is kept."""


class _Filling(eqx.Module):
    """What arrives in a random time: the joint matrix, and each queue's time at each content."""

    joint: Array  # (states, states)
    time: tuple[Array, ...]  # (K_i + 1, K_i + 1) for each queue: mean slots at a content, by content at start
    mean: Array


def _poisson(rate: Array, times: Array, size: int) -> Array:
    """Poisson probabilities of ``0..size-1`` arrivals, ``(times, size)``; time 0 brings none."""
    mean = rate * times
    counts = jnp.arange(size)
    safe = jnp.where(mean > 0, mean, 1.0)
    log = counts * jnp.log(safe)[:, None] - safe[:, None] - jax.scipy.special.gammaln(counts + 1.0)
    return jnp.where((mean > 0)[:, None], jnp.exp(log), jnp.eye(1, size))


def _filling(rates: Array, law: Array, sizes: tuple[int, ...]) -> _Filling:
    """Arrivals of all queues in one and the same time of this law."""
    times = jnp.arange(law.shape[0], dtype=float)
    matrices, contents = [], []
    for queue, size in enumerate(sizes):
        arrivals = _poisson(rates[queue], times, size)
        tail = jnp.maximum(1.0 - arrivals.sum(axis=1), 0.0)
        matrices.append(lattice.filling_matrix(lattice.CutLaw(arrivals, tail)))
        # E int_0^T 1{A(u) = m} du = P(A(T) > m) / lambda; the full queue takes what is left of the time
        brought = law @ arrivals
        beyond = (law.sum() - jnp.cumsum(brought)) / rates[queue]
        at = jnp.arange(size)[None, :] - jnp.arange(size)[:, None]
        spent = jnp.where((at >= 0) & (jnp.arange(size) < size - 1), beyond[jnp.maximum(at, 0)], 0.0)
        contents.append(spent.at[:, -1].set(law @ times - spent.sum(axis=1)))
    joint = jnp.zeros((int(np.prod(sizes)),) * 2)

    def add(total: Array, one: tuple[Array, ...]) -> tuple[Array, None]:
        weight, *each = one
        product = jnp.eye(1)
        for matrix in each:
            product = jnp.kron(product, matrix)
        return total + weight * product, None

    joint, _ = jax.lax.scan(add, joint, (law, *matrices))
    return _Filling(joint, tuple(contents), law @ times)


def _visit(
    service: Array, content: np.ndarray, lower: np.ndarray, discipline: str, limit: int
) -> tuple[Array, Array, Array, Array]:
    """A visit from every joint state: where it ends, mean services begun in every state, N and N (N - 1).

    ``service`` fills during one service, ``content`` is the visited queue's part of each state and ``lower``
    the state with one customer fewer there.
    """
    states = len(content)
    busy = jnp.asarray(content > 0, float)
    served_one = service @ jnp.eye(states)[lower]  # fill, then one leaves
    if discipline == "exhaustive":
        going = busy[:, None] * served_one
        # services begun, by state: sum of the powers of the chain that stops when the queue is empty
        begun = jnp.linalg.inv(jnp.eye(states) - going) * busy[None, :]
        ended = jnp.diag(1.0 - busy) + begun @ served_one * (1.0 - busy)[None, :]
        mean = begun.sum(axis=1)
        # E[N (N - 1)] = 2 sum over services begun of the services still to come after it
        return ended, begun, mean, 2.0 * begun @ (mean - 1.0)
    most = int(content.max()) if discipline == "gated" else limit
    allowed = content if discipline == "gated" else np.full(states, limit)

    def one_more(carry: tuple[Array, ...], count: Array) -> tuple[tuple[Array, ...], None]:
        now, ended, begun, mean, pairs = carry
        going = now * busy[None, :] * (jnp.asarray(allowed) > count)[:, None]
        starts = going.sum(axis=1)
        # the (count + 1)-th service adds 1 to N and 2 count to N (N - 1)
        return (
            going @ served_one,
            ended + now - going,
            begun + going,
            mean + starts,
            pairs + 2.0 * count * starts,
        ), None

    zeros, none = jnp.zeros((states, states)), jnp.zeros(states)
    start = (jnp.eye(states), zeros, zeros, none, none)
    (now, ended, begun, mean, pairs), _ = jax.lax.scan(one_more, start, jnp.arange(most))
    return ended + now, begun, mean, pairs


@partial(jax.jit, static_argnames=("disciplines", "limits", "capacities"))
def _solve(
    rates: Array,
    services: tuple[Array, ...],
    switches: tuple[Array, ...],
    disciplines: tuple[str, ...],
    limits: tuple[int, ...],
    capacities: tuple[int, ...],
) -> FinitePolling:
    n = len(capacities)
    sizes = tuple(capacity + 1 for capacity in capacities)
    joint = np.indices(sizes).reshape(n, -1)
    visits, cycle = [], jnp.eye(joint.shape[1])
    for queue in range(n):
        fewer = joint.copy()
        fewer[queue] = np.maximum(fewer[queue] - 1, 0)
        lower = np.ravel_multi_index(tuple(fewer), sizes)
        service = _filling(rates, services[queue], sizes)
        switch = _filling(rates, switches[queue], sizes)
        ended, begun, mean, pairs = _visit(
            service.joint, joint[queue], lower, disciplines[queue], limits[queue]
        )
        visits.append((service, switch, ended, begun, mean, pairs))
        cycle = cycle @ ended @ switch.joint
    law = markov.stationary_vector(cycle)
    served, pairs_served = [], []
    time_at = [jnp.zeros(size) for size in sizes]
    elapsed = jnp.zeros(())
    for service, switch, ended, begun, mean, pairs in visits:
        served.append(law @ mean)
        pairs_served.append(law @ pairs)
        starts, left = law @ begun, law @ ended
        elapsed = elapsed + starts.sum() * service.mean + switch.mean
        for queue in range(n):
            own = jax.nn.one_hot(joint[queue], sizes[queue])
            time_at[queue] += (starts @ own) @ service.time[queue] + (left @ own) @ switch.time[queue]
        law = left @ switch.joint
    mean_served = jnp.stack(served)
    throughput = mean_served / elapsed
    occupancy = jnp.stack([jnp.pad(t / elapsed, (0, max(sizes) - len(t))) for t in time_at])
    mean_queue = lattice.mean(occupancy)
    service_mean = jnp.stack([lattice.mean(one) for one in services])
    return FinitePolling(
        mean_cycle=elapsed,
        mean_served=mean_served,
        served_pairs=jnp.stack(pairs_served),
        throughput=throughput,
        blocking=jnp.stack([t[-1] / elapsed for t in time_at]),
        occupancy=occupancy,
        mean_queue=mean_queue,
        mean_sojourn=mean_queue / throughput,
        mean_wait=mean_queue / throughput - service_mean,
    )


@in_float64
def small_polling_chain(
    *,
    arrival_rate: Values,
    service_law: Sequence[ArrayLike],
    switch_law: Sequence[ArrayLike],
    capacity: Sequence[int],
    discipline: str | Sequence[str] = "exhaustive",
    limit: int | Sequence[int] = 1,
) -> FinitePolling:
    """Exact steady state of a few small queues, Poisson arrivals, differentiable in rates and laws.

    Args:
        arrival_rate: customers a slot, ``(n,)``.
        service_law: law of a service of each queue, in slots, at least one.
        switch_law: law of the walk after each queue's visit, in slots; not all may be 0.
        capacity: largest content of each queue, customer in service included.
        discipline: ``exhaustive``, ``gated`` or ``limited``, one or one for each queue.
        limit: most customers of a visit to limited queues.

    Raises:
        ValueError: naming the argument that is wrong, or if there are more than `LARGEST` joint states.
    """
    rates = jnp.asarray(arrival_rate, float)
    n = len(capacity)
    disciplines = (discipline,) * n if isinstance(discipline, str) else tuple(discipline)
    limits = (limit,) * n if isinstance(limit, int) else tuple(limit)
    for name, values in {
        "arrival_rate": rates,
        "service_law": service_law,
        "switch_law": switch_law,
        "discipline": disciplines,
        "limit": limits,
    }.items():
        if len(values) != n:
            raise ValueError(f"{name} needs one value for each of {n} queues, got {len(values)}")
    if any(one not in DISCIPLINES for one in disciplines):
        raise ValueError(f"discipline must be from {DISCIPLINES}, got {disciplines}")
    for own_capacity, own_limit, service, switch in zip(
        capacity, limits, service_law, switch_law, strict=True
    ):
        require_count(own_capacity, "capacity")
        require_count(own_limit, "limit")
        require_law(service, "service_law")
        require_no_mass_at_zero(service, "service_law")
        require_law(switch, "switch_law")
    states = int(np.prod([own + 1 for own in capacity]))
    if states > LARGEST:
        raise ValueError(f"capacity must leave at most {LARGEST} joint states, got {states}")
    return _solve(
        rates,
        tuple(jnp.asarray(law, float) for law in service_law),
        tuple(jnp.asarray(law, float) for law in switch_law),
        disciplines,
        tuple(limits),
        tuple(capacity),
    )
