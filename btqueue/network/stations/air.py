"""The polled air: loads, cycles and services of the links of all piconets, at given rates of the flows."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.stations.bridge_rounds import Legs, Tour, completed, halving, newton
from btqueue.network.stations.bridges import in_a_row
from btqueue.network.stations.network import EMPTY, ENDLESS, Bridge, Network, Train

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


LONG = 3.0
"""Longest absence of a central that is taken into account, in multiples of its mean."""
PROBED = 100
"""Most iterations between the cycles of piconets and the rounds of bridges."""
TURNS, SETTLED = 60, 1e-10
"""Most turns in which the waits of a bridge for polls, or the uses of ports, settle, and the change at which
the uses have."""
LEAST = 0.02
"""Least share of the time that the load of other flows leaves."""


class Rounds(NamedTuple):
    """Times between services of links with bridges, or of centrals that are bridges (slots).

    Attributes:
        round: mean time from one meeting on the link to the next, or from one poll to the next, (links,).
        meeting: mean wait of a lone segment for a frame of the link, (links,).
        polled: mean wait of a bridge for its poll after it has come, the frame of the poll included,
            (links,).
        gone: mean time from the end of a meeting until the bridge is back, (links,).
        elsewhere: time in a round that the central of a piconet spends in other piconets, (piconets,).
        stays: time in a round that a bridge spends in its own piconet, (bridges,).
        polls: time between two polls of a link in which other links are served, (links,).
    """

    round: Vector
    meeting: Vector
    polled: Vector
    gone: Vector
    elsewhere: Vector
    stays: Vector
    polls: Vector


class Mixed:
    """Speeds up an iteration, in which each value is found from the value before.

    It takes the mixture of the last two values that the next step would change least, if steps were linear.

    Source: D. Anderson, Journal of the ACM 12 (1965), with a memory of one.

    Attributes:
        farther, farthest: largest change of a value in the step before the last and in the last, in any unit.
    """

    def __init__(self) -> None:
        self.farther = self.farthest = inf
        self.found = self.moves = np.zeros(0)

    def of(self, begun: NDArray, found: NDArray, unit: Any = 1.0) -> NDArray:
        """Return a mixture of the values found in this step and in the step before.

        Args:
            begun: values from which this step has begun.
            found: values that it has found.
            unit: one over the unit of a change.
        """
        before, last = self.found, self.moves
        self.found, self.moves = found, (found - begun) * unit
        self.farther, self.farthest = self.farthest, float(np.abs(self.moves).max(initial=0.0))
        if before.shape != found.shape:
            return found
        apart = self.moves - last
        share = float((apart * self.moves).sum()) / max(float((apart**2).sum()), 1e-300)
        return found - share * (found - before)


def as_share(values: NDArray) -> NDArray:
    """Return the values, limited to shares from 0 to 1."""
    return np.minimum(np.maximum(values, 0.0), 1.0)


def slowed(alone: Vector, together: Vector, crowded: Vector) -> Vector:
    """Return the mean service of a queue beside another one that shares its server: coupled processors.

    While both are busy each is served at the speed `together` (1 alone). In equilibrium the mean drifts of
    the squared work and of the product of both vanish, which gives the mean work of two equal queues without
    an approximation (Fayolle & Iasnogorodski 1979): the mean work of one queue with this service.

    Args:
        alone: service with the server to itself.
        together: the speed.
        crowded: share of the time in which the other queue would be busy if this one always was.
    """
    return alone / (1.0 - crowded * (1.0 - together))


class Links:
    """The polled air at given rates.

    Attributes:
        busy: cycle of a port that always has frames, shape (ports,) (slots).
        frame: slots of one of its frames then, with the other half, shape (ports,).
        visit: frames of a full visit, shape (links,).
        idle: cycle of a link without frames, shape (links,) (slots); `away` the part that others take.
        rounds: rounds of the bridges, with the loads of all flows.
        beside: slots of the other half of a frame of a port, at its present load, shape (ports,).
        present: slots of a frame while the port is busy at present, with the other half, shape (ports,).
        load: share of the time that each link takes; `open_load` by sources that do not always have data.
        open: 0 for a source that always has data, 1 for other sources, shape (flows,).
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.names = sorted({(port.piconet, port.link) for port in network.ports})
        number = {name: n for n, name in enumerate(self.names)}
        count = len(self.names)
        self.piconet = np.array([name[0] for name in self.names], int)
        self.port_link = np.array([number[port.piconet, port.link] for port in network.ports], int)
        self.of_link = (self.port_link[:, None] == np.arange(count)).astype(float)
        self.up = np.array([port.up for port in network.ports], bool)
        self.opposite = np.full(len(network.ports), -1)
        place = {(port.piconet, port.link, port.up): n for n, port in enumerate(network.ports)}
        for n, port in enumerate(network.ports):
            self.opposite[n] = place.get((port.piconet, port.link, not port.up), -1)
        self.there = self.opposite >= 0
        self.bridge = np.full(count, -1)
        for port, link in zip(network.ports, self.port_link, strict=True):
            self.bridge[link] = port.bridge
        piconets = [network.piconets[p] for p in self.piconet]
        self.limit = np.ones(count)
        self.limit[self.port_link] = [port.limit for port in network.ports]
        self.share = np.array([p.data_share for p in piconets], float)
        self.share_of = self.share[self.port_link]  # of ports
        # numbers of the ports of each link, (2, links); twice the same where there is only one
        ends = [(piconet, link, up) for up in (False, True) for piconet, link in self.names]
        of = [place.get(end, place.get((*end[:2], not end[2]))) for end in ends]
        self.ports_of = np.array(of, int).reshape(2, -1)
        self.idle_polls = np.array([p.idle_polls for p in piconets], float)
        self.members = np.array([p.members for p in piconets], float)
        self.in_turn = self.members[self.port_link] > 1.0  # ports that are not polled all the time
        # from one poll of a link to the next without any load
        self.without_load = EMPTY * self.idle_polls * (self.members - 1.0) / self.share
        self.same = ((self.piconet[:, None] == self.piconet) & ~np.eye(count, dtype=bool)).astype(float)
        self.lone = not self.same.any()  # flows use at most one link of each piconet
        self.endless = np.array([flow.load == inf for flow in network.flows], bool)
        self.regular = np.array([flow.source == "periodic" for flow in network.flows], bool)
        self.plain = np.array([not flow.messages for flow in network.flows])
        self.stop_and_wait = np.array([flow.window * flow.acks <= 1.0 for flow in network.flows])
        # segments that an acknowledgement covers
        self.covered = np.array([1.0 / flow.acks if flow.acks else 1.0 for flow in network.flows])
        self.alone = self.stop_and_wait.astype(float)  # flows whose data never meet their acknowledgements
        # use of each port by a segment of each flow, and by its acknowledgements
        shape = (len(network.flows), len(network.ports))
        self.frames, self.air, self.whole = np.zeros((3, 2, *shape))
        for f, flow in enumerate(network.flows):
            for back, visits in enumerate((flow.forth, flow.back)):
                for visit in visits:
                    if visit.kind == "port":
                        times = flow.acks if back else 1.0
                        self.frames[back, f, visit.index] += times * visit.train.frames
                        self.air[back, f, visit.index] += times * visit.train.air
                        limit = self.limit[self.port_link[visit.index]]
                        self.whole[back, f, visit.index] += times * (visit.train.frames // limit)
        self.each = self.air + self.frames
        self.comes = np.ones_like(self.frames)  # share of the segments that losses let come to the port
        # links visited in turn with others, all with windows of one segment; slots of an answer in its frames
        uses = (self.frames.sum(axis=0) @ self.of_link) > 0.0
        self.single = (uses <= self.stop_and_wait[:, None]).all(axis=0) & (self.members > 1.0)
        self.single &= (self.bridge < 0) & np.array([one.central_bridge < 0 for one in piconets], bool)
        self.answer = (self.each[1] @ self.of_link).max(axis=0, initial=0.0)
        self.utilisation = np.zeros(len(network.ports))
        # share of the time in frames of POLL and NULL that bridges answer first; waits for polls
        self.probes, self.waits = np.zeros((2, count))
        bridges = range(len(network.bridges))
        self.links_of = [np.flatnonzero(self.bridge == n) for n in bridges]
        self.own_of = [np.flatnonzero(self.piconet == network.bridges[n].own) for n in bridges]
        self.legs_of = [np.r_[one, other] for one, other in zip(self.links_of, self.own_of, strict=True)]
        self.ports_at = [np.flatnonzero(np.isin(self.port_link, legs)) for legs in self.legs_of]
        self.leg = {(int(self.bridge[link]), int(self.piconet[link])): link for link in range(count)[::-1]}
        self.row = in_a_row(network)
        self.turns, self.elsewhere = np.zeros((len(bridges), 2)), np.zeros(len(network.piconets))
        # round and waits of each bridge whose visits by a port are full, or by none (-1)
        self.settled: dict[tuple[int, int], tuple[float, list[float]]] = {}
        self.filled: dict[int, Matrix] = {}  # waits at full visits, by the first link of a bridge
        self.given: list[bytes] = []  # the numbers that the air was found for
        self.trains: list[list[tuple[int, Train]]] = [[] for _ in network.ports]
        for f, flow in enumerate(network.flows):
            pieces = [visit for message in flow.messages for piece in message for visit in piece.visits]
            for visit in (*flow.forth, *flow.back, *pieces):
                if visit.kind == "port":
                    self.trains[visit.index].append((f, visit.train))

    @property
    def steady(self) -> NDArray[np.bool_]:
        """Which flows send deterministically: sources that always have data, and periodic ones."""
        return self.endless | self.regular

    def others(self, values: NDArray) -> NDArray:
        """Return the sums over the other links of the same piconet; links are the last axis."""
        return values @ self.same

    def by_link(self, values: NDArray) -> NDArray:
        """Return the sums over the ports of each link; ports are the last axis."""
        return values @ self.of_link

    def update(self, sent: Vector, answered: Vector, full: NDArray[np.bool_], most: Vector) -> None:
        """Take the rates of segments and of the segments that are answered (1/s).

        Args:
            sent: segments a second, shape (flows,).
            answered: segments a second that are answered, shape (flows,).
            full: ports with a queue that never runs empty, shape (ports,).
            most: frames that windows let wait at once, shape (ports,).
        """
        given = [one.tobytes() for one in (sent, answered, self.comes, full, most, self.alone, self.endless)]
        if given == self.given and not self.network.bridges:
            return
        self.given = given
        coming = np.array((sent, answered))[:, :, None] * self.comes
        data = (coming[0] * self.frames[0]).sum(axis=0)
        frames = data + (coming[1] * self.frames[1]).sum(axis=0)
        slots = (coming * self.air).sum(axis=(0, 1))
        self.rate_of, self.rates_now, self.slots_s = frames, sent, slots
        self.work = self.by_link((coming * self.each).sum(axis=0))
        sends, facing = frames > 0.0, self.there * frames[self.opposite]
        each = np.where(sends, frames, inf)
        mean, ratio = slots / each + ~sends, facing / each
        # beside an acknowledgement a full port sends data of other flows, if it has any
        together = 1.0 - self._apart(coming, frames, facing)
        if full.any():
            mixed = ((sent[:, None] * self.frames[0] > 0.0).sum(axis=0) > 1) & full
            mixed |= self.there & mixed[self.opposite]
            together = np.where(mixed, 1.0, together)
        # the other half of a frame that both ports share
        longer = together * self.there * (mean[self.opposite] - 1.0)
        often = np.minimum(ratio, 1.0) * longer
        # with frames in its queue: each shares with a frame of the other port, as far as there are any
        self.frame = (mean + 1.0 + often) / self.share_of
        self.full_link = self.by_link(full.astype(float)) > 0.0
        self.visit = np.minimum(self.limit, np.maximum(self._larger(most), 1.0))
        busier = (frames > facing) | ((frames == facing) & (frames > 0.0))  # its frames fill the visits
        self.most_slots = self.visit * self._larger(busier * self.frame)
        # A visit without a limit ends with POLL and NULL; its last acknowledgement is alone in its frames.
        # The same holds for windows of one segment that leave room in a visit.
        self.ends = np.where((self.limit > self.visit) & self.single, self.answer + EMPTY, 0.0)
        self.ends = np.where(self.limit >= ENDLESS, 2.0 * EMPTY, self.ends)
        self.open_load, self.plain_load = (
            np.array([~self.steady, self.plain]) @ self.work * SLOT_S / self.share
        )
        whole = (coming * self.whole).sum(axis=(0, 1))
        # less the empty frames that full visits spare
        work = self.by_link(slots + frames) - EMPTY * self.idle_polls * self.by_link(whole)
        # slots of the other half of a frame while a port is busy
        alone = (mean + 1.0) / self.share_of
        both = (mean + 1.0 + self.there * longer) / self.share_of
        acks = (data > 0.0) * self.there * (frames - data)[self.opposite]
        acks = np.minimum(acks / each, 1.0)
        mixed, busy = Mixed(), np.zeros(0)
        for _ in range(1 if self.network.bridges else TURNS):  # rounds of bridges take longer to find
            begun = self.utilisation
            own = np.where(full, 1.0, begun)
            busy = self.there * own[self.opposite]
            self.frame_now = (mean + 1.0 + busy * often) / self.share_of
            often_paired = np.maximum(own, busy) * together
            paired = self._larger(np.minimum(frames, facing) * often_paired)
            both_whole = self._larger(np.minimum(whole, self.there * whole[self.opposite]) * often_paired)
            work_now = work - 2.0 * paired + EMPTY * self.idle_polls * both_whole
            self.load = work_now / self.share * SLOT_S
            self._find_cycles()
            between = self.busy / self.visit[self.port_link] - self.frame
            crowded = np.where(full, 1.0, as_share(data * (between + both) * SLOT_S))
            crowded = self.there * crowded[self.opposite]
            # acknowledgements of the port's segments come as long as it is busy
            beside = np.minimum(slowed(alone + acks * (both - alone), alone / both, crowded), both)
            # with several links, both ports of a link wait for the same visits, and their frames meet
            self.present = np.where(self.in_turn, self.frame, beside)
            self.utilisation = as_share(frames * (between + self.present) * SLOT_S)
            following = mixed.of(begun, self.utilisation)
            if mixed.farthest < SETTLED:
                break
            if not self.network.bridges:
                self.utilisation = as_share(following)
        if not self.network.bridges:
            self._meet()
        self.beside = 1.0 + busy * longer

    def _larger(self, values: Vector) -> Vector:
        """Return the larger of the values of both ports of each link, (links,)."""
        return np.maximum(*values[self.ports_of])

    def _find_cycles(self) -> None:
        """Set full cycles at present loads; with bridges idle ones and rounds, too."""
        if self.network.bridges:
            self._meet()
        alone = (self.limit >= ENDLESS) & (self.others(self.load) == 0.0)  # a visit that need not end
        visits = np.where(alone, ENDLESS, self.visit)[self.port_link]
        ends = np.where(alone, 0.0, self.ends)[self.port_link]
        self.busy = (
            self._cycles(visits * self.frame + ends, self.port_link) * self.visit[self.port_link] / visits
        )
        if self.network.bridges:
            self._bridges()

    def _apart(self, coming: Matrix, frames: Vector, facing: Vector) -> Vector:
        """Return the share of pairs of data and their acknowledgements that a window of one keeps apart."""
        if not self.alone.any():
            return np.zeros(len(frames))
        mine = (coming * self.frames).sum(axis=0)
        against = self.there * mine[:, self.opposite]
        return (mine * against * self.alone[:, None]).sum(axis=0) / np.maximum(frames * facing, 1e-300)

    def _cycles(self, own: Vector, rows: NDArray[np.int64]) -> Vector:
        """Return the mean cycles with visits of `own` slots to the links `rows`, shape of both.

        The time that the other links take grows with the cycle up to a full visit, and is concave. Newton's
        steps reach the longest cycle from above, at most one for each link that is no longer full.
        """
        fixed = own + self.without_load[rows]
        if self.lone:
            return fixed
        always = self.full_link & (self.bridge < 0)
        most = self.most_slots - always * (EMPTY * self.idle_polls - self.ends) / self.share
        # frames of POLL and NULL that a bridge answers first are a load, at most one each cycle
        same, full, each = self.same[rows], np.maximum(most, 0.0), np.where(self.probes > 0.0, EMPTY, 0.0)
        whole = same @ (full + each)
        cycle = fixed + whole
        for _ in range(2 * len(most) + 1):
            part = same * (~always & (self.load * cycle[:, None] < most))  # (rows, links) that are not full
            less, work = np.maximum(part @ self.load, 0.0), whole - part @ full
            if self.network.bridges:
                seldom = same * (self.probes * cycle[:, None] < each)
                less, work = less + seldom @ self.probes, work - seldom @ each
            new = (fixed + work) / (1.0 - less)
            if not (new < cycle).any():
                break
            cycle = new
        return cycle

    def _meet(self) -> None:
        """Set the idle cycles, and the rounds of bridges in them, if there are any."""
        network, empty = self.network, EMPTY / self.share
        before, elsewhere = np.full_like(self.turns, inf), self.elsewhere
        for _ in range(PROBED):
            self.idle = self._cycles(empty, np.arange(len(self.names)))
            half = self.idle / 2.0
            polls = self.idle - empty
            self.rounds = Rounds(self.idle, half, half + EMPTY, 0.0 * half, elsewhere, np.zeros(0), polls)
            if np.abs(self.turns - before).max(initial=0.0) <= 1e-9 * self.turns.max(initial=0.0):
                break
            before = self.turns.copy()
            for n, bridge in enumerate(network.bridges):
                if bridge.schedule != "walk-in":
                    continue
                total, stay, self.waits[self.links_of[n]] = self._turn(n, self._legs(n))
                self.turns[n] = total, stay
                self.probes[self.links_of[n]] = EMPTY / total
                if bridge.own >= 0:
                    elsewhere[bridge.own] = total - stay
        self.away = np.maximum(self.idle - empty, 0.0)
        self.rounds = self.rounds._replace(polls=np.maximum(self.away, self.without_load))

    def _bridges(self) -> None:
        """Replace cycles of links of bridges, and of piconets with a bridge as central, by their rounds."""
        network, turns, elsewhere = self.network, self.turns, self.rounds.elsewhere
        links, own = self.links_of, self.own_of
        round_, gone = self.idle.copy(), np.zeros_like(self.idle)
        polled = self.waits + EMPTY
        row = max((self._in_step(n) for n in self.row), default=0.0)
        for n, bridge in enumerate(network.bridges):
            both = self.legs_of[n]
            if bridge.schedule != "walk-in":
                longest = self.frame[self.ports_at[n]].max(initial=0.0)
                self.busy[self.ports_at[n]] /= bridge.share(longest)
                polled[both] = self.away[both]
                continue
            round_[both] = turns[n, 0]
            gone[own[n]] = elsewhere[bridge.own]
            taken = np.minimum(self.load[links[n]] * turns[n, 0], self.most_slots[links[n]])
            gone[links[n]] = turns[n, 0] - polled[links[n]] - np.maximum(taken, EMPTY)
            filled = [link for link in links[n] if self.is_filled(int(link))]
            full, legs = self._filled_round(bridge, links[n]) if filled else 0.0, self._legs(n)
            for port in self.ports_at[n]:
                link = self.port_link[port]
                self.busy[port] = full if link in filled else row or self._turn(n, legs, int(port))[0]
        between = self.rounds.polls
        self.rounds = Rounds(round_, round_ / 2.0, polled, gone, elsewhere, turns[:, 1], between)

    def _in_step(self, n: int) -> float:
        """Return the round (slots) of a bridge in a row that one flow fills; 0 if the flow sends nothing.

        Nothing is random in such a row: all exchanges are full, and each waits for two others only. So the
        bridge with the longest exchanges is never late, and sets the round of the row: the largest cycle mean
        of a timed event graph (F. Baccelli et al., Synchronization and Linearity, 1992, section 2.5). Each
        visit as a member costs one frame of a poll.
        """
        both = self.legs_of[n]
        row = np.concatenate([self.legs_of[one] for one in self.row])
        load, most = self.load[row], self.most_slots[row]
        if not load.all():
            return 0.0
        slots = np.minimum(self.most_slots[both], self.load[both] * float((most / load).min()))
        # a visit that is not full ends with POLL and NULL: a share of the visits, at most the frames that the
        # mean visit lacks
        lacks = self.visit[both] * (1.0 - slots / self.most_slots[both])
        slots += EMPTY * (as_share(lacks) + (self.bridge[both] >= 0))
        legs = self._legs(n)
        return legs.rest + legs.polls + float(slots.sum())

    def is_filled(self, link: int) -> bool:
        """Whether a bridge walks in, leaves after each visit to this link, and its visits are full."""
        if self.bridge[link] < 0 or not self.full_link[link]:
            return False
        bridge = self.network.bridges[self.bridge[link]]
        return bridge.schedule == "walk-in" and bridge.own < 0 and bridge.cycles == 0.0

    def _filled_round(self, bridge: Bridge, links: NDArray[np.int64]) -> float:
        """Return the round (slots) of a bridge whose visits are full.

        The visit with the least limit for its load is full. A visit to another piconet exchanges its load
        of the same round, and ends by an empty frame.

        While the bridge is elsewhere, the central serves the other links, in a *tour* of length V, with the
        segments of the last visit. Then it polls in vain until the bridge is there. So the bridge waits for
        (V - D)^+ after an absence D, or for half of the time between polls. V is 0 if no segment has come
        through, else it is taken as gamma distributed, with the variance of D. Where ordinary visits are
        limited, the bridge is polled after each of them.

        Args:
            bridge: that walks in.
            links: its links.
        """
        count = len(links)
        load, most = self.load[links], self.most_slots[links]
        slots = np.minimum(most, load * (most[load > 0.0] / load[load > 0.0]).min(initial=1e300))
        exchange = EMPTY + np.minimum(most, slots + EMPTY)
        tours = [self._tour(*one) for one in zip(links, slots / np.maximum(most, 1e-300), strict=True)]
        fixed = bridge.switch_s / SLOT_S * len(bridge.piconets)
        for piconet in set(bridge.piconets) - set(self.piconet[links].tolist()):
            fixed += 2.0 * EMPTY + self.network.piconets[piconet].members
        whole = float(fixed + exchange.sum())
        start = np.array([np.full(count, EMPTY), np.zeros(count)])
        places = self.filled.get(int(links[0]), start)  # means and variances of the waits
        new, mixed = places, Mixed()
        for _ in range(TURNS):
            wait, variance = following = places.tolist()
            for k, tour in enumerate(tours):
                absence = whole - float(exchange[k]) + sum(wait) - wait[k]
                mean, square = tour.wait(absence, sum(variance) - variance[k])
                wait[k] = (wait[k] + mean) / 2.0
                variance[k] = (variance[k] + max(square - mean**2, 0.0)) / 2.0
            new = np.array(following)
            if np.abs(new[0] - places[0]).max() < 1e-11 * whole:
                break
            scale = np.maximum(new.max(axis=1), 1e-12)[:, None]
            places = np.maximum(mixed.of(places, new, 1.0 / scale), new / 4.0)
        self.filled[int(links[0])] = new
        return whole + float(new[0].sum())

    def _tour(self, link: int, share: float) -> Tour:
        """Return the work of the central for others between two visits that use a share of their limit."""
        ports = np.flatnonzero(self.port_link == link)
        port = int(ports[np.argmax(self.rate_of[ports])])
        frames = max(self.visit[link] * share, 1.0)  # one at least, so that segments come through at times
        rounds = frames / max(self.rate_of[port], 1e-300)  # of a visit, per frame a second
        number, spread, some = 1.0, 0.0, 1.0  # of a link that no flow crosses
        if self.trains[port]:
            train = max(self.trains[port], key=lambda one: self.rates_now[one[0]] * one[1].frames)[1]
            number, spread, some = completed(frames, train)
        crossing = self.work[:, link] > 0.0
        # a visit that takes segments away is followed by the segments that their acknowledgements let out
        taken = self.frames[0][:, ports[~self.up[ports]]].sum(axis=1) > 0.0
        covered = float(self.covered[taken].max(initial=1.0))
        if covered > 1.0:
            part = number / covered % 1.0
            spread, some = spread + covered**2 * part * (1.0 - part), some * min(number / covered, 1.0)
        mean = square = loose = whole = sure = 0.0
        for other in np.flatnonzero(self.same[link]):
            through, all_work = self.work[crossing, other].sum(), max(self.work[:, other].sum(), 1e-300)
            loose += (1.0 - through / all_work) * self.load[other]
            if through <= 0.0:
                continue
            sure += EMPTY
            if self.full_link[other] and self.bridge[other] >= 0:
                sure += self.most_slots[other]
                continue
            # the acknowledgements go beside the segments that follow, but for the last one
            beside = 2.0 * self.rate_of[self.port_link == other].min() * (1.0 - some / number)
            carried = (through - beside * through / all_work) * rounds / self.share[other] / some
            each = carried * some / number
            if self.limit[other] < ENDLESS:
                slots = self.limit[other] * float(self.frame[self.port_link == other].max())
                whole = max(whole, slots + EMPTY)
                carried += EMPTY * max(carried / slots - 0.5, 0.0)
            mean += carried
            square += each**2 * (spread + number**2) / some - (each * number / some) ** 2
            square += number / some * train.spread * (train.air / train.frames + 1.0) ** 2
        left = 1.0 - min(loose, 1.0 - LEAST)
        polls = EMPTY * (1.0 + self.idle_polls[link] * (self.members[link] - 1.0)) / self.share[link]
        return Tour(mean / left, square / left**2, sure / left, some, polls / left, whole)

    def without(self, own: Vector) -> Rounds:
        """Return the rounds of bridges without the loads `own` of the links, shape (links,)."""
        if not own.any():
            return self.rounds
        less = np.minimum(self.others(own) / np.maximum(self.others(self.load), 1e-12), 1.0)
        polls = self.without_load + (self.rounds.polls - self.without_load) * (1.0 - less)
        if not self.network.bridges:
            return self.rounds._replace(polls=polls)
        elsewhere, stays = self.rounds.elsewhere.copy(), self.rounds.stays.copy()
        shorter = np.ones(len(self.names))
        for n, both in enumerate(self.legs_of):
            left = max(1.0 - self.load[both].sum(), 0.05)
            shorter[both] = left / (left + own[both].sum())
            at = self.network.bridges[n].own
            if at >= 0 and len(both):
                elsewhere[at] *= shorter[both].min()
                stays[n] *= shorter[both].min()
        return Rounds(
            self.rounds.round * shorter,
            self.rounds.meeting * shorter,
            (self.idle - self.away * less + elsewhere[self.piconet]) / 2.0 + EMPTY,
            self.rounds.gone * shorter,
            elsewhere,
            stays,
            polls,
        )

    def stay_of(self, rounds: Rounds, bridge: int, piconet: int) -> float:
        """Return how long a bridge is in a piconet each time (slots)."""
        link = self.leg.get((bridge, piconet), -1)
        if link >= 0:
            return float(rounds.round[link] - rounds.gone[link])
        one = self.network.bridges[bridge]
        if one.own == piconet:
            return float(rounds.stays[bridge])
        return 2.0 * EMPTY + float(self.network.piconets[piconet].members)

    def _legs(self, n: int) -> Legs:
        """Return the visits of a bridge that walks in, at present loads."""
        bridge, links, own = self.network.bridges[n], self.links_of[n], self.own_of[n]
        at = self.piconet[links].tolist()
        gaps = (self.idle + self.rounds.elsewhere[self.piconet])[links].tolist()
        here = [*links.tolist(), *own.tolist()]
        rest = bridge.switch_s / SLOT_S * len(bridge.piconets)
        for piconet in set(bridge.piconets) - {bridge.own, *at}:
            rest += 2.0 * EMPTY + self.network.piconets[piconet].members
        return Legs(
            here,
            gaps,
            [bridge.early(piconet) for piconet in at],
            [2.0 * EMPTY + bridge.cycles * gap for gap in gaps],
            self.load[here].tolist(),
            self.most_slots[here].tolist(),
            self.full_link[here].tolist(),
            self.probes[here].tolist(),
            rest,
            EMPTY * (self.network.piconets[bridge.own].members - len(own)) if bridge.own >= 0 else 0.0,
        )

    def _turn(self, n: int, legs: Legs, port: int = -1) -> tuple[float, float, list[float]]:
        """Return the round of a bridge, its stay as a central, and its waits for polls (slots).

        The waits follow from the absences, which are the rest of the round. Newton's steps start from the
        round found before. Where they fail at a kink, and at first, steps of half the change are made.

        Args:
            n: number of the bridge.
            legs: its visits.
            port: whose visits are full, -1 for none.
        """
        load, follows, busy, slots = legs.load, [0.0] * len(legs.here), -1, 0.0
        if port >= 0:  # the segments of its visits go on over other links
            busy = int(self.port_link[port])
            slots = float(self.visit[busy] * self.frame_now[port])
            work = self.work[:, legs.here]
            through, own = (self.work[:, busy] > 0.0) @ work, float(self.work[:, busy].sum())
            load = (self.load[legs.here] * (1.0 - through / np.maximum(work.sum(axis=0), 1e-300))).tolist()
            follows = (slots * through / max(own, 1e-300)).tolist()
        sizes = []  # of each visit: fixed slots, slots for each slot of a round, and the most slots
        for k, link in enumerate(legs.here):
            if link == busy or legs.full[k]:
                size = slots if link == busy else legs.most[k]
                most = legs.most[k]
                sizes.append((size + EMPTY * (size < most or not size), 0.0, inf))
            else:
                sizes.append((follows[k], load[k], legs.most[k]))
        total, wait = self.settled.get((n, port)) or (0.0, self.waits[self.links_of[n]].tolist())
        found = newton(legs, sizes, total, wait) if total else None
        if found is None:
            total, wait = halving(legs, sizes, wait, total)
            found = newton(legs, sizes, total, wait) or (total, legs.visits(sizes, total)[0], wait)
        self.settled[n, port] = found[0], found[2]
        return found

    def residuals(self, sent: Vector, answered: Vector, acks: Vector, varies: Matrix) -> Matrix:
        """Return the mean residual work of each flow's visits to each link (slots), shape (flows, links).

        Segments (or acknowledgements) per slot times half the second moment of their work in a visit.
        """
        limit = self.limit[self.port_link]
        found = np.zeros((len(sent), len(self.names)))
        for back, rates in ((0, sent), (1, answered / acks)):
            slots = self.each[back]
            frames = np.maximum(self.frames[back] / np.where(back, acks[:, None], 1.0), 1e-9)
            # repetitions vary; beyond the limit of a visit they wait for the next one
            squares = slots**2 * np.minimum(varies[back], np.maximum(limit / frames, 1.0))
            squares /= np.maximum(frames / limit, 1.0)
            found += self.by_link(rates[:, None] * self.comes[back] * squares / 2.0) * SLOT_S**2
        return np.where(self.full_link, 0.0, found)
