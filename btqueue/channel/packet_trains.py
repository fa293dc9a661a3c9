r"""Exact success probabilities of packet trains on the two-state channel.

Let D_t be the 2 x 2 matrix whose entry (i, j) is the probability that a packet of type t is received and the
state has moved from i, at its start, to j, at the end of its slots.  A train with idle gaps g then succeeds
with

    pi D_1 e^{Q g} D_2 e^{Q g} ... D_k 1.

Two observation models give two matrices (state law pi, packet error rate P_t, slot T_s):

``sampled``
    the state at the packet's end decides the whole packet: D_t = e^{Q n T_s} diag(1 - P_t(b));
``published``
    the state is drawn afresh for every packet, D_t = 1 pi diag(1 - P_t(b)), so that all packets of all hops
    are independent.  This is the formula of Venugopal's thesis (2006, section 5.3).  A state outlasts a
    segment by far on the channels of interest, so it is badly pessimistic for trains and here for comparison
    only.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from btqueue.baseband.packets import SLOT_S, PacketType
from btqueue.channel.error_rates import Bits, packet_error_rate
from btqueue.channel.gilbert_elliott import TwoStateChannel

Observation = Literal["sampled", "published"]
"""How a packet sees the state of the channel."""


def train_success(
    channel: TwoStateChannel,
    packets: Sequence[PacketType],
    *,
    gap_s: float | Sequence[float] = SLOT_S,
    hops: int = 1,
    observation: Observation = "sampled",
    bits: Bits = "payload",
) -> float:
    """Probability that a train, started at a random time, is received whole on each of ``hops`` links.

    The links are independent and alike, so one link's probability is raised to the power of ``hops``.  A
    segment and its acknowledgement, later on the same links, are a train with one long gap.

    Args:
        channel: the link's channel.
        packets: the packets in order of transmission, all of them full, at least one.
        gap_s: idle time from the end of one packet's slots to the start of the next, in seconds: one value
            for all gaps or one for each of the ``len(packets) - 1``.  The default is the one-slot reply in
            between.
        hops: number of links, at least 1.
        observation: see the module's description.
        bits: the bits that errors can hit, ``"payload"`` or ``"on-air"``.

    Raises:
        ValueError: no packet, a wrong number of gaps, a negative gap, fewer than one hop, or an unknown
            option.
    """
    if not packets:
        raise ValueError("a train needs at least one packet")
    if hops < 1:
        raise ValueError(f"hops must be at least 1, not {hops}")
    if observation not in get_args(Observation):
        allowed = ", ".join(get_args(Observation))
        raise ValueError(f"unknown observation {observation!r}, must be one of {allowed}")
    gaps = [gap_s] * (len(packets) - 1) if isinstance(gap_s, int | float) else list(gap_s)
    if len(gaps) != len(packets) - 1:
        raise ValueError(f"{len(packets)} packets have {len(packets) - 1} gaps, not {len(gaps)}")
    law = channel.stationary
    for gap, packet in zip([0.0, *gaps], packets, strict=True):
        seen = np.inf if observation == "published" else packet.slots * SLOT_S
        received = 1.0 - packet_error_rate(packet, channel.bers, bits=bits)
        law = law @ channel.transition(gap) @ channel.transition(seen) * received
    return float(law.sum()) ** hops
