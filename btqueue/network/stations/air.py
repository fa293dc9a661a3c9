"""The polled air: loads, cycles and services of the links of all piconets, at given rates of the flows."""

from __future__ import annotations

from math import ceil, exp, expm1, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.stations.network import EMPTY, ENDLESS, Bridge, Network, Port

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


LONG = 3.0
"""Means of the time in which a central is elsewhere, beyond which it hardly ever is."""
PROBED = 20
"""Most turns between the cycles of piconets and the rounds of the bridges that they find there."""


class Rounds(NamedTuple):
    """How links with bridges, and in the piconets of centrals that are bridges, come to be served (slots).

    Attributes:
        round: mean time from one meeting on the link to the next, or from one poll to the next, (links,).
        meeting: mean wait of a lone segment for a frame of the link, (links,).
        polled: mean wait of a bridge that comes for the poll, the probe with it, (links,).
        gone: mean time from the end of a meeting until the bridge is back, (links,).
        elsewhere: time a round in which the central of a piconet is in others, (piconets,).
        stays: time a round that a bridge is in its own piconet, (bridges,).
    """

    round: Vector
    meeting: Vector
    polled: Vector
    gone: Vector
    elsewhere: Vector
    stays: Vector


def never_meet(network: Network, port: Port) -> bool:
    """Whether the bridges at both ends of a link keep windows in turn that are never in its piconet at once.

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
    """Whether a bridge that is a central is polled by another one, and so on, up to itself."""
    seen, now = set(), {bridge}
    while now:
        seen |= now
        goes = {p for n in now for p in network.bridges[n].piconets if network.bridges[n].own not in (-1, p)}
        now = {network.piconets[p].central_bridge for p in goes} - {-1}
        if bridge in now:
            return True
        now -= seen
    return False


def doubts(network: Network, point: Any) -> list[str]:
    """Return in words where the laws of bridges are rough, with errors against the simulation.

    Args:
        network: the stations.
        point: its `btqueue.network.stations.point.Point`.
    """
    found = []
    bridged = [n for n, port in enumerate(network.ports) if port.bridge >= 0]
    if not bridged:
        return found
    flows = network.flows
    crossing = [
        f for f, flow in enumerate(flows) if any(v.kind == "port" and v.index in bridged for v in flow.forth)
    ]
    use = float((point.rate @ point.service)[bridged].max())
    if any(flows[f].load < inf and point.rate[f] > 0.95 * flows[f].load for f in crossing) and use > 0.2:
        found.append(
            f"[polling] bridge_schedule: the busiest link of a bridge is in use to {use:.0%}; up to 20 % "
            "round trips over bridges were 3 % off in the median of 60 random networks, between 20 and 30 % "
            "up to 12 %, and at 75 % of the load that is carried up to 55 %"
        )
    if any(flows[f].load == inf and flows[f].window <= 2.0 for f in crossing):
        found.append(
            "[transport] receive_window_segments: with a window of 2 goodput over bridges was 8 % off in "
            "the median, and up to 64 % too high: segments of one window wait for each other at bridges"
        )
    elif any(point.rate[f] < 0.95 * flows[f].load for f in crossing):
        found.append(
            "[transport] receive_window_segments: full windows of several pairs over a bridge got up to 9 "
            "% more than in the simulation, 7 % in the median of 8 scenarios that the laws were not made with"
        )
    schedules = {network.bridges[network.ports[n].bridge].schedule for n in bridged}
    if "lcs" in schedules:
        found.append(
            "[polling] bridge_schedule = lcs: its meetings are taken for windows at random times; goodput "
            "was up to 84 % off, and round trips 37 % in the median and up to 134 %"
        )
    if schedules & {"sniff", "pcss"}:
        found.append(
            f"[polling] bridge_schedule = {', '.join(sorted(schedules))}: round trips of lone segments were "
            "3 to 6 % off in the median and up to 50 %; goodput of full windows 18 % and up to 86 %"
        )
    bridges = [network.bridges[n] for n in {network.ports[p].bridge for p in bridged}]
    if any(bridge.switch_s > 0.0 for bridge in bridges):
        found.append(
            "[polling] switch_delay: in which rhythm bridges come and are polled is known on average only: "
            "round trips were 5 % off in the median of 14 random networks, and up to 19 %"
        )
    ends = {network.ports[visit.index] for f in crossing for visit in flows[f].forth if visit.kind == "port"}
    if sum(port.bridge >= 0 and network.piconets[port.piconet].central_bridge >= 0 for port in ends):
        found.append(
            "[network] bridge: links between two bridges, of which one is the central of the other: round "
            "trips over several were 4 % off in the median, and up to 12 %"
        )
    visits = [visit for f in crossing for visit in flows[f].forth if visit.kind == "port"]
    if any(
        visit.index in bridged and visit.train.frames > network.ports[visit.index].limit for visit in visits
    ):
        found.append(
            "[polling] bridge_limit: a segment needs several visits of a bridge, which segments behind it "
            "share: round trips were 10 % off in the median of such networks"
        )
    if any(waits_for_itself(network, n) for n in range(len(network.bridges))):
        found.append(
            "[polling] bridge_patience_s: bridges that are centrals wait for each other in a circle, and may "
            "all be away at once"
        )
    links = point.links.links
    longest = links.idle + links.others(links.most_slots) + LONG * links.rounds.elsewhere[links.piconet]
    for n, bridge in enumerate(network.bridges):
        wait = float(longest[links.bridge == n].max(initial=0.0)) * SLOT_S
        if bridge.schedule == "walk-in" and 0.0 < bridge.patience_s < wait:
            found.append(
                f"[polling] bridge_patience_s = {bridge.patience_s:g}: bridges may wait for {wait:.2g} s, and "
                "no law says how often they go on without having been polled"
            )
            break
    if any(network.bridges[network.ports[n].bridge].cycles > 0.0 for n in bridged):
        found.append(
            "[polling] residence: with stays for longer than a visit round trips of lone segments were 5 % "
            "off in the median, and goodput of full windows 19 %, mostly too high"
        )
    return found


def until_polled(gone: float, more: float, gap: float, first: float) -> float:
    """Return the mean wait (slots) of a bridge for its poll.

    Args:
        gone: mean time after which it comes back, an exponential one with mean `more` in it.
        more: at least a slot: nothing is known better.
        gap: from one poll to the next.
        first: time of the first poll.
    """
    more = max(more, 1.0)
    missed = max(ceil((gone - more - first) / gap), 0)
    late = exp(-(first + missed * gap - gone + more) / more) / -expm1(-gap / more)
    return first + (missed + late) * gap - gone


class Links:
    """The polled air at given rates.

    Attributes:
        busy: cycle of a port that always has frames, shape (ports,) (slots).
        frame: slots of one of its frames then, with the other half, shape (ports,).
        visit: frames of a full visit, shape (links,).
        idle: cycle of a link without frames, shape (links,) (slots); `away` what of it others take.
        rounds: of the bridges, with the loads of all flows.
        beside: slots of the other half of a frame of a port, at its present load, shape (ports,).
        load: share of the time that each link takes; `open_load` by sources that do not always have data.
        open: 1 for such a source, 0 for a source that always has data, shape (flows,).
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.names = sorted({(port.piconet, port.link) for port in network.ports})
        number = {name: n for n, name in enumerate(self.names)}
        count = len(self.names)
        self.piconet = np.array([name[0] for name in self.names], int)
        self.port_link = np.array([number[port.piconet, port.link] for port in network.ports], int)
        self.up = np.array([port.up for port in network.ports], bool)
        self.opposite = np.full(len(network.ports), -1)
        place = {(port.piconet, port.link, port.up): n for n, port in enumerate(network.ports)}
        for n, port in enumerate(network.ports):
            self.opposite[n] = place.get((port.piconet, port.link, not port.up), -1)
        self.bridge = np.full(count, -1)
        for port, link in zip(network.ports, self.port_link, strict=True):
            self.bridge[link] = port.bridge
        piconets = [network.piconets[p] for p in self.piconet]
        self.limit = np.ones(count)
        self.limit[self.port_link] = [port.limit for port in network.ports]
        self.share = np.array([p.data_share for p in piconets], float)
        self.idle_polls = np.array([p.idle_polls for p in piconets], float)
        self.members = np.array([p.members for p in piconets], float)
        self.same = (self.piconet[:, None] == self.piconet) & ~np.eye(count, dtype=bool)
        self.endless = np.array([flow.load == inf for flow in network.flows], bool)
        self.regular = np.array([flow.source == "periodic" for flow in network.flows], bool)
        self.plain = np.array([not flow.messages for flow in network.flows])
        self.alone = np.array([float(flow.window * flow.acks <= 1.0) for flow in network.flows])
        # use of each port by a segment of each flow, and by its acknowledgements
        shape = (len(network.flows), len(network.ports))
        self.frames, self.air, self.whole = (
            np.zeros((2, *shape)),
            np.zeros((2, *shape)),
            np.zeros((2, *shape)),
        )
        for f, flow in enumerate(network.flows):
            for back, visits in enumerate((flow.forth, flow.back)):
                for visit in visits:
                    if visit.kind == "port":
                        times = flow.acks if back else 1.0
                        self.frames[back, f, visit.index] += times * visit.train.frames
                        self.air[back, f, visit.index] += times * visit.train.air
                        limit = self.limit[self.port_link[visit.index]]
                        self.whole[back, f, visit.index] += times * (visit.train.frames // limit)
        self.varies = np.ones((2, *shape))  # square of the frames of a segment over that of their mean
        for f, flow in enumerate(network.flows):
            for back, visits in enumerate((flow.forth, flow.back)):
                for visit in visits:
                    if visit.train.spread > 0.0 and visit.kind == "port":
                        self.varies[back, f, visit.index] += visit.train.spread / visit.train.frames**2
        self.utilisation = np.zeros(len(network.ports))
        self.probes = np.zeros(
            count
        )  # share of the time in frames of POLL and NULL that bridges answer first

    @property
    def steady(self) -> NDArray[np.bool_]:
        """Which flows send without chance: sources that always have data, and periodic ones."""
        return self.endless | self.regular

    def others(self, values: NDArray) -> NDArray:
        """Return the sums over the other links of the same piconet; links are the last axis."""
        return values @ self.same

    def by_link(self, values: NDArray) -> NDArray:
        """Return the sums over the ports of each link; ports are the last axis."""
        found = np.zeros((*values.shape[:-1], len(self.names)))
        for port, link in enumerate(self.port_link):
            found[..., link] += values[..., port]
        return found

    def update(self, sent: Vector, answered: Vector, full: NDArray[np.bool_], most: Vector) -> None:
        """Take the rates of segments and of the segments that are answered (1/s).

        Args:
            sent: segments a second, shape (flows,).
            answered: segments a second that are answered, shape (flows,).
            full: ports with a queue that never runs empty, shape (ports,).
            most: frames that windows let wait at once, shape (ports,).
        """
        frames = sent @ self.frames[0] + answered @ self.frames[1]
        slots = sent @ self.air[0] + answered @ self.air[1]
        self.work = self.by_link(sent[:, None] * (self.air[0] + self.frames[0]))
        self.work += self.by_link(answered[:, None] * (self.air[1] + self.frames[1]))
        there = self.opposite >= 0
        facing = np.where(there, frames[self.opposite], 0.0)
        facing_slots = np.where(there, slots[self.opposite], 0.0)
        mean = np.divide(slots, frames, out=np.ones_like(slots), where=frames > 0.0)
        other = np.divide(facing_slots, facing, out=np.ones_like(slots), where=facing > 0.0)
        ratio = np.divide(facing, frames, out=np.zeros_like(slots), where=frames > 0.0)
        apart = self._apart(sent, answered, frames, facing)
        # with frames in its queue: each has one of the other port's beside it, as far as there are any
        self.frame = mean + 1.0 + np.minimum(ratio, 1.0) * (1.0 - apart) * (other - 1.0)
        self.frame /= self.share[self.port_link]
        busy = np.where(there, np.where(full[self.opposite], 1.0, self.utilisation[self.opposite]), 0.0)
        self.beside = 1.0 + np.clip(busy, 0.0, 1.0) * (1.0 - apart) * (other - 1.0)
        often = np.clip(busy, 0.0, 1.0) * np.minimum(ratio, 1.0) * (1.0 - apart)
        self.frame_now = (mean + 1.0 + often * (other - 1.0)) / self.share[self.port_link]
        own_busy = np.where(full, 1.0, self.utilisation)
        paired = np.minimum(frames, facing) * np.clip(np.maximum(own_busy, busy), 0.0, 1.0) * (1.0 - apart)
        pairs = np.zeros(len(self.names))
        np.maximum.at(pairs, self.port_link, paired)
        work = self.by_link(slots + frames) - 2.0 * pairs
        work -= EMPTY * self.idle_polls * self.by_link(sent @ self.whole[0] + answered @ self.whole[1])
        self.load = work / self.share * SLOT_S  # less the empty frames that full visits spare
        self.full_link = self.by_link(full.astype(float)) > 0.0
        largest = np.zeros(len(self.names))
        np.maximum.at(largest, self.port_link, most)
        self.visit = np.minimum(self.limit, np.maximum(largest, 1.0))
        busier = (frames > facing) | ((frames == facing) & (frames > 0.0))  # its frames fill the visits
        longest = np.zeros(len(self.names))
        np.maximum.at(longest, self.port_link, np.where(busier, self.frame, 0.0))
        self.most_slots = self.visit * longest
        alone = self.others(self.load) == 0.0
        own = np.where((self.limit >= ENDLESS) & alone, ENDLESS, self.visit)  # such a visit need not end
        visits = own[self.port_link]
        empty = EMPTY / self.share
        for _ in range(PROBED):
            probes = self.probes
            self.busy = self._cycles(visits * self.frame, self.port_link)
            self.busy *= self.visit[self.port_link] / visits
            self.idle = self._cycles(empty, np.arange(len(self.names)))
            self.away = np.maximum(self.idle - empty, 0.0)
            self._bridges()
            if np.abs(self.probes - probes).max(initial=0.0) < 1e-3:
                break
        self.open_load = (
            self.by_link(
                np.where(self.steady, 0.0, sent) @ (self.air[0] + self.frames[0])
                + np.where(self.steady, 0.0, answered) @ (self.air[1] + self.frames[1])
            )
            * SLOT_S
            / self.share
        )
        self.plain_load = self.by_link(
            (sent * self.plain) @ (self.air[0] + self.frames[0])
            + (answered * self.plain) @ (self.air[1] + self.frames[1])
        ) * (SLOT_S / self.share)
        self.utilisation = np.clip(frames * self.busy * SLOT_S / self.visit[self.port_link], 0.0, 1.0)

    def _apart(self, sent: Vector, answered: Vector, frames: Vector, facing: Vector) -> Vector:
        """Return the share of pairs that a window of one keeps apart: of data and their acknowledgements."""
        mine = sent[:, None] * self.frames[0] + answered[:, None] * self.frames[1]
        against = np.where(self.opposite >= 0, mine[:, self.opposite], 0.0)
        return (mine * against * self.alone[:, None]).sum(axis=0) / np.maximum(frames * facing, 1e-300)

    def _cycles(self, own: Vector, rows: NDArray[np.int64]) -> Vector:
        """Return the mean cycles with visits of `own` slots to the links `rows`, shape of both."""
        polls = EMPTY * self.idle_polls * (self.members - 1.0) / self.share
        fixed, same = own + polls[rows], self.same[rows]
        cycle = fixed
        for _ in range(60):
            taken = np.minimum(self.most_slots, self.load * cycle[:, None])  # (rows, links)
            taken = np.where(
                self.full_link & (self.bridge < 0),
                self.most_slots - EMPTY * self.idle_polls / self.share,
                taken,
            )
            met = np.minimum(self.probes * cycle[:, None], EMPTY)
            new = fixed + (same * (np.maximum(taken, 0.0) + met)).sum(axis=1)
            if np.abs(new - cycle).max(initial=0.0) < 1e-4 * cycle.max(initial=1.0):
                break
            cycle = new
        return cycle

    def _bridges(self) -> None:
        """Put the rounds of bridges in the place of the cycles of their links, and of their own piconets'."""
        network, half = self.network, self.idle / 2.0
        self.rounds = Rounds(
            self.idle, half, half + EMPTY, 0.0 * half, np.zeros(len(network.piconets)), np.zeros(0)
        )
        if not network.bridges:
            return
        links = [np.flatnonzero(self.bridge == n) for n in range(len(network.bridges))]
        own = [np.flatnonzero(self.piconet == bridge.own) for bridge in network.bridges]
        turns, before = np.zeros((len(links), 2)), np.ones((len(links), 2))
        waits = np.zeros(len(self.names))
        elsewhere = self.rounds.elsewhere
        for _ in range(PROBED):
            if np.abs(turns - before).max() <= 1e-3 * turns.max():
                break
            before = turns.copy()
            for n, bridge in enumerate(network.bridges):
                if bridge.schedule != "walk-in":
                    turns[n] = 1.0
                    continue
                turns[n] = self._turn(bridge, links[n], own[n], waits)
                if bridge.own >= 0:
                    elsewhere[bridge.own] = turns[n, 0] - turns[n, 1]
        round_, gone = self.idle.copy(), np.zeros_like(half)
        polled, met = waits + EMPTY, np.zeros(len(self.names))
        for n, bridge in enumerate(network.bridges):
            both = np.r_[links[n], own[n]]
            if bridge.schedule != "walk-in":
                longest = self.frame[np.isin(self.port_link, both)].max(initial=0.0)
                self.busy[np.isin(self.port_link, both)] /= bridge.share(longest)
                polled[both] = self.away[both]
                continue
            round_[both] = turns[n, 0]
            met[links[n]] = EMPTY / turns[n, 0]
            gone[own[n]] = elsewhere[bridge.own]
            taken = np.minimum(self.load[links[n]] * turns[n, 0], self.most_slots[links[n]])
            gone[links[n]] = turns[n, 0] - polled[links[n]] - np.maximum(taken, EMPTY)
            for port in np.flatnonzero(np.isin(self.port_link, both)):
                link = self.port_link[port]
                slots = self.visit[link] * self.frame_now[port]
                self.busy[port] = self._turn(bridge, links[n], own[n], waits.copy(), link, slots)[0]
        self.probes = met
        self.rounds = Rounds(round_, round_ / 2.0, polled, gone, elsewhere, turns[:, 1])

    def without(self, own: Vector) -> Rounds:
        """Return the rounds of bridges less the loads `own` of the links, shape (links,)."""
        if not self.network.bridges or not own.any():
            return self.rounds
        found = Rounds(*(one.copy() for one in self.rounds))
        shorter = np.ones(len(self.names))
        for n, bridge in enumerate(self.network.bridges):
            both = (self.bridge == n) | (self.piconet == bridge.own)
            left = max(1.0 - self.load[both].sum(), 0.05)
            shorter[both] = left / (left + own[both].sum())
            if bridge.own >= 0 and both.any():
                found.elsewhere[bridge.own] *= shorter[both].min()
                found.stays[n] *= shorter[both].min()
        less = np.minimum(self.others(own) / np.maximum(self.others(self.load), 1e-12), 1.0)
        polled = (self.idle - self.away * less + found.elsewhere[self.piconet]) / 2.0 + EMPTY
        return found._replace(
            round=found.round * shorter,
            meeting=found.meeting * shorter,
            gone=found.gone * shorter,
            polled=polled,
        )

    def stay_of(self, rounds: Rounds, bridge: int, piconet: int) -> float:
        """Return how long a bridge is in a piconet each time (slots)."""
        for link in np.flatnonzero((self.bridge == bridge) & (self.piconet == piconet)):
            return float(rounds.round[link] - rounds.gone[link])
        one = self.network.bridges[bridge]
        if one.own == piconet:
            return float(rounds.stays[bridge])
        return 2.0 * EMPTY + float(self.network.piconets[piconet].members)

    def _turn(
        self, bridge: Bridge, links: NDArray, own: NDArray, waits: Vector, busy: int = -1, slots: float = 0.0
    ) -> tuple[float, float]:
        """Return the round of a bridge, and its stay as a central, if the visit to `busy` takes `slots`.

        Args:
            bridge: that walks in.
            links: at which it is a member.
            own: links of its own piconet.
            waits: of bridges for the poll of each link, shape (links,); written.
            busy: number of a link whose visits are full.
            slots: of such a visit.
        """
        gaps = (self.idle + self.rounds.elsewhere[self.piconet])[links].tolist()  # between polls
        at = self.piconet[links].tolist()
        early = [bridge.early(piconet) for piconet in at]
        here = [*links.tolist(), *own.tolist()]
        load, most = self.load[here].tolist(), self.most_slots[here].tolist()
        follows = [0.0] * len(here)
        if busy >= 0:  # what its visits bring goes on over other links
            crossing = self.work[:, busy] > 0.0
            through = self.work[crossing][:, here].sum(axis=0)
            rest_of = 1.0 - through / np.maximum(self.work[:, here].sum(axis=0), 1e-300)
            follows = (slots * through / max(float(self.work[:, busy].sum()), 1e-300)).tolist()
            load = (self.load[here] * rest_of).tolist()
        full, probes = self.full_link[here].tolist(), self.probes[here].tolist()
        rest = bridge.switch_s / SLOT_S * len(bridge.piconets)
        for piconet in set(bridge.piconets) - {bridge.own, *at}:
            rest += 2.0 * EMPTY + self.network.piconets[piconet].members
        least = [2.0 * EMPTY + bridge.cycles * gap for gap in gaps]  # of visits without data
        polls = EMPTY * (self.network.piconets[bridge.own].members - len(own)) if bridge.own >= 0 else 0.0
        wait, total, stay, count = waits[links].tolist(), 0.0, 0.0, len(at)
        for _ in range(80):
            stay, known, visits = polls + rest, polls + rest + EMPTY * len(own), []
            for n, link in enumerate(here):
                taken = min(most[n], load[n] * total + follows[n])
                if link == busy:
                    taken = slots
                elif full[n]:
                    taken = most[n]
                if taken < most[n] or not taken:
                    taken += EMPTY
                if n < count:
                    visits.append(least[n] - EMPTY + taken)
                else:
                    met = min(probes[n] * total, EMPTY)
                    stay += taken + met
                    known += met
            before = total
            total = stay + sum(visits) + sum(wait)
            for n in range(count):
                gone = total - visits[n] - wait[n]
                sure = known + sum(least) - least[n]
                first = gaps[n] - EMPTY  # behind a visit that takes the place of a frame of POLL and NULL
                new = until_polled(gone - early[n], gone - sure, gaps[n], first) - early[n]
                total += (new - wait[n]) / 2.0
                wait[n] = (new + wait[n]) / 2.0
            if abs(total - before) < 1e-3 * total:
                break
        waits[links] = wait
        return total, stay - rest

    def residuals(self, sent: Vector, answered: Vector, acks: Vector) -> Matrix:
        """Return the mean residual work of the visits to each link by each flow (slots), (flows, links).

        Half of the second moment of what a visit takes of a segment or its acknowledgement, times their rate.
        """
        limit = self.limit[self.port_link]
        found = np.zeros((len(sent), len(self.names)))
        for back, rates in ((0, sent[:, None]), (1, (answered / acks)[:, None])):
            slots = self.air[back] + self.frames[back]
            frames = np.maximum(self.frames[back] / np.where(back, acks[:, None], 1.0), 1e-9)
            # repetitions vary; beyond the limit of a visit they wait for the next one
            varies = np.minimum(self.varies[back], np.maximum(limit / frames, 1.0))
            squares = slots**2 * varies / np.maximum(frames / limit, 1.0)
            found += self.by_link(rates * squares / 2.0) * SLOT_S**2
        return np.where(self.full_link, 0.0, found)
