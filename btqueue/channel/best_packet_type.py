r"""The best packet type at every bit error rate: the upper envelope of the types' goodputs.

Four formulas for the goodput of a saturated sender, from two choices:

``bits``
    ``"payload"``: only the user payload can be hit, so a packet takes ``1/(1 - P)`` attempts; ``"on-air"``:
    sync word, header, body and the acknowledgement can be lost, ``E[N] = 1/(h s) + (1 - r)/(h r)`` attempts.
``reply``
    ``"one-slot"``: the return packet takes one slot, an attempt ``n + 1``; ``"same-type"``: both directions
    use the same type, an attempt takes ``2 n`` slots.

Goodput is ``8 u / (slots of an attempt * E[N])``. `packet_adaptation` has the first formula alone, as its
paper prints it.

Sources: Chen, Kapoor, Sanadidi & Gerla, ICC 2004; Valenti, Robert & Reed, WCNC 2002.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from btqueue.baseband.packets import PacketType
from btqueue.channel.error_rates import (
    Bits,
    access_code_error_rate,
    body_error_rate,
    header_error_rate,
    payload_error_rate,
    reply_error_rate,
)

Reply = Literal["one-slot", "same-type"]
"""What answers a packet."""


class Reign(NamedTuple):
    """A packet type and the bit error rate from which on it is best."""

    packet: PacketType
    ber_from: float


def error_free_kbps(packet: PacketType, *, reply: Reply = "one-slot") -> float:
    """User rate in one direction without errors, in kbit/s.

    Raises:
        ValueError: an unknown reply.
    """
    match reply:
        case "one-slot":
            return packet.asymmetric_kbps
        case "same-type":
            return packet.symmetric_kbps
        case _:
            raise ValueError(f"unknown reply {reply!r}, must be one of {', '.join(get_args(Reply))}")


def deliveries_per_attempt(
    packet: PacketType, ber: ArrayLike, *, bits: Bits = "on-air"
) -> NDArray[np.float64]:
    """Packets delivered per attempt of a saturated sender, 1 / E[N], the shape of ``ber``.

    Raises:
        ValueError: a bit error rate outside [0, 1] or an unknown convention.
    """
    match bits:
        case "payload":
            return 1.0 - payload_error_rate(packet, ber)
        case "on-air":
            detected = (1.0 - access_code_error_rate(ber)) * (1.0 - header_error_rate(ber))
            delivered = detected * (1.0 - body_error_rate(packet, ber))
            lost = reply_error_rate(ber)
            acknowledged = detected * (1.0 - lost)
            # E[N] = 1/delivered + lost/acknowledged, inverted so that a dead link gives 0
            parts = acknowledged + delivered * lost
            return np.divide(delivered * acknowledged, parts, out=np.zeros_like(parts), where=parts > 0)
        case _:
            raise ValueError(f"unknown bits {bits!r}, must be one of {', '.join(get_args(Bits))}")


def arq_goodput_kbps(
    packet: PacketType, ber: ArrayLike, *, bits: Bits = "on-air", reply: Reply = "one-slot"
) -> NDArray[np.float64]:
    """User bits delivered in one direction by a saturated sender, in kbit/s, the shape of ``ber``."""
    return error_free_kbps(packet, reply=reply) * deliveries_per_attempt(packet, ber, bits=bits)


def reigns(
    types: Sequence[PacketType],
    *,
    bits: Bits = "on-air",
    reply: Reply = "one-slot",
    ber_max: float = 0.05,
    grid: int = 2000,
) -> tuple[Reign, ...]:
    """Which type is best from which bit error rate on, by ascending bit error rate.

    A change of the best type is looked for between neighbours on a logarithmic grid and then bracketed and
    solved to double precision; a type that is best on less than one grid cell is found as well, because the
    cell is searched again from each crossing.

    Args:
        types: the types allowed; the earliest of equals is preferred.
        bits: what errors can hit.
        reply: what answers a packet.
        ber_max: end of the search; all types are useless far beyond 0.05.
        grid: points of the grid, from 1e-9 to ``ber_max``.

    Returns:
        The types that are best somewhere, each with the bit error rate at which it takes over (the first
        with 0).

    Raises:
        ValueError: no type, an unknown option, or ``ber_max`` outside (1e-9, 1].
    """
    if not types:
        raise ValueError("types must hold at least one packet type")
    if not 1e-9 < ber_max <= 1:
        raise ValueError(f"ber_max must lie within (1e-9, 1], not {ber_max}")

    def goodput(packet: PacketType, ber: float) -> float:
        return float(arq_goodput_kbps(packet, ber, bits=bits, reply=reply))

    def crossing(rising: PacketType, holder: PacketType, low: float, high: float) -> float:
        from scipy.optimize import root_scalar  # takes longer to import than most scenarios to solve

        def advantage(ber: float) -> float:
            return goodput(rising, ber) - goodput(holder, ber)

        return float(root_scalar(advantage, bracket=(low, high), method="brentq", xtol=1e-16).root)

    def best(ber: float) -> PacketType:
        return max(types, key=lambda packet: goodput(packet, ber))

    bers = np.concatenate(([0.0], np.geomspace(1e-9, ber_max, grid)))
    table = np.stack([arq_goodput_kbps(packet, bers, bits=bits, reply=reply) for packet in types])
    found = [Reign(best(0.0), 0.0)]
    for index in range(1, bers.size):
        low, high = float(bers[index - 1]), float(bers[index])
        reigning = found[-1].packet
        while table[:, index].max() > table[types.index(reigning), index]:
            # of the types that have overtaken, the one that did so first
            overtaking = [packet for packet in types if goodput(packet, high) > goodput(reigning, high)]
            crossings = {packet: crossing(packet, reigning, low, high) for packet in overtaking}
            reigning = min(overtaking, key=lambda packet: crossings[packet])
            low = crossings[reigning]
            found.append(Reign(reigning, low))
    return tuple(found)


def best_type(
    types: Sequence[PacketType], ber: float, *, bits: Bits = "on-air", reply: Reply = "one-slot"
) -> PacketType:
    """The type of highest goodput at one bit error rate; the earliest of equals.

    Raises:
        ValueError: no type, an unknown option, or a bit error rate outside [0, 1].
    """
    if not types:
        raise ValueError("types must hold at least one packet type")
    return max(types, key=lambda packet: float(arq_goodput_kbps(packet, ber, bits=bits, reply=reply)))
