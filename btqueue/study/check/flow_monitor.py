"""Results of ns-3's FlowMonitor (Carneiro, Fortuna and Ricardo, NSTools 2009), as its XML file holds them.

FlowMonitor sees IP packets. From them follow:

- throughput: the bytes sent less the headers;
- an upper bound of the goodput: the bytes received less the headers. It is the goodput only of a transport
  that never repeats, for a copy that arrives twice counts twice;
- the mean round trip: mean delay of the data plus mean delay of the acknowledgements, where there are both;
- losses, conservation and the order of delays.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from btqueue.study.check.results import BadResults, ForeignResults, Quantity, finite
from btqueue.text_files import decoded

SECOND_NS = 1e9
"""Nanoseconds of a second."""
IP_TCP_BYTES = 40
"""Headers of IPv4 and TCP without options: FlowMonitor counts them."""
ACKNOWLEDGING = 0.25
"""Share of the bytes of the flow the other way up to which a flow acknowledges that one."""
COUNTERS = ("txPackets", "rxPackets", "txBytes", "rxBytes", "lostPackets")

Ends = tuple[str, str, str, str]
"""Source address and port, target address and port."""


class MonitoredFlow(NamedTuple):
    """One flow of IP packets: counts, the time from its first packet to its last, and the mean delay (s)."""

    ends: Ends
    sent: float
    arrived: float
    sent_bytes: float
    arrived_bytes: float
    lost: float
    duration_s: float
    delay_s: float

    @property
    def back(self) -> Ends:
        """The ends of the flow in the other direction."""
        return (*self.ends[2:], *self.ends[:2])

    def answers(self, by_ends: Mapping[Ends, MonitoredFlow]) -> bool:
        """Whether it is the acknowledgements of another flow."""
        other = by_ends.get(self.back)
        most = 0.0 if other is None else ACKNOWLEDGING * other.sent_bytes
        return most > 0 and self.sent_bytes <= most

    def kbps(self, count: float) -> float:
        """Return a rate from a number of bytes."""
        return count * 8 / 1000 / self.duration_s


def read_flow_monitor(
    path: Path, header_bytes: int = IP_TCP_BYTES, *, repeats: bool = True
) -> ForeignResults:
    """Read a FlowMonitor file; metrics are means over the flows of data.

    Args:
        path: the XML file.
        header_bytes: IP and transport headers of a packet, which FlowMonitor counts.
        repeats: whether the transport retransmits; if not, the bytes received are the goodput.

    Raises:
        BadResults: it is no FlowMonitor file, or no flow carries data.
    """
    flows = _flows(path)
    by_ends = {flow.ends: flow for flow in flows if flow.ends[0]}
    data = [flow for flow in flows if flow.arrived and flow.duration_s > 0 and not flow.answers(by_ends)]
    if not data:
        raise BadResults(f"{path.name}: no flow has delivered a packet")
    count = len(data)
    sent, arrived, lost = (sum(getattr(f, name) for f in data) for name in ("sent", "arrived", "lost"))
    carried = sum(f.kbps(f.arrived_bytes - header_bytes * f.arrived) for f in data) / count
    values = {
        "throughput_kbps": sum(f.kbps(f.sent_bytes - header_bytes * f.sent) for f in data) / count,
        "arrived_kbps" if repeats else "goodput_kbps": carried,
        "segment_loss": sum(f.lost / max(1, f.lost + f.arrived) for f in data) / count,
        "packets_sent": sent,
        "packets_delivered": arrived,
        "packets_lost": lost,
        "packets_in_flight": sent - arrived - lost,
    }
    pairs = [(there, by_ends.get(there.back)) for there in data]
    round_trips = [there.delay_s + back.delay_s for there, back in pairs if back and back.arrived]
    if len(round_trips) == count:
        values["rtt_s"] = sum(round_trips) / count
    copies = "there is no goodput in the file: the bytes received include retransmitted copies"
    return ForeignResults(
        path.name,
        "FlowMonitor",
        {name: Quantity(name, float(value)) for name, value in values.items()},
        duration_s=max(flow.duration_s for flow in data),
        measured_from_start=True,
        flow=1 if count == 1 else None,
        flow_assumed=count == 1,
        notes=(
            f"FlowMonitor counts IP packets: {header_bytes} bytes of headers were taken off each",
            "the round trip is delay of data plus delay of acknowledgements",
            *([copies] if repeats else []),
        ),
    )


def _flows(path: Path) -> list[MonitoredFlow]:
    try:
        text = decoded(path.read_bytes())
        if "<!DOCTYPE" in text:  # it may define entities, which grow without bound
            raise BadResults(f"{path.name}: has a DOCTYPE, which FlowMonitor does not write")
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise BadResults(f"{path.name}: is no complete XML file ({error})") from None
    if root.tag != "FlowMonitor" or root.find("FlowStats") is None:
        raise BadResults(f"{path.name}: is no FlowMonitor file: <{root.tag}> in place of <FlowMonitor>")
    numbers = [each.get("flowId") for each in root.iterfind("FlowStats/Flow")]
    if twice := sorted({number for number in numbers if number and numbers.count(number) > 1}):
        raise BadResults(f"{path.name}: flow {twice[0]} is there {numbers.count(twice[0])} times")
    keys = ("sourceAddress", "sourcePort", "destinationAddress", "destinationPort")
    ends = {
        flow.get("flowId", ""): tuple(flow.get(key, "") for key in keys)
        for classifier in root
        if classifier.tag.endswith("FlowClassifier")
        for flow in classifier.iter("Flow")
    }
    return [_flow(each, ends, path.name) for each in root.iterfind("FlowStats/Flow")]


def _flow(flow: ElementTree.Element, ends: dict[str, Any], source: str) -> MonitoredFlow:
    number = flow.get("flowId", "?")
    where = f"{source}, flow {number}"

    def attribute(name: str) -> float:
        text = flow.get(name)
        if text is None:
            raise BadResults(f"{where}: the attribute {name} is missing")
        value = finite(text.removesuffix("ns"), where, name)
        if value < 0:
            raise BadResults(f"{where}: {name} = {value:g}: must not be negative")
        return value

    sent, arrived, sent_bytes, arrived_bytes, lost = (attribute(name) for name in COUNTERS)
    first, *last = (attribute(f"time{name}Packet") for name in ("FirstTx", "LastRx", "LastTx"))
    delay = attribute("delaySum") / arrived if arrived else math.nan
    own = ends.get(number, ("", "", "", ""))
    times = (max(last) - first) / SECOND_NS, delay / SECOND_NS
    return MonitoredFlow(own, sent, arrived, sent_bytes, arrived_bytes, lost, *times)
