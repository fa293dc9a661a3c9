"""Closed forms for queues whose server takes vacations or polls in a cycle.

Each function is plain arithmetic: given numbers it returns a number, given sympy symbols the formula, which
`formula` does by name. Waits run from arrival to the start of service, in slots.

Sources: Takagi, Queueing Analysis, vols 1-3 (1991/93); Boxma & Groenendijk, J. Appl. Prob. 24 (1987);
Zussman, Yechiali & Segall, PWC 2003.
"""

import inspect
from collections.abc import Callable
from typing import Any

import sympy


def exhaustive_wait(
    arrival_rate: Any,
    service_mean: Any,
    service_second: Any,
    vacation_mean: Any,
    vacation_second: Any,
    batch_size: Any = 1,
) -> Any:
    """Mean wait of M^X/G/1 with vacations, served until empty (constant ``batch_size``).

    ``arrival_rate`` counts packets, not batches; ``_second`` marks a mean square.
    """
    load = arrival_rate * service_mean
    work = arrival_rate * service_second + service_mean * (batch_size - 1)
    return work / (2 * (1 - load)) + vacation_second / (2 * vacation_mean)


def gated_wait(
    arrival_rate: Any, service_mean: Any, service_second: Any, vacation_mean: Any, vacation_second: Any
) -> Any:
    """Mean wait of M/G/1 with vacations where a visit serves those present at its start."""
    load = arrival_rate * service_mean
    exhaustive = exhaustive_wait(arrival_rate, service_mean, service_second, vacation_mean, vacation_second)
    return exhaustive + load * vacation_mean / (1 - load)


def one_limited_wait(
    arrival_rate: Any, service_mean: Any, service_second: Any, vacation_mean: Any, vacation_second: Any
) -> Any:
    """Mean wait of M/G/1 with vacations where a visit serves at most one packet."""
    both_second = service_second + 2 * service_mean * vacation_mean + vacation_second
    slack = 1 - arrival_rate * (service_mean + vacation_mean)
    return vacation_second / (2 * vacation_mean) + arrival_rate * both_second / (2 * slack)


def one_limited_cyclic_wait(
    arrival_rate: Any, queues: Any, service_mean: Any, service_second: Any, walk_mean: Any, walk_second: Any
) -> Any:
    """Exact mean wait in a symmetric cycle of ``queues`` one-limited queues, single Poisson packets.

    ``walk_`` moments are of one step between queues. From the pseudo-conservation law of Boxma & Groenendijk.
    """
    load = queues * arrival_rate * service_mean
    tour = queues * walk_mean
    tour_second = queues * (walk_second - walk_mean**2) + tour**2
    weighted = (
        load * queues * arrival_rate * service_second / (2 * (1 - load))
        + load * tour_second / (2 * tour)
        + tour * load**2 * (1 - 1 / queues) / (2 * (1 - load))
        + load**2 * tour / (queues * (1 - load))
    )
    return weighted / (load * (1 - arrival_rate * tour / (1 - load)))


def alternating_round_robin_wait(
    arrival_rate: Any, stations: Any, length_mean: Any, length_second: Any
) -> Any:
    """Exact mean wait when ``2 * stations`` equal queues take turns and an empty turn costs one slot.

    Every turn spends one slot whether or not a packet is sent: a walk of one slot, and service of the
    packet's other slots. ``length_mean`` and ``length_second`` are moments of a packet's slots,
    ``arrival_rate`` is per queue and slot, and single Poisson packets are assumed.
    """
    return one_limited_cyclic_wait(
        arrival_rate, 2 * stations, length_mean - 1, length_second - 2 * length_mean + 1, 1, 1
    )


def alternating_round_robin_cycle(arrival_rate: Any, stations: Any, length_mean: Any) -> Any:
    """Mean cycle, in slots, of the system of `alternating_round_robin_wait` (no losses)."""
    return 2 * stations / (1 - 2 * stations * arrival_rate * (length_mean - 1))


def formula(closed_form: Callable[..., Any]) -> sympy.Expr:
    """The closed form as a sympy expression in positive symbols named after its parameters."""
    symbols = [sympy.Symbol(name, positive=True) for name in inspect.signature(closed_form).parameters]
    return closed_form(*symbols)
