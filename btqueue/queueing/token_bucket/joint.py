r"""A token bucket in front of a finite queue served M packets a visit: one exact chain for both.

The bucket paces the queue's input, so the two cannot be solved one after the other: taken for batch Poisson
the input loses too much at the queue, taken for single packets it loses nothing. The state here is the
bucket's level and the queue at the start of a visit; in between, the joint law is carried slot by slot
through the services and the vacation, where only arrivals change it. Its stationary vector solves a linear
system whose matrix is never formed (GMRES on the map "one cycle"), which is also how it is differentiated.

Order within a slot: tokens, the batch, then the end of a service or vacation. Sources: as
`token_bucket.chain` and `vacations`; GMRES: Saad & Schultz, SIAM J. Sci. Stat. Comput. 7 (1986).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.sparse.linalg import gmres
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import (
    ConvergenceError,
    is_traced,
    require_count,
    require_law,
    require_no_mass_at_zero,
)
from btqueue.queueing.laws import lattice
from btqueue.queueing.token_bucket.batch_loss import batch_loss_at_queue
from btqueue.queueing.token_bucket.chain import (
    LatticeBucket,
    advance,
    bucket_losses,
    drained,
    mean_waiting,
)
from btqueue.queueing.traffic.arrivals import BernoulliBatches

TOLERANCE = 1e-13
"""Residual of the stationary vector (Euclidean norm) that GMRES has to reach."""


class BucketAndQueueSolution(eqx.Module):
    """Steady state of a bucket and the queue behind it; times in slots.

    Attributes:
        joint: law of (level, queue) at a slot start, ``(highest level + 1, K + 1)``.
        bucket_packet_loss: share of the packets offered that the bucket's buffer refuses.
        bucket_batch_loss: share of the batches that lose at least one packet there.
        queue_packet_loss: share of the packets that passed the bucket that the queue refuses.
        queue_batch_loss: share of the batches offered that lose at least one packet at the queue.
        batch_loss: share of the batches that lose at least one packet at either place.
        throughput: packets served a slot.
        mean_token_wait: mean wait for tokens, of the packets that the bucket admits.
        mean_sojourn: mean time in the queue, service included, of the packets that it accepts.
        mean_cycle: mean time from visit to visit.
        residual: sum of absolute changes of the visit-start law over one cycle.
    """

    joint: Array
    bucket_packet_loss: Array
    bucket_batch_loss: Array
    queue_packet_loss: Array
    queue_batch_loss: Array
    batch_loss: Array
    throughput: Array
    mean_token_wait: Array
    mean_sojourn: Array
    mean_cycle: Array
    residual: Array


class _Model(eqx.Module):
    bucket: LatticeBucket
    batches: BernoulliBatches
    service: Array
    vacation: Array
    capacity: int = eqx.field(static=True)
    limit: int = eqx.field(static=True)


def _depart(law: Array) -> Array:
    return jnp.concatenate([law[..., 1:], jnp.zeros_like(law[..., :1])], axis=-1)


def _pass(model: _Model, start: Array, duration: Array) -> tuple[Array, Array]:
    """The weights after a random duration, and those at the start of each of its slots."""
    leaving = duration[1:]
    staying = lattice.survival(duration)

    def slot(law: Array, weights: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        leave, stay = weights
        after = advance(model.bucket, model.batches, law).joint
        return after, (leave * after, stay * law)

    _, (ends, starts) = jax.lax.scan(slot, start, (leaving, staying))
    return ends.sum(axis=0), starts


def _end_of_duration(model: _Model, start: Array, duration: Array) -> Array:
    """As `_pass`, without the slots between: Horner's rule in the map "one slot"."""

    def horner(partial: Array, weight: Array) -> tuple[Array, None]:
        return advance(model.bucket, model.batches, partial).joint + weight * start, None

    end, _ = jax.lax.scan(horner, duration[-1] * start, duration[:-1], reverse=True)
    return end


def _one_cycle(model: _Model, visit_start: Array) -> Array:
    """From one visit start to the next."""

    def serve(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        going, ended = carry
        served = _depart(_end_of_duration(model, going.at[:, 0].set(0.0), model.service))
        return (served, ended.at[:, 0].add(going[:, 0])), None

    (going, ended), _ = jax.lax.scan(
        serve, (visit_start, jnp.zeros_like(visit_start)), None, length=model.limit
    )
    return _end_of_duration(model, going + ended, model.vacation)


def _slots_of_cycle(model: _Model, visit_start: Array) -> tuple[Array, Array]:
    """Weights at the slot starts of services ``(M, s, levels, K + 1)`` and of the vacation ``(v, ...)``."""

    def serve(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        going, ended = carry
        end, starts = _pass(model, going.at[:, 0].set(0.0), model.service)
        return (_depart(end), ended.at[:, 0].add(going[:, 0])), starts

    (going, ended), services = jax.lax.scan(
        serve, (visit_start, jnp.zeros_like(visit_start)), None, length=model.limit
    )
    _, vacation = _pass(model, going + ended, model.vacation)
    return services, vacation


def _stationary(model: _Model) -> Array:
    shape = (model.bucket.highest + 1, model.capacity + 1)
    uniform = jnp.full(shape, 1.0 / (shape[0] * shape[1]))

    def change(law: Array) -> Array:
        return law - _one_cycle(model, law) + law.sum() * uniform

    law, _ = gmres(
        change, uniform, x0=uniform, tol=TOLERANCE, atol=0.0, restart=30, maxiter=60, solve_method="batched"
    )
    law = jnp.maximum(law, 0.0)  # rounding leaves a few entries at -1e-19
    return law / law.sum()


@eqx.filter_jit
def _solve(model: _Model) -> BucketAndQueueSolution:
    visit_start = _stationary(model)
    services, vacation = _slots_of_cycle(model, visit_start)
    mean_cycle = services.sum() + vacation.sum()
    joint = (services.sum((0, 1)) + vacation.sum(0)) / mean_cycle
    throughput = services[:, 0].sum() / mean_cycle  # every service has one first slot

    batches = model.batches
    losses = bucket_losses(model.bucket, batches, joint.sum(axis=1))
    passed = batches.packet_rate * (1.0 - losses.packets)

    def meet(law: Array) -> Array:
        rows = law.reshape(-1, *law.shape[-2:])
        return jax.vmap(lambda row: drained(model.bucket, row).joint)(rows).reshape(law.shape) / mean_cycle

    at_queue, of_whole = batch_loss_at_queue(
        model.bucket, batches, model.service, model.vacation, (meet(services), meet(vacation))
    )
    return BucketAndQueueSolution(
        joint=joint,
        bucket_packet_loss=losses.packets,
        bucket_batch_loss=losses.batches,
        queue_packet_loss=advance(model.bucket, batches, joint).overflow / passed,
        queue_batch_loss=at_queue,
        batch_loss=losses.batches + of_whole,
        throughput=throughput,
        mean_token_wait=mean_waiting(model.bucket, joint.sum(axis=1)) / passed,
        mean_sojourn=lattice.mean(joint.sum(axis=0)) / throughput,
        mean_cycle=mean_cycle,
        residual=jnp.abs(visit_start - _one_cycle(model, visit_start)).sum(),
    )


@in_float64
def bucket_and_queue(
    *,
    bucket: LatticeBucket,
    batches: BernoulliBatches,
    service: ArrayLike,
    vacation: ArrayLike,
    capacity: int,
    limit: int,
) -> BucketAndQueueSolution:
    """Exact steady state of a token bucket and the queue of limited service behind it.

    About ``(depth + buffer * token_slots) * capacity`` states; 12,000 take a fraction of a second. Where
    constant times with a common divisor keep tokens and server in step for ever, the answer is the average
    over the step they were started in.

    Args:
        bucket: the bucket, on the same lattice of slots.
        batches: its input.
        service: law of a packet's service, in slots, at least one.
        vacation: law of the vacation after a visit, in slots, at least one.
        capacity: largest queue K, packet in service included.
        limit: most packets served a visit M; a visit ends earlier when the queue is empty.

    Raises:
        ValueError: if a law is not one, allows zero slots, or a count is not positive.
        ConvergenceError: if the stationary law was not found to rounding.
    """
    require_count(capacity, "capacity")
    require_count(limit, "limit")
    for law, name in ((service, "service"), (vacation, "vacation")):
        require_law(law, name)
        require_no_mass_at_zero(law, name)
    solution = _solve(_Model(bucket, batches, jnp.asarray(service), jnp.asarray(vacation), capacity, limit))
    if not is_traced(solution.residual) and not float(solution.residual) < 1e-9:
        raise ConvergenceError(f"no stationary law was found: a cycle changes it by {solution.residual}")
    return solution


@in_float64
def greedy_bucket_and_queue(
    *, token_slots: int, service: ArrayLike, vacation: ArrayLike, capacity: int, limit: int
) -> BucketAndQueueSolution:
    """The limit of a greedy source: a packet always waits, so one passes every ``token_slots`` slots.

    Depth and buffer no longer matter. It is the joint chain with one place that is refilled at once; the
    losses at the bucket are then those of the refill and mean nothing.

    Arguments and errors as in `bucket_and_queue`.
    """
    return bucket_and_queue(
        bucket=LatticeBucket(token_slots, depth=0, buffer=1),
        batches=BernoulliBatches(1.0),
        service=service,
        vacation=vacation,
        capacity=capacity,
        limit=limit,
    )
