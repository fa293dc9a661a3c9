r"""Exact success probabilities of packets and packet trains on the two-state channel.

Let D_t be the 2 x 2 matrix whose entry (i, j) is the probability that a packet of type t is received and the
state has moved from i, at its start, to j, at the end of its slots.  A train with idle gaps g then succeeds
with

    pi D_1 e^{Q g} D_2 e^{Q g} ... D_k 1.

Three observation models give three matrices (state law pi, packet error rate P_t, slot T_s):

``sampled``
    the state at the packet's end decides the whole packet: D_t = e^{Q n T_s} diag(1 - P_t(b));
``bit-level``
    every symbol (every block of a coded body, the access code and the header each as a whole) sees the state
    at its time;
``published``
    the state is drawn afresh for every packet, D_t = 1 pi diag(1 - P_t(b)), so that all packets of all hops
    are independent.  This is the formula of Venugopal's thesis (2006, section 5.3).  A state outlasts a
    segment by far on the channels of interest, so it is badly pessimistic for trains and here for comparison
    only.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband.packets import (
    ACCESS_CODE_BITS,
    EDR_GUARD_AND_SYNC_US,
    FEC_BLOCK_BITS,
    HEADER_BITS,
    HEADER_REPETITIONS,
    SLOT_S,
    SYMBOL_S,
    PacketType,
)
from btqueue.channel.error_rates import (
    SYNC_THRESHOLD,
    Bits,
    access_code_error_rate,
    coded_error_rate,
    header_error_rate,
    packet_error_rate,
    uncoded_error_rate,
)
from btqueue.channel.gilbert_elliott import TwoStateChannel

Observation = Literal["sampled", "bit-level", "published"]
"""How a packet sees the state of the channel."""


def packet_success_matrix(
    channel: TwoStateChannel,
    packet: PacketType,
    *,
    observation: Observation = "sampled",
    bits: Bits = "payload",
    sync_threshold: int = SYNC_THRESHOLD,
) -> NDArray[np.float64]:
    """Matrix D_t "packet received, state moves from its start to the end of its slots".

    Args:
        channel: the link's channel.
        packet: the packet type, full.
        observation: see the module's description.
        bits: the bits that errors can hit, ``"payload"`` or ``"on-air"``.
        sync_threshold: bit errors in the sync word still accepted (on air only).

    Returns:
        Shape (2, 2), rows the state at the start; row sums are the success probabilities given that state.

    Raises:
        ValueError: an unknown observation or convention.
    """
    if observation == "bit-level":
        return _bit_level(channel, packet, bits, sync_threshold)
    success = np.diag(1.0 - packet_error_rate(packet, channel.bers, bits=bits, sync_threshold=sync_threshold))
    match observation:
        case "sampled":
            return channel.transition(packet.slots * SLOT_S) @ success
        case "published":
            return channel.transition(np.inf) @ success
        case _:
            allowed = ", ".join(get_args(Observation))
            raise ValueError(f"unknown observation {observation!r}, must be one of {allowed}")


def train_success_matrix(
    channel: TwoStateChannel,
    packets: Sequence[PacketType],
    *,
    gap_s: float | Sequence[float] = SLOT_S,
    observation: Observation = "sampled",
    bits: Bits = "payload",
    sync_threshold: int = SYNC_THRESHOLD,
) -> NDArray[np.float64]:
    """Matrix "every packet of the train received, state moves from the first slot to the last".

    Args:
        channel: the link's channel.
        packets: the packets in order of transmission, at least one.
        gap_s: idle time from the end of one packet's slots to the start of the next, in seconds: one value
            for all gaps or one for each of the ``len(packets) - 1``.  The default is the one-slot reply in
            between.
        observation: see the module's description.
        bits: the bits that errors can hit.
        sync_threshold: bit errors in the sync word still accepted (on air only).

    Returns:
        Shape (2, 2), rows the state at the start.

    Raises:
        ValueError: no packet, a wrong number of gaps, a negative gap, or an unknown option.
    """
    if not packets:
        raise ValueError("a train needs at least one packet")
    gaps = [gap_s] * (len(packets) - 1) if isinstance(gap_s, int | float) else list(gap_s)
    if len(gaps) != len(packets) - 1:
        raise ValueError(f"{len(packets)} packets have {len(packets) - 1} gaps, not {len(gaps)}")

    matrices = {
        packet: packet_success_matrix(
            channel, packet, observation=observation, bits=bits, sync_threshold=sync_threshold
        )
        for packet in set(packets)
    }
    train = matrices[packets[0]]
    for gap, packet in zip(gaps, packets[1:], strict=True):
        train = train @ channel.transition(gap) @ matrices[packet]
    return train


def train_success(
    channel: TwoStateChannel,
    packets: Sequence[PacketType],
    *,
    gap_s: float | Sequence[float] = SLOT_S,
    hops: int = 1,
    observation: Observation = "sampled",
    bits: Bits = "payload",
    sync_threshold: int = SYNC_THRESHOLD,
) -> float:
    """Probability that a train, started at a random time, is received whole on each of ``hops`` links.

    The links are independent and alike, so one link's probability is raised to the power of ``hops``.  Other
    arguments and errors as in :func:`train_success_matrix`; ``hops`` below 1 is a ``ValueError`` too.
    """
    one_hop = channel.stationary @ train_success_matrix(
        channel, packets, gap_s=gap_s, observation=observation, bits=bits, sync_threshold=sync_threshold
    )
    return float(one_hop.sum()) ** _checked_hops(hops)


def exchange_success(
    channel: TwoStateChannel,
    data: Sequence[PacketType],
    ack: Sequence[PacketType],
    *,
    ack_delay_s: float,
    gap_s: float | Sequence[float] = SLOT_S,
    ack_gap_s: float | Sequence[float] = SLOT_S,
    hops: int = 1,
    observation: Observation = "sampled",
    bits: Bits = "payload",
    sync_threshold: int = SYNC_THRESHOLD,
) -> float:
    """Probability that a segment and, later on the same links, its acknowledgement are received.

    Every one of the ``hops`` links carries the data and then, after ``ack_delay_s``, the ACK:
    (pi D_data e^{Q tau} D_ack 1)^hops.

    Args:
        channel: the channel of each link; the links are independent.
        data: packets of the segment.
        ack: packets of its acknowledgement.
        ack_delay_s: time tau from the end of the data's slots to the start of the ACK's, in seconds.
        gap_s: gaps between the data packets, as in :func:`train_success_matrix`.
        ack_gap_s: gaps between the ACK's packets.
        hops: number of links, at least 1.
        observation: see the module's description.
        bits: the bits that errors can hit.
        sync_threshold: bit errors in the sync word still accepted (on air only).

    Raises:
        ValueError: an empty train, wrong gaps, a negative delay, fewer than one hop, or an unknown option.
    """
    data_matrix = train_success_matrix(
        channel, data, gap_s=gap_s, observation=observation, bits=bits, sync_threshold=sync_threshold
    )
    ack_matrix = train_success_matrix(
        channel, ack, gap_s=ack_gap_s, observation=observation, bits=bits, sync_threshold=sync_threshold
    )
    one_hop = channel.stationary @ data_matrix @ channel.transition(ack_delay_s) @ ack_matrix
    return float(one_hop.sum()) ** _checked_hops(hops)


def _bit_level(
    channel: TwoStateChannel, packet: PacketType, bits: Bits, sync_threshold: int
) -> NDArray[np.float64]:
    """Bit-level D_t: the parts of the packet one after the other, then the rest of its slots without risk."""
    match bits:
        case "payload":
            received, elapsed_s = _body(channel, packet, packet.payload_bits, packet.payload_fec_blocks)
        case "on-air":
            prefix, prefix_s = _prefix(channel, packet, sync_threshold)
            body, body_s = _body(channel, packet, packet.body_bits, packet.body_fec_blocks)
            received, elapsed_s = prefix @ body, prefix_s + body_s
        case _:
            raise ValueError(f"unknown bits {bits!r}, must be one of {', '.join(get_args(Bits))}")
    return received @ channel.transition(packet.slots * SLOT_S - elapsed_s)


def _body(
    channel: TwoStateChannel, packet: PacketType, n_bits: int, n_blocks: int
) -> tuple[NDArray[np.float64], float]:
    """Success matrix and duration of the body: one unit per symbol, or per block when it is coded."""
    if packet.coded:
        unit = _unit(channel, coded_error_rate(1, channel.bers), FEC_BLOCK_BITS * SYMBOL_S)
        return np.linalg.matrix_power(unit, n_blocks), n_blocks * FEC_BLOCK_BITS * SYMBOL_S
    full, partial = divmod(n_bits, packet.bits_per_symbol)
    symbol = _unit(channel, uncoded_error_rate(packet.bits_per_symbol, channel.bers), SYMBOL_S)
    received = np.linalg.matrix_power(symbol, full)
    if partial:
        received = received @ _unit(channel, uncoded_error_rate(partial, channel.bers), SYMBOL_S)
    return received, (full + (partial > 0)) * SYMBOL_S


def _prefix(
    channel: TwoStateChannel, packet: PacketType, sync_threshold: int
) -> tuple[NDArray[np.float64], float]:
    """Success matrix and duration of access code and header, up to the first symbol of the body."""
    access_s = ACCESS_CODE_BITS * SYMBOL_S
    header_s = HEADER_BITS * HEADER_REPETITIONS * SYMBOL_S
    guard_s = EDR_GUARD_AND_SYNC_US * 1e-6 if packet.bits_per_symbol > 1 else 0.0
    access = _unit(channel, access_code_error_rate(channel.bers, sync_threshold=sync_threshold), access_s)
    header = _unit(channel, header_error_rate(channel.bers), header_s)
    return access @ header @ channel.transition(guard_s), access_s + header_s + guard_s


def _unit(
    channel: TwoStateChannel, error_rates: NDArray[np.float64], duration_s: float
) -> NDArray[np.float64]:
    """The state moves on for ``duration_s`` and then decides about one indivisible unit."""
    return channel.transition(duration_s) @ np.diag(1.0 - error_rates)


def _checked_hops(hops: int) -> int:
    if hops < 1:
        raise ValueError(f"hops must be at least 1, not {hops}")
    return hops
