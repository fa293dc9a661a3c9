"""Waiting and sojourn times in a queue with vacations, as whole laws, by counting positions.

Service is in order of arrival. A packet that arrives with ``m`` others to be served before it waits for the
rest of the current interval, for ``m`` services and for so many vacations as positions dictate: it keeps the
queue non-empty itself, so no visit ends early before its turn. With ``M`` services a visit it waits for

* ``floor(m / M)`` vacations, if it comes during a vacation;
* none if ``m < s``, else ``1 + floor((m - s) / M)``, if it comes during a service after which the visit
  allows ``s`` more. With ``r = m mod M`` that is ``floor(m / M)``, and one more if ``s <= r``.

The first vacation met from a visit is the one that closes that visit; all later ones follow full visits.
The joint law of the content and of the rest of the interval comes from the slots elapsed in it.

Sources: Takagi, Queueing Analysis, vol. 1 (1991); Keilson & Servi, Oper. Res. Letters 9 (1990).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.vacations.visit_epochs import VisitEpochs


class WaitingTime(eqx.Module):
    """Law of the times spent by the packets accepted, in whole slots after the slot of arrival.

    Attributes:
        wait: law of the whole slots until service begins, on ``0..horizon-1``, and the mass beyond.
        sojourn: the same until service ends.
        mean_rest_of_slot: mean time from arrival to the end of its slot. The time waited is this rest and
            the whole slots: Poisson batches come inside a slot, Bernoulli batches at its end (the rest is 0).
        accepted: share of the packets offered that are accepted.
        inside_slot: whether packets come inside a slot.
    """

    wait: lattice.CutLaw
    sojourn: lattice.CutLaw
    mean_rest_of_slot: Array
    accepted: Array
    inside_slot: Array

    @in_float64
    def wait_exceeds(self, slots: int) -> Array:
        """Probability that a packet waits longer than a whole number of ``slots``, below the horizon."""
        return _exceeds(self.wait, slots, self.inside_slot)

    @in_float64
    def sojourn_exceeds(self, slots: int) -> Array:
        """Probability that a packet stays longer than a whole number of ``slots``, below the horizon."""
        return _exceeds(self.sojourn, slots, self.inside_slot)


def _exceeds(law: lattice.CutLaw, slots: int, inside_slot: Array) -> Array:
    require_count(slots, "slots", least=0)
    length = law.probabilities.shape[-1]
    if slots >= length:
        raise ValueError(f"slots must be below the horizon {length}, got {slots}")
    # a rest of a slot makes a time of k whole slots exceed k
    beyond = jnp.where(inside_slot, jnp.arange(length) >= slots, jnp.arange(length) > slots)
    return law.tail + jnp.where(beyond, law.probabilities, 0.0).sum()


def _cut_product(first: Array, second: Array) -> Array:
    """Convolution of the last axes, cut at the length of ``first``: exact below it."""
    length = first.shape[-1]
    spectrum = jnp.fft.rfft(first, 2 * length) * jnp.fft.rfft(second[..., :length], 2 * length)
    return jnp.fft.irfft(spectrum, 2 * length)[..., :length]


def _arrived(epochs: VisitEpochs, slots: int, size: int) -> Array:
    """``(slots, size)``: law of what is ahead of a packet and came in its interval, after whole slots.

    That is the packets of the elapsed slots, those of its own slot that came before its batch, and those
    before it in the batch.
    """
    arrivals = epochs.arrivals
    before_me = lattice.survival(arrivals.batch_size) / lattice.mean(arrivals.batch_size)
    start = _cut_product(
        arrivals.part_slot_law(size).probabilities, lattice.truncate(before_me, size).probabilities
    )
    step = _shifted(arrivals.slot_law(size).probabilities)

    def one_slot(law: Array, _: None) -> tuple[Array, Array]:
        return law @ step, law

    return jax.lax.scan(one_slot, start, length=slots)[1]


def _shifted(law: Array) -> Array:
    """``T[..., i, j] = law[..., j - i]``, zero below the diagonal."""
    shift = jnp.arange(law.shape[-1])[None, :] - jnp.arange(law.shape[-1])[:, None]
    return jnp.where(shift >= 0, law[..., jnp.maximum(shift, 0)], 0.0)


def _rest_and_arrived(durations: Array, arrived: Array) -> Array:
    """``(..., rest, arrived)``: slots still to come after the current one, and what came since the start."""
    last = durations.shape[-1] - 1
    elapsed_and_rest = jnp.arange(last)[:, None] + jnp.arange(last)[None, :] + 1
    both = jnp.where(elapsed_and_rest <= last, durations[..., jnp.minimum(elapsed_and_rest, last)], 0.0)
    return both @ arrived[:last]


def _positions(starts: Array, rest_and_arrived: Array) -> Array:
    """``(..., m, rest)`` from starts with ``q`` present and arrivals ``a``, with ``m = q + a`` ahead."""
    return jnp.swapaxes(_shifted(starts), -1, -2) @ jnp.swapaxes(rest_and_arrived, -1, -2)


def _in_service(epochs: VisitEpochs, rest_and_arrived: Array, *, more_vacations: bool) -> Array:
    """``(G, m, rest)`` of arrivals during a service that meet one more vacation, or of those that do not."""
    # the packet in service is not waited for: m = (q - 1) + a
    starts = jnp.roll(epochs.service_starts.at[..., 0].set(0.0), -1, axis=-1)
    if not epochs.has_limit:
        met = epochs.discipline == "gated"  # behind the gate; never with exhaustive service
        return _positions(jnp.where(met == more_vacations, starts[:, 0], 0.0), rest_and_arrived)
    size, longest = starts.shape[-1], starts.shape[1]
    position = jnp.arange(size) % epochs.limit
    if more_vacations:
        by_position = jnp.cumsum(starts, axis=1)[:, position]  # s <= r
    else:
        beyond = jnp.flip(jnp.cumsum(jnp.flip(starts, axis=1), axis=1), axis=1)
        beyond = jnp.concatenate([beyond[:, 1:], jnp.zeros_like(beyond[:, :1])], axis=1)
        by_position = beyond[:, jnp.minimum(position, longest - 1)]  # s > r
    # by_position[g, m, q] with q = m - a
    q = jnp.arange(size)[:, None] - jnp.arange(size)[None, :]
    starts_before = jnp.where(q >= 0, by_position[:, jnp.arange(size)[:, None], jnp.maximum(q, 0)], 0.0)
    return starts_before @ rest_and_arrived.T


def _to_horizon(items: Array, horizon: int) -> Array:
    """The last axis cut or padded to ``horizon``."""
    return lattice.truncate(items, horizon).probabilities


def _queue_up(items: Array, epochs: VisitEpochs, full_visit: Array, *, from_visit: int) -> Array:
    """``sum_m items[m] * B^m * V^max(floor(m / M) - from_visit, 0)`` as a law, by Horner's rule."""
    size, horizon = items.shape
    by_service = jnp.fft.rfft(epochs.service[:horizon], 2 * horizon)
    both = _cut_product(_to_horizon(epochs.service, horizon), full_visit)
    by_both = jnp.fft.rfft(both, 2 * horizon)

    def one_position(later: Array, item: tuple[Array, Array]) -> tuple[Array, None]:
        mine, position = item
        crosses = (position % epochs.limit == 0) & (position // epochs.limit > from_visit)
        if epochs.discipline == "exhaustive" or not epochs.has_limit:
            crosses = jnp.zeros_like(crosses)
        step = jnp.where(crosses, by_both, by_service)
        return mine + jnp.fft.irfft(jnp.fft.rfft(later, 2 * horizon) * step, 2 * horizon)[:horizon], None

    positions = jnp.arange(1, size + 1)  # the step from position m to m + 1
    return jax.lax.scan(one_position, jnp.zeros(horizon), (items, positions), reverse=True)[0]


@eqx.filter_jit
def _waiting_time(epochs: VisitEpochs, horizon: int) -> WaitingTime:
    size = epochs.vacation_starts.shape[-1]
    longest = max(epochs.service.shape[-1], epochs.vacations.shape[-1]) - 1
    arrived = _arrived(epochs, longest, size)
    closing = epochs.vacations[epochs.closing]
    full_visit = _to_horizon(
        epochs.vacations[jnp.minimum(epochs.limit, epochs.vacations.shape[0] - 1)], horizon
    )
    in_rest = _rest_and_arrived(epochs.service, arrived)

    away = _positions(epochs.vacation_starts, _rest_and_arrived(epochs.vacations, arrived)).sum(axis=0)
    one_more = _to_horizon(_in_service(epochs, in_rest, more_vacations=True), horizon)
    none_more = _to_horizon(_in_service(epochs, in_rest, more_vacations=False), horizon)
    ahead = jnp.arange(size)[:, None]
    room_away, room_in_service = ahead < epochs.capacity, ahead + 1 < epochs.capacity
    away = jnp.where(room_away, _to_horizon(away, horizon), 0.0)
    one_more = jnp.where(room_in_service, one_more, 0.0)
    none_more = jnp.where(room_in_service, none_more, 0.0)

    met = _cut_product(one_more, _to_horizon(closing, horizon)[:, None]).sum(axis=0)
    if epochs.discipline == "gated" and epochs.has_limit:
        # the closing vacation need not be that of a full visit, so it is counted apart from the others
        met_later = _cut_product(none_more, _to_horizon(closing, horizon)[:, None]).sum(axis=0)
        total = _queue_up(away + met, epochs, full_visit, from_visit=0)
        total = total + _queue_up(met_later, epochs, full_visit, from_visit=1)
    else:
        total = _queue_up(away + met + none_more.sum(axis=0), epochs, full_visit, from_visit=0)

    services = epochs.service_starts.sum(axis=(0, 1))
    elapsed_service = lattice.survival(epochs.service) @ arrived[: epochs.service.shape[-1] - 1]
    elapsed_away = lattice.survival(epochs.vacations) @ arrived[: epochs.vacations.shape[-1] - 1]
    found = services @ _shifted(elapsed_service) + jnp.einsum(
        "rq,rqp->p", epochs.vacation_starts, _shifted(elapsed_away)
    )
    offered = services.sum() * lattice.mean(epochs.service) + (
        epochs.vacation_starts.sum(axis=1) @ lattice.mean(epochs.vacations)
    )
    accepted = jnp.where(jnp.arange(size) < epochs.capacity, found, 0.0).sum()
    wait = total / accepted
    sojourn = _cut_product(wait, epochs.service)
    rest = _mean_rest(epochs, size) / accepted
    return WaitingTime(
        wait=lattice.CutLaw(wait, jnp.maximum(1.0 - wait.sum(), 0.0)),
        sojourn=lattice.CutLaw(sojourn, jnp.maximum(1.0 - sojourn.sum(), 0.0)),
        mean_rest_of_slot=rest,
        accepted=accepted / offered,
        inside_slot=epochs.arrivals.rest_of_slot(1)[0] > 0.0,
    )


def _mean_rest(epochs: VisitEpochs, size: int) -> Array:
    """Rest of the slot of arrival, summed over the packets accepted."""
    arrivals = epochs.arrivals
    slot = arrivals.slot_law(size).probabilities
    before_me = lattice.survival(arrivals.batch_size) / lattice.mean(arrivals.batch_size)
    own = _cut_product(arrivals.rest_of_slot(size), lattice.truncate(before_me, size).probabilities)
    in_service = lattice.compound(lattice.survival(epochs.service), slot, size).probabilities
    away = lattice.compound(lattice.survival(epochs.vacations), slot, size).probabilities
    services = epochs.service_starts.sum(axis=(0, 1))
    at_slots = services @ _shifted(in_service) + jnp.einsum(
        "rq,rqp->p", epochs.vacation_starts, _shifted(away)
    )
    return jnp.where(jnp.arange(size) < epochs.capacity, at_slots @ _shifted(own), 0.0).sum()


@in_float64
def waiting_time(epochs: VisitEpochs, *, horizon: int) -> WaitingTime:
    """Law of the wait and of the sojourn of a packet that is accepted, service in order of arrival.

    Exact below the horizon, for packets in batches and for buffers finite and infinite (for the latter up to
    the mass of the queue beyond its table, which the tails include). The cost is that of two transforms of
    ``2 * horizon`` points for each place of the buffer.

    Args:
        epochs: of a solved queue, from `vacations` or `vacations.unlimited`.
        horizon: slots up to which the laws are wanted.

    Raises:
        ValueError: if ``horizon`` is not a positive whole number.
    """
    require_count(horizon, "horizon")
    return _waiting_time(epochs, horizon)
