"""The stations of a network at a point, as a tagged segment of each flow meets them.

A segment that comes to an idle link waits for a poll: half of the cycle with an empty visit, and the rest of
the segments of others in service (Pollaczek & Khinchine). The time of a lone segment is added up stop by
stop: the place in the cycle where a visit ends decides how long the segment waits for the next visit. A
bridge is a link whose cycle is the round of its piconets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from math import ceil, exp, inf, isnan, nan
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.stations import acknowledgements, fading, jitter, transport
from btqueue.network.stations.acknowledgements import NEARLY
from btqueue.network.stations.air import Links, Rounds, as_share
from btqueue.network.stations.bridge_buffers import Brought, losing
from btqueue.network.stations.bridge_rounds import until_polled
from btqueue.network.stations.crossings import Crossing, Place
from btqueue.network.stations.network import EMPTY, ENDLESS, Flow, Network, Port, Train, Visit, alike, least_s
from btqueue.network.stations.own_queue import Own, Tail
from btqueue.network.stations.queues import Queues, stretch
from btqueue.network.stations.turns import Turns

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

CROWDED = 0.97
"""Utilisation above which a resource is taken as full."""


Met = tuple[int, float]
"""The piconet in which a bridge met the segment, and when it left this piconet (slots)."""


def resources(network: Network) -> tuple[list[tuple[str, int]], dict[tuple[str, int], int]]:
    """Return the stations that serve: ports, wires, buckets."""
    names = [("port", n) for n in range(len(network.ports))]
    names += [("wire", n) for n in range(len(network.wires))]
    names += [("bucket", n) for n in range(len(network.buckets))]
    return names, {name: n for n, name in enumerate(names)}


class Laws:
    """The stations of a network at a point, as a tagged segment of each flow meets them."""

    def __init__(self, network: Network, *, refuses: bool = False) -> None:
        self.network, self.plain = network, network.flows
        self.refuses = refuses  # whether packets are lost if a bridge has no room for them
        self.lost = np.zeros((len(network.flows), len(network.ports)))  # chances of it in the last turn
        self.step, self.before = np.ones(len(network.ports)), np.zeros(len(network.ports))  # towards it
        self.like = np.array(alike(network), int)  # number of the first flow with the same answer
        self.firsts = sorted(set(self.like.tolist()))
        self.links = Links(network)
        self.polled = Queues(network, self.links)
        self.timed, self.round_s = np.zeros((2, len(network.flows)))
        self.names, self.number = resources(network)
        self.turns = Turns(network, self.number)
        self.works: dict[int, Any] = {}  # work of sessions on each medium; it does not depend on the point
        self.sessions: dict[Any, Any] = {}  # that are known, by the signatures of their ends
        self.met_s: dict[Any, float] = {}  # waits of sessions for other clients: for a visit, on a medium
        # by flow: visits of full links (s) that a packet back from a wire may miss by less than a frame
        self.edges_s: dict[int, float] = {}
        self.filled_s = np.zeros(len(self.names))  # waits at stations that windows of other flows fill
        flows = len(network.flows)
        self.rounds: Rounds  # as seen by the flow whose trip is computed
        self.uses = np.zeros((flows, len(self.names)))
        self._lose()
        self.fixed = np.zeros((2, flows, len(self.names)))  # service that does not depend on the point
        self.spaced = np.zeros_like(self.fixed)  # service at the station next to a layer of a host
        self.most = np.zeros(len(network.ports))
        self.rests = [transport.Rest(flow.window, flow.window) for flow in network.flows]
        self.waits = np.zeros(flows)  # of segments for others, on the way forth
        self.ports: dict[int, Own] = {}  # queues in which flows wait longest, at ports of several links
        self.queues = [acknowledgements.Queue(0.0, 0.0, 0.0)] * flows
        self.chains: dict[tuple, Any] = {}  # connections with losses that are solved
        self.change = inf  # of rates in the last turn, relative
        # transmissions of segments, full resources, waits there, and round trips without, at start and end
        count = len(self.names)
        self.begin = self.ended = (
            np.ones(flows), np.zeros(count), np.zeros(count + len(self.turns.wires)), np.zeros(flows)
        )  # fmt: skip
        self.layers_s = np.array([2.0 * flow.host_s + flow.jitter_s / 2.0 for flow in network.flows])
        self.windows = np.array([flow.window for flow in network.flows])
        self.acks = np.array([flow.acks for flow in network.flows])
        # acknowledgements that travel alone, relative to a source that always has data
        self.alone = np.zeros(flows)
        self.answer([acknowledgements.Answers(0.0, flow.acks) for flow in network.flows])
        self.together = np.minimum([flow.together for flow in network.flows], 1e9)
        # segments of the same batch ahead of a segment
        self.ahead = np.array(
            [transport.before(flow) or transport.ahead(flow) * flow.pairs for flow in network.flows]
        )
        self.meets = np.array([flow.meets for flow in network.flows])
        self.least_s = np.array([4.0 * flow.host_s for flow in network.flows])  # shortest round trips
        self.varies = np.ones((2, flows, len(self.names)))  # mean square of a service over its squared mean
        self.windowed = any(bridge.schedule != "walk-in" for bridge in network.bridges)
        # ports of bridges where the next visit takes all segments of the last visit
        begins = {
            (way[0].kind, way[0].index) for flow in network.flows for way in (flow.forth, flow.back) if way
        }
        self.brought = [
            n
            for n, port in enumerate(network.ports)
            if port.up
            and port.bridge >= 0
            and network.bridges[port.bridge].schedule == "walk-in"
            and port.limit >= port.places
            and ("port", n) not in begins
        ]
        self.rates = np.zeros(flows)
        # segments and acknowledgements of each flow, by the direction of a link that they pass
        self.passing: dict[int, Vector] = {}
        self.held_s: dict[int, dict[tuple[int, int], float]] = {}  # by jitters on the way of a flow
        self.bunches = np.ones(flows)  # mean number of segments that come at once to the slowest station
        # from one relayed segment of a flow to the next in a busy path; waits of their acknowledgements (s)
        self.period_s = np.zeros((flows, 2))
        self.held_share = np.zeros(flows)  # share of a window that waits for its own bunches
        self.each_s = np.zeros((2, flows, len(self.names)))  # service of segments and acknowledgements
        for f, flow in enumerate(network.flows):
            for layer in flow.layers:
                r, share = self.number["wire", layer.wire], flow.acks if layer.back else 1.0
                self.uses[f, r] = 1.0
                self.fixed[int(layer.back), f, r] += flow.layer_s * share
                self.spaced[int(layer.back), f, r] += layer.apart_s * share
            for back, visits in enumerate((flow.forth, flow.back)):
                for visit in visits:
                    r = self.number[visit.kind, visit.index]
                    self.uses[f, r] = 1.0
                    passing = self.passing.setdefault(visit.turn, np.zeros(flows))
                    passing[f] += flow.acks if back else 1.0
                    self.least_s[f] += visit.delay_s + visit.service_s
                    self.least_s[f] += (
                        (visit.train.slots + visit.train.packets) * SLOT_S * (visit.kind == "port")
                    )
                    if visit.train.spread > 0.0:
                        self.varies[back, f, r] += visit.train.spread / visit.train.frames**2
                    if visit.kind != "port":
                        self.fixed[back, f, r] += visit.service_s * (flow.acks if back else 1.0)
                    else:
                        window = transport.window_of(network, flow) if flow.messages else flow.window
                        goes_on = _goes_on(flow, network.ports[visit.index])
                        window = ENDLESS if goes_on else min(window, ENDLESS)
                        self.most[visit.index] += window * visit.train.packets * (flow.acks if back else 1.0)

        # part of the work of a segment, and of an acknowledgement, that another one meets
        self.residual = self.varies / 2.0
        self.residual[0] += self.ahead[:, None]
        self.residual[1] /= np.maximum(self.acks, 1e-9)[:, None]
        self.brings = Brought(network)
        # on lone links, segments of a regular source that are back before the next segment comes
        crowded = self.uses[:, : len(network.ports)] @ (self.links.members[self.links.port_link] > 1.0)
        single = np.array([flow.batch <= 1.0 for flow in network.flows])
        self.regular = self.links.regular & single & (crowded == 0.0)

    def _lose(self) -> None:
        """Take the losses of the network: lost segments use no later stations of their ways."""
        self.comes = np.ones((2, len(self.network.flows), len(self.names)))
        for f, flow in enumerate(self.network.flows):
            for back, shares in enumerate(flow.arriving(self.network.relay)):
                for visit, share in zip((flow.forth, flow.back)[back], shares, strict=True):
                    self.comes[back, f, self.number[visit.kind, visit.index]] = share
        self.links.comes = self.comes[:, :, : len(self.network.ports)]
        self.polled.comes = np.array([self.comes[way] for way in self.polled.way_of])

    def go_on(self, other: Laws) -> None:
        """Take over the state of the laws of the same stations with other numbers.

        These are the attributes that a turn takes over from the turn before.
        """
        for mine, its, names in (
            (self, other, "timed round_s rests waits queues answers chains"),
            (self.links, other.links, "endless utilisation probes waits turns elsewhere settled filled"),
            (self.polled, other.polled, "present away varied cycle" if self.polled.count else ""),
        ):
            for name in names.split():
                setattr(mine, name, copy(getattr(its, name)))
        if self.network.traits != other.network.traits:
            self.chains = {}
        self.answer(self.answers)
        self.begin = other.ended

    def service(self) -> tuple[Matrix, Matrix]:
        """Return the service of a segment, and of its acknowledgements, at each resource (s)."""
        links = self.links
        frame = links.busy / links.visit[links.port_link] * SLOT_S
        forth, back = self.fixed.copy()
        ports = len(self.network.ports)
        forth[:, :ports] = links.frames[0] * frame
        back[:, :ports] = links.frames[1] * frame
        self.each_s = np.array((forth, back))
        return forth, back

    def use(self, rate: Vector) -> Vector:
        """Return the use of each resource at these rates, without losses, shape (resources,)."""
        self.update(rate, np.ones(len(rate)), np.zeros(len(self.names)))
        forth, back = self.service()
        return rate @ (forth + back)

    def update(self, rate: Vector, sent: Vector, full: Vector) -> None:
        """Update the polled air to these rates.

        Args:
            rate: segments a second, (F,).
            sent: transmissions of each, (F,).
            full: resources that are full.
        """
        links, polled, self.rates, alone = self.links, self.polled, rate, self.alone
        regular = self.regular & (rate * self.round_s < 1.0)
        links.alone = np.maximum(links.stop_and_wait | regular, 1.0 - self.meets)
        links.update(rate * sent, rate * alone, full[: len(self.network.ports)] > 0.0, self.most)
        self.rounds = links.rounds
        if not polled.count:
            return
        apart = np.zeros(len(rate))
        at = polled.host & polled.back
        cycle_s = np.maximum(links.idle[polled.link[at]] * SLOT_S, SLOT_S)
        apart[polled.flow[at]] = np.minimum(self.layers_s[polled.flow[at]] / cycle_s, 1.0)
        under = np.maximum(rate * self.round_s, 1e-9)
        beside = 1.0 - (under / (1.0 + under)) ** np.maximum(self.windows - 1.0, 0.0)
        beside = np.where(links.regular, as_share(under - 1.0), beside)
        answered, beside = rate * alone * self.acks, beside * self.meets
        polled.update(
            rate * sent, answered, apart, self.timed, self.layers_s, beside, links.full_link, links.endless
        )

    def receiver(self, f: int, rate: float, *, carried: bool) -> None:
        """Set how long acknowledgements of a flow wait at the receiver, and how many segments each covers.

        Only flows over a piconet of several links have this law; `answer` sets the other flows.

        Args:
            f: number of the flow.
            rate: rate of its segments (1/s).
            carried: whether the goodput is the offered load.
        """
        flow, polled = self.network.flows[f], self.polled
        if f not in polled.answers_known or self.answers[f].carried:
            return
        if flow.cut:
            self.timed[f] = flow.cut.clocked
            return
        own_s = self.own_s(f) if carried else 0.0
        found = acknowledgements.received(flow, rate, carried=carried)
        waits = found.wait_s * (1.0 - min(rate * own_s, NEARLY))
        self.timed[f] = found.clocked
        # the segments ahead are full, but for the last one of a message (`transport.ahead_of_sample`)
        behind = found.behind + (flow.uneven - 1.0) * (found.behind + 1.0 - 1.0 / found.share)
        self.answers[f] = acknowledgements.Answers(waits + behind * own_s, found.share)

    def own_s(self, f: int) -> float:
        """Return the delay that each segment of a flow causes to the next unacknowledged one (s)."""
        queues = self.polled
        each = (queues.service[c] * (1.0 - queues.brought[c]) * queues.slot_s[c] for c in queues.at_hosts(f))
        return float(max(each, default=0.0))

    def answer(self, answers: list[acknowledgements.Answers]) -> None:
        """Set the waits and shares of the acknowledgements of all flows."""
        self.answers, each = answers, zip(answers, self.acks.tolist(), strict=True)
        self.alone = np.array([one.alone / acks if acks else 1.0 for one, acks in each])

    def against(self, f: int, rate: Vector) -> tuple[acknowledgements.Queue, float]:
        """Return the queue of segments that could carry the acknowledgements of a flow, and its window."""
        flow = self.network.flows[f]
        if flow.reverse is None or flow.messages or not flow.transport.piggyback:
            return acknowledgements.Queue(0.0, 0.0, 0.0), inf
        queue = self.queues[flow.reverse]._replace(rate=float(rate[flow.reverse]))
        return queue, self.rests[flow.reverse].window

    def rest(self, f: int, flow: Flow, rate: float, base_s: float) -> tuple[transport.Rest, float]:
        """Return the settled window of a flow at a rate, and the window it opens to if it holds segments.

        Args:
            f: number of the flow.
            flow: the flow.
            rate: rate of its segments (1/s).
            base_s: round trip without waits (s).
        """
        answers, queue, vegas = self.answers[f], self.queues[f], flow.transport.variant == "vegas"
        every = 1 if answers.carried == 1.0 else 0
        lone_s, starts = max(base_s - answers.wait_s, 0.0), self._starts(f) if vegas else ()
        least_s = float(self.least_s[f]) if len(starts) == 1 else 0.0
        if vegas and not starts and rate > 0.0:  # the law has waits for segments of one acknowledgement
            gather_s = transport.gather_s(flow, float(self.each_s[0, f].max(initial=0.0)))
            starts = (max(lone_s - gather_s, 1.0 / rate),)
        opens = transport.resting_window(flow, rate, lone_s, every, starts, least_s)
        if self.links.endless[f] or flow.protocol != "tcp" or not vegas:
            return opens, opens.window
        lone_s = base_s - answers.wait_s + acknowledgements.by_clock_s(flow)
        return transport.vegas_between(flow, queue, self.least_s[f], lone_s), opens.window

    def _starts(self, f: int) -> tuple[float, ...]:
        """Return the shortest round trips (s) of a greedy connection by Vegas and its equals, in their order.

        Their first segments meet those of all others that have not been served. An acknowledgement that finds
        no room in the visit of its segment waits for the next visit.
        """
        flow, ports = self.network.flows[f], self.network.ports
        visits = [visit for visit in flow.forth if visit.kind == "port"]
        if not visits or len(visits) < len(flow.forth):
            return ()
        links = self.links
        here = links.piconet[links.port_link] == ports[visits[0].index].piconet
        slots = links.each[0] + links.each[1] - 2.0 * links.frames[1]  # acknowledgements answer segments
        work_s, others_s = slots[:, here].sum(axis=1) * SLOT_S, 0.0
        for g, other in enumerate(self.network.flows):
            if g != f and links.endless[g]:
                met = [visit for visit in other.forth if visit.kind == "port" and here[visit.index]]
                for visit in met:
                    part = ports[visit.index].limit / ceil(visit.train.packets)
                    part = min(part, other.transport.initial_window_segments)
                    others_s += part * float(work_s[g]) / len(met)
        whole = max((way for *_, way in flow.kinds), key=least_s, default=flow.forth)
        packets, limit = ceil(whole[0].train.packets), ports[visits[0].index].limit
        cycles = ceil(packets / limit) - 1 + (packets % limit == 0 or len(visits) > 1)
        shortest = float(self.least_s[f]) + cycles * others_s
        if flow.transport.initial_window_segments > 1 and not ports[visits[-1].index].up:
            shortest += (visits[-1].train.first - 1.0) * SLOT_S  # until the frame behind, which is answered
        places = max(int((self.like == self.like[f]).sum()), 2) if others_s else 1
        return tuple(shortest + others_s * n / max(places - 1, 1) for n in range(places))

    def within_visits(self, window: Vector, service: Matrix, full: Vector) -> Vector:
        """Return the longest round trips without waits at full stations (s), shape (flows,).

        Where visits last as long as there are segments, a link that always has some sends whole windows in
        turn with the others, so that the air is never idle: a window takes as long as at full air.

        Args:
            window: segments that may be under way, (flows,).
            service: service of a segment at each resource (s).
            full: resources that are full.
        """
        ports = len(self.network.ports)
        whole = (self.links.limit[self.links.port_link] >= ENDLESS) & (full[:ports] > 0.0)
        each = np.where(whole, service[:, :ports], 0.0).max(axis=1, initial=0.0)
        return np.where(each > 0.0, window * each, inf)

    def plain_load(self, piconet: int) -> float:
        """Return the share of the time of a piconet that flows other than sessions take."""
        links = self.links
        return float(links.plain_load[links.piconet == piconet].sum())

    def between(self, link: int) -> float:
        """Return the mean slots between two frames of a link that has further frames."""
        links, port = self.links, int(np.flatnonzero(self.links.port_link == link)[0])
        if not links.plain_load.any() and links.limit[link] >= ENDLESS:
            return 0.0  # a visit lasts as long as the message
        slots = float(links.without_load[link] / links.visit[link])
        if links.plain_load.any() or self.network.bridges:
            slots = max(float(links.busy[port] / links.visit[link] - links.frame[port]), 0.0)
        return slots + self.met(link) / float(links.visit[link])

    def met(self, link: int) -> float:
        """Return the slots that other clients take in a wait for a visit to a link."""
        return self.met_s.get(("air", int(self.links.piconet[link])), 0.0) / SLOT_S

    def polls(self, link: int) -> float:
        """Return the slots between two polls of a link that other flows take from a session."""
        links = self.links
        clients = links.others(links.load - links.plain_load) / np.maximum(links.others(links.load), 1e-12)
        busy = (links.rounds.polls - links.without_load) * (1.0 - as_share(clients))
        return float((links.without_load + busy)[link]) + self.met(link)

    def own_loads(self, rate: Vector, sent: Vector) -> Matrix:
        """Return the load of each link by one segment of each flow in its window, (flows, links)."""
        links = self.links
        if not links.endless.any():
            return np.zeros((len(rate), len(links.names)))
        share = np.where(links.endless, 1.0 / self.windows, 0.0)
        work = (np.array((rate * sent, rate))[:, :, None] * links.comes * links.each).sum(axis=0)
        return share[:, None] * links.by_link(work) * SLOT_S

    # ---------------------------------------------------------------------------------------------- lone
    # trips

    def trip(self, f: int, flow: Flow, load_of: Vector, rate: float) -> tuple[float, float]:
        """Return the time of a lone segment on its way, and of its acknowledgement back (s), with the loads.

        Args:
            f: number of the flow.
            flow: the flow.
            load_of: load of each link, by the flow's own segments, shape (links,).
            rate: rate of its segments (1/s).
        """
        # hosts answer within two frames, unless the timer of the acknowledgement has to expire
        delayed = flow.transport.delayed_ack and flow.window < flow.transport.ack_every_segments
        at_once = flow.host_s == 0.0 and flow.jitter_s <= 2.0 * SLOT_S and not delayed
        self.rounds = self.links.without(load_of)
        hosts = 2.0 * flow.host_s + flow.jitter_s / 2.0
        polled = f in self.polled.answers_known  # there answers delayed by hosts are known
        endless = float(self.links.endless[f] and at_once)
        self.hold_back(f, rate)
        total, after_full = (0.0, 0.0), None
        for part, released, forth in sorted(flow.kinds, key=itemgetter(1)) or [(1.0, endless, flow.forth)]:
            start, met, clock, mean = None, {}, 0.0, (0.0, 0.0)
            # a new segment begins where the acknowledgement that lets it out has arrived: the short end of a
            # long message that of a full segment
            for begun in (1.0, released) if released else (1.0,):
                start = start if start is None or after_full is None else after_full
                there, place = self.way(forth, start if at_once else None, load_of, rate, met, clock, f=f)
                there, back = there + hosts, 0.0
                clock += there / SLOT_S
                if flow.back:
                    late = float(self.timed[f]) if polled else float(not at_once)
                    start = None
                    for share, begin in ((1.0 - late, place), (late, None)):
                        if share > 0.0:
                            took, start = self.way(
                                flow.back, begin, load_of, rate * flow.acks, met, clock, f=f, back=1
                            )
                            back += share * took
                    back += hosts
                    clock += back / SLOT_S
                mean = mean[0] + begun * (there - mean[0]), mean[1] + begun * (back - mean[1])
            total = total[0] + part * mean[0], total[1] + part * mean[1]
            if not released and flow.kinds and flow.traffic.message_bytes > flow.transport.mss_bytes:
                after_full = start
        return total

    def hold_back(self, f: int, rate: float) -> None:
        """Set how long jitter holds the packets of a flow back; `rate`: its segments (1/s)."""
        flow = self.network.flows[f]
        stops = [
            (back, stop, visit)
            for back, way in enumerate((flow.forth, flow.back))
            for stop, visit in enumerate(way)
        ]
        jitters = [n for n, (*_, visit) in enumerate(stops) if visit.jitter_s > 0.0]
        if not jitters:
            return
        each = np.array(
            [self.each_s[back, f, self.number[visit.kind, visit.index]] for back, _, visit in stops]
        )
        lines = []
        for n, after in zip(jitters, [*jitters[1:], jitters[0] + len(stops)], strict=True):
            back, stop, visit = stops[n]
            between = np.arange(n + 1, after) % len(stops)
            passing = self.passing[visit.turn] * self.rates
            own = float(passing[f])
            slowest = int(each.argmax()) in between
            longest = float(each[between].max(initial=0.0))
            lines.append(
                jitter.Line(
                    back, stop, visit.jitter_s, own, float(passing.sum()) - own, longest, slowest,
                    stops[after % len(stops)][2].jitter_s,
                )
            )  # fmt: skip
        window = bool(self.links.endless[f])
        meets = 1.0 - 1.0 / max(rate * self.round_s[f], 1.0) if window else float(self.meets[f])
        regular = lines[0].own / (lines[0].own + lines[0].others) if flow.source == "periodic" else 0.0
        found = jitter.held_back(lines, meets, window=window, regular=regular * (not window))
        self.held_s[f], self.bunches[f] = found

    def bunched_s(self, f: int, base_s: float) -> float:
        """Return how long the segments of a window wait at its slowest station because of jitter (s).

        Without losses the wait for a full station is part of it. The law of losses counts that wait itself.

        Args:
            f: number of the flow.
            base_s: round trip without this wait (s).
        """
        self.held_share[f] = 0.0
        flow, rate, slowest = self.network.flows[f], float(self.rates[f]), int(self.each_s[0, f].argmax())
        each_s, alone = float(self.each_s[0, f, slowest]), self.uses[:, slowest].sum() == 1.0
        if f not in self.held_s or not alone or not self.links.endless[f] or rate <= 0.0:
            return 0.0
        lossy = flow.loss + flow.ack_loss > 0.0
        window = min(flow.window, rate * self.round_s[f]) if lossy else self.rests[f].window
        use = rate * each_s * (1.0 - 1.0 / max(window, 1.0))
        spread = sum(visit.jitter_s**2 for visit in (*flow.forth, *flow.back)) / each_s**2
        waiting = jitter.bunched(window, base_s / each_s, use, float(self.bunches[f]), spread)
        filling = max(window - base_s / each_s, 0.0)  # segments that wait without jitter, too
        self.held_share[f] = (waiting - filling) / window
        return (waiting - filling * lossy) / rate

    def way(
        self,
        visits: tuple[Visit, ...],
        place: Place | None,
        own: Vector,
        rate: float,
        met: dict[int, Met] | None = None,
        clock: float = 0.0,
        *,
        of: str = "stream",
        f: int = -1,
        back: int = 0,
    ) -> tuple[float, Any]:
        """Return the time of a way, and the place in the cycle of a piconet where it ends.

        A visit ends with a frame of POLL and NULL, or its last frame. A segment that a member sends in answer
        to a packet down is too late for the answering half of this frame. A segment that the central's host
        sends in answer to a packet up is too late for the next frame. A packet that the central passes on to
        another link is in time.

        Args:
            visits: stops of the way.
            place: where in a cycle it begins; None where it is not known.
            own: load of each link by the flow's own segments, shape (links,).
            rate: segments a second.
            met: where each bridge was when it last met the segment; brought up to date.
            clock: time of the begin (slots).
            of: "stream", "message" (the other halves of its frames are empty), or "work" (frames alone: other
                links get no polls, and nothing waits for the first one).
            f: number of the flow, if it is a stream.
            back: 1 for the way of its acknowledgements.
        """
        met = {} if met is None else met
        links, rounds, seconds, host, stretch, group = self.links, self.rounds, 0.0, True, 0.0, inf
        alone = rounds if of == "stream" else links.rounds
        for stop, visit in enumerate(visits):
            before_s = seconds
            seconds += visit.delay_s
            if visit.jitter_s > 0.0:
                seconds += self.held_s[f][back, stop] if f >= 0 else visit.jitter_s
            if visit.kind == "wire":
                seconds += visit.service_s
                wire = self.network.wires[visit.index]
                # a transmission that finds the medium down waits for the rest of an exponential time
                seconds += (1.0 - wire.up_share) * wire.down_s
                if place is not None and (visit.jitter_s > 0.0 or wire.up_share < 1.0):
                    place = None
                elif place is not None:
                    place = place._replace(gone_s=place.gone_s + seconds - before_s)
                host = False
                continue
            if visit.kind == "bucket":
                continue
            train, port = visit.train, self.network.ports[visit.index]
            link = links.port_link[visit.index]
            piconet = self.network.piconets[port.piconet]
            bridged = port.bridge >= 0 or piconet.central_bridge >= 0
            if place is not None and place.gone_s > 0.0 and (bridged or of != "stream"):
                place = None
            limit = float(port.limit)
            members = float(piconet.members)
            empty = 2.0 * piconet.idle_polls * (members - 1.0) / piconet.data_share
            polls = float(alone.polls[link]) if of == "stream" else self.polls(int(link)) * (of == "message")
            gated = piconet.discipline == "gated"
            packets = self.network.relay == "packet"
            between = (
                rounds.gone[link] + (rounds.polled[link] if port.bridge >= 0 else polls) if bridged else polls
            )
            frames, used, relayed = train.frames, 0.0, False
            if not bridged and train.frames > 0.0:
                c = self.polled.number.get((f, back, stop), -1) if of == "stream" else -1
                extra = 0.0 if of == "work" else (polls - empty) * piconet.data_share
                answers = bool(back) and host and of == "stream" and c < 0 and piconet.members == 1
                if packets and group < train.frames:
                    visit = visit._replace(train=train.part(group / train.frames))
                crossing = Crossing(self, visit, place, c, host=host, extra=extra, of=of, whole=group < inf)
                slots, place = crossing.end()
                slots += self._behind_data(f, visit) if answers else 0.0
                seconds += slots * SLOT_S / piconet.data_share
                host = False
                continue
            if of == "work" and place is None:
                slots = float(port.up)
            elif place is not None and (place.piconet, place.link) == (port.piconet, port.link):
                over = 1.0 if gated else place.over
                slots = 0.0 if place.up else 1.0
                missed = place.up and host and not port.up  # by the answer of a host at the central
                slots += over * (max(between, 2.0) if missed else between)
                slots += (1.0 - over) * (2.0 + between) if missed else 0.0
                used = 0.0 if missed or gated else place.used
                slots += 1.0 if port.up else 0.0
                slots += self._windows(port, train)
            elif self._keeps_windows(port):
                slots = float(links.idle[link]) / 2.0
                if place is not None and place.piconet == port.piconet:
                    slots = self._apart(place, port, polls, gated)
                slots += 1.0 if port.up else 0.0
                slots += self._windows(port, train)
                relayed = packets and place is not None
            elif bridged:
                slots = self._meeting(port, int(link), place, polls, met, float(clock + seconds / SLOT_S))
                relayed = packets and place is not None
            else:
                raise ValueError("a piconet without bridges")
            if bridged:
                groups = max(ceil((used + frames) / limit - 1e-9), 1)
                part = train.air / train.frames + 1.0 if train.frames else 0.0
                first, last, spared = frames, used + frames - limit * (groups - 1.0), (groups - 1.0) * EMPTY
                gaps = (groups - 1.0) * float(rounds.round[link]) - spared
                if packets and groups > 1:  # the bridge passes on the packets of each visit
                    first = max(min(limit - used, frames), min(limit, frames - limit + used))
                    gaps += 2.0 * part * (frames - first) - spared
                if relayed:
                    first = min(first, group)
                    here = place is not None and place.piconet == port.piconet and group == inf
                    gaps = max(gaps, stretch + (frames - first) * part * here)
                slots += gaps - (stretch if relayed else 0.0)
                stretch, group = gaps, first
                share = first / frames if frames else 0.0
                beside = links.beside[visit.index] - 1.0 if of == "stream" else 0.0
                slots += (train.air * share + max(first - 1.0, 0.0) + first * beside) / piconet.data_share
                used, over = last * (last < limit), float(last >= limit)
            seconds += slots * SLOT_S
            busy = min(frames, limit) * (train.air / train.frames + 1.0) if train.frames else 0.0
            place = Place(port.piconet, port.link, port.up, used, over, busy)
            self._leave(place, port.bridge, polls, met, float(clock + seconds / SLOT_S))
            host = False
        return float(seconds), place

    def _behind_data(self, f: int, visit: Visit) -> float:
        """Return how much longer an acknowledgement of a lone link takes beside data than beside POLL.

        A departure leaves a queue of batches X empty with the chance (1 - rho) / E X (Burke 1975). Else the
        first frame of the next segment comes before the acknowledgement. `Links.beside` includes a part of
        this time already, on average. Round trips of messages of two to five segments were within 3 % of the
        simulator, with a shorter last segment within 5 %.
        """
        flow, data = self.network.flows[f], int(self.links.opposite[visit.index])
        trains = [one.train for one in flow.forth if (one.kind, one.index) == ("port", data)]
        held = max(flow.batch, 2.0) > flow.together  # a full window takes only its service times
        if not trains or self.links.endless[f] or held or flow.messages:
            return 0.0
        acks = max(flow.batch, 1.0) * min(flow.acks, 1.0)
        acks = (acks if flow.cut else ceil(acks)) / max(1.0 - flow.more, 1e-9)
        busy = 0.0 if flow.source == "periodic" else float(self.links.utilisation[data])
        behind = (1.0 - (1.0 - min(busy, 1.0)) / max(acks, 1.0)) * flow.meets
        longest = min(trains[0].first - 1.0, 4.0)
        known = visit.train.frames * (float(self.links.beside[visit.index]) - 1.0)
        return max(behind * longest - known, 0.0)

    def _apart(self, place: Place, port: Port, polls: float, gated: bool) -> float:
        """Return the slots from a packet of one link to the visit to another link of its piconet."""
        piconet = self.network.piconets[port.piconet]
        members = float(piconet.members)
        slots = 0.0 if place.up else 1.0
        slots += 0.0 if gated else 2.0 * (1.0 - place.over)
        apart = (port.link - place.link) % members
        return slots + polls * (apart - 1.0) / max(members - 1.0, 1.0)

    def _meeting(
        self, port: Port, link: int, place: Place | None, polls: float, met: dict[int, Met], clock: float
    ) -> float:
        """Return the wait (slots) for a frame of a link whose member, or central, is a bridge.

        A bridge that the segment has met comes back after all its other piconets. While the central serves
        another link, or is elsewhere, it does not poll: a bridge that has come meanwhile waits there.
        """
        piconet, rounds = self.network.piconets[port.piconet], self.rounds
        central, absence = piconet.central_bridge, float(rounds.elsewhere[port.piconet])
        up = 1.0 if port.up else 0.0
        gap, poll, blind = polls + EMPTY + absence, nan, 0.0
        if place is not None and place.piconet == port.piconet:
            later = absence if port.link < place.link else 0.0
            poll, blind = self._apart(place, port, polls, False) + later, later or place.busy
        elif central >= 0:
            back = self._back(central, port.piconet, met, clock)
            poll, blind = nan if back is None else back + EMPTY * port.link, absence
        if port.bridge < 0:
            if isnan(poll):
                return float(rounds.meeting[link])
            return up + (until_polled(0.0, 1.0, gap, poll) if poll < 0.0 else poll)
        back = self._back(port.bridge, port.piconet, met, clock)
        known = not isnan(poll)
        if back is not None and (back >= 0.0 or (known and -back <= blind)):
            bridge = self.network.bridges[port.bridge]
            early = bridge.early(port.piconet)
            if not known:
                return up + back + float(rounds.polled[link])
            return up + back + until_polled(back - early, 1.0, gap, poll) - early + EMPTY
        if not known:
            return float(rounds.meeting[link])
        late = max(float(rounds.gone[link]) - blind, 0.0)
        chance = late / float(rounds.round[link])
        wait = float(rounds.polled[link]) if central < 0 else gap
        poll = until_polled(0.0, 1.0, gap, poll) if poll < 0.0 else poll
        return up + poll + chance * (late / 2.0 * (central < 0) + wait) + (1.0 - chance) * EMPTY

    def _keeps_windows(self, port: Port) -> bool:
        """Return whether a link has to wait for the windows of a bridge."""
        if not self.windowed:
            return False
        ends = (port.bridge, self.network.piconets[port.piconet].central_bridge)
        return any(end >= 0 and self.network.bridges[end].schedule != "walk-in" for end in ends)

    def _windows(self, port: Port, train: Train) -> float:
        """Return the wait (slots) for the windows of the bridges at both ends of a link, from any time.

        Windows come in turn (sniff), or each is in one of the piconets at random (PCSS). A train that is
        longer than a window needs further ones.
        """
        wait, slots = 0.0, train.air + train.frames
        for end in (port.bridge, self.network.piconets[port.piconet].central_bridge):
            if end < 0 or self.network.bridges[end].schedule == "walk-in":
                continue
            one = self.network.bridges[end]
            window, count = one.window_s / SLOT_S, len(one.piconets)
            absence = (count - 1.0) * window
            late = absence / 2.0 if one.schedule == "sniff" else window / 2.0 + absence
            wait += (count - 1.0) / count * late + slots / (window - EMPTY) * absence
        return wait

    def _back(self, bridge: int, piconet: int, met: dict[int, Met], clock: float) -> float | None:
        """Return the slots until a bridge comes to a piconet (negative: since then); None if not known."""
        if bridge not in met:
            return None
        links, one = self.links, self.network.bridges[bridge]
        at, left = met[bridge]
        order, place = one.piconets, one.piconets.index(at)
        time = left - clock + one.switch_s / SLOT_S
        for step in range(1, len(order) + 1):
            following = order[(place + step) % len(order)]
            if following == piconet:
                return time
            time += links.stay_of(self.rounds, bridge, following) + one.switch_s / SLOT_S
        return None

    def _leave(self, place: Place, bridge: int, polls: float, met: dict[int, Met], clock: float) -> None:
        """Note when the bridges at both ends of a link leave its piconet."""
        ended = clock + (0.0 if place.up else 1.0) + EMPTY * (1.0 - place.over)
        if self._keeps_windows(Port(place.piconet, place.link, place.up, inf, bridge, 1)):
            return
        if bridge >= 0:
            met[bridge] = place.piconet, ended
        central = self.network.piconets[place.piconet].central_bridge
        if central >= 0:
            members = self.network.piconets[place.piconet].members
            rest = polls * (members - 1.0 - place.link) / max(members - 1.0, 1.0)
            met[central] = place.piconet, ended + rest

    def stays(self, f: int) -> Iterator[tuple[int, Train, float]]:
        """Yield crossings of a flow in piconets of several links, trains, and times of a packet (slots).

        For packets of its hosts it is the time of the last packet of a train, without other trains of its
        port ahead.
        """
        queues, flow, place = self.polled, self.network.flows[f], None
        for back, visits in enumerate((flow.forth, flow.back)):
            host = True
            for stop, visit in enumerate(visits):
                c = queues.number.get((f, back, stop), -1)
                if c < 0:
                    place, host = (place, host) if visit.kind == "bucket" else (None, True)
                    continue
                before = place
                slots, place = Crossing(self, visit, place, c, host=host).end()
                if not back and not host and before is not None:
                    order, frames = queues.orders[int(queues.piconet[c])], float(queues.frames[c])
                    apart = (self.network.ports[visit.index].link - before.link) % float(
                        queues.members[c]
                    ) - 1.0
                    rest = EMPTY * (apart * order.polls[0] + (1.0 - before.over)) + 1.0 - float(before.up)
                    slots = stretch(rest, 1.0, queues.pairs[c]) if apart > 0.0 else rest
                    slots += min(frames, float(queues.limit[c])) * float(queues.slots[c]) / frames
                yield c, visit.train, slots + float(queues.later[c])
                host = False

    # -------------------------------------------------------------------------------------------------- waits

    def strays(
        self, rate: Vector, sent: Vector, forth: Matrix, back: Matrix, full: Vector, base: Vector
    ) -> tuple[Vector, Vector, dict[int, Own]]:
        """Return the waits of a segment of each flow for other flows, and for its own, (flows,) each (s).

        `base` are the round trips of lone segments (s).

        At the ports of the polled air these are the residual work of other links, and the queue of the own
        port; at wires and buckets they are the queue of an M/G/1 server with batches. For flows that wait
        longest at a port of a piconet without bridges, this queue is returned as well.
        """
        network, links, queues = self.network, self.links, self.polled
        flows = network.flows
        ahead, acks = self.ahead, np.maximum(self.acks, 1e-9)
        sends, answers = rate * sent, rate * self.alone
        # services including the other half of the frames
        data, ports, both = forth, len(network.ports), np.array((forth, back))
        both[:, :, :ports] += links.frames * ((links.present - links.frame) * SLOT_S)
        forth, back = both
        # work of streams: rate x service^2 / 2, with the segments of the own batch ahead; acknowledgements
        # are spaced
        coming = np.array((sends, answers))[:, :, None] * self.comes
        used, work = coming * both, (coming * both**2 * self.residual).sum(axis=0)
        # connections that always send fill the spare capacity; they wait for each other at full resources
        # only
        spare = np.maximum(1.0 - (used.sum(axis=0) * ~links.steady[:, None]).sum(axis=0), 1.0 - NEARLY)
        quiet = full <= 0.0
        elsewhere = quiet.copy()  # than at ports of the polled air
        elsewhere[queues.port] = False
        most = self.together[:, None] * np.maximum(forth, back / acks[:, None])
        queued = np.where(quiet, work / spare, 0.0)
        own = _up_to(queued, most)  # no more than a window can wait
        for f, flow in enumerate(flows):
            for r in np.flatnonzero(queued[f] * forth[f]) if flow.more else ():
                wait = float(queued[f, r] + transport.before(flow) * forth[f, r])
                queue = acknowledgements.Queue(float(sends[f]), float(forth[f, r]), wait)
                own[f, r] = queue.work_s(self.rests[f].window)
        turns, in_turn = self.turns.before, self.turns.waits(sends, ahead, most, steady=links.steady)
        if any(flow.layers for flow in flows):
            self._less_before_layers(sends, answers, ahead, own)
        own[:, self.brought] = 0.0
        own[:, queues.port] = queued[:, queues.port] = 0.0
        total = own.sum(axis=0)
        others, mine = np.zeros(len(flows)), np.zeros(len(flows))
        found: dict[int, Own] = {}
        left = np.zeros_like(links.frames[0])  # residual work of trains of other links, by ports
        if network.bridges:
            load = np.minimum(links.others(links.open_load), NEARLY)
            kept = np.where(links.endless, 1.0 - 1.0 / self.windows, 1.0)
            by_link = links.residuals(sends, answers, acks, self.varies[:, :, :ports])
            visits_left = _up_to(by_link / (1.0 - load), links.most_slots * SLOT_S)
            by_flow = links.others(visits_left.sum(axis=0)) - (1.0 - kept)[:, None] * links.others(
                visits_left
            )
            left = by_flow[:, links.port_link] + self._away(by_link, kept, rate * sent)
        sending, elsewhere = used[0].sum(axis=0), np.flatnonzero(elsewhere)
        for f in self.firsts:
            flow = flows[f]
            longest = again = 0.0
            layers = [self.number["wire", layer.wire] for layer in flow.layers]
            others[f] += sum(float(total[r] - own[f, r]) for r in layers)
            for way, visits in enumerate((flow.forth, flow.back)):
                before = np.zeros(len(flows))  # longest wait for each other flow in a row of stations
                for stop, visit in enumerate(visits):
                    r = self.number[visit.kind, visit.index]
                    if visit.kind == "bucket":
                        continue
                    c = queues.number.get((f, way, stop), -1)
                    if c >= 0:
                        others[f] += float(queues.later[c] * queues.slot_s[c]) * quiet[r]
                        continue
                    queue_of = self.turns.number.get(visit.turn, -1)
                    brought = int(stop > 0 and visits[stop - 1][:2] == visit[:2])
                    if queue_of >= 0 and visits is flow.forth:
                        others[f] += (
                            turns[brought, queue_of] + in_turn[:, queue_of].sum() - in_turn[f, queue_of]
                        )
                        longest = max(longest, in_turn[f, queue_of])
                        continue
                    if visit.kind == "wire" and visits is flow.back and forth[f, r] > 0.0:
                        gone = float(base[f] - forth[f, r] - back[f, r] / acks[f] - visit.delay_s)
                        if visits[0] is visit:  # the acknowledgement comes at once
                            gone = visit.delay_s + 2.0 * flow.host_s + flow.jitter_s / 2.0
                        # ends of a medium take turns
                        use, each = float(sending[r]), float(forth[f, r])
                        if links.endless[f]:  # it meets the other segments of its window
                            use -= float(sends[f]) * each / flow.window
                        if flow.source == "periodic" and use <= sends[f] * each and ahead[f] == 0.0:
                            again += max(each - (gone + each) % (each / use), 0.0)
                        else:
                            rest = _rest_of_sending(use, each, gone)
                            again += max(rest, turns[brought, queue_of]) if queue_of >= 0 else rest
                        continue
                    wait = own[:, r]
                    if not self.windowed:  # in a row they are as long as at the slowest station (Friedman)
                        before = np.where(wait > 0.0, before, 0.0)
                        wait = np.maximum(wait - before, 0.0)
                        before = before + wait
                    others[f] += float(wait.sum() - wait[f])
                    if visits is flow.back and flow.reverse is not None and visit.kind == "port":
                        # an acknowledgement waits while the segment behind its data is sent
                        others[f] += (self.answers[f].kept - 1.0) * own[flow.reverse, r]
                    longest = max(longest, own[f, r] if links.endless[f] else queued[f, r])
                    if visit.kind == "port" and quiet[r]:
                        others[f] += left[f, visit.index]
                if visits is flow.forth:
                    self.waits[f] = others[f]
            longest += max((float(own[f, r]) for r in layers if not links.endless[f]), default=0.0)
            # a segment waits for the segments ahead in its batch, at the slowest station
            slowest, longer = max(
                (
                    (forth[f, r], forth[f, r] + (flow.uneven - 1.0) * data[f, r])
                    for r in elsewhere
                    if forth[f, r] > 0.0
                ),
                default=(0.0, 0.0),
            )
            self.queues[f] = acknowledgements.Queue(float(rate[f]), slowest, 0.0)
            message_s = self._behind_message(f, float(forth[f].max(initial=0.0)), float(base[f]))
            if flow.behind_s is not None:
                queue = queues.own(f, float(base[f]), quiet)
                mine[f] = flow.behind_s + (queue.of_others if queue else 0.0)
                continue
            mine[f] = longest * (flow.source != "periodic")
            before_s = transport.before(flow) * slowest
            self.queues[f] = acknowledgements.Queue(float(rate[f]), slowest, float(mine[f]) + before_s)
            mine[f] += message_s or before_s + transport.ahead_of_sample(flow) * longer
            others[f] += again
            queue = queues.own(f, float(base[f]), quiet)
            if queue is not None and message_s > 0.0:
                own_s, rest = queue.wait - queue.of_message, queue.rest + message_s
                queue = queue._replace(wait=own_s, of_message=0.0, fixed=0.0, rest=rest)
            if queue is not None and queue.within(inf) > mine[f]:
                others[f] += longest
                found[f], mine[f] = queue, queue.within(inf)
        like = self.like
        self.queues, self.waits = [self.queues[f] for f in like], self.waits[like]
        found = {f: found[first] for f, first in enumerate(like.tolist()) if first in found}
        return others[like], mine[like], found

    def _behind_message(self, f: int, slowest_s: float, lone_s: float) -> float:
        """Return the mean wait of a segment behind its message, if several links pass it on (s).

        Links of a piconet, and legs of a bridge, take turns: a segment follows another one after a visit to
        each of them, a *period*. Segments that fit into one visit go on together. Segments beyond a window
        leave with its acknowledgements. Of 100 random piconets whose segments fill their visits 96 were
        right, of 45 others 31 (up to 15 % off); over bridges they were 11 % off in the median.

        Args:
            f: number of the flow.
            slowest_s: longest service of a segment of the flow at a resource.
            lone_s: round trip of a lone segment.
        """
        links, flow, network = self.links, self.network.flows[f], self.network
        self.period_s[f] = 0.0
        relayed = sum(visit.kind == "port" for visit in flow.forth) > 1
        if not relayed or flow.protocol != "tcp" or links.endless[f] or flow.acks < 1.0:
            return 0.0
        # an acknowledgement takes the place of NULL or POLL beside the next segment
        work = links.by_link(links.each[:, f].sum(axis=0) - 2.0 * links.frames[1, f]) * SLOT_S / links.share
        frames = np.maximum(links.by_link(links.frames[0, f]), 1.0)
        load = np.maximum(links.load - self.rates[f] * work, 0.0)  # of other flows
        fits, period = links.limit / frames, slowest_s
        for number in set(links.piconet[work > 0.0].tolist()):
            here, piconet = links.piconet == number, network.piconets[number]
            polls = piconet.idle_polls * (piconet.members - np.count_nonzero(work[here]))
            polls *= EMPTY * SLOT_S * float(np.ceil(1.0 / fits[here]).max())
            spare = max(1.0 - float(load[here].sum()), 1.0 - NEARLY)
            period = max(period, (float(work[here].sum()) + polls) / spare)
        window, room = transport.let_out(flow), float(fits[work > 0.0].min())
        count = min(max(flow.batch, 1.0), window)
        group = min(max(float(int(room + 1e-9)), 1.0), count)
        found, late_s = (
            self._answers_behind(flow, work * np.minimum(fits, 1.0), work / frames, segments / group)
            for segments in (count, window)
        )
        self.period_s[f] = period, late_s
        if count <= 1.0 or flow.more > 0.0 or (network.bridges and room < 1.0):
            return 0.0
        found += period * (count + group - 2.0) / 2.0
        return found + (1.0 - count / max(flow.batch, 1.0)) * (max(count * period - lone_s, late_s) - found)

    def _answers_behind(self, flow: Flow, visit_s: Vector, frame_s: Vector, groups: float) -> float:
        """Return the mean wait of acknowledgements for the segments behind theirs (s).

        An acknowledgement that a visit with data carries is at the next station when the visit ends. Before,
        it waits for visits to the other links of its piconet, or until a bridge is back from its other leg.
        At each further bridge one segment more has to follow.

        Args:
            flow: of several links.
            visit_s: time of a visit with a segment, (links,).
            frame_s: time of one of its frames, (links,).
            groups: of segments of a message, each in one visit.
        """
        links, network, total, passed, before, carried = self.links, self.network, 0.0, 1.0, -1, False
        for visit in flow.back:
            if visit.kind != "port":
                before, carried = -1, False
                continue
            link, port = int(links.port_link[visit.index]), network.ports[visit.index]
            here, central = links.piconet == port.piconet, network.piconets[port.piconet].central_bridge
            alike = central < 0 and bool((links.bridge[here] < 0).all())
            others = here if alike else (links.bridge == central) & (central >= 0)
            if before < 0 <= port.bridge:
                others = (links.bridge == port.bridge) | (links.piconet == network.bridges[port.bridge].own)
            waits = visit_s[others].sum() - visit_s[link] * others[link]
            waits = visit_s[before] - frame_s[before] if carried else waits
            total += max(1.0 - passed / groups, 0.0) * float(waits)
            passed, before = passed + (port.bridge >= 0 and port.up), link
            carried = alike or central >= 0 or port.bridge >= 0
        return total

    def _less_before_layers(self, sends: Vector, answers: Vector, ahead: Vector, own: Matrix) -> None:
        """Take the waits at the neighbours of layers of hosts from the waits at these layers.

        In a row of servers with constant times a segment waits as long as at the slowest server alone, in
        whatever order. So a layer adds to the wait for its neighbour on the air or on a wire if it is slower.

        Source: H. D. Friedman, Reduction methods for tandem queuing systems, Operations Research 13(1), 1965.

        Args:
            sends: segments of each flow, with repetitions (1/s).
            answers: segments whose acknowledgements leave alone (1/s).
            ahead: segments ahead in a batch.
            own: waits for segments of each flow at each resource (s); changed in place.
        """
        forth, back = self.spaced
        use = sends @ forth + answers @ back
        work = sends[:, None] * forth**2 * (2.0 * ahead[:, None] + 1.0) / 2.0
        work += answers[:, None] * back**2 / np.maximum(self.acks, 1e-9)[:, None] / 2.0
        less = work / np.maximum(1.0 - use, 1.0 - NEARLY)
        own[...] = np.where(use > 0.0, np.maximum(own - less, 0.0), own)

    def own_wait(self, f: int, window: float, lone_s: float, wait_s: float) -> float:
        """Return how long a segment waits in the network for earlier segments of its flow (s).

        The window holds some segments back: the rest of `wait_s` is spent at the sender.

        Args:
            f: number of the flow.
            window: segments that may be under way.
            lone_s: round trip without waits for segments of the same flow (s).
            wait_s: wait for earlier segments of the flow, in the network and at the sender (s).
        """
        queue, answers = self.queues[f], self.answers[f]
        of_batch = max(wait_s - queue.wait_s, 0.0)
        if queue.service_s <= 0.0:
            return wait_s
        on_way = max(lone_s - answers.wait_s, queue.service_s) + of_batch
        acks = self.network.flows[f].acks
        return of_batch + transport.held_back(queue, window, on_way, round(1.0 / acks) if acks else 1)

    def waits_of(
        self, f: int, wait: float, queue: Own | None, tokens: Tail, turn: float
    ) -> Callable[[float, float], float]:
        """Return the wait for the own port and for tokens, by the window and the round trip without it (s).

        Args:
            f: number of the flow.
            wait: mean at stations other than ports of piconets of several links (s).
            queue: at a port of a piconet of several links, if the flow waits longest there.
            tokens: law of the wait for tokens.
            turn: time in which tokens gather for a segment of the flow and for the traffic between two of
                them (s).
        """
        if queue is not None:
            slower = queue._replace(turn=max(queue.turn, turn))
            # the receiver holds few segments of a burst as their acknowledgement waits for further ones
            held_s = self.answers[f].wait_s if queue.bursty else 0.0

            def found(window: float, lone: float) -> float:
                return slower._replace(trip=lone - held_s).within(window, tokens)

        else:
            most = self.network.flows[f].window
            both = float(np.hypot(wait, tokens.between(0.0, most * turn if most < inf else inf)))

            def found(window: float, lone: float) -> float:
                return self.own_wait(f, window, lone, both)

        period, late = self.period_s[f].tolist()
        if period == 0.0:
            return found
        return lambda window, lone: min(found(window, lone), max(window * period - lone, late))

    def fades(
        self, rate: Vector, sent: Vector, forth: Matrix, base: Vector, *, waits: bool
    ) -> tuple[Vector, Vector]:
        """Return the time that states of radios add to round trips (s), and timeouts a second, by flow.

        Where all links of a piconet fade at once, the piconet is one server for all their segments; else each
        port is a server.
        """
        flows, links = self.network.flows, self.links
        extra, timeouts = np.zeros(len(flows)), np.zeros(len(flows))
        for f in self.firsts:
            flow = flows[f]
            for visit in flow.forth:
                if visit.kind != "port" or visit.train.worse == 0.0 or visit.train.slow <= visit.train.fast:
                    continue
                r, port = visit.index, self.network.ports[visit.index]
                at, each_s = forth[:, r] > 0.0, float(forth[f, r])
                if visit.train.together:
                    here = links.piconet[links.port_link] == port.piconet
                    at = forth[:, : len(here)][:, here].any(axis=1)
                arrivals = float((rate * sent)[at].sum())
                if visit.train.together and arrivals > 0.0:
                    each_s = float(links.load[links.piconet == port.piconet].sum()) / arrivals
                found = fading.faded(
                    flow,
                    visit,
                    arrivals,
                    float(rate[f]),
                    each_s,
                    float(base[f]),
                    float(self.windows[at].sum()),
                    waits=waits and flow.load < inf,
                )
                extra[f] += found.wait_s
                timeouts[f] += found.timeouts
        return extra[self.like], timeouts[self.like]

    def refuses_rows(self) -> bool:
        """Whether bridges refuse segments of windows that always have data, without other traffic."""
        for f, flow in enumerate(self.network.flows):
            if flow.protocol != "tcp" or not self.links.endless[f]:
                continue
            row, rooms = self.brings.row(f), (self.brings.room(f, n) for n in self.brings.coming)
            if (row is not None and row.fits < flow.window) or min(rooms, default=inf) < flow.window:
                return True
        return False

    def refuse(self, coming: Vector) -> None:
        """Set the losses of the flows at the buffers of bridges, with these segments sent a second.

        Rates change much with losses, so steps of the losses are halved where their direction changes.
        """
        move = self.brings.refused(self.links, coming) - self.lost
        self.step = np.where(move * self.before < 0.0, self.step / 2.0, np.minimum(1.3 * self.step, 1.0))
        self.lost, self.before = self.lost + self.step * move, move
        self.network = replace(self.network, flows=losing(self.plain, self.lost))
        self._lose()

    def _away(self, by_link: Matrix, kept: Vector, rate: Vector) -> Matrix:
        """Return the residual work of meetings of bridges elsewhere, shape (flows, ports) (s).

        A bridge that carries the segment is not elsewhere.

        Args:
            by_link: mean residual work of each flow at each link, shape (flows, links) (s).
            kept: share of the work of its flow that a segment finds, shape (flows,).
            rate: segments sent a second, shape (flows,).
        """
        links, network = self.links, self.network
        found = np.zeros((len(network.flows), len(network.ports)))
        forth, back = rate[:, None] * links.comes * links.each
        by_flow = (
            np.maximum(
                links.by_link(forth * links.up + back * ~links.up),
                links.by_link(forth * ~links.up + back * links.up),
            )
            * SLOT_S
        )
        most = links.frames.max(axis=0)
        for n, bridge in enumerate(network.bridges):
            own = links.piconet == bridge.own
            legs = (links.bridge == n) | own
            left = 1.0 - min(float(((links.bridge == n) @ links.load) + own @ links.load), NEARLY)
            for p, port in enumerate(network.ports):
                link = links.port_link[p]
                if links.bridge[link] == n:
                    gathered = links.rounds.round[link] * SLOT_S
                    visit = np.maximum(port.limit - most[:, p], 0.0) * links.frame[p] * SLOT_S
                    work = by_flow[:, link]
                    found[:, p] += np.minimum((work.sum() - (1.0 - kept) * work) * gathered, visit)
                if not legs[link] or (port.up and links.bridge[link] == n) or (not port.up and own[link]):
                    continue
                rest = by_link @ (legs & (links.piconet != links.piconet[link]))
                found[:, p] += (rest.sum() - (1.0 - kept) * rest) / left
        return found


def _goes_on(flow: Flow, port: Port) -> bool:
    """Return whether a visit with room goes on until its limit: acknowledgements come back before it ends.

    While an acknowledgement comes, the window has other segments to send.
    """
    if flow.messages or port.limit >= ENDLESS or len(flow.forth) != 1 or len(flow.back) > 1:
        return False
    train, every = flow.forth[0].train, 1.0 / min(flow.acks, 1.0) if flow.acks > 0.0 else 1.0
    each_s = (train.air / train.frames + 1.0) * SLOT_S
    away_s = each_s + 4.0 * flow.host_s + flow.jitter_s
    return (flow.window - every) * train.packets * each_s > away_s * (1.0 - 1e-9)


def _rest_of_sending(use: float, service_s: float, away_s: float) -> float:
    """Return the wait of an acknowledgement for the segment that is being sent over its medium (s).

    There are three cases. The medium has been busy since the data left it, with the segments behind them:
    then its services follow each other from that time on, and this busy period ends at the rate at which the
    queue left behind by a departure in M/D/1 is served. Or it was idle and still is. Or it is busy at random.
    For one flow the wait is too short by 1 to 5 % of the round trip.

    Args:
        use: use of the medium by segments.
        service_s: service time of a segment.
        away_s: time since the data have left the medium.
    """
    if not use > 0.0:
        return 0.0
    use, away = min(use, NEARLY), away_s / service_s
    left = use + use**2 / (2.0 * (1.0 - use))  # segments that a departure leaves behind
    busy, idle = use * exp(-away * use * (1.0 - use) / left), (1.0 - use) * exp(-use * away)
    begun = 1.0 - away / 2.0 if away < 1.0 else use / 2.0
    return service_s * (busy * (1.0 - away % 1.0) + (1.0 - busy - idle) * begun)


def _up_to(values: NDArray, most: NDArray) -> NDArray:
    """Return means of exponential variables that are cut off at `most`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0.0, -values * np.expm1(-most / values), 0.0)
