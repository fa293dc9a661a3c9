"""Request-reply sessions over CentaurusComm: eight one-way trips, and what losses add.

Client and server are peers (no master polls): OBJ, PROCEED, data and DONE, ACK carry the request, NOPE hands
the turn to the server, and OBJ, PROCEED, data and DONE carry the reply; then the client takes leave with a
session of its own. Without losses the trips are played one after the other on the timetable of the way.
With losses each object is an absorbing chain (`transport.centaurus_transaction`) whose times come from there.

Approximations: that the server
offers its reply once more if the client's ACK of it was lost falls into the pause; a lost packet of a message
is one of mean size.
"""

from typing import Literal

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.law import Law, add_at, metrics_of, with_chance
from btqueue.network.request_reply.path import NS
from btqueue.network.request_reply.polled_hop import history_of
from btqueue.network.request_reply.route import FREE, Chain, Form
from btqueue.network.request_reply.trains import (
    AT_FIRST,
    Objects,
    Timetable,
    Train,
    held_up_s,
    objects_of,
    transit_s,
)
from btqueue.scenario import Scenario
from btqueue.transport.centaurus_transaction import (
    Branch,
    Transaction,
    mean_time,
    transaction_law,
)

POINTS = 4096
"""Points of the lattice of the law."""

LONGEST = {True: 10.0, False: 3.0}
"""Up to how many times the mean the law goes, with losses and without."""

SETTLED = 4
"""Sessions in a row of equal length that make a cycle without losses; slots can make it longer."""

MOST_SESSIONS = 100
LONG_JITTER_S = 0.02
"""Processing delay from which on the packets of a train noticeably hold each other up."""
TIMED = tuple(np.linspace(0.0, 1.0, 17))
"""Sizes of trains, as shares of a message, of which the times are computed; others lie between them."""

CLIENT, SERVER = 0, 1
REQUEST, REPLY, GOODBYE = range(3)


def answer_centaurus(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    objects = objects_of(scenario)
    losses = [loss(objects.control, d) for d in (CLIENT, SERVER)]
    losses += [loss(form, d) for message in objects.messages for form in message for d in (CLIENT, SERVER)]
    if max(losses) >= 1.0:
        raise NoConvergence("no packet gets through: sessions never end")
    if any(losses):
        times, law, warnings = _with_losses(scenario, objects)
        lost = [_mean_loss(objects.messages[REQUEST], CLIENT), _mean_loss(objects.messages[REPLY], SERVER)]
        method = "absorbing chain of each object"
    else:
        times, law = _without_losses(scenario, objects)
        lost, warnings, method = [0.0, 0.0], [], "one-way trips, exact"
    session_s, cycle_s = times
    if objects.net.polled != FREE and scenario.run.jitter_s > LONG_JITTER_S:
        warnings = [
            *warnings,
            f"run.jitter_s = {scenario.run.jitter_s:g}: packets of an object hold each other up behind their "
            "processing delays, which is left out on a Bluetooth hop; goodput comes out 3 % high at 0.01 s, "
            "11 % at 0.05 s and 15 % at 0.2 s",
        ]
    traffic = scenario.traffic
    sizes = np.array([traffic.request_bytes + traffic.goodbye_bytes, traffic.reply_bytes])
    goodput = sizes * 8 / 1000 / cycle_s
    metrics = {name: np.array([value, np.nan]) for name, value in metrics_of(law, session_s).items()}
    metrics |= {
        "sessions_per_s": np.array([1.0 / cycle_s, np.nan]),
        "sessions_lost": np.array([0.0, np.nan]),
        "goodput_kbps": goodput,
        "throughput_kbps": goodput / (1.0 - np.array(lost)),
        "segment_loss": np.array(lost),
    }
    return metrics, {
        "method": f"request-reply sessions over CentaurusComm: {method}",
        "converged": True,
        "residual": float(max(0.0, 1.0 - law.probabilities.sum())),
        "iterations": 1,
        "warnings": warnings,
    }


def loss(form: Form, direction: int) -> float:
    """Return the probability that a segment is lost somewhere on its way."""
    return 1.0 - float(np.prod([1.0 - p for p in form.losses[direction]]))


def _mean_loss(packets: tuple[Form, ...], direction: int) -> float:
    return float(np.mean([loss(form, direction) for form in packets]))


# ------------------------------------------------------------------------------------------- without losses


def _without_losses(scenario: Scenario, objects: Objects) -> tuple[tuple[float, float], Law]:
    """Play sessions until their lengths repeat; return (session, cycle) in s and the law of the session."""
    table = Timetable(objects)
    cycles: list[tuple[int, int, float, Chain]] = []
    pause = round(scenario.traffic.pause_s * NS)
    early = scenario.transport.centaurus_early_data
    while len(cycles) < MOST_SESSIONS and not _settled(cycles):
        cycles.append(_play_session(objects, table, early, pause))
    period = cycles[-SETTLED:]
    lengths = np.array([cycle[:3] for cycle in period], float).mean(axis=0)
    session, cycle = float(lengths[0]) / NS, float(lengths[1]) / NS + float(lengths[2]) * SLOT_S
    chain = period[-1][3]
    step = LONGEST[False] * session / POINTS
    law = np.zeros(POINTS)
    add_at(law, np.eye(1, POINTS)[0], session / step)
    law = with_chance(law, chain, step, scenario.run.jitter_s, SLOT_S)
    return (session + chain.repeated_slots * SLOT_S, cycle), Law(step, law)


def _settled(cycles: list) -> bool:
    lengths = [cycle[:2] for cycle in cycles[-SETTLED:]]
    return len(cycles) > SETTLED and len(set(lengths)) == 1


def _play_session(
    objects: Objects, table: Timetable, early: bool, pause: int
) -> tuple[int, int, float, Chain]:
    """Play one session; return its length and that until the next (ns), repeated slots, and its chain."""
    start, path = table.now, AT_FIRST
    alone = objects.alone
    for direction, message in ((CLIENT, REQUEST), (SERVER, REPLY)):
        path = _carry(objects, table, direction, objects.messages[message], early, path)
        if message == REQUEST:
            path = table.send(SERVER, alone, path)  # ACK
            path = table.send(CLIENT, alone, path)  # NOPE
    session, at_reply = table.now - start, path
    leave: Train = alone  # the client's ACK, on its way while it begins anew
    if objects.messages[GOODBYE]:
        path = _carry(objects, table, CLIENT, objects.messages[GOODBYE], early, path, leave)
        path = table.send(SERVER, alone, path)
    table.hand(CLIENT, leave)
    table.wait(table.now + pause)
    return session, table.now - start, _chain(objects, path).repeated_slots, _chain(objects, at_reply)


def _chain(objects: Objects, path: np.ndarray) -> Chain:
    return Chain(int(path[0]), history_of(objects.net, int(path[1])))


def _carry(
    objects: Objects, table: Timetable, direction: int, packets: tuple[Form, ...], early: bool,
    path: np.ndarray, ahead: Train | None = None,
) -> np.ndarray:  # fmt: skip
    """Offer an object and send it; `ahead` goes in front of the offer."""
    front = ahead or []
    train = objects.train(packets, offer=early)
    if not early:
        path = table.send(direction, [*front, *objects.alone], path)
        path = table.send(1 - direction, objects.alone, path)
        front = []
    table.wait(table.now + round(held_up_s(objects, direction, train) * NS))
    return table.send(direction, [*front, *train], path, answered=early)


# ---------------------------------------------------------------------------------------------- with losses


def transaction_of(
    scenario: Scenario, objects: Objects, sender: int, packets: tuple[Form, ...],
    until: Literal["delivered", "acknowledged"],
) -> Transaction:  # fmt: skip
    """Return the chain of one object, its times taken from the way."""
    transport, control = scenario.transport, objects.control
    forth, back = (transit_s(objects, d, objects.alone) for d in (sender, 1 - sender))
    lost_forth, lost_back = loss(control, sender), loss(control, 1 - sender)
    watchdog, worker = transport.centaurus_watchdog_s, objects.worker_ns / NS
    count = len(packets)
    sizes = sorted({min(2, count), *(round(share * count) for share in TIMED)})
    # the packets of a later round are any; those of the first are all
    burst = [transit_s(objects, sender, objects.train(packets[:size])) for size in sizes]
    every = np.arange(count + 1)
    answered = (1.0 - lost_forth) * (1.0 - lost_back)
    usual = (Branch(1.0 - answered, watchdog, False), Branch(answered, forth + back, True))
    first, offer = None, usual
    if transport.centaurus_early_data:
        with_offer = transit_s(objects, sender, objects.train(packets, offer=True), answered=True)
        first = (
            Branch(lost_forth, count * worker + watchdog, False),
            Branch(1.0 - lost_forth, max(0.0, with_offer - burst[-1]), True),
        )
        both = (1.0 - lost_forth) ** 2 * (1.0 - lost_back)
        offer = (Branch(1.0 - both, watchdog, False), Branch(both, forth + back, True))
    return Transaction(
        offer=offer,
        burst_s=tuple(np.interp(every, sizes, burst)),
        answer_s=back,
        hang_s=tuple(every * worker + watchdog),
        data_loss=_mean_loss(packets, sender),
        done_loss=lost_forth,
        answer_loss=lost_back,
        until=until,
        repeat=usual,
        first=first,
    )


def _with_losses(scenario: Scenario, objects: Objects) -> tuple[tuple[float, float], Law, list[str]]:
    """Return (session, cycle) in s, the law of the session, and warnings."""
    request, reply, goodbye = objects.messages
    asking = transaction_of(scenario, objects, CLIENT, request, "acknowledged")
    answering = transaction_of(scenario, objects, SERVER, reply, "delivered")
    watchdog = scenario.transport.centaurus_watchdog_s
    turn_lost = loss(objects.control, CLIENT)
    turn_s = transit_s(objects, CLIENT, objects.alone)
    # A lost NOPE ends when the server's watchdog does, which began when it sent its ACK.
    late_s = max(0.0, watchdog - asking.answer_s)
    session = mean_time(asking) + (1 - turn_lost) * turn_s + turn_lost * late_s + mean_time(answering)
    cycle = session + scenario.traffic.pause_s
    if goodbye:
        leaving = transaction_of(scenario, objects, CLIENT, goodbye, "acknowledged")
        behind = transit_s(objects, CLIENT, [*objects.alone, *objects.alone]) - turn_s
        cycle += mean_time(leaving) + behind
    step = LONGEST[True] * session / POINTS
    asked, answered = (transaction_law(part, step, POINTS) for part in (asking, answering))
    both = np.convolve(asked, answered)[:POINTS]
    law = np.zeros(POINTS)
    add_at(law, (1 - turn_lost) * both, turn_s / step)
    add_at(law, turn_lost * both, late_s / step)
    warnings = []
    if max(*asking.burst_s, *answering.burst_s) + asking.answer_s > watchdog:
        warnings.append(
            "the watchdog may end sessions that have not failed: it is shorter than a round takes"
        )
    return (session, cycle), Law(step, law), warnings
