"""Closed forms for single queues, queues whose server takes vacations, and cyclic polling.

Each function is plain arithmetic: given numbers (or arrays) it returns a number, given sympy symbols the
formula, which `formula` does by name. Waits run from arrival to the start of service, in slots; rates count
packets, not batches; ``_second`` marks a mean square. ``batch_size`` is the mean size of the batch that a
random packet belongs to, ``E[X^2] / E[X]``: the size itself where it is constant.

SymPy is imported when `formula` is first called, never with the package. The other closed forms, of sources
and shares, are in `traffic_forms`.

Sources: Kleinrock, Queueing Systems, vols 1-2 (1975/76); Takagi, Queueing Analysis, vols 1-3 (1991/93); Boxma
& Groenendijk, J. Appl. Prob. 24 (1987); Zussman, Yechiali & Segall, PWC 2003.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy


def single_wait(arrival_rate: Any, service_mean: Any, service_second: Any, batch_size: Any = 1) -> Any:
    """Mean wait of M/G/1, or of M^X/G/1 with batches (Pollaczek and Khinchine).

    Half of ``batch_size - 1`` packets go first in the batch of a random packet.

    Example:
        >>> from btqueue.queueing.closed_forms import single_wait
        >>> round(single_wait(0.1, 6, 36), 4)
        4.5
    """
    load = arrival_rate * service_mean
    work = arrival_rate * service_second + service_mean * (batch_size - 1)
    return work / (2 * (1 - load))


def lost_share(load: Any, capacity: Any) -> Any:
    """Share of the packets that M/M/1/K loses, for a load other than 1 (there it is ``1 / (K + 1)``).

    Example:
        >>> from btqueue.queueing.closed_forms import lost_share
        >>> round(lost_share(0.5, 3), 4)
        0.0667
    """
    return (1 - load) * load**capacity / (1 - load ** (capacity + 1))


def exhaustive_wait(
    arrival_rate: Any,
    service_mean: Any,
    service_second: Any,
    vacation_mean: Any,
    vacation_second: Any,
    batch_size: Any = 1,
) -> Any:
    """Mean wait of M^X/G/1 with vacations, served until empty.

    Example:
        >>> from btqueue.queueing.closed_forms import exhaustive_wait
        >>> exhaustive_wait(0.1, 6, 36, 12, 276)
        16.0
    """
    single = single_wait(arrival_rate, service_mean, service_second, batch_size)
    return single + vacation_second / (2 * vacation_mean)


def gated_wait(
    arrival_rate: Any,
    service_mean: Any,
    service_second: Any,
    vacation_mean: Any,
    vacation_second: Any,
    batch_size: Any = 1,
) -> Any:
    """Mean wait of M^X/G/1 with vacations where a visit serves the packets present at its start.

    Example:
        >>> from btqueue.queueing.closed_forms import gated_wait
        >>> round(gated_wait(0.1, 6, 36, 12, 276), 4)
        34.0
    """
    load = arrival_rate * service_mean
    exhaustive = exhaustive_wait(
        arrival_rate, service_mean, service_second, vacation_mean, vacation_second, batch_size
    )
    return exhaustive + load * vacation_mean / (1 - load)


def one_limited_wait(
    arrival_rate: Any,
    service_mean: Any,
    service_second: Any,
    vacation_mean: Any,
    vacation_second: Any,
    batch_size: Any = 1,
) -> Any:
    """Mean wait of M^X/G/1 with vacations where a visit serves at most one packet.

    Work decomposition: if a packet was served (``served`` a visit), the queue at the start of a vacation
    holds the packets that came during its wait and service, and the packets behind it in its batch.

    Example:
        >>> from btqueue.queueing.closed_forms import one_limited_wait
        >>> round(one_limited_wait(0.02, 6, 36, 12, 276), 4)
        18.625
    """
    served = arrival_rate * vacation_mean / (1 - arrival_rate * service_mean)
    exhaustive = exhaustive_wait(
        arrival_rate, service_mean, service_second, vacation_mean, vacation_second, batch_size
    )
    behind = service_mean + (batch_size - 1) / (2 * arrival_rate)
    return (exhaustive + served * behind) / (1 - served)


def cycle_time(load: Any, tour_mean: Any) -> Any:
    """Mean cycle of any polling system without loss whose walks, ``tour_mean`` a cycle, are always made.

    Example:
        >>> from btqueue.queueing.closed_forms import cycle_time
        >>> cycle_time(0.5, 14)
        28.0
    """
    return tour_mean / (1 - load)


def saturated_throughput(queues: Any, limit: Any, service_mean: Any, walk_mean: Any) -> Any:
    """Packets a slot that a cycle of equal queues serves when each always has ``limit`` packets.

    Example:
        >>> from btqueue.queueing.closed_forms import saturated_throughput
        >>> round(saturated_throughput(7, 5, 6, 2), 4)
        0.1562
    """
    return queues * limit / (queues * (walk_mean + limit * service_mean))


def weighted_waits(
    arrival_rates: Sequence[Any],
    service_means: Sequence[Any],
    service_seconds: Sequence[Any],
    tour_mean: Any,
    tour_second: Any,
    discipline: str = "exhaustive",
) -> Any:
    """The pseudo-conservation law: ``sum_i w_i E[W_i]`` in a cycle of queues of one discipline.

    ``w_i = rho_i``; if ``"one-limited"`` ``w_i = rho_i (1 - lambda_i s / (1 - rho))``. ``tour_`` moments
    are of all walks of a cycle.

    Raises:
        ValueError: an unknown discipline.

    Example:
        >>> from btqueue.queueing.closed_forms import weighted_waits
        >>> round(weighted_waits([0.05, 0.02], [6, 4], [36, 16], 4, 20), 4)
        1.7545
    """
    if discipline not in ("exhaustive", "gated", "one-limited"):
        raise ValueError(f'discipline must be "exhaustive", "gated" or "one-limited", got {discipline!r}')
    loads = [rate * service for rate, service in zip(arrival_rates, service_means, strict=True)]
    load, squares = sum(loads), sum(own**2 for own in loads)
    residual = sum(rate * second for rate, second in zip(arrival_rates, service_seconds, strict=True))
    total = (
        load * residual / (2 * (1 - load))
        + load * tour_second / (2 * tour_mean)
        + tour_mean * (load**2 - squares) / (2 * (1 - load))
    )
    return total if discipline == "exhaustive" else total + squares * tour_mean / (1 - load)


def _cyclic_wait(
    discipline: str,
    arrival_rate: Any,
    queues: Any,
    service_mean: Any,
    service_second: Any,
    walk_mean: Any,
    walk_second: Any,
) -> Any:
    """Mean wait in a symmetric cycle, exhaustive or gated, where the law has one unknown."""
    load = queues * arrival_rate * service_mean
    tour = queues * walk_mean
    tour_second = queues * (walk_second - walk_mean**2) + tour**2
    shared = (1 - 1 / queues) / 2 if discipline == "exhaustive" else (1 + 1 / queues) / 2
    return (
        queues * arrival_rate * service_second / (2 * (1 - load))
        + tour_second / (2 * tour)
        + tour * load * shared / (1 - load)
    )


def exhaustive_cyclic_wait(
    arrival_rate: Any, queues: Any, service_mean: Any, service_second: Any, walk_mean: Any, walk_second: Any
) -> Any:
    """Exact mean wait in a symmetric cycle of exhaustively served queues.

    ``walk_`` moments are of one step between queues.

    Example:
        >>> from btqueue.queueing.closed_forms import exhaustive_cyclic_wait
        >>> round(exhaustive_cyclic_wait(0.01, 7, 6, 36, 2, 4), 4)
        13.5172
    """
    return _cyclic_wait(
        "exhaustive", arrival_rate, queues, service_mean, service_second, walk_mean, walk_second
    )


def gated_cyclic_wait(
    arrival_rate: Any, queues: Any, service_mean: Any, service_second: Any, walk_mean: Any, walk_second: Any
) -> Any:
    """Exact mean wait in a symmetric cycle of gated queues; ``walk_`` moments as in `exhaustive_cyclic_wait`.

    Example:
        >>> from btqueue.queueing.closed_forms import gated_cyclic_wait
        >>> round(gated_cyclic_wait(0.01, 7, 6, 36, 2, 4), 4)
        14.9655
    """
    return _cyclic_wait("gated", arrival_rate, queues, service_mean, service_second, walk_mean, walk_second)


def one_limited_cyclic_wait(
    arrival_rate: Any, queues: Any, service_mean: Any, service_second: Any, walk_mean: Any, walk_second: Any
) -> Any:
    """Exact mean wait in a symmetric cycle of ``queues`` one-limited queues, single Poisson packets.

    ``walk_`` moments are of one step between queues. From the pseudo-conservation law of Boxma & Groenendijk.

    Example:
        >>> from btqueue.queueing.closed_forms import one_limited_cyclic_wait
        >>> round(one_limited_cyclic_wait(0.01, 7, 6, 36, 2, 4), 4)
        19.7273
    """
    load = queues * arrival_rate * service_mean
    tour = queues * walk_mean
    gated = gated_cyclic_wait(arrival_rate, queues, service_mean, service_second, walk_mean, walk_second)
    return gated / (1 - arrival_rate * tour / (1 - load))


def alternating_round_robin_wait(
    arrival_rate: Any, stations: Any, length_mean: Any, length_second: Any
) -> Any:
    """Exact mean wait when ``2 * stations`` equal queues take turns and an empty turn costs one slot.

    Every turn spends one slot whether or not a packet is sent: a walk of one slot, and service of the
    packet's other slots. ``length_mean`` and ``length_second`` are moments of a packet's slots,
    ``arrival_rate`` is per queue and slot, and single Poisson packets are assumed.

    Example:
        >>> from btqueue.queueing.closed_forms import alternating_round_robin_wait
        >>> round(alternating_round_robin_wait(0.01, 7, 3, 11), 4)
        13.0345
    """
    return one_limited_cyclic_wait(
        arrival_rate, 2 * stations, length_mean - 1, length_second - 2 * length_mean + 1, 1, 1
    )


def alternating_round_robin_cycle(arrival_rate: Any, stations: Any, length_mean: Any) -> Any:
    """Mean cycle, in slots, of the system of `alternating_round_robin_wait` (no losses).

    Example:
        >>> from btqueue.queueing.closed_forms import alternating_round_robin_cycle
        >>> round(alternating_round_robin_cycle(0.01, 7, 3), 4)
        19.4444
    """
    return cycle_time(2 * stations * arrival_rate * (length_mean - 1), 2 * stations)


def formula(closed_form: Callable[..., Any], **known: Any) -> "sympy.Expr":
    """The closed form as a sympy expression in positive symbols named after its parameters.

    Args:
        closed_form: a function of this module or of `traffic_forms`.
        **known: parameters given a value (a number, another symbol, a list of symbols) instead.

    Example:
        >>> from btqueue.queueing.closed_forms import cycle_time, formula
        >>> print(formula(cycle_time))
        tour_mean/(1 - load)
    """
    import sympy

    names = inspect.signature(closed_form).parameters
    return closed_form(**{name: known.get(name, sympy.Symbol(name, positive=True)) for name in names})
