"""From a scenario's flows to records: segments and their packets, applications, both ends of connections."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from btqueue.baseband import PACKET_TYPES, segment
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.link import Link
from btqueue.scenario.recordings import read_arrivals
from btqueue.scenario.topology import Topology, topology
from btqueue.scenario.traits import shares_segments
from btqueue.scenario.transport import Transport
from btqueue.simulator.applications import arrival_processes
from btqueue.simulator.construction.numbering import Draft, Numbers, from_keys
from btqueue.simulator.records import connections as kinds
from btqueue.simulator.records.arrays import record_type
from btqueue.simulator.records.conventions import (
    NANOBITS_A_BYTE,
    NEVER,
    NOTHING,
    SECOND,
    SLOT,
    nanoseconds,
)
from btqueue.simulator.records.packets import PACKETS_A_SEGMENT, layout_dtype
from btqueue.simulator.records.run import ARRIVAL, DELAYED_ACK, RETRANSMISSION, SESSION
from btqueue.simulator.tcp import buffers
from btqueue.simulator.tcp.fresh_connection import initial_values

MOST_SEGMENTS = 1_000_000
"""Of a message; each has a place in tables."""
MOST_LENGTHS = 8192
"""Of the segments of a stream; each has a layout of 3 kB."""
LEAST_RING = 64
"""Fewest segments that sender and receiver remember; a power of two."""


class Layouts:
    """The different sizes of segments, and how each is cut into packets."""

    def __init__(self, scenario: Scenario, type_names: list[str]) -> None:
        """Cut for the link of this scenario; packets refer to places in `type_names`."""
        self.scenario = scenario
        self.type_names = type_names
        self.known: dict[tuple[int, int], int] = {}
        self.cut = _cut_before(cast(Any, scenario.link), scenario.flow_control.charge)
        self.most_packets = 0

    def of(self, application_bytes: int, header_bytes: int) -> int:
        """Return the layout of a segment with these user bytes and bytes of headers above L2CAP."""
        key = (application_bytes, header_bytes)
        if key not in self.known:
            self.known[key] = len(self.known)
            if key not in self.cut:
                self.cut[key] = self._lay_out(*key)
            self.most_packets = max(self.most_packets, self.cut[key][0])
        return self.known[key]

    def table(self) -> np.ndarray:
        """Return the layouts as an array of records."""
        return _joined(tuple(self.cut[key][1] for key in self.known))

    def _lay_out(self, application_bytes: int, header_bytes: int) -> tuple[int, bytes]:
        link, flow_control = self.scenario.link, self.scenario.flow_control
        size = application_bytes + header_bytes
        pdu = size + link.l2cap_header_bytes
        pieces = segment(pdu, [PACKET_TYPES[name] for name in link.packets], link.segmentation)
        if len(pieces) > PACKETS_A_SEGMENT:
            raise ScenarioError(
                f"a segment of {pdu} bytes needs {len(pieces)} packets of {', '.join(link.packets)}, but at "
                f"most {PACKETS_A_SEGMENT} are possible: choose a smaller mss_bytes or longer packets"
            )
        full = flow_control.charge == "payload"
        cut = [
            (
                self.type_names.index(piece.packet.name),
                piece.carried_bytes,
                NANOBITS_A_BYTE * (piece.packet.payload_bytes if full else piece.carried_bytes),
            )
            for piece in pieces
        ]
        return layout(application_bytes, size, cut)


@lru_cache(maxsize=16)
def _joined(layouts: tuple[bytes, ...]) -> np.ndarray:
    return np.frombuffer(b"".join(layouts), record_type(layout_dtype))


@lru_cache(maxsize=4)  # the points of a study have the link in common
def _cut_before(link: Link, charge: str) -> dict[tuple[int, int], tuple[int, bytes]]:
    """Return the layouts of segments on a link that were made before, by user bytes and bytes of headers."""
    return {}


def layout(application_bytes: int, size: int, cut: list[tuple[int, int, int]]) -> tuple[int, bytes]:
    """Return how many packets a segment of `size` bytes has, and its record.

    `cut`: type, bytes and tokens of each of its packets.
    """
    types, carried, tokens = zip(*cut, strict=True)
    record, count = np.zeros((), layout_dtype), len(cut)
    record["ip_bytes"], record["pdu"], record["application"] = size, sum(carried), application_bytes
    record["count"], record["all_tokens"] = count, sum(tokens)
    record["types"][:count], record["bytes"][:count], record["tokens"][:count] = types, carried, tokens
    return count, record.tobytes()


def settings_of_flows(scenario: Scenario) -> list[Scenario]:
    """Return the scenario of each flow, with its traffic and transport; equal flows have one in common."""
    known: dict[Any, Scenario] = {}
    found = []
    for flow in topology(scenario).flows:
        own = () if flow.spec is None else tuple(flow.spec.own.items())
        if own not in known:
            known[own] = scenario.of_flow(flow.spec)
        found.append(known[own])
    return found


class Flows:
    """The numbers of the flows by group, the group of each, and the tables that their fields refer to.

    A group is "flow", its number, whether data go both ways, and whether acknowledgements are delayed; for a
    session also the number of the flow. `ring`: segments that each connection remembers; a power of two.
    """

    def __init__(self, scenario: Scenario, plan: Topology, layouts: Layouts) -> None:
        """Compute the numbers.

        Raises:
            ScenarioError: a message or an arrival file that cannot be sent.
        """
        self.layouts, self.numbers, self.groups = layouts, Numbers(), list[tuple]()
        self.patterns, self.schedules, self.sessions = list[int](), list[int](), 0
        settings = settings_of_flows(scenario)
        different = {id(one): one for one in settings}
        self.ring = max(LEAST_RING, *(1 << _in_flight(own).bit_length() for own in different.values()))
        names = {number: place for place, number in enumerate(different)}
        for index, (flow, own) in enumerate(zip(plan.flows, settings, strict=True)):
            two_way = flow.reverse is not None
            group = "flow", names[id(own)], two_way, own.transport.delayed_ack
            if group not in self.numbers:
                self.numbers[group] = option_fields(own, two_way) | application_fields(own, self)
            if own.traffic.source == "request-reply":
                assert flow.reverse is not None
                fields = session_fields(own, flow.reverse, index, self)
                self.numbers[*group, index], group = self.numbers[group] | fields, (*group, index)
            self.groups.append(group)


def add_flows(draft: Draft, plan: Topology, groups: Sequence[tuple]) -> None:
    """Add connections of these groups (established, nothing sent yet) and sessions.

    Streams 0, 1, ... belong to the flows' applications. The builder of the state fills in the routes.
    """
    for index, (flow, group) in enumerate(zip(plan.flows, groups, strict=True)):
        reverse = NOTHING if flow.reverse is None else flow.reverse
        ends = {"source": flow.source, "destination": flow.target, "reverse": reverse}
        draft.connections.add(group, **ends, stream=draft.add_stream())
        if index in group[4:] and reverse > index:
            draft.sessions.add(("session", index), requester=index, responder=reverse)


def add_flow_timers(draft: Draft) -> None:
    """Give each flow and session its timers."""
    for index, row in enumerate(draft.connections.rows):
        row["arrival_timer"] = draft.add_timer(ARRIVAL, index, row["source"])
        row["retransmission_timer"] = draft.add_timer(RETRANSMISSION, index, row["source"])
        delays = draft.connections.groups[index][3]
        row["ack_timer"] = draft.add_timer(DELAYED_ACK, index, row["source"]) if delays else NOTHING
    for index, session in enumerate(draft.sessions.rows):
        node = draft.connections[session["requester"]]["source"]
        session["timer"] = draft.add_timer(SESSION, index, node)


def _in_flight(scenario: Scenario) -> int:
    """Return the most segments that may be unanswered at once.

    Without Nagle's algorithm each message may leave a short segment at its end, and where the receive window
    is tuned it may cut one after each full one.

    Raises:
        ScenarioError: they are too many.
    """
    transport = scenario.transport
    if transport.protocol != "centaurus":
        most = transport.receive_window_segments + (BEHIND if transport.buffers == "tuned" else 0)
        if transport.nagle or unit_of(scenario) == 1:
            return most
        least = min(message_sizes(scenario))
        most *= 2 if transport.buffers == "tuned" else 1
        most += most * transport.mss_bytes // least + 1
        if most >= MOST_SEGMENTS:
            raise ScenarioError(
                f"a window of {transport.receive_window_segments} segments of {transport.mss_bytes} bytes "
                f"may hold {most} short ones where transport.nagle = false and messages have {least} bytes, "
                f"more than the {MOST_SEGMENTS} that the simulator holds: choose a smaller window or longer "
                "messages"
            )
        return most
    most = math.ceil(max(message_sizes(scenario)) / transport.centaurus_packet_bytes)
    return max(transport.receive_window_segments, most)


def message_sizes(scenario: Scenario) -> list[int]:
    """Return the sizes of the messages of a flow (bytes); for a session, of both directions."""
    traffic = scenario.traffic
    if traffic.source == "file":
        return list(read_arrivals(traffic.arrival_file or "")[1])
    if traffic.source == "request-reply":
        return [size for size in (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes) if size]
    return [traffic.message_bytes]


BEHIND = 3
"""Places in the rings for segments that a tuned send buffer holds beyond the window."""
BY_TIME = ("newreno", "sack", "cubic")
"""Variants that may find losses by time."""


def unit_of(scenario: Scenario) -> int:
    """Return the bytes of a full segment where the stream of a flow is counted in bytes, else 1.

    A stream that is cut into full segments only is counted in segments: results are the same and take less
    time. Where the receive window is tuned it may cut any segment.
    """
    transport, traffic = scenario.transport, scenario.traffic
    short = shares_segments(scenario) or transport.buffers == "tuned"
    if traffic.source == "file" and transport.protocol == "tcp" and transport.windows == "bytes":
        short = short or any(size % transport.mss_bytes for size in message_sizes(scenario))
    return transport.mss_bytes if short else 1


def most_under_way(scenario: Scenario) -> int:
    """Return the segments that a sender may have under way, whatever its congestion window.

    A greedy source refills the send buffer at every acknowledgement: its buffer limits it as a receive window
    of the same size does. Another source writes messages to its buffer, which refuses them when it is full.
    """
    transport = scenario.transport
    room = transport.receive_window_segments
    if scenario.traffic.source == "greedy" and transport.send_buffer_segments is not None:
        room = min(room, transport.send_buffer_segments)
    return room


def option_fields(scenario: Scenario, two_way: bool) -> dict[str, object]:
    """Return the fields of a connection with these options, at its start."""
    transport, unit = scenario.transport, unit_of(scenario)
    return _transport_fields(cast(Any, transport)) | {
        "unit": unit,
        "rwnd": most_under_way(scenario),
        "send_buffer": (transport.send_buffer_segments or 0) * unit,
        "piggyback": transport.piggyback and two_way,
    }


@lru_cache(maxsize=64)  # flows and points of a study have the transport in common
def _transport_fields(transport: Transport) -> dict[str, object]:
    options = from_keys(transport, kinds.connection_dtype, kinds.WORDS) | {
        "handshake": transport.handshake and transport.protocol == "tcp",
        "sack": transport.sack or transport.variant == "sack",
        "rack": transport.loss_detection == "rack" and transport.variant in BY_TIME,
        "hystart": transport.hystart and transport.variant == "cubic",
        "largest_variation": transport.rto_variation == "largest",
        "tuned_buffers": transport.buffers == "tuned",
        "mss": transport.mss_bytes,
        # of Linux's buffers: a power of two, and the packet's record
        "packet_cost": buffers.PACKET + 2 ** (transport.mss_bytes + buffers.HEADROOM).bit_length(),
        "ack_direct": transport.ack_path == "direct",
    }
    return options | initial_values(options)


def header_bytes(scenario: Scenario) -> int:
    """Return the headers of a data segment above L2CAP."""
    transport = scenario.transport
    own = transport.centaurus_header_bytes if transport.protocol == "centaurus" else 0
    return transport.header_bytes + own


def pieces_of(scenario: Scenario, message_bytes: int) -> list[int]:
    """Return the user bytes of the segments that a message is cut into."""
    transport = scenario.transport
    most = transport.centaurus_packet_bytes if transport.protocol == "centaurus" else transport.mss_bytes
    full, rest = divmod(message_bytes, most)
    if full >= MOST_SEGMENTS:
        raise ScenarioError(
            f"a message of {message_bytes} bytes in segments of {most} has {full} of them, more than the "
            f"{MOST_SEGMENTS} that the simulator holds: choose a smaller message or larger segments"
        )
    return [most] * full + ([rest] if rest else [])


def size_of(scenario: Scenario, message_bytes: int) -> int:
    """Return the size of a message in the unit of its stream, bytes or segments."""
    return message_bytes if unit_of(scenario) > 1 else len(pieces_of(scenario, message_bytes))


def add_pattern(flows: Flows, scenario: Scenario, messages: list[int]) -> dict[str, object]:
    """Lay out messages of these sizes one after the other and return the fields that point there.

    A stream of bytes may be cut into segments of all lengths that are sums and differences of these sizes
    and a full segment.

    Raises:
        ScenarioError: there are too many lengths.
    """
    unit = unit_of(scenario)
    if unit > 1:
        tuned = (buffers.SCALE,) if scenario.transport.buffers == "tuned" else ()
        step = math.gcd(unit, *messages, *tuned)
        if unit // step > MOST_LENGTHS:
            raise ScenarioError(
                f"messages that do not fill segments of {unit} bytes may be cut into segments of "
                f"{unit // step} lengths, more than the {MOST_LENGTHS} that the simulator holds: choose a "
                'smaller transport.mss_bytes, or transport.windows = "segments"'
            )
        pieces = list(range(step, unit + 1, step))
    else:
        pieces = [piece for size in messages for piece in pieces_of(scenario, size)]
        if len(set(pieces)) == 1:
            pieces = pieces[:1]
    first = len(flows.patterns)
    flows.patterns.extend(flows.layouts.of(piece, header_bytes(scenario)) for piece in pieces)
    return {"pattern": first, "pattern_length": len(pieces)}


def application_fields(scenario: Scenario, flows: Flows) -> dict[str, object]:
    """Return the fields of the application of a flow, and lay out the segments that it writes.

    Fields of sessions are in `session_fields`. A greedy source always has data for a full segment; where
    windows count segments it writes messages.
    """
    traffic, transport = scenario.traffic, scenario.transport
    fields: dict[str, object] = {
        "application": kinds.SOURCES.index(traffic.source),
        "start_at": nanoseconds(traffic.start_s),
        "session": NOTHING,
        "control_layout": NOTHING,
    }
    if transport.protocol == "centaurus":
        small, header = transport.centaurus_control_bytes, transport.header_bytes
        fields["control_layout"] = flows.layouts.of(small, header)
    elif transport.protocol == "tcp":
        fields["control_layout"] = flows.layouts.of(0, header_bytes(scenario))
    if traffic.source == "request-reply":
        return fields
    if traffic.source == "file":
        return fields | file_fields(scenario, flows)
    endless = traffic.source == "greedy" and transport.protocol == "tcp" and transport.windows == "bytes"
    size = transport.mss_bytes if endless else traffic.message_bytes
    fields |= add_pattern(flows, scenario, [size])
    fields["message_size"] = size_of(scenario, size)
    if traffic.source == "greedy":
        return fields
    bits = traffic.message_bytes * 8
    fields["mean_gap"] = bits / (traffic.load_kbps * 1000) * SECOND
    fields["aligned_phase"] = traffic.phase == "aligned"
    steps = traffic.load_schedule
    if traffic.source == "ibp":
        rate = traffic.load_kbps * 1000 / bits * SLOT / SECOND
        leave_active, leave_idle = arrival_processes.ibp_probabilities(rate, traffic.scv)
        fields |= {"leave_active": leave_active, "leave_idle": leave_idle}
    fields |= {"schedule": len(flows.schedules), "schedule_length": len(steps)}
    for step in steps:
        gap = bits / (step.load_kbps * 1000) * SECOND
        # a load that brings less than one message before NEVER is as good as none, which has the gap 0
        flows.schedules.extend([nanoseconds(step.at_s), max(1, round(gap)) if gap < NEVER else 0])
    return fields


def session_fields(scenario: Scenario, reverse: int, index: int, flows: Flows) -> dict[str, object]:
    """Return the application fields of one direction of a session; the client's makes the session."""
    traffic, transport = scenario.traffic, scenario.transport
    if reverse < index:
        sizes = [traffic.reply_bytes]
        role, session = kinds.RESPONDER, flows.numbers[flows.groups[reverse]]["session"]
    else:
        sizes = [traffic.request_bytes] + ([traffic.goodbye_bytes] if traffic.goodbye_bytes else [])
        role = kinds.REQUESTER
        session = flows.sessions
        flows.numbers["session", index] = dict(
            pause=nanoseconds(traffic.pause_s),
            request_segments=size_of(scenario, traffic.request_bytes),
            reply_segments=size_of(scenario, traffic.reply_bytes),
            goodbye_segments=size_of(scenario, traffic.goodbye_bytes),
            application_timeout=nanoseconds(traffic.application_timeout_s or 0),
            per_session_connection=transport.connection_per_session,
            watchdog=nanoseconds(transport.centaurus_watchdog_s),
            early_data=transport.centaurus_early_data,
            worker_period=nanoseconds(transport.centaurus_worker_s),
            deadlines=[NEVER] * kinds.DEADLINES,
            **dict.fromkeys(kinds.NUMBERS_OF_OBJECTS, [NOTHING] * 2),
        )
        flows.sessions += 1
    return {"application": role, "session": session, **add_pattern(flows, scenario, sizes)}


def file_fields(scenario: Scenario, flows: Flows) -> dict[str, object]:
    """Read the arrival file and return the application fields: times, then the size of each message."""
    times, sizes = read_arrivals(scenario.traffic.arrival_file or "")
    period = scenario.traffic.file_period_s
    if period is not None and times and times[-1] >= period:
        raise ScenarioError(
            f"[traffic] file_period_s = {period:g}: must be above the time of the file's last arrival"
        )
    fields: dict[str, object] = {
        "schedule": len(flows.schedules),
        "schedule_length": len(times),
        "file_period": nanoseconds(period or 0),
    }
    flows.schedules.extend(round(time * SECOND) for time in times)
    flows.schedules.extend(size_of(scenario, size) for size in sizes)
    return fields | add_pattern(flows, scenario, sizes)
