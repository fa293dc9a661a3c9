"""How a central shares its slots: the tables ``[polling]`` and ``[voice]``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from btqueue.baseband.packets import PACKET_TYPES
from btqueue.scenario.fields import Count, PositiveSeconds, Seconds, Table

Discipline = Literal[
    "e-limited", "1-limited", "exhaustive", "gated", "round-robin", "slq", "ldq", "fep", "lwrr", "prc-lwrr"
]  # fmt: skip

IDLE_INTERVALS = 8
"""Most time between the meetings of an idle link, where no key says so, in least times: three doublings."""


class Polling(Table):
    """The polling discipline of the centrals and the stay of the bridges."""

    discipline: Discipline = Field(
        default="e-limited", description="rule that ends a visit and chooses the next peripheral"
    )
    limit: int = Field(
        default=5, ge=1, le=100_000, description="M, frames of one visit under e-limited polling"
    )
    max_weight: int = Field(
        default=5, ge=1, le=1000, description="initial weight of the weighted round robins"
    )
    bridge_limit: Count | None = Field(
        default=None,
        description="frames of a visit to the bridge; unset: peripherals x limit; with lcs the weight of "
        "bridges in a saturated central's time, where a peripheral has limit",
    )
    bridge_buffer_packets: Count | None = Field(
        default=None, description="packets a bridge may hold each way; unset: peripherals x limit"
    )
    bridge_schedule: Literal["walk-in", "sniff", "pcss", "lcs"] = Field(
        default="walk-in",
        description="how bridge and central find each other: the bridge waits for its turn in the cycle, in "
        "windows in turn (sniff: a fixed schedule from time 0 on, the same for every bridge and "
        "replication), in pseudo-random windows (pcss: another sequence for every bridge and replication), "
        "or at meetings (lcs: at each they agree on time and length of the next, by the backlog and the "
        "packets exchanged; Tan and Guttag, LCN 2002)",
    )
    bridge_patience_s: Seconds = Field(
        default=0.0, description="a bridge that is not polled for this long goes on; 0: it waits for ever"
    )
    residence: Literal["visit", "cycle", "complete"] = Field(
        default="visit",
        description="a walk-in bridge leaves after its visit, after whole cycles, or when nothing is left",
    )
    residence_cycles: Count = Field(default=1, description="cycles a bridge stays when residence is cycle")
    rendezvous_s: PositiveSeconds = Field(
        default=0.1,
        description="mean time between meeting points of sniff and pcss; with lcs the least time from one "
        "meeting to the next",
    )
    longest_rendezvous_s: PositiveSeconds | None = Field(
        default=None,
        description="most time from one meeting of an idle link to the next, with lcs; unset: "
        f"{IDLE_INTERVALS} x rendezvous_s",
    )
    switch_delay: bool = Field(
        default=False, description="count clock and frame alignment when a bridge changes piconet"
    )


VOICE_LINKS = {"none": 0, "HV1": 1, "HV2": 2, "HV3": 3}
"""Most voice links of each kind: HVk reserves one slot pair out of every k."""


class Voice(Table):
    """Synchronous voice links, which take their slots before any data."""

    packet: Literal["none", "HV1", "HV2", "HV3"] = Field(
        default="none", description="packet type of the voice links"
    )
    links: int = Field(
        default_factory=lambda data: 0 if data.get("packet", "none") == "none" else 1,
        ge=0, le=3, description="voice links of each piconet",
    )  # fmt: skip


def free_slots(voice: Voice) -> int:
    """Return how many slots in a row the voice links leave for data: 2 k less 2 for each HVk link."""
    return 2 * (VOICE_LINKS[voice.packet] - voice.links)


def fits_beside(voice: Voice, packet: str) -> bool:
    """Whether a packet of a known type, with its answer, fits between the slots of the voice links."""
    known = PACKET_TYPES.get(packet)
    return known is None or not voice.links or known.slots + 1 <= free_slots(voice)
