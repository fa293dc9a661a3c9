"""Birth-death chains and the classical queues that are one: M/M/c, M/M/c/K, Erlang's formulas.

Sources: Kleinrock, Queueing Systems, vol. 1 (1975), chapter 3; Jagerman, Bell Syst. Tech. J. 53 (1974) for
the recursion of Erlang's loss formula.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_count, require_positive
from btqueue.queueing.laws import lattice


@jax.jit
def _product_form(birth: Array, death: Array) -> Array:
    """Weights counted from the likeliest state: no partial product exceeds one, so nothing overflows."""
    ratio = birth / death
    logs = jnp.where(birth > 0, jnp.log(jnp.where(birth > 0, ratio, 1.0)), -jnp.inf)
    peak = jax.lax.stop_gradient(jnp.argmax(jnp.concatenate([jnp.zeros(1), jnp.cumsum(logs)])))
    index = jnp.arange(birth.shape[0])
    upward = jnp.where(index >= peak, ratio, 1.0)
    downward = jnp.where(index < peak, 1.0 / jnp.where(index < peak, ratio, 1.0), 1.0)

    def multiply(weight: Array, factor: Array) -> tuple[Array, Array]:
        return weight * factor, weight * factor

    one = jnp.ones((), ratio.dtype)
    above = jnp.concatenate([one[None], jax.lax.scan(multiply, one, upward)[1]])
    below = jnp.concatenate([jax.lax.scan(multiply, one, downward, reverse=True)[1], one[None]])
    states = jnp.arange(birth.shape[0] + 1)
    weights = jnp.where(states >= peak, above, below)
    return weights / weights.sum()


def _require_rates(birth: ArrayLike, death: ArrayLike) -> None:
    if np.ndim(birth) != 1 or np.shape(birth) != np.shape(death) or np.shape(birth)[0] == 0:
        raise ValueError(
            f"birth and death must be vectors of one length, got {np.shape(birth)} and {np.shape(death)}"
        )
    if is_traced(birth, death):
        return
    ups, downs = np.asarray(birth), np.asarray(death)
    if not (np.isfinite(ups) & (ups >= 0)).all():
        raise ValueError(f"birth must hold finite rates that are not negative, got {ups}")
    if not (np.isfinite(downs) & (downs > 0)).all():
        raise ValueError(f"death must hold positive finite rates, got {downs}")


@in_float64
def stationary_law(birth: ArrayLike, death: ArrayLike) -> Array:
    """Stationary law of a birth-death chain on ``0..n``, every entry relatively accurate.

    Args:
        birth: rates (or probabilities a step) ``k -> k + 1`` for ``k = 0..n-1``; zeros cut the chain short.
        death: rates ``k + 1 -> k`` for ``k = 0..n-1``, positive.

    Raises:
        ValueError: if the lengths differ, a birth rate is negative or a death rate not positive.
    """
    _require_rates(birth, death)
    return _product_form(jnp.asarray(birth, float), jnp.asarray(death, float))


@in_float64
def mean_climb_times(birth: ArrayLike, death: ArrayLike) -> Array:
    """Mean times from ``k`` to ``k + 1`` for ``k = 0..n-1``: ``h[k] = (1 + death[k-1] h[k-1]) / birth[k]``.

    Their sum over ``k < m`` is the mean time until the content first reaches ``m`` from empty. Infinite
    beyond a birth rate of zero.

    Raises:
        ValueError: as `stationary_law`.
    """
    _require_rates(birth, death)
    ups, downs = jnp.asarray(birth, float), jnp.asarray(death, float)

    def climb(before: Array, rates: tuple[Array, Array]) -> tuple[Array, Array]:
        up, down = rates
        time = (1.0 + down * before) / up
        return time, time

    _, times = jax.lax.scan(climb, jnp.zeros(()), (ups, jnp.concatenate([jnp.zeros(1), downs[:-1]])))
    return times


@in_float64
def erlang_b(servers: int, offered: ArrayLike) -> Array:
    """Blocking of M/G/c/c with ``offered`` load (in erlangs): Erlang's loss formula, by its stable recursion.

    Raises:
        ValueError: if ``servers`` is not a whole number of at least 0 or the load is not positive.
    """
    require_count(servers, "servers", least=0)
    _require_load(offered)
    load = jnp.asarray(offered, float)

    def add_server(blocking: Array, count: Array) -> tuple[Array, None]:
        return load * blocking / (count + load * blocking), None

    return jax.lax.scan(add_server, jnp.ones_like(load), jnp.arange(1.0, servers + 1.0))[0]


@in_float64
def erlang_c(servers: int, offered: ArrayLike) -> Array:
    """Probability that a customer of M/M/c has to wait; one from ``offered >= servers`` on (unstable).

    Raises:
        ValueError: if ``servers`` is not a positive whole number or the load is not positive.
    """
    require_count(servers, "servers")
    load = jnp.asarray(offered, float)
    blocking = erlang_b(servers, load)
    return jnp.where(load < servers, blocking / (1.0 - load / servers * (1.0 - blocking)), 1.0)


def _require_load(offered: ArrayLike) -> None:
    if not is_traced(offered) and not (np.isfinite(offered) & (np.asarray(offered) > 0)).all():
        raise ValueError(f"offered must be a positive finite load, got {offered}")


class BirthDeathQueue(eqx.Module):
    """Steady state of M/M/c/K.

    Attributes:
        occupancy: law of the customers present, ``(K + 1,)``; what an arrival finds, too.
        blocking: share of the customers turned away.
        throughput: customers served a unit of time.
        mean_queue: mean customers present, those in service included.
        mean_sojourn: mean time from arrival to departure, of those accepted.
        mean_wait: mean time from arrival to start of service, of those accepted.
    """

    occupancy: Array
    blocking: Array
    throughput: Array
    mean_queue: Array
    mean_sojourn: Array
    mean_wait: Array


@in_float64
def mmck_queue(
    *, arrival_rate: ArrayLike, service_rate: ArrayLike, capacity: int, servers: int = 1
) -> BirthDeathQueue:
    """M/M/c/K: Poisson arrivals, exponential service, ``capacity`` places, those in service included.

    There is a steady state for any load.

    Raises:
        ValueError: if a rate is not positive, a count is not positive, or ``servers`` exceeds ``capacity``.
    """
    require_positive(arrival_rate, "arrival_rate")
    require_positive(service_rate, "service_rate")
    require_count(servers, "servers")
    require_count(capacity, "capacity", least=servers)
    arrivals, service = jnp.asarray(arrival_rate, float), jnp.asarray(service_rate, float)
    busy = jnp.minimum(jnp.arange(1.0, capacity + 1.0), servers)
    occupancy = _product_form(jnp.broadcast_to(arrivals, busy.shape), service * busy)
    mean_queue = lattice.mean(occupancy)
    throughput = arrivals * occupancy[:-1].sum()
    sojourn = mean_queue / throughput
    waiting = occupancy[servers:] @ jnp.arange(0.0, capacity - servers + 1.0)
    return BirthDeathQueue(occupancy, occupancy[-1], throughput, mean_queue, sojourn, waiting / throughput)


class MmcQueue(eqx.Module):
    """Steady state of M/M/c without a limit; everything mean is infinite if ``stable`` is false.

    Attributes:
        stable: whether the load is below one.
        wait_probability: probability that an arrival has to wait (Erlang C).
        mean_wait: mean time from arrival to start of service.
        mean_queue: mean customers present.
        wait_decay: rate at which ``Pr(W > t) = wait_probability * exp(-wait_decay * t)`` falls.
    """

    stable: Array
    wait_probability: Array
    mean_wait: Array
    mean_queue: Array
    wait_decay: Array


@in_float64
def mmc_queue(*, arrival_rate: ArrayLike, service_rate: ArrayLike, servers: int = 1) -> MmcQueue:
    """M/M/c: Poisson arrivals, exponential service, no limit on the queue.

    Raises:
        ValueError: if a rate or the number of servers is not positive, or (outside compiled code) the load is
            not below one.
    """
    require_positive(arrival_rate, "arrival_rate")
    require_positive(service_rate, "service_rate")
    require_count(servers, "servers")
    arrivals, service = jnp.asarray(arrival_rate, float), jnp.asarray(service_rate, float)
    spare = servers * service - arrivals
    stable = spare > 0
    if not is_traced(stable) and not bool(stable):
        raise ValueError(
            f"arrival_rate must be below servers * service_rate = {servers * float(service):g} for a steady "
            f"state, got {float(arrivals):g}"
        )
    waiting = erlang_c(servers, arrivals / service)
    mean_wait = jnp.where(stable, waiting / jnp.where(stable, spare, 1.0), jnp.inf)
    return MmcQueue(
        stable, waiting, mean_wait, arrivals * mean_wait + arrivals / service, jnp.maximum(spare, 0.0)
    )
