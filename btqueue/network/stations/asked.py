"""A network at its point, and the questions that rules of doubt ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.stations.network import ENDLESS, Flow, Network
from btqueue.network.stations.point import CARRIED, WAITING, Point
from btqueue.network.stations.queues import CYCLIC, ROOM

Vector = NDArray[np.float64]
SMALL = 0.03
"""Share of a round trip that a rough part may have without a doubt: this part is known to a third or
better."""
SMALL_OPEN = 0.05
"""The same where it makes no difference to goodput."""
DUPLICATES = 4.0
"""Segments of a window that lets three duplicates of a lost segment come."""
TOLERATED = 0.05
"""Relative error of a round trip up to which an answer counts as right."""
WAITS_OFF, LOSSES_OFF = 0.75, 0.25
"""Largest relative error of waits on air that is not full (97 % of 130 round trips of open sources), and of
the goodput lost by losses (of 25 lone connections). Both were chosen on these scenarios."""
BUSY, BUSY_ALONE, BUSY_QUEUE = 0.45, 0.6, 0.85
"""Utilisation of a resource by random sources, above which their waits are rough: by several links; by one,
or by several whose central passes all segments on, where they fit into a visit (of 243 random piconets
between both bounds one was wrong, round trips 7.9 % too short); of a wire, of a port, or of a star that
conserves work (`Asked.conserved`: of 75 with 75 to 85 % of the air used 74 were right)."""
MET = 0.1
"""Share of a round trip that is a wait for others, up to which bursts on the air were right: 9 of 9
random scenarios; and segments under way of which hardly one catches up with another."""
HALF = 0.5
"""Utilisation of a lone link with losses or 1-limited visits, or carried share of the load, above which laws
of losses and of phases were rough."""
FEW = 4.0
"""Segments of a window below which the order of single segments, polls and acknowledgements matters."""
VISITED = 0.75
"""Utilisation by random sources of the air of several links that are visited in turn, above which waits are
rough; with gated visits 7 of 8 were right below it."""
LEAST_WAITING = 1.5
"""Segments of a window waiting at full stations, from which on these stations are never idle: with fewer 1 of
4 random scenarios was wrong."""
PORT_ONE_WAY, PORT_BOTH_WAYS, PORT_ROUGH = 0.8, 0.6, 0.5
"""Utilisation of a port, in the visits that it gets, up to which round trips of random segments are right: of
links with data one way, and both ways; of segments that a visit does not hold or that a central relays."""
AIR_OF_HOSTS, AIR_OF_RELAYS = 0.9, 0.7
"""The same of the air where segments come from hosts and are acknowledged late, and where a central relays
them. These five bounds were taken from 750 random piconets. Of 170 drawn afterwards 94 stood, and 92 of them
were right; both others were acknowledged at once, which are in doubt above `BUSY_QUEUE` since."""
FEW_FRAMES = 3.0
"""Frames of a relayed segment up to which an acknowledgement at once is not much shorter than its segment."""
MOST_ANSWERS, MOST_BURSTS = 0.6, 0.55
"""Utilisation of the air of several links up to which round trips are right with delayed acknowledgements,
and with messages of several segments."""
PAIR = 2.0
"""Segments of a small window."""
RARE = 1e-3
"""Overflows of a buffer, or segments of a source, that make no difference."""


class Most(NamedTuple):
    """Highest utilisation of a port, and of the air, up to which round trips are right."""

    port: float
    air: float


class Asked(NamedTuple):
    """A network, its point, round trips (s), and whether a flow has round trips or delays in the answer."""

    network: Network
    point: Point
    rtt: Vector
    timed: NDArray[np.bool_]

    @property
    def used(self) -> Vector:
        """Utilisation of each resource, shape (resources,)."""
        return self.point.rate @ self.point.service

    @property
    def by_chance(self) -> Vector:
        """Utilisation of each resource by random sources, sessions not among them, shape (resources,)."""
        session = np.array([bool(flow.messages) for flow in self.network.flows])
        rate = np.where(self.point.links.links.endless | session, 0.0, self.point.rate)
        return rate @ self.point.service

    def air(self, f: int, *, regular: bool = False) -> float:
        """Return the share of a flow's air that random sources use; `regular`: that all sources use."""
        links = self.point.links.links
        load = links.load if regular else links.open_load
        ports = [
            v.index for v in (*self.network.flows[f].forth, *self.network.flows[f].back) if v.kind == "port"
        ]
        at = {int(links.piconet[links.port_link[port]]) for port in ports}
        return max((float(load[links.piconet == p].sum()) for p in at), default=0.0)

    def filled(self, f: int) -> bool:
        """Return whether windows keep a flow waiting at full stations for most of its round trip."""
        waits = float(self.point.waits[f])
        most = max(WAITING * self.rtt[f], LEAST_WAITING / max(float(self.point.rate[f]), 1e-9))
        return bool(self.point.links.links.endless[f]) and waits > most

    def unsure(self, f: int) -> float:
        """Return the share of a round trip that depends on how segments meet polls and each other.

        The rest is certain: the segment and its acknowledgement on the air and on wires, the timer of a
        receiver, and waits at full stations, whose rates are their capacities. Waits for polls and for others
        are known to a factor of two, so that no round trip should be off by more than this share: this held
        for 97 % of 393 simulated round trips of open sources.
        """
        flow, point = self.network.flows[f], self.point
        sure = point.links.answers[f].wait_s + float(point.waits[f])
        sure += 4.0 * flow.host_s + (point.gather[f] if len(point.gather) else 0.0)
        for way in (flow.forth, flow.back):
            sure += sum(
                visit.service_s + visit.delay_s + visit.jitter_s for visit in way if visit.kind == "wire"
            )
            stops = [visit for visit in way if visit.kind == "port"]
            slots = [visit.train.air + visit.train.frames for visit in stops]
            if stops and self.network.relay == "packet":  # packets are passed on during the longest stop
                first = [
                    each / max(visit.train.packets, 1.0) for each, visit in zip(slots, stops, strict=True)
                ]
                slots = [max(slots), sum(first) - first[int(np.argmax(slots))]]
            if stops and not self.network.ports[stops[-1].index].up:
                slots.append(-1.0)  # its answer comes behind the segment
            sure += sum(slots) * SLOT_S
        return max(1.0 - sure / self.rtt[f], 0.0)

    def small(self, f: int) -> bool:
        """Return whether waits are so small a part of a round trip that their error does not matter."""
        endless, flow = bool(self.point.links.links.endless[f]), self.network.flows[f]
        others = 0.0
        # windows of one segment without losses may all keep in phase
        if endless and flow.window < 2.0 and flow.loss < RARE and len(self.network.flows) > 1:
            others = self.air(f, regular=True) - float(self.point.rate[f] * self.point.service[f].max())
        return WAITS_OFF * (self.unsure(f) + max(others, 0.0)) < (SMALL if endless else SMALL_OPEN)

    def by_one(self, f: int) -> bool:
        """Return whether full segments come one at a time, at random, and are acknowledged one by one."""
        flow = self.network.flows[f]
        return flow.source == "poisson" and flow.batch <= 1.0 and flow.acks >= 1.0 and not flow.cut

    def expired(self, f: int) -> float:
        """Return the share of segments that wait for tokens longer than their timer (RFC 6298) lasts.

        The retransmission timer is taken at its mean, four mean deviations above the mean round trip.
        """
        tail, rtt = self.point.token_tails[f], float(self.rtt[f])
        if tail.mean <= 0.0:
            return 0.0
        deviation = 2.0 * tail.wait * exp(-tail.share)
        timer = max(self.network.flows[f].transport.min_rto_s, rtt + 4.0 * deviation)
        return tail.share * exp(-(timer - rtt + float(self.point.own_stray[f])) / tail.mean)

    def cut(self, f: int) -> float:
        """Return the share of goodput that losses cost a connection that always has data.

        Without losses it would have its window under way, or its station full.
        """
        point, flow = self.point, self.network.flows[f]
        mine = point.service[f] > 0.0
        full = float(point.rate[f]) / max(float(self.used[mine].max(initial=0.0)), 1e-9)
        most = min(flow.window / float(point.base[f] + point.stray[f]), flow.load, full)
        return 1.0 - float(point.rate[f]) / max(most, 1e-9)

    def pause_s(self, f: int) -> float:
        """Return the longest pause of a port between visits that do not hold a window of a flow (s)."""
        flow, found = self.network.flows[f], 0.0
        for visit in flow.forth:
            limit = self.network.ports[visit.index].limit if visit.kind == "port" else ENDLESS
            if limit < flow.window * visit.train.frames:
                each_s = float(self.point.service[f, visit.index]) / visit.train.frames
                found = max(found, (each_s - self.network.frame_s(visit)) * limit)
        return found

    def disciplines(self, f: int) -> set[str]:
        """Return the disciplines of the piconets that the segments of a flow cross."""
        return {self.network.piconets[one].discipline for one in self.piconets(f)}

    def piconets(self, f: int) -> set[int]:
        """Return the piconets that the segments of a flow cross."""
        return {self.network.ports[v.index].piconet for v in self.network.flows[f].forth if v.kind == "port"}

    def hardly_lost(self, f: int) -> bool:
        """Return whether a station is nearly full in spite of losses, with links visited in turn."""
        mine = self.point.service[f] > 0.0
        left = 1.0 - float(self.used[mine].max(initial=0.0))
        return self.disciplines(f) <= set(CYCLIC) and left < SMALL / 2.0 and not self.point.wait[mine].any()

    def opens_s(self, f: int) -> float:
        """Return the time of congestion avoidance to open a window from half its size (s)."""
        flow = self.network.flows[f]
        return 0.5 * flow.window * float(self.rtt[f]) / max(min(flow.acks, 1.0), SMALL)

    def fills_alone(self, f: int) -> bool:
        """Return whether a window is open for most of a run and waits at full stations, none at a bucket.

        Then its rate is the capacity of these stations, and its round trip follows by Little's law.
        """
        point = self.point
        stations = len(self.network.ports) + len(self.network.wires)
        buckets = self.used[stations:][(point.service[f, stations:] > 0.0) & (point.wait[stations:] == 0.0)]
        opens = self.opens_s(f) < HALF * self.network.run_s
        return self.filled(f) and opens and float(buckets.max(initial=0.0)) < BUSY_QUEUE

    def has_its_share(self, f: int) -> bool:
        """Return whether the order in which links are visited makes no difference to a full window.

        Where all links always have segments, both lwrr and fep visit them in turn; a relayed segment waits
        for two links. Where windows fill all visits, and polls take hardly any air, rates are the shares of
        a cycle, and round trips follow by Little's law.
        """
        point = self.point
        waits = bool(point.links.links.endless[f]) and bool(point.waits[f] > 0.0)
        waits = waits and self.disciplines(f) <= {"lwrr", "fep"}
        if self.relayed(f):
            full = self.airless(self.piconets(f)) and beyond_visits(self, self.network.flows[f]) > 0.0
            return self.fills_alone(f) or (waits and full)
        return self.filled(f) or waits

    def airless(self, piconets: set[int]) -> bool:
        """Return whether segments leave hardly any of the air of these piconets to polls."""
        links = self.point.links.links
        return all(float(links.load[links.piconet == p].sum()) > 1.0 - SMALL for p in piconets)

    def conserved(self, piconet: int) -> bool:
        """Return whether waits for polls follow from the law of conserved work.

        Random segments of one size, all acknowledged alone, are visited in turn. A visit never has packets of
        two of them, or it is seldom full.
        """
        queues = self.point.links.polled
        if not queues.count:
            return False
        here = queues.host & ~queues.back & (queues.piconet == piconet)
        limit, frames = queues.limit[here], queues.frames[here]
        known = (frames % limit == 0.0) | ((limit > (ROOM + 1.0) * frames) & (frames >= 2.0))
        known = known & queues.plain[here] & (queues.spread[here] == 0.0)
        flows = {int(f) for f in queues.flow[queues.piconet == piconet]}
        return bool(here.any() and known.all()) and all(self.by_one(f) and not self.relayed(f) for f in flows)

    def several(self, f: int) -> bool:
        """Return whether a flow crosses a piconet of several members."""
        return any(self.network.piconets[one].members > 1 for one in self.piconets(f))

    def relayed(self, f: int) -> bool:
        """Return whether a central passes the segments of a flow on from one link to another."""
        return sum(visit.kind == "port" for visit in self.network.flows[f].forth) > 1

    def in_step(self, f: int) -> bool:
        """Return whether a central passes on segments that fill their visits, so that both links take turns.

        The bound of the air was chosen on 45 random piconets. Of 100 others 76 stand, and all are right;
        periodic sources beside others, of which one was wrong, are left out since the first 60.
        """
        flow, here, ports = self.network.flows[f], self.piconets(f), self.network.ports
        stops, others = [*flow.forth, *flow.back], (g for g in range(len(self.network.flows)) if g != f)
        random = flow.source != "periodic" or not any(here & self.piconets(g) for g in others)
        plain = flow.acks == 1.0 and flow.host_s + flow.jitter_s == 0.0 and not self.network.bridges
        return (random and plain and len(here) == 1 and all(visit.kind == "port" for visit in stops)) and all(
            visit.train.spread == 0.0 == visit.train.frames % ports[visit.index].limit for visit in flow.forth
        )

    def fits(self, f: int) -> bool:
        """Return whether the segments of a flow, repeated packets included, fit into a visit of each port."""
        visits = [visit for visit in self.network.flows[f].forth if visit.kind == "port"]
        return all(visit.train.frames <= self.network.ports[visit.index].limit for visit in visits)

    @property
    def of_the_air(self) -> Vector:
        """Utilisation of the air of each piconet by random sources, shape (piconets,)."""
        links, air = self.point.links.links, np.zeros(len(self.network.piconets))
        if len(links.names):
            open_load = np.minimum(links.open_load, links.load)  # both ways in one frame
            np.add.at(air, links.piconet, np.minimum(open_load, links.plain_load))
        return air

    def beyond_ports(self, piconet: int) -> str | None:
        """Return the utilisation of a port or of the air that is above `most_at_ports`, "" if none is.

        None if the bounds are not known for this traffic.
        """
        most = self.most_at_ports(piconet)
        if most is None:
            return None
        air = float(self.of_the_air[piconet])
        here = [number for number, port in enumerate(self.network.ports) if port.piconet == piconet]
        used = float(self.by_chance[here].max(initial=0.0))
        if used > most.port:
            return f"sources at random use {used:.0%} of the visits to a link: above {most.port:.0%}"
        return f"sources at random fill {air:.0%} of the air: above {most.air:.0%}" if air > most.air else ""

    def most_at_ports(self, piconet: int) -> Most | None:
        """Return the utilisation of a port and of the air up to which round trips are right, if it is known.

        It is known for e-limited polling where all traffic is full segments at random, one at a time, that
        cross nothing but ports without bit errors. Relayed segments of few frames are as short as their
        acknowledgements: at once acknowledged, round trips were 6 to 12 % too short even at low utilisation.
        """
        here = self.network.piconets[piconet]
        flows = [(f, flow) for f, flow in enumerate(self.network.flows) if piconet in self.piconets(f)]
        alone = all(self.single(flow) and not self.point.links.links.endless[f] for f, flow in flows)
        if not flows or not alone or here.discipline != "e-limited" or here.free_share < 1.0:
            return None
        fit = all(self.fits(f) for f, _ in flows)
        if any(self.relayed(f) for f, _ in flows):
            longer = all(self.longer_than_answer(flow, FEW_FRAMES) for _, flow in flows)
            return Most(PORT_ROUGH, AIR_OF_RELAYS) if fit and longer else None
        air = BUSY_QUEUE if any(self.by_one(f) for f, _ in flows) else AIR_OF_HOSTS
        if air == BUSY_QUEUE and not self.conserved(piconet) and any(self.cut_going_up(f) for _, f in flows):
            air = HALF
        if both_ways(self, alone=False):
            return Most(PORT_BOTH_WAYS, air) if fit else None
        return Most(PORT_ONE_WAY if fit else PORT_ROUGH, air)

    def cut_going_up(self, flow: Flow) -> bool:
        """Return whether visits with room for few segments may end within a segment that a host sends.

        Then waits for the rest of the segment are too long: by 6 to 9 % of a round trip above 60 % of the
        air.
        """
        port, frames = self.network.ports[flow.forth[0].index], flow.forth[0].train.frames
        return port.up and port.limit % frames > 0.0 and frames < port.limit <= (ROOM + 1.0) * frames

    def within_ports(self, f: int) -> bool:
        """Return whether no port and no air on a flow's way is used more than `most_at_ports`."""
        return all(self.beyond_ports(one) == "" for one in self.piconets(f))

    @staticmethod
    def longer_than_answer(flow: Flow, frames: float) -> bool:
        """Return whether segments have more than these frames, or are not acknowledged one by one."""
        delayed = flow.protocol == "tcp" and flow.acks < 1.0
        return delayed or flow.forth[0].train.frames > frames

    @staticmethod
    def single(flow: Flow) -> bool:
        """Return whether full segments come one by one, at random, over ports alone, without bit errors."""
        visits = (*flow.forth, *flow.back)
        once = all(
            visit.kind == "port" and visit.train.frames <= visit.train.packets and not visit.train.loss
            for visit in visits
        )
        whole = not flow.messages and not flow.short and not flow.cut
        return once and whole and flow.source == "poisson" and flow.batch <= 1.0 and flow.more == 0.0

    def flows(self, *, every: bool = False) -> Iterator[tuple[int, Flow, bool]]:
        """Yield number, flow, and whether it always has data to send, for the flows that send.

        Of flows with the same answer only the first one, or every one.
        """
        for f in range(len(self.network.flows)) if every else self.point.links.firsts:
            flow = self.network.flows[f]
            sends = self.point.rate[f] > 0.0 or flow.load > 0.0
            if not flow.messages and sends and not self.certain(f):
                yield f, flow, bool(self.point.links.links.endless[f])

    def certain(self, f: int) -> bool:
        """Return whether only the goodput of datagrams is asked for, and their load is carried."""
        return not self.timed[f] and bool(self.point.rate[f] >= CARRIED * self.network.flows[f].load)


def beyond_visits(asked: Asked, flow: Flow) -> float:
    """Return the frames of a relayed window beyond full visits at all stops and a segment between."""
    stops = [visit for visit in flow.forth if visit.kind == "port"]
    limits = sum(asked.network.ports[visit.index].limit for visit in stops)
    segment = max((visit.train.frames for visit in stops), default=0.0)
    return (flow.window - 1.0) * segment - limits if len(stops) > 1 and limits < ENDLESS else np.inf


def both_ways(asked: Asked, *, alone: bool) -> bool:
    """Return whether one of several links has data both ways; with `alone`, a lone link too."""
    links = asked.point.links.links
    data = (asked.point.rate @ links.frames[0]) > 0.0
    several = (links.members[links.port_link] > 1.0) | alone
    return bool((several & data & (links.opposite >= 0) & data[links.opposite]).any())
