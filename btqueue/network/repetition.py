"""Packets that are repeated until they arrive: the frames and slots of a segment on a link with ARQ.

A packet is sent again in its sender's next turn. So its number of frames is geometric, and the number of a
segment is a sum of geometric numbers: means and variances are exact. The types of its packets follow from the
bit error rate where they are adapted (Chen and others, ICC 2004, section IV).
"""

from collections.abc import Sequence
from functools import lru_cache

from btqueue.baseband import PacketType, packet_types, segment
from btqueue.baseband.segmentation import Segmentation
from btqueue.channel import Bits, ber_from_link_quality, best_packet, packet_error_rate, spared_by_neighbour
from btqueue.scenario.link import Link
from btqueue.scenario.radio import Radio

HARDLY_EVER = 1e-9
"""Least success probability of a packet; with less it takes days, and the connection stands still anyway."""


def error_rate(radio: Radio, kind: PacketType, ber: float) -> float:
    """Return the share of the transmissions of a packet that fail at this bit error rate."""
    if radio.model == "perfect":
        return 0.0
    if radio.model == "constant" and radio.per is not None:
        return radio.per
    return float(packet_error_rate(kind, ber, bits=radio.bits))


def mean_error_rate(radio: Radio, kind: PacketType) -> float:
    """Return the share of the transmissions of a packet that fail in the long run, interferers included."""
    if radio.model in ("perfect", "constant"):
        error = error_rate(radio, kind, radio.ber)
    else:
        alike = radio.model == "alternating"
        good_s, bad_s = (1.0, 1.0) if alike else (radio.good_s, radio.bad_s)
        good, bad = (error_rate(radio, kind, ber) for ber in (radio.ber_good, radio.ber_bad))
        error = (good * good_s + bad * bad_s) / (good_s + bad_s)
    return 1.0 - (1.0 - error) * float(spared_by_neighbour(kind.air_time_us)) ** radio.interferers


@lru_cache(maxsize=4096)
def cut(size: int, names: tuple[str, ...], method: Segmentation) -> tuple[PacketType, ...]:
    """Return the types of the packets into which L2CAP cuts `size` bytes."""
    return tuple(fragment.packet for fragment in segment(size, packet_types(names), method))


def kinds_of(link: Link, bits: Bits, size: int, ber: float, quality: float) -> Sequence[PacketType]:
    """Return the types of the packets that carry `size` bytes; `bits`: which bits the radio may damage."""
    if link.adaptation == "fixed":
        return cut(size, link.packets, link.segmentation)
    every = packet_types(link.packets)
    if link.adaptation_estimate == "link-quality":
        ber = float(ber_from_link_quality(int(quality + 0.5)))
    if link.adaptation == "best":
        return _in_family(best_packet(every, ber, bits=bits), every, size)
    adapted = packet_types(link.adaptation_packets)
    wanted = adapted[sum(threshold <= ber for threshold in link.adaptation_thresholds)]
    return _in_family(wanted, tuple(dict.fromkeys((*every, *adapted))), size)


def _in_family(wanted: PacketType, types: Sequence[PacketType], size: int) -> list[PacketType]:
    """Cut into packets of the wanted type, the last one the smallest of its family that holds the rest."""
    found = [wanted] * ((size - 1) // wanted.payload_bytes)
    rest = size - len(found) * wanted.payload_bytes
    family = [
        kind
        for kind in types
        if (kind.coded, kind.bits_per_symbol) == (wanted.coded, wanted.bits_per_symbol)
        and rest <= kind.payload_bytes <= wanted.payload_bytes
    ]
    return [*found, min(family, key=lambda kind: kind.payload_bytes)]
