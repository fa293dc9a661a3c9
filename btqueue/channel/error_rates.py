"""From bit error rate to packet error rate, for independent bit errors and perfect error detection.

Two conventions for the bits that an error can hit:

``payload``
    only the user payload, as in most models of the literature: P = 1 - (1-b)^(8u) without coding,
    P = 1 - q(b)^ceil(8u/10) with the (15,10) code;
``on-air``
    every part that the receiver needs: sync word, packet header and the whole body (payload header, payload,
    CRC).

Each success probability is a product of many factors close to one, so every function adds up logarithms of
the failure rates (log1p) and comes back with expm1: a packet error rate of 1e-15 is as exact as one of 0.1.

Sources: Valenti, Robert and Reed, "On the throughput of Bluetooth data transmissions", WCNC 2002; Chen,
Kapoor, Sanadidi and Gerla, "Enhancing Bluetooth TCP throughput via link layer packet adaptation", ICC 2004
(equations 1 and 2; its block count s/15 divides information bits by coded bits, s/10 is meant); Bluetooth
Core Specification.
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from btqueue.baseband.fec import block_error_rate, checked
from btqueue.baseband.packets import HEADER_BITS, SYNC_WORD_BITS, PacketType

Bits = Literal["payload", "on-air"]
"""Which bits of a packet an error can hit."""

SYNC_THRESHOLD = 7
"""Bit errors in the sync word still accepted: a common receiver design, not a constant of the standard."""


def packet_error_rate(packet: PacketType, ber: ArrayLike, *, bits: Bits = "payload") -> NDArray[np.float64]:
    """Probability that a full packet is lost.

    Args:
        packet: the packet type.
        ber: bit error rate of the body, any shape, within [0, 1].
        bits: the bits that errors can hit, ``"payload"`` or ``"on-air"``.

    Returns:
        Probabilities, the shape of ``ber``.

    Raises:
        ValueError: a bit error rate outside [0, 1], or an unknown convention.
    """
    if bits in get_args(Bits) and not np.any(ber):
        return np.zeros(np.shape(ber))  # without scipy, which takes long to import
    match bits:
        case "payload":
            return payload_error_rate(packet, ber)
        case "on-air":
            return on_air_error_rate(packet, ber)
        case _:
            raise ValueError(f"unknown bits {bits!r}, must be one of {', '.join(get_args(Bits))}")


def payload_error_rate(packet: PacketType, ber: ArrayLike) -> NDArray[np.float64]:
    """Probability that the user payload alone is hit beyond repair (``bits="payload"``)."""
    if packet.coded:
        return coded_error_rate(packet.payload_fec_blocks, ber)
    return uncoded_error_rate(packet.payload_bits, ber)


def body_error_rate(packet: PacketType, ber: ArrayLike) -> NDArray[np.float64]:
    """Probability that payload header, payload or CRC are hit beyond repair."""
    if packet.coded:
        return coded_error_rate(packet.body_fec_blocks, ber)
    return uncoded_error_rate(packet.body_bits, ber)


def on_air_error_rate(packet: PacketType, ber: ArrayLike) -> NDArray[np.float64]:
    """Probability that sync word, header or body of a full packet fail (``bits="on-air"``).

    An enhanced-rate packet has its header at the basic rate, here with the bit error rate of its body.
    """
    return _any_of(access_code_error_rate(ber), header_error_rate(ber), body_error_rate(packet, ber))


def reply_error_rate(ber: ArrayLike) -> NDArray[np.float64]:
    """Probability that a return packet's acknowledgement (ARQN) is lost: in its sync word or header."""
    return _any_of(access_code_error_rate(ber), header_error_rate(ber))


def uncoded_error_rate(n_bits: int, ber: ArrayLike) -> NDArray[np.float64]:
    """P = 1 - (1-b)^n: at least one of ``n_bits`` is wrong."""
    return _any_of_many(n_bits, checked(ber))


def coded_error_rate(n_blocks: int, ber: ArrayLike) -> NDArray[np.float64]:
    """P = 1 - q(b)^N: at least one of ``n_blocks`` (15,10) blocks cannot be corrected (strict decoder)."""
    return _any_of_many(n_blocks, block_error_rate(ber))


def header_error_rate(ber: ArrayLike) -> NDArray[np.float64]:
    """1 - [(1-b)^3 + 3b(1-b)^2]^18: one of 18 header bits loses its two-of-three majority."""
    b = checked(ber)
    return _any_of_many(HEADER_BITS, b * b * (3.0 - 2.0 * b))


def access_code_error_rate(ber: ArrayLike) -> NDArray[np.float64]:
    """Probability of more than `SYNC_THRESHOLD` bit errors among the 64 of the sync word."""
    from scipy.special import bdtrc  # takes longer to import than a scenario to read

    return bdtrc(SYNC_THRESHOLD, SYNC_WORD_BITS, checked(ber))


def _any_of_many(n: float, failure: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 - (1-p)^n, to full relative precision for small p; n = 0 gives 0 even at p = 1."""
    from scipy.special import xlog1py

    return -np.expm1(xlog1py(n, -failure))


def _any_of(*failures: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 - prod(1-p_i), to full relative precision for small p_i."""
    with np.errstate(divide="ignore"):  # log1p(-1) = -inf is a certain failure
        return -np.expm1(sum(np.log1p(-p) for p in failures))
