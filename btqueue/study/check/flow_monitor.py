"""Results of ns-3's FlowMonitor (Carneiro, Fortuna and Ricardo, NSTools 2009), as its XML file holds them.

FlowMonitor sees IP packets. From them follow:

- throughput: the bytes sent less the headers;
- an upper bound of the goodput: the bytes received less the headers. It is the goodput only of a transport
  that never repeats, for a copy that arrives twice counts twice;
- the mean round trip: mean delay of the data plus mean delay of the acknowledgements, where there are both;
- losses, conservation and the order of delays.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from btqueue.study.check.results import BadResults, ForeignResults, Quantity, finite
from btqueue.text_files import BadText, decoded

SECOND_NS = 1e9
"""Nanoseconds of a second."""
IP_TCP_BYTES = 40
"""Headers of IPv4 and TCP without options: FlowMonitor counts them."""
COUNTERS = ("txPackets", "rxPackets", "txBytes", "rxBytes", "lostPackets")


@dataclass(frozen=True)
class MonitoredFlow:
    """One flow of IP packets; times in s."""

    ends: tuple[str, str, str, str]
    sent: float
    arrived: float
    sent_bytes: float
    arrived_bytes: float
    lost: float
    first_sent_s: float
    last_s: float
    delay_sum_s: float

    @property
    def mean_delay_s(self) -> float:
        """Return the mean delay of a packet."""
        return self.delay_sum_s / self.arrived

    @property
    def duration_s(self) -> float:
        """Return the time from the first packet to the last one."""
        return self.last_s - self.first_sent_s


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
    data = [flow for flow in flows if _carries_data(flow, by_ends)]
    if not data:
        raise BadResults(f"{path.name}: no flow has delivered a packet")
    pairs = [(flow, by_ends.get(_back(flow.ends))) for flow in data]
    count = len(data)
    values = {
        "throughput_kbps": sum(_kbps(f.sent_bytes - header_bytes * f.sent, f) for f in data) / count,
        "arrived_kbps" if repeats else "goodput_kbps": sum(
            _kbps(f.arrived_bytes - header_bytes * f.arrived, f) for f in data
        )
        / count,
        "segment_loss": sum(f.lost / max(1, f.lost + f.arrived) for f in data) / count,
        "packets_sent": sum(f.sent for f in data),
        "packets_delivered": sum(f.arrived for f in data),
        "packets_lost": sum(f.lost for f in data),
    }
    values |= {
        "packets_in_flight": values["packets_sent"] - values["packets_delivered"] - values["packets_lost"]
    }
    round_trips = [there.mean_delay_s + back.mean_delay_s for there, back in pairs if back and back.arrived]
    if len(round_trips) == count:
        values["rtt_s"] = sum(round_trips) / count
    return ForeignResults(
        path.name,
        "FlowMonitor",
        {name: Quantity(name, float(value)) for name, value in values.items()},
        duration_s=max(flow.duration_s for flow in data),
        measured_from_start=True,
        flow=1 if count == 1 else None,
        notes=(
            f"FlowMonitor counts IP packets: {header_bytes} bytes of headers were taken off each",
            "the round trip is delay of data plus delay of acknowledgements",
            *(
                ["there is no goodput in the file: the bytes received include retransmitted copies"]
                if repeats
                else []
            ),
        ),
    )


def _flows(path: Path) -> list[MonitoredFlow]:
    try:
        text = decoded(path.read_bytes())
        if "<!DOCTYPE" in text:  # it may define entities, which grow without bound
            raise BadResults(f"{path.name}: has a DOCTYPE, which FlowMonitor does not write")
        root = ElementTree.fromstring(text)
    except BadText as error:
        raise BadResults(f"{path.name}: {error}") from None
    except ElementTree.ParseError as error:
        raise BadResults(f"{path.name}: is no complete XML file ({error})") from None
    if root.tag != "FlowMonitor" or root.find("FlowStats") is None:
        raise BadResults(f"{path.name}: is no FlowMonitor file: <{root.tag}> in place of <FlowMonitor>")
    numbers = [each.get("flowId") for each in root.iterfind("FlowStats/Flow")]
    if twice := sorted({number for number in numbers if number and numbers.count(number) > 1}):
        raise BadResults(f"{path.name}: flow {twice[0]} is there {numbers.count(twice[0])} times")
    ends = {
        flow.get("flowId", ""): _ends(flow)
        for classifier in root
        if classifier.tag.endswith("FlowClassifier")
        for flow in classifier.iter("Flow")
    }
    return [_flow(each, ends, path.name) for each in root.iterfind("FlowStats/Flow")]


def _ends(flow: ElementTree.Element) -> tuple[str, str, str, str]:
    keys = ("sourceAddress", "sourcePort", "destinationAddress", "destinationPort")
    source, port, destination, far_port = (flow.get(key, "") for key in keys)
    return source, port, destination, far_port


def _flow(
    flow: ElementTree.Element, ends: dict[str, tuple[str, str, str, str]], source: str
) -> MonitoredFlow:
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
    return MonitoredFlow(
        ends.get(number, ("", "", "", "")),
        sent,
        arrived,
        sent_bytes,
        arrived_bytes,
        lost,
        attribute("timeFirstTxPacket") / SECOND_NS,
        max(attribute("timeLastRxPacket"), attribute("timeLastTxPacket")) / SECOND_NS,
        attribute("delaySum") / SECOND_NS,
    )


def _back(ends: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    return (ends[2], ends[3], ends[0], ends[1])


def _carries_data(flow: MonitoredFlow, by_ends: dict[tuple[str, str, str, str], MonitoredFlow]) -> bool:
    """Whether the flow delivered something and is not the acknowledgements of another."""
    if not flow.arrived or flow.duration_s <= 0:
        return False
    other = by_ends.get(_back(flow.ends))
    return other is None or not other.sent_bytes or flow.sent_bytes / other.sent_bytes > 0.25


def _kbps(count: float, flow: MonitoredFlow) -> float:
    return count * 8 / 1000 / flow.duration_s
