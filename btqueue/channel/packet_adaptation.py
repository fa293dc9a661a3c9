"""Which packet type carries most on a link of given bit error rate, and where the best type changes.

Goodput of a type is its asymmetric rate times the probability of getting through: every packet is answered in
one slot and a failed one costs the same slots.

Source: Chen, Kapoor, Sanadidi and Gerla, "Enhancing Bluetooth TCP throughput via link layer packet
adaptation", ICC 2004, section IV.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from btqueue.baseband.packets import PacketType
from btqueue.channel.error_rates import Bits, packet_error_rate


def packet_goodput_kbps(packet: PacketType, ber: ArrayLike, *, bits: Bits = "payload") -> NDArray[np.float64]:
    """Greatest rate one way (kbit/s) times the share of packets that arrive, the shape of ``ber``."""
    return packet.asymmetric_kbps * (1.0 - packet_error_rate(packet, ber, bits=bits))


def best_packet(types: Sequence[PacketType], ber: float, *, bits: Bits = "payload") -> PacketType:
    """The type of highest goodput at one bit error rate; the earliest of equals.

    Raises:
        ValueError: no type given, or a bit error rate outside [0, 1].
    """
    return max(types, key=lambda packet: float(packet_goodput_kbps(packet, ber, bits=bits)))


def goodput_crossing(
    fast: PacketType, robust: PacketType, *, bits: Bits = "payload", ber_max: float = 0.05
) -> float:
    """Bit error rate at which ``robust`` starts to carry more than ``fast``.

    Args:
        fast: the type that is better without errors.
        robust: the type that is better at ``ber_max``.
        bits: the bits that errors can hit.
        ber_max: upper end of the search; the goodputs must cross once below it.

    Returns:
        The crossing, by bracketed root finding to full double precision.

    Raises:
        ValueError: the two types are not in that order at 0 or at ``ber_max``.
    """
    from scipy.optimize import root_scalar  # takes longer to import than most scenarios to solve

    def advantage(ber: float) -> float:
        return float(packet_goodput_kbps(fast, ber, bits=bits) - packet_goodput_kbps(robust, ber, bits=bits))

    if advantage(0.0) <= 0 or advantage(ber_max) >= 0:
        raise ValueError(f"{fast.name} and {robust.name} do not change places between 0 and {ber_max}")
    return float(root_scalar(advantage, bracket=(0.0, ber_max), method="brentq", xtol=1e-16).root)
