r"""How a packet type fares on a radio link under ARQ: attempts, service time, goodput.

The link is that of `btqueue.queueing.links.arq` with the probabilities of the baseband: a forward packet is
detected if sync word and header survive, intact if its body does, and the return packet needs sync word and
header only, since it carries the acknowledgement in its header. In the convention that counts the payload
bits alone nothing but the body can fail.

On a two-state channel the state at a packet's last slot decides about the packet, as in
`btqueue.channel.packet_trains` with ``observation="sampled"``; against the state of each bit this changes the
success of a segment by less than one percent.

Probabilities are JAX functions of the bit error rate, so that everything differentiates in it; they equal one
minus the error rates of `btqueue.channel.error_rates`.

Sources: Bluetooth Core Specification, Baseband part (ARQ scheme); Valenti, Robert & Reed, WCNC 2002.
"""

from typing import NamedTuple, get_args

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from scipy.special import comb

from btqueue.baseband import SLOT_S, PacketType
from btqueue.baseband.packets import HEADER_BITS, SYNC_WORD_BITS
from btqueue.channel import SYNC_THRESHOLD, Bits, TwoStateChannel
from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced
from btqueue.queueing.links import arq


class Reception(NamedTuple):
    """Success probabilities of the parts of a frame, each of the shape of the bit error rate."""

    detected: Array
    intact: Array
    acknowledged: Array


@in_float64
def reception(
    packet: PacketType, ber: ArrayLike, *, bits: Bits = "on-air", sync_threshold: int = SYNC_THRESHOLD
) -> Reception:
    """Probabilities that a forward packet is detected, is then intact, and that its reply is decoded.

    Args:
        packet: type of the forward packet, full.
        ber: bit error rate, any shape.
        bits: what errors can hit; with ``"payload"`` packets are always detected and replies decoded.
        sync_threshold: bit errors in the sync word still accepted.

    Raises:
        ValueError: a bit error rate outside [0, 1] or an unknown convention.
    """
    if bits not in get_args(Bits):
        raise ValueError(f"unknown bits {bits!r}, must be one of {', '.join(get_args(Bits))}")
    if not is_traced(ber) and not ((np.asarray(ber) >= 0) & (np.asarray(ber) <= 1)).all():
        raise ValueError(f"bit error rate must lie within [0, 1], not {ber}")
    b = jnp.asarray(ber, dtype=float)
    right = 1.0 - b
    on_air = bits == "on-air"
    if packet.coded:
        block = right**15 + 15.0 * b * right**14
        intact = block ** (packet.body_fec_blocks if on_air else packet.payload_fec_blocks)
    else:
        intact = right ** (packet.body_bits if on_air else packet.payload_bits)
    if not on_air:
        return Reception(jnp.ones_like(b), intact, jnp.ones_like(b))
    synchronised = jnp.asarray(
        sum(
            comb(SYNC_WORD_BITS, errors, exact=True) * b**errors * right ** (SYNC_WORD_BITS - errors)
            for errors in range(sync_threshold + 1)
        )
    )
    found = synchronised * (right**3 + 3.0 * b * right**2) ** HEADER_BITS
    return Reception(found, intact, found)


@in_float64
def arq_link(
    packet: PacketType, ber: ArrayLike, *, reply: int | ArrayLike = 1, bits: Bits = "on-air"
) -> arq.ArqLink:
    """The frames of a packet type under independent bit errors.

    Args:
        packet: type of the forward packet, full.
        ber: bit error rate, a number.
        reply: slots of the return packet, a number or their law.
        bits: what errors can hit.

    Raises:
        ValueError: as `reception`, and if ``reply`` is no law.
    """
    chances = reception(packet, ber, bits=bits)
    return arq.memoryless_link(**chances._asdict(), slots=packet.slots, reply=reply)


@in_float64
def fading_arq_link(
    packet: PacketType, channel: TwoStateChannel, *, reply: int | ArrayLike = 1, bits: Bits = "on-air"
) -> arq.ArqLink:
    """The frames of a packet type on the two-state channel; arguments and errors as `arq_link`."""
    chances = reception(packet, channel.bers, bits=bits)
    return arq.fading_link(
        slot_transition=channel.transition(SLOT_S), **chances._asdict(), slots=packet.slots, reply=reply
    )


@in_float64
def goodput_kbps(packet: PacketType, link: arq.ArqLink, *, limit: int | None = None) -> Array:
    """User bits that a saturated sender delivers, in kbit/s, with at most ``limit`` attempts a packet."""
    return packet.payload_bits * arq.saturated_goodput(link, limit) / (SLOT_S * 1e3)
