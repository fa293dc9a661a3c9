"""How a central shares its slots: the tables ``[polling]`` and ``[voice]``."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar, Final, Literal, NamedTuple

from btqueue.baseband.packets import PACKET_TYPES
from btqueue.baseband.voice import ESCO_PACKETS, MOST_LINKS, VoiceLinks, repeat_slots
from btqueue.scenario.fields import Condition, Count, PositiveSeconds, Table, key
from btqueue.scenario.link import CLASSIC
from btqueue.text_files import table_beside

Discipline = Literal[
    "e-limited", "1-limited", "exhaustive", "gated", "round-robin", "slq", "ldq", "fep", "lwrr", "prc-lwrr"
]  # fmt: skip


class Rule(NamedTuple):
    """A polling discipline: its plain name, its rule, and its author."""

    plain: str
    meaning: str
    author: str


DISCIPLINES: Final = MappingProxyType(
    {row.pop("discipline"): Rule(**row) for row in table_beside("btqueue.scenario", "disciplines.csv")}
)
"""Each polling discipline in words."""

BRIDGES = {"bridges": (True,), **CLASSIC}


class Polling(Table):
    """The polling discipline of the centrals and the stay of the bridges."""

    WHEN: ClassVar[Condition] = CLASSIC
    max_weight: ClassVar[int] = 5
    """The initial weight of the weighted round robins."""

    discipline: Discipline = key("e-limited", "rule that ends a visit and chooses the next peripheral")
    limit: int = key(5, "M, frames of one visit under e-limited polling", ge=1, le=100_000)
    bridge_limit: Count | None = key(
        None, "frames of a visit to the bridge; unset: limit x peripherals there that are no bridge", BRIDGES
    )
    bridge_buffer_packets: Count | None = key(
        None, "packets a bridge may hold for a piconet; unset: limit x peripherals there, no bridges", BRIDGES
    )
    bridge_schedule: Literal["walk-in", "sniff", "pcss"] = key(
        "walk-in",
        "how bridge and central find each other: the bridge waits for its turn in the cycle, or is in "
        "windows in turn (sniff: a fixed schedule from time 0 on, the same for every bridge and "
        "replication), or in pseudo-random windows (pcss: another sequence for every bridge and replication)",
        BRIDGES,
    )
    residence: Literal["visit", "cycle", "complete"] = key(
        "visit",
        "a walk-in bridge leaves after its visit, after whole cycles, or when nothing is left",
        {"polling.bridge_schedule": ("walk-in",)},
    )
    residence_cycles: Count = key(
        1, "cycles a bridge stays when residence is cycle", {"polling.residence": ("cycle",)}
    )
    rendezvous_s: PositiveSeconds = key(
        0.1,
        "mean time between meeting points of sniff and pcss",
        {"polling.bridge_schedule": ("sniff", "pcss")},
    )
    switch_delay: bool = key(False, "count clock and frame alignment when a bridge changes piconet", BRIDGES)


class Voice(Table):
    """Synchronous voice links of 64 kbit/s both ways, which take their slots before any data.

    SCO links have HV packets. EV packets, of eSCO links, have a checksum and are repeated if they are
    damaged: link 1 is the voice of the first peripheral of its piconet, link 2 of the second.
    """

    WHEN: ClassVar[Condition] = CLASSIC

    packet: Literal["none", "HV1", "HV2", "HV3", "EV3", "EV4", "EV5", "2-EV3", "3-EV3", "2-EV5", "3-EV5"] = (
        key("none", "packet type of the voice links: HV of SCO, EV of eSCO")
    )
    links: int = key(
        lambda data: 0 if data.get("packet", "none") == "none" else 1,
        "voice links of each piconet",
        {"voice.packet": ("HV1", "HV2", "HV3", *ESCO_PACKETS)},
        said="0; 1 with a voice packet",
        ge=0,
        le=MOST_LINKS,
    )
    retransmission_slots: int = key(
        lambda data: repeat_slots(data.get("packet", "none"), data.get("links", 0)),
        "W_eSCO, slots after the reserved ones in which a link may repeat its damaged packets; data use the "
        "slots that are not needed",
        {"voice.packet": tuple(ESCO_PACKETS), "errors": (True,)},
        said="room to repeat both packets once, if there is any: 2, or 6 with EV packets of three slots",
        ge=0,
        le=254,
    )

    @property
    def reservation(self) -> VoiceLinks | None:
        """The slots that the links reserve; None without voice."""
        if self.packet == "none" or not self.links:
            return None
        return VoiceLinks(packet=self.packet, links=self.links, window=self.retransmission_slots)


def fits_beside(voice: Voice, packet: str) -> bool:
    """Whether a packet of a known type, with its answer, fits between the slots of the voice links."""
    known, links = PACKET_TYPES.get(packet), voice.reservation
    return known is None or links is None or known.slots + 1 <= links.gap
