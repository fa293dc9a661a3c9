"""How a central shares its slots: the tables ``[polling]`` and ``[voice]``."""

from __future__ import annotations

from typing import ClassVar, Literal

from btqueue.baseband.packets import PACKET_TYPES
from btqueue.scenario.fields import Condition, Count, PositiveSeconds, Seconds, Table, key
from btqueue.scenario.link import CLASSIC

Discipline = Literal[
    "e-limited", "1-limited", "exhaustive", "gated", "round-robin", "slq", "ldq", "fep", "lwrr", "prc-lwrr"
]  # fmt: skip

BRIDGES = {"bridges": (True,)}


class Polling(Table):
    """The polling discipline of the centrals and the stay of the bridges."""

    WHEN: ClassVar[Condition] = CLASSIC

    discipline: Discipline = key("e-limited", "rule that ends a visit and chooses the next peripheral")
    limit: int = key(5, "M, frames of one visit under e-limited polling", ge=1, le=100_000)
    max_weight: int = key(
        5,
        "initial weight of the weighted round robins",
        {"polling.discipline": ("lwrr", "prc-lwrr")},
        ge=1,
        le=1000,
    )
    bridge_limit: Count | None = key(
        None,
        "frames of a visit to the bridge; unset: peripherals x limit; with lcs the weight of "
        "bridges in a saturated central's time, where a peripheral has limit",
        BRIDGES,
    )
    bridge_buffer_packets: Count | None = key(
        None, "packets a bridge may hold each way; unset: peripherals x limit", BRIDGES
    )
    bridge_schedule: Literal["walk-in", "sniff", "pcss", "lcs"] = key(
        "walk-in",
        "how bridge and central find each other: the bridge waits for its turn in the cycle, in "
        "windows in turn (sniff: a fixed schedule from time 0 on, the same for every bridge and "
        "replication), in pseudo-random windows (pcss: another sequence for every bridge and replication), "
        "or at meetings (lcs: at each they agree on time and length of the next, by the backlog and the "
        "packets exchanged; Tan and Guttag, LCN 2002)",
        BRIDGES,
    )
    bridge_patience_s: Seconds = key(
        0.0, "a bridge that is not polled for this long goes on; 0: it waits for ever", BRIDGES
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
        "mean time between meeting points of sniff and pcss; with lcs the least time from one "
        "meeting to the next",
        {"polling.bridge_schedule": ("sniff", "pcss", "lcs")},
    )
    switch_delay: bool = key(False, "count clock and frame alignment when a bridge changes piconet", BRIDGES)


VOICE_LINKS = {"none": 0, "HV1": 1, "HV2": 2, "HV3": 3}
"""Most voice links of each kind: HVk reserves one slot pair out of every k."""


class Voice(Table):
    """Synchronous voice links, which take their slots before any data."""

    WHEN: ClassVar[Condition] = CLASSIC

    packet: Literal["none", "HV1", "HV2", "HV3"] = key("none", "packet type of the voice links")
    links: int = key(
        lambda data: 0 if data.get("packet", "none") == "none" else 1,
        "voice links of each piconet",
        {"voice.packet": ("HV1", "HV2", "HV3")},
        said="0; 1 with a voice packet",
        ge=0,
        le=3,
    )


def free_slots(voice: Voice) -> int:
    """Return how many slots in a row the voice links leave for data: 2 k less 2 for each HVk link."""
    return 2 * (VOICE_LINKS[voice.packet] - voice.links)


def fits_beside(voice: Voice, packet: str) -> bool:
    """Whether a packet of a known type, with its answer, fits between the slots of the voice links."""
    known = PACKET_TYPES.get(packet)
    return known is None or not voice.links or known.slots + 1 <= free_slots(voice)
