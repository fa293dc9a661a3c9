"""A bridge that is itself the centre of a place: its own customers wait while it is away.

The bridge makes a tour of its own customers, walks (``switch`` slots) to another place where it is one of
many (`walk_in_bridge`: it waits for a poll, exchanges packets, leaves), walks back, and so on. Nobody polls
in vain at home, for it is the bridge that polls there; its customers see one more vacation, ``vacation``.

Away from the other place it is for a tour and two switches, whatever happened before, so the law of its wait
for a poll is found at once, exactly, for independent tours. What a full exchange leaves behind is carried
over by iteration; it is taken as independent of the next tour's length.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.bridges.bulk_exchange import poisson_law
from btqueue.queueing.bridges.stay import Stay, StayShape, StayTables, first_stay, next_stay, stay_tables
from btqueue.queueing.errors import require_count, require_law, require_no_mass_at_zero, require_positive
from btqueue.queueing.fixed_point import require_converged
from btqueue.queueing.implicit import distance, stationary_state
from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.residual_renewal import mean_renewals_before, residual_table


class HomeBridgeSolution(eqx.Module):
    """Steady state; times in slots.

    Attributes:
        cycle: mean slots from tour to tour at home.
        missed_polls: mean polls missed in the other place for each exchange.
        mean_exchange: mean slots of an exchange.
        wait_for_poll: law of the slots from being ready in the other place to the exchange.
        vacation: law of the slots from the end of a tour at home to the start of the next.
    """

    cycle: Array
    missed_polls: Array
    mean_exchange: Array
    wait_for_poll: Array
    vacation: Array


@in_float64
def home_bridge(
    own_tour: ArrayLike, tour: ArrayLike, exchange: ArrayLike, *, switch: int = 2, missed_poll: int = 2
) -> HomeBridgeSolution:
    """Cycle of a bridge with a home, for exchanges of a given law; exact for independent tours.

    Args:
        own_tour: law of a tour of its own customers.
        tour: law of a tour of the other customers of the other place.
        exchange: law of the slots of an exchange, independent of all else.
        switch: slots of each way.
        missed_poll: slots that a missed poll wastes.

    Raises:
        ValueError: if a law is not one or a count is out of range.
    """
    for law, name in ((own_tour, "own_tour"), (tour, "tour"), (exchange, "exchange")):
        require_law(law, name)
    require_count(switch, "switch", least=0)
    require_count(missed_poll, "missed_poll")
    away = jnp.pad(jnp.asarray(own_tour), (2 * switch, 0))
    other = jnp.asarray(tour)
    residuals = residual_table(jnp.pad(other, (missed_poll, 0)), other, away.shape[0])
    wait = away @ residuals
    vacation = jnp.pad(jnp.maximum(lattice.convolve(wait, exchange), 0.0), (2 * switch, 0))
    return HomeBridgeSolution(
        cycle=lattice.mean(own_tour) + lattice.mean(vacation),
        missed_polls=away @ mean_renewals_before(residuals),
        mean_exchange=lattice.mean(exchange),
        wait_for_poll=wait,
        vacation=vacation,
    )


class HomeExchangeSolution(eqx.Module):
    """Steady state of a bridge with a home whose exchanges depend on what was gathered.

    Attributes:
        bridge: the cycle, with the law of the exchanges found.
        exchange: law of the slots of an exchange.
        taken: mean packets taken from the other place in an exchange.
        packet_loss: share of the packets offered at the other place that find no room.
        residual: change of the laws in one more iteration (sum of absolute values).
        iterations: iterations taken.
    """

    bridge: HomeBridgeSolution
    exchange: Array
    taken: Array
    packet_loss: Array
    residual: Array
    iterations: Array


@eqx.filter_jit
def _solve(
    own_tour: Array,
    gathering_rate: Array,
    tables: StayTables,
    shape: StayShape,
    tolerance: float,
    max_iterations: int,
) -> HomeExchangeSolution:
    def entry(tour: Array, rate: Array) -> Array:
        gathered, beyond = poisson_law(rate * jnp.arange(tour.shape[0]), shape.held + 1)
        return jnp.pad(tour[:, None] * gathered.at[:, -1].add(beyond), ((2 * shape.switch, 0), (0, 0)))

    def step(state: Stay, known: tuple[Array, Array, StayTables]) -> Stay:
        tour, rate, table = known
        return next_stay(entry(tour, rate), state, table, shape)[0]

    known = (own_tour, gathering_rate, tables)
    stay, iterations = stationary_state(step, known, first_stay(shape), tolerance, max_iterations)
    again, moments = next_stay(entry(own_tour, gathering_rate), stay, tables, shape)
    slots = lattice.mean(stay.law.sum(axis=1))  # one switch included
    cycle = lattice.mean(own_tour) + shape.switch + slots
    taken = lattice.mean(stay.law.sum(axis=0))
    bridge = HomeBridgeSolution(
        cycle=cycle,
        missed_polls=moments.missed_polls,
        mean_exchange=lattice.mean(moments.exchange),
        wait_for_poll=moments.wait_for_poll,
        vacation=jnp.pad(stay.law.sum(axis=1), (shape.switch, 0)),
    )
    return HomeExchangeSolution(
        bridge=bridge,
        exchange=moments.exchange,
        taken=taken,
        packet_loss=1.0 - taken / (tables.arrival_rate * cycle),
        residual=distance(again, stay),
        iterations=iterations,
    )


@in_float64
def home_exchanges(
    own_tour: ArrayLike,
    gathering_rate: ArrayLike,
    *,
    tour: ArrayLike,
    arrival_rate: ArrayLike,
    packet_slots: ArrayLike,
    lengths: tuple[int, ...],
    capacity: int,
    limit: int,
    room: int,
    switch: int = 2,
    missed_poll: int = 2,
    tolerance: float = 1e-11,
    max_iterations: int = 5000,
) -> HomeExchangeSolution:
    """As `home_bridge`, with exchanges of what was gathered at home for what waits in the other place.

    Args:
        own_tour: law of a tour of its own customers.
        gathering_rate: packets for the other place that they hand over, a slot of the tour, Poisson.
        tour: law of a tour of the other customers of the other place.
        arrival_rate: Poisson packets a slot that wait there for the bridge.
        packet_slots: law of a packet's slots.
        lengths: slots that a packet may take, those of positive probability.
        capacity: room for waiting packets there.
        limit: most frames of an exchange.
        room: room for gathered packets in the bridge; more are lost.
        switch: slots of each way.
        missed_poll: slots that a missed poll wastes.
        tolerance: change of the laws at which the iteration ends.
        max_iterations: most iterations.

    Raises:
        ValueError: if a law, a rate or a count is out of range.
        ConvergenceError: if the iteration does not come to rest.
    """
    for law, name in ((own_tour, "own_tour"), (tour, "tour"), (packet_slots, "packet_slots")):
        require_law(law, name)
    require_no_mass_at_zero(packet_slots, "packet_slots")
    require_positive(gathering_rate, "gathering_rate")
    require_positive(arrival_rate, "arrival_rate")
    for count, name in (
        (capacity, "capacity"),
        (limit, "limit"),
        (room, "room"),
        (missed_poll, "missed_poll"),
    ):
        require_count(count, name)
    require_count(switch, "switch", least=0)
    own, other = jnp.asarray(own_tour), jnp.asarray(tour)
    shape = StayShape(
        lengths=lengths,
        size=capacity + 1,
        limit=limit,
        exchanges=1,
        held=room,
        keeps_held=True,
        switch=switch,
        entry=own.shape[0] + 2 * switch,
        tour=other.shape[0],
        missed_poll=missed_poll,
        joint=True,
    )
    tables = stay_tables(other, jnp.asarray(arrival_rate), jnp.asarray(packet_slots), shape)
    solution = _solve(own, jnp.asarray(gathering_rate), tables, shape, tolerance, max_iterations)
    require_converged(solution.residual, solution.iterations, 10 * tolerance)
    return solution
