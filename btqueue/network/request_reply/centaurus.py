"""Request-reply sessions over CentaurusComm: eight one-way trips, and what losses add.

Client and server are peers (no master polls): OBJ, PROCEED, data and DONE, ACK carry the request, NOPE hands
the turn to the server, and OBJ, PROCEED, data and DONE carry the reply; then the client takes leave with a
session of its own. Without losses the trips are played one after the other on the timetable of the way.
With losses each object is an absorbing chain (`transport.centaurus_transaction`) whose times come from there.

Approximations: that the server offers its reply once more if the client's ACK of it was lost falls into the
pause; a lost packet of a message is one of mean size; the watchdogs of both ends begin together.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.law import Law, law_of_period, session_metrics, with_chance
from btqueue.network.request_reply.path import Path
from btqueue.network.request_reply.timetable import NO_CHANCE, NS, Chance, Form, Parcel, Timetable
from btqueue.network.whole_segments import cut_of
from btqueue.scenario import Scenario
from btqueue.transport.centaurus_transaction import Branch, Transaction, mean_time, transaction_law, variance

POINTS = 1024
"""Points of the lattice of the law."""

LONGEST = {True: 10.0, False: 3.0}
"""Up to how many times the mean the law goes, with losses and without."""

MOST_SESSIONS = 100
LONG_JITTER_S = 0.02
"""Processing delay from which on the packets of a train noticeably hold each other up."""

CLIENT, SERVER = 0, 1
REQUEST, REPLY, GOODBYE = range(3)

Train = list[tuple[Form, int]]
"""What an end hands over at once, or at the pace of its worker: sizes, and how much later than the first."""


class Objects:
    """What CentaurusComm sends for the messages of a scenario, and how long it takes alone on the way."""

    def __init__(self, scenario: Scenario) -> None:
        """Cut the messages into packets."""
        traffic, transport = scenario.traffic, scenario.transport
        path = Path(scenario)
        self.way, self.scenario = path.way, scenario
        headers = transport.header_bytes + transport.centaurus_header_bytes
        sizes = (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes)
        cut = [cut_of(size, transport.centaurus_packet_bytes) for size in sizes]
        forms = {piece: path.form(piece + headers) for message in cut for piece in message}
        self.messages = tuple(tuple(forms[piece] for piece in message) for message in cut)
        self.control = path.form(transport.centaurus_control_bytes + transport.header_bytes)
        self.worker_ns = round(transport.centaurus_worker_s * NS)
        self.alone: Train = [(self.control, 0)]

    def train(self, packets: tuple[Form, ...], *, offer: bool = False) -> Train:
        """Return the train of data packets, closed by DONE; `offer`: with OBJ in front."""
        data = [(form, place * self.worker_ns) for place, form in enumerate(packets)]
        return [*(self.alone if offer else []), *data, (self.control, len(packets) * self.worker_ns)]

    def burst_s(self, direction: int, packets: tuple[Form, ...]) -> np.ndarray:
        """Return how long trains of the last 0, 1, ... of these packets take, with DONE behind them (s).

        In a row of links and on a polled hop this is affine but for the shortest and for whole frames.
        """
        count = len(packets)
        sizes = sorted({0, 1, 2, 3, count // 2, count} & set(range(count + 1)))
        times = [self.transit_s(direction, self.train(packets[count - size :])) for size in sizes]
        return np.interp(np.arange(count + 1), sizes, times)

    def transit_s(self, direction: int, train: Train, *, answered: bool = False) -> float:
        """Return how long a train takes, alone on the way (s); `answered`: but for the answer to its OBJ."""
        trips = Trips(self)
        trips.send(direction, train, NO_CHANCE, answered=answered)
        return trips.table.now / NS

    def held_up_s(self, burst_s: np.ndarray) -> float:
        """Return by how much processing delays hold up a train beyond the mean of a single one (s).

        Every packet has a uniform delay U and none overtakes. The end of the train is the largest of
        U(k) + T(k), T(k) being what it takes from the release of the k-th packet on: exact for a train alone
        on its way, whose times form a max-plus linear system. The wait for a poll absorbs such delays.
        """
        jitter_s = self.scenario.run.jitter_s
        if not jitter_s or self.way.polled is not None or self.worker_ns:
            return 0.0
        behind = burst_s[-1] - burst_s[::-1]
        level = (np.arange(400) + 0.5) / 400 * jitter_s  # of the largest, beyond T(1)
        below = np.clip((level[:, None] + behind) / jitter_s, 0.0, 1.0).prod(axis=1)
        return float((1.0 - below).mean() * jitter_s - jitter_s / 2)

    def loss(self, direction: int, packets: tuple[Form, ...]) -> float:
        """Return the mean probability that one of these packets is lost."""
        return float(np.mean([form.losses[direction] for form in packets]))


class Trips:
    """Trains on the way, one after the other, from time 0 on."""

    def __init__(self, objects: Objects) -> None:
        """Nothing is under way."""
        self.objects, self.table = objects, Timetable(objects.way, self._take)
        self._awaited: object = None
        self._chance: Chance | None = NO_CHANCE
        self._answer: object = None

    def send(self, direction: int, train: Train, chance: Chance, *, answered: bool = False) -> Chance:
        """Hand a train over now and go on until its last packet has arrived; return what led to it.

        `answered`: when the first packet (OBJ) arrives, the far end sends a control message the other way.
        """
        self._awaited, self._chance = object(), None
        self._answer = object() if answered else None
        for place, (form, later_ns) in enumerate(train):
            load = self._awaited if place == len(train) - 1 else self._answer if place == 0 else None
            self.table.post(direction, form, load, chance, later_ns)
        self.table.flush()
        while self._chance is None:
            self.table.step()
        return self._chance

    def wait(self, until: int) -> None:
        """Let time pass; what is under way goes on."""
        self._chance = None
        self.table.at(until, self._wake)
        while self._chance is None:
            self.table.step()

    def _wake(self) -> None:
        self._chance = NO_CHANCE

    def _take(self, parcel: Parcel) -> None:
        if parcel.load is not None and parcel.load is self._awaited:
            self._chance = parcel.chance
        elif parcel.load is not None and parcel.load is self._answer:
            self.table.post(1 - parcel.direction, self.objects.control, None, parcel.chance)


def answer_centaurus(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    objects = Objects(scenario)
    request, reply, goodbye = objects.messages
    both = [(objects.control,) * 2, request + reply + goodbye]
    losses = [form.losses[direction] for row in both for form in row for direction in (CLIENT, SERVER)]
    if max(losses) >= 1.0:
        raise NoConvergence("no packet gets through: sessions never end")
    warnings = []
    if any(losses):
        times, law, warnings = _with_losses(objects)
        lost, method = (
            [objects.loss(CLIENT, request), objects.loss(SERVER, reply)],
            "absorbing chain of each object",
        )
    else:
        times, law = _without_losses(objects)
        lost, method = [0.0, 0.0], "one-way trips, exact"
    if objects.way.polled is not None and scenario.run.jitter_s > LONG_JITTER_S:
        warnings.append(
            f"run.jitter_s = {scenario.run.jitter_s:g}: packets of an object hold each other up behind their "
            "processing delays, which is left out on a Bluetooth hop; goodput comes out 3 % high at 0.01 s, "
            "11 % at 0.05 s and 15 % at 0.2 s"
        )
    metrics = session_metrics(scenario, law, *times)
    metrics["throughput_kbps"] = metrics["goodput_kbps"] / (1.0 - np.array(lost))
    return {**metrics, "segment_loss": np.array(lost)}, {
        "method": f"request-reply sessions over CentaurusComm: {method}",
        "converged": True,
        "residual": float(max(0.0, 1.0 - law.probabilities.sum())),
        "warnings": warnings,
    }


# ------------------------------------------------------------------------------------------- without losses


def _without_losses(objects: Objects) -> tuple[tuple[float, float, float], Law]:
    """Play sessions until they repeat; return mean, deviation, and cycle (s), and their law."""
    trips, jitter_s = Trips(objects), objects.scenario.run.jitter_s
    early = objects.scenario.transport.centaurus_early_data
    held_up = [
        round(NS * objects.held_up_s(objects.burst_s(direction, objects.messages[message])))
        if objects.messages[message] and jitter_s else 0
        for direction, message in ((CLIENT, REQUEST), (SERVER, REPLY), (CLIENT, GOODBYE))
    ]  # fmt: skip
    seen: dict[tuple, int] = {}
    cycles: list[tuple[int, int, Chance, Chance]] = []
    while len(cycles) < MOST_SESSIONS and (state := trips.table.phase) not in seen:
        seen[state] = len(cycles)
        cycles.append(_play_session(trips, early, held_up))
    period = cycles[seen.get(trips.table.phase, 0) :]
    session = float(np.mean([cycle[0] + cycle[2].repeated_ns for cycle in period])) / NS
    whole = float(np.mean([cycle[1] + cycle[3].repeated_ns for cycle in period])) / NS
    step = LONGEST[False] * session / POINTS
    law = law_of_period([cycle[0] / NS for cycle in period], step, POINTS)
    found = Law(step, with_chance(law, period[-1][2], step, jitter_s))
    return (session, found.deviation, whole), found


def _play_session(trips: Trips, early: bool, held_up: list[int]) -> tuple[int, int, Chance, Chance]:
    """Play one session; return its length and that until the next (ns), and what both owe to chance."""
    objects, table = trips.objects, trips.table
    start, chance, alone = table.now, NO_CHANCE, objects.alone

    def carry(direction: int, message: int, chance: Chance, front: Train) -> Chance:
        """Offer an object and send it; `front` goes in front of the offer."""
        train = objects.train(objects.messages[message], offer=early)
        if not early:
            chance = trips.send(direction, [*front, *alone], chance)
            chance = trips.send(1 - direction, alone, chance)
            front = []
        if held_up[message]:
            trips.wait(table.now + held_up[message])
        return trips.send(direction, [*front, *train], chance, answered=early)

    chance = carry(CLIENT, REQUEST, chance, [])
    chance = trips.send(SERVER, alone, chance)  # ACK
    chance = trips.send(CLIENT, alone, chance)  # NOPE
    chance = at_reply = carry(SERVER, REPLY, chance, [])
    session = table.now - start
    leave = alone  # the client's ACK, on its way while it begins anew
    if objects.messages[GOODBYE]:
        chance = carry(CLIENT, GOODBYE, chance, leave)
        chance = trips.send(SERVER, alone, chance)
    table.post(CLIENT, objects.control, None, NO_CHANCE)
    table.flush()
    pause = round(objects.scenario.traffic.pause_s * NS)
    if pause:
        trips.wait(table.now + pause)
    return session, table.now - start, at_reply, chance


# ---------------------------------------------------------------------------------------------- with losses


def transaction_of(
    objects: Objects, sender: int, packets: tuple[Form, ...], until: Literal["delivered", "acknowledged"]
) -> Transaction:
    """Return the chain of one object, its times taken from the way."""
    transport, control = objects.scenario.transport, objects.control
    forth, back = (objects.transit_s(direction, objects.alone) for direction in (sender, 1 - sender))
    lost_forth, lost_back = control.losses[sender], control.losses[1 - sender]
    watchdog, worker = transport.centaurus_watchdog_s, objects.worker_ns / NS
    count = len(packets)
    burst = objects.burst_s(sender, packets)
    burst[1:] += objects.held_up_s(burst)
    every = np.arange(count + 1)
    answered = (1.0 - lost_forth) * (1.0 - lost_back)
    usual = (Branch(1.0 - answered, watchdog, False), Branch(answered, forth + back, True))
    first, offer = None, usual
    if transport.centaurus_early_data:
        with_offer = objects.transit_s(sender, objects.train(packets, offer=True), answered=True)
        first = (
            Branch(lost_forth, count * worker + watchdog, False),
            Branch(1.0 - lost_forth, max(0.0, with_offer - burst[-1]), True),
        )
        both = (1.0 - lost_forth) ** 2 * (1.0 - lost_back)
        offer = (Branch(1.0 - both, watchdog, False), Branch(both, forth + back, True))
    return Transaction(
        offer=offer,
        burst_s=tuple(burst),
        answer_s=back,
        hang_s=tuple(every * worker + watchdog),
        data_loss=objects.loss(sender, packets),
        done_loss=lost_forth,
        answer_loss=lost_back,
        until=until,
        repeat=usual,
        first=first,
    )


def _with_losses(objects: Objects) -> tuple[tuple[float, float, float], Law, list[str]]:
    """Return mean and deviation of a session, and the cycle (s), their law, and warnings."""
    request, reply, goodbye = objects.messages
    asking = transaction_of(objects, CLIENT, request, "acknowledged")
    answering = transaction_of(objects, SERVER, reply, "delivered")
    watchdog = objects.scenario.transport.centaurus_watchdog_s
    turn_lost = objects.control.losses[CLIENT]
    turn_s = objects.transit_s(CLIENT, objects.alone)
    # A lost NOPE ends when the server's watchdog does, which began when it sent its ACK.
    late_s = max(0.0, watchdog - asking.answer_s)
    session = mean_time(asking) + (1 - turn_lost) * turn_s + turn_lost * late_s + mean_time(answering)
    cycle = session + objects.scenario.traffic.pause_s
    if goodbye:
        leaving = transaction_of(objects, CLIENT, goodbye, "acknowledged")
        behind = objects.transit_s(CLIENT, [*objects.alone, *objects.alone]) - turn_s
        cycle += mean_time(leaving) + behind
    step = LONGEST[True] * session / POINTS
    turn = Branch(1 - turn_lost, turn_s, True), Branch(turn_lost, late_s, False)
    law = transaction_law((asking, turn, answering), step, POINTS)
    warnings = []
    if max(*asking.burst_s, *answering.burst_s) + asking.answer_s > watchdog:
        warnings.append(
            "the watchdog may end sessions that have not failed: it is shorter than a round takes"
        )
    spread = variance(asking) + turn_lost * (1 - turn_lost) * (late_s - turn_s) ** 2 + variance(answering)
    return (session, spread**0.5, cycle), Law(step, law), warnings
