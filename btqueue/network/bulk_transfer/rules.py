"""The paths of bulk transfers (`bulk_transfer.path`) as tables for the compiled loop."""

from typing import NamedTuple

import numpy as np

from btqueue.network.bulk_transfer.path import Layout, OutsidePort, Paths, RadioPort

NONE = -1
UNBOUNDED = 1 << 62
SPARE_ITEMS = 4
"""An acknowledgement, and a few."""
TAHOE, RENO, NEWRENO, SACK = range(4)
VARIANTS = {"tahoe": TAHOE, "reno": RENO, "newreno": NEWRENO, "sack": SACK}

LAYOUT = np.dtype(
    [(name, np.int64) for name in ("user_bytes", "ip_bytes", "frame_bytes", "first_packet", "packets")]
)
"""Sizes of a segment, and where in `Rules.pieces` its baseband packets stand."""

PIECE = np.dtype([(name, np.int64) for name in ("kind", "slots", "carried")])
"""A baseband packet: number of its type, length in slots, bytes of the segment."""

PORT = np.dtype(
    [
        ("delay_s", np.float64),
        *((name, np.int64) for name in ("medium", "place", "node", "places")),
    ]
)
"""One direction of a link: that of port `place` of an outside `medium`, with a delay behind it; or, with no
medium, that of member `place` of the piconet, whose packets wait at `node`. `places`: most that wait."""

MEDIUM = np.dtype([("bits_per_s", np.float64), ("header_bytes", np.int64), ("ports", np.int64)])

FLOW = np.dtype(
    [
        *((name, np.float64) for name in ("start_s", "pause_s")),
        *((name, np.int64) for name in ("source", "target", "first_layout", "layouts", "variant")),
        *((name, np.int64) for name in ("receive_window", "client", "server", "request", "reply", "goodbye")),
    ]
)
"""A flow between two nodes, whose segments have `layouts` in turn. `client`: the flow of the client of the
session that it serves, or its own number; of a client also the flow of its `server`, and what they say."""


class Rules(NamedTuple):
    """What does not change.

    Attributes:
        flows, ports, media: a record each.
        routes: ports on the way, [2 x flow (+ 1: back), hop]; NONE behind the last.
        layouts, pieces: sizes; the last layout is an acknowledgement.
        error_rates: of packets, [port, type].
        media_ports: ports of a medium by their place, [medium, place].
        members: ports of a member of the piconet, [member, up or down].
        fair_exhaustive: who is polled next; else one after the other.
        frames: most frames of a visit.
        node_bytes: most bytes that a node holds below IP.
        nodes: how many there are.
        burst: items that a step can bring at most: a window sent again, and one of new segments.
        jitter_s, phase: largest processing delay of a segment at a host, and where its sequence begins.
    """

    flows: np.ndarray
    ports: np.ndarray
    media: np.ndarray
    routes: np.ndarray
    layouts: np.ndarray
    pieces: np.ndarray
    error_rates: np.ndarray
    media_ports: np.ndarray
    members: np.ndarray
    fair_exhaustive: bool
    frames: int
    node_bytes: int
    nodes: int
    burst: int
    jitter_s: float
    phase: float


def rules_of(paths: Paths, phase: float) -> Rules:
    """Return the tables of these paths."""
    layouts = [*(layout for flow in paths.flows for layout in flow.layouts), paths.ack]
    kinds = sorted({kind.name for layout in layouts for kind, _ in layout.packets})
    own = paths.flows
    ends = [node for flow in own for node in (flow.source, flow.target)]
    radio = [port.node for port in paths.ports if isinstance(port, RadioPort)]
    return Rules(
        flows=_flows(paths),
        ports=_records([_port(port) for port in paths.ports], PORT),
        media=_records([(m.bits_per_s, m.header_bytes, m.ports) for m in paths.media], MEDIUM),
        routes=_table([(*way, NONE) for flow in own for way in (flow.forth, flow.back)]),
        layouts=_layouts(layouts),
        pieces=_records([(kinds.index(k.name), k.slots, n) for x in layouts for k, n in x.packets], PIECE),
        error_rates=np.array([_rates(port, kinds) for port in paths.ports]),
        media_ports=_media_ports(paths),
        members=_members(paths),
        fair_exhaustive=paths.discipline == "fep",
        frames=paths.frames,
        node_bytes=UNBOUNDED if paths.node_bytes is None else paths.node_bytes,
        nodes=1 + max(*ends, *radio),
        burst=2 * max(flow.window for flow in own) + SPARE_ITEMS,
        jitter_s=paths.jitter_s,
        phase=phase,
    )


def _records(rows: list[tuple], kind: np.dtype) -> np.ndarray:
    return np.array(rows, kind).view(np.recarray)


def _table(rows: list[tuple[int, ...]]) -> np.ndarray:
    """Return rows of different lengths as one array, filled up with NONE."""
    table = np.full((len(rows), max(len(row) for row in rows)), NONE, np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def _flows(paths: Paths) -> np.ndarray:
    flows = np.zeros(len(paths.flows), FLOW).view(np.recarray)
    flows["client"] = flows["server"] = NONE
    first = 0
    for index, path in enumerate(paths.flows):
        own = flows[index]
        own["start_s"], own["source"], own["target"] = path.start_s, path.source, path.target
        own["first_layout"], own["layouts"] = first, len(path.layouts)
        own["variant"], own["receive_window"] = VARIANTS[path.variant], path.window
        first += len(path.layouts)
        if path.session is not None:
            own["client"], own["server"] = index, path.session.server
            flows[path.session.server]["client"] = index
            for name in ("request", "reply", "goodbye", "pause_s"):
                own[name] = getattr(path.session, name)
    return flows


def _port(port: OutsidePort | RadioPort) -> tuple[float, int, int, int, int]:
    if isinstance(port, OutsidePort):
        return port.delay_s, port.medium, port.place, NONE, port.places
    return 0.0, NONE, port.place, port.node, UNBOUNDED if port.places is None else port.places


def _rates(port: OutsidePort | RadioPort, kinds: list[str]) -> list[float]:
    rates = {} if isinstance(port, OutsidePort) else {k.name: rate for k, rate in port.error_rates.items()}
    return [rates.get(kind, 0.0) for kind in kinds]


def _layouts(layouts: list[Layout]) -> np.ndarray:
    counts = [len(layout.packets) for layout in layouts]
    firsts = np.cumsum([0, *counts[:-1]])
    return _records(
        [
            (layout.user_bytes, layout.ip_bytes, layout.frame_bytes, first, count)
            for layout, first, count in zip(layouts, firsts, counts, strict=True)
        ],
        LAYOUT,
    )


def _media_ports(paths: Paths) -> np.ndarray:
    most = max((medium.ports for medium in paths.media), default=1)
    table = np.full((len(paths.media), most), NONE, np.int64)
    for number, port in enumerate(paths.ports):
        if isinstance(port, OutsidePort):
            table[port.medium, port.place] = number
    return table


def _members(paths: Paths) -> np.ndarray:
    table = np.full((paths.members, 2), NONE, np.int64)
    for number, port in enumerate(paths.ports):
        if isinstance(port, RadioPort):
            table[port.place, int(port.down)] = number
    return table
