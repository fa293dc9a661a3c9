"""L2CAP segmentation: cutting one upper-layer frame into baseband packets.

Two policies, both without mixing two frames in one packet:

``osu``
    Optimum slot utilisation: as many of the largest type as needed and the tail in the smallest type that
    holds it.  No other choice takes fewer packets.
``best-fit``
    As many *full* packets of the largest type as the frame fills; the rest in the packets that leave the
    least payload space unused and, if several do, take the fewest slots (each packet with its one-slot
    reply). Less padding than ``osu`` at the price of more packets.

Sources: the names and the intent are from Das, Ghose, Razdan, Saran and Shorey, "Enhancing performance of
asynchronous data traffic over the Bluetooth wireless ad-hoc network", INFOCOM 2001; ``osu`` in the form used
by Venugopal (M.Sc. thesis, University of Manitoba 2006, sections 2.3.3 and 3.2.3). The thesis only names best
fit; the order of preference above is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from btqueue.baseband.packets import PacketType

Segmentation = Literal["osu", "best-fit"]
"""Name of a segmentation policy."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """One baseband packet of an L2CAP frame that was cut into packets.

    Attributes:
        packet: the packet type.
        carried_bytes: bytes of the frame in it, from 1 to the payload of the type.
    """

    packet: PacketType
    carried_bytes: int

    @property
    def padding_bytes(self) -> int:
        """Payload bytes of the type left unused."""
        return self.packet.payload_bytes - self.carried_bytes


def segment(
    pdu_bytes: int, types: Sequence[PacketType], method: Segmentation = "osu"
) -> tuple[Fragment, ...]:
    """Cut an upper-layer frame into baseband packets.

    Args:
        pdu_bytes: length of the frame in bytes, all headers included; at least 1.
        types: the allowed packet types, in any order; repeated ones do not matter.
        method: ``"osu"`` or ``"best-fit"``.

    Returns:
        The packets in order of transmission, largest payload first.  Together they carry exactly
        ``pdu_bytes``; only the last one may be part empty.

    Raises:
        ValueError: an empty frame, no packet type, or an unknown method.
    """
    if pdu_bytes < 1:
        raise ValueError(f"pdu_bytes must be at least 1, not {pdu_bytes}")
    if not types:
        raise ValueError("at least one packet type must be allowed")
    match method:
        case "osu":
            return _fewest_packets(pdu_bytes, types)
        case "best-fit":
            return _least_padding(pdu_bytes, types)
        case _:
            allowed = ", ".join(get_args(Segmentation))
            raise ValueError(f"unknown segmentation {method!r}, must be one of {allowed}")


def _fewest_packets(pdu_bytes: int, types: Sequence[PacketType]) -> tuple[Fragment, ...]:
    largest = max(types, key=_payload)
    full, tail = divmod(pdu_bytes, largest.payload_bytes)
    head = (Fragment(largest, largest.payload_bytes),) * full
    if tail == 0:
        return head
    smallest = min((t for t in types if t.payload_bytes >= tail), key=lambda t: (t.slots, t.payload_bytes))
    return (*head, Fragment(smallest, tail))


def _least_padding(pdu_bytes: int, types: Sequence[PacketType]) -> tuple[Fragment, ...]:
    ordered = sorted(set(types), key=lambda t: (t.payload_bytes, t.name), reverse=True)

    @cache
    def tightest(rest: int) -> tuple[int, int, tuple[PacketType, ...]]:
        """Return the packets for the rest after their padding and their slots, replies included.

        A tie goes to the type with the larger payload, so that the order of `types` does not matter.
        """
        if rest <= 0:
            return -rest, 0, ()
        options = []
        for packet in ordered:
            padding, slots, others = tightest(rest - packet.payload_bytes)
            options.append((padding, slots + packet.slots + 1, (packet, *others)))
        return min(options, key=lambda option: option[:2])

    full, rest = divmod(pdu_bytes, ordered[0].payload_bytes)
    packets = sorted(tightest(rest)[2], key=_payload, reverse=True)
    fragments = [Fragment(ordered[0], ordered[0].payload_bytes)] * full
    for packet in packets:
        carried = min(rest, packet.payload_bytes)
        fragments.append(Fragment(packet, carried))
        rest -= carried
    return tuple(fragments)


def _payload(packet: PacketType) -> int:
    return packet.payload_bytes
