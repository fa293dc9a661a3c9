"""Bridges of a network: their order in it, and doubts about the laws of their rounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf
from typing import Any

from btqueue.network.stations.network import Flow, Network, Port

IN_A_ROW = 0.35
"""Bridges in a row times the use of the busiest, above which round trips over several were 6 to 16 % too
short: chosen on a draw of random bridges."""
BRIEF = 3
"""Frames of an exchange that takes hardly longer than the polls around it."""
FILLED = 1.4
"""Packets waiting for an exchange, in multiples of its frames, from which on the exchange is full."""
OFTEN = 2.5
"""Transmissions of a packet from which on the law of the segments of an exchange is rough."""
AT_A_LIMIT = ("e-limited", "1-limited", "round-robin")
"""Disciplines whose full visits end at a number of frames. In rows of bridges under others, goodput was up to
9 % lower than by the law of `Links._in_step`."""


def never_meet(network: Network, port: Port) -> bool:
    """Return whether the bridges at both ends of a link, with windows in turn, are never both in its piconet.

    All bridges with windows in turn change piconet at the same times.
    """
    ends = [
        network.bridges[end]
        for end in (port.bridge, network.piconets[port.piconet].central_bridge)
        if end >= 0
    ]
    turns = {one.piconets.index(port.piconet) for one in ends if one.schedule == "sniff"}
    return len(turns) > 1 and len({len(one.piconets) for one in ends}) == 1


def waits_for_itself(network: Network, bridge: int) -> bool:
    """Return whether the polls of a bridge depend, over other bridges, on the bridge itself."""
    seen, now = set(), {bridge}
    while now:
        seen |= now
        goes = {p for n in now for p in network.bridges[n].piconets if network.bridges[n].own not in (-1, p)}
        now = {network.piconets[p].central_bridge for p in goes} - {-1}
        if bridge in now:
            return True
        now -= seen
    return False


def in_a_row(network: Network) -> range:
    """Return the numbers of the bridges if they stand in a row that one flow alone crosses, else none.

    Each bridge is the central of a piconet and a member of the next one, which it leaves after a visit. Polls
    of other members at the end of the row, or a call, would put the visits there out of step.
    """
    walk = all(one.schedule == "walk-in" and one.own >= 0 and not one.cycles for one in network.bridges)
    alone = walk and len(network.flows) == 1 and len(network.ports) == 2 * (len(network.bridges) + 1)
    free = all(
        one.data_share == 1.0
        and one.discipline in AT_A_LIMIT
        and (one.members == 1 or one.central_bridge >= 0)
        for one in network.piconets
    )
    return range(len(network.bridges) if alone and free else 0)


def one_by_one(network: Network) -> bool:
    """Return whether walk-in bridges carry whole segments of one flow only, at random, without repetitions.

    The bridges are members. Then no packet overtakes another, and visits follow each other in turn: of 66
    random chains whose segments need several visits all were right.
    """
    flow = network.flows[0]
    visits = [visit for visit in (*flow.forth, *flow.back) if visit.kind == "port"]
    walk = all(
        (one.schedule, one.own, one.cycles, one.switch_s) == ("walk-in", -1, 0.0, 0.0)
        for one in network.bridges
    )
    at_once = flow.batch <= 1.0 <= flow.acks and flow.source == "poisson" and not flow.cut
    room = all(network.ports[v.index].limit > 1 and v.train.frames <= v.train.packets for v in visits)
    return len(network.flows) == 1 and network.relay == "segment" and walk and at_once and room


def doubts(network: Network, point: Any) -> list[str]:
    """Return the doubts about the laws of bridges, with errors against the simulation.

    Args:
        network: the stations.
        point: its `btqueue.network.stations.point.Point`.
    """
    flows, bridged = network.flows, [n for n, port in enumerate(network.ports) if port.bridge >= 0]
    if not bridged:
        return []
    over = {
        f: visits
        for f, flow in enumerate(flows)
        if (visits := [visit for visit in flow.forth if visit.kind == "port" and visit.index in bridged])
    }
    carried = [f for f, flow in enumerate(flows) if point.rate[f] > 0.95 * flow.load]
    stops = [
        (f, visit, network.ports[visit.index])
        for f in carried
        for visit in (*flows[f].forth, *flows[f].back)
        if visit.kind == "port"
    ]
    crossed = [network.ports[visit.index] for f in over for visit in flows[f].forth if visit.kind == "port"]
    used = float((point.rate @ point.service)[bridged].max())
    bridges = [network.bridges[network.ports[n].bridge] for n in bridged]
    row = max(sum(network.ports[visit.index].up for visit in visits) for visits in [[], *over.values()])
    schedules = ", ".join(sorted({bridge.schedule for bridge in bridges} - {"walk-in"}))
    central = [piconet.central_bridge >= 0 for piconet in network.piconets]
    endless = point.links.links.endless
    pairs = any(endless[f] and flows[f].window <= 2.0 for f in over)
    f, visits = next(iter(over.items()), (0, []))
    flow, frames = flows[f], min((network.ports[visit.index].limit for visit in visits), default=1)
    packets = max((visit.train.packets for visit in visits), default=1.0)
    lone = len(over) == 1 and endless[f] and not pairs
    in_step = lone and len(point.links.links.row) == 1
    spills = [
        places
        for f in over
        if f not in carried and flows[f].protocol == "tcp"
        for places in _overflowed(network, flows[f])
    ]
    places = [network.ports[n].places for n in point.links.brings.coming]
    reasons = {
        f"the busiest link of a bridge is used for {used:.0%} of the time: round trips were up to 12 % off "
        "below 30 %, up to 55 % above, and 6 to 16 % too short over several bridges": (
            used > 0.2 or row * used > IN_A_ROW
        )
        and any(flows[f].load < inf for f in carried if f in over),
        "windows of two segments wait for each other: goodput was up to 64 % too high": pairs,
        f"its buffer of {min(spills or places, default=0.0):g} packets has no room for some segments: "
        "goodput was 17 % off in the median, by 56 % and more in one of ten, and up to 19 times too high; "
        "round trips 16 and 53 %, and up to 19 times too long": bool(spills) or point.links.refuses,
        "several pairs of devices fill their windows: goodput was up to 27 % off": len(over) > 1
        and not pairs
        and not set(over) <= set(carried),
        f"exchanges of {frames} frames keep in phase with polls: goodput was 5 % off in the median, and from "
        "20 % too low to 46 % too high": lone and not in_step and frames <= max(BRIEF, packets),
        f"windows of {flow.window:g} segments do not fill exchanges: goodput was up to 120 % too high": lone
        and flow.window * packets < FILLED * frames * len(visits),
        "packets are repeated more than once in the mean: goodput was up to 5 % too high": lone
        and any(visit.train.frames > OFTEN * visit.train.packets for visit in visits),
        "acknowledgements are delayed: goodput was from 13 % too low to 53 % too high": lone
        and not in_step
        and flow.acks < 1.0,
        f"[polling] bridge_schedule = {schedules}: round trips were up to 134 % off, and goodput 86 %": bool(
            schedules
        ),
        "[polling] switch_delay: round trips were up to 19 % off": any(one.switch_s > 0.0 for one in bridges),
        "a link joins two bridges: round trips were up to 30 % off": any(
            port.bridge >= 0 and central[port.piconet] for port in crossed
        ),
        "a segment needs several visits: round trips were up to 42 % too long": not one_by_one(network)
        and any(visit.train.frames > port.limit for _, visit, port in stops),
        "segments stay in a piconet whose central is a bridge: round trips were up to 13 % off": any(
            f not in over and central[port.piconet] for f, _, port in stops
        ),
        "windows stay full in a piconet whose central is a bridge, and its absences may keep in step with "
        "the other piconet: goodput was up to 27 % too high": any(
            f not in over and f not in carried and endless[f] and central[network.ports[visit.index].piconet]
            for f, flow in enumerate(flows)
            for visit in flow.forth
            if visit.kind == "port"
        ),
        "bridges that are centrals wait for each other in a circle, and may all be absent at once": any(
            waits_for_itself(network, n) for n in range(len(network.bridges))
        ),
        "[polling] residence: bridges stay longer than a visit: goodput was 19 % off in the median": any(
            one.cycles > 0.0 for one in bridges
        ),
    }
    return [f"[network] bridge: {reason}" for reason, holds in reasons.items() if holds]


def _overflowed(network: Network, flow: Flow) -> Iterator[float]:
    """Yield the packets that find room in the buffers of bridges that a full window of the flow overflows.

    A stay leaves packets behind if its visit is shorter than the one before, or errors cost frames of it.
    """
    for before, visit in pairwise(one for one in flow.forth if one.kind == "port"):
        here, there, packets = network.ports[before.index], network.ports[visit.index], visit.train.packets
        sent = there.limit * packets / visit.train.frames * (1.0 + 1e-9)
        leaves = here.limit >= there.limit and here.limit > sent
        if there.up and there.bridge >= 0 and leaves and there.places < flow.window * packets:
            yield there.places
