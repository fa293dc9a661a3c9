"""Follow the futures of stages to the next ones, with a fork wherever a packet may be lost: a compiled loop.

A branch is followed as long as its probability is worth it; below that branches are taken in proportion, one
here and one there, by a rule without chance. What is worth it is decided at nominal losses, of which there
are few, so that the choice does not change with every small change of a scenario: a future has the weight
that it got there, times the ratio of its probabilities (importance sampling).
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.request_reply import (
    ends,
    entries,
    keys,
    polled_hop,
    records,
    stages,
    way,
)
from btqueue.network.request_reply.entries import copy
from btqueue.network.request_reply.keys import LEVELS, write_keys
from btqueue.network.request_reply.records import NONE, REPLY, REQUEST, TIMER
from btqueue.network.request_reply.stages import LOSS, STAGE, begin_stage, open_connection, run, spare
from btqueue.network.request_reply.way import catch, release
from btqueue.transport import request_reply_transfer
from btqueue.transport.compilation import compiled, part, subroutine

SESSIONS_BEFORE = 12
"""Stages without losses before the first one."""

FUTURE = np.dtype(
    [
        *((name, np.int64) for name in ("source", "target", "elapsed", "started", "finished", "connected")),
        *((name, np.int64) for name in ("delays", "history", "timer", "set_at")),
        *((name, np.float64) for name in ("weight", "ratio", "repeated")),
    ]
)
"""One future of a stage: from which state to which, times from its start (ns; NONE: not), what is random
besides losses up to `finished`, whose timer ended it (NONE: none that was set in it) and when that was set;
its probability at nominal losses, times what ratio of probabilities, and mean slots of repeated packets."""

FLOW = np.dtype(
    [
        *((name, np.int64) for name in ("sent_bytes", "resent", "timeouts", "fast_retransmits")),
        *((name, np.int64) for name in ("first", "sampled", "set_after", "based_after")),
        *((name, np.float64) for name in ("late", "based_rto", "based_smoothed", "based_variation")),
    ]
)
"""What happens to a sender in a future, see `SENDER`; its samples begin at place `first` of all samples."""

STATE = np.dtype(
    [
        *((name, np.int64) for name in ("action", "action_flow", "doublings")),
        ("followed", np.bool_),
        ("in_session", np.bool_),
    ]
)
"""A state of the chain: why its stage begins, doublings of both timers, whether its futures are known, and
whether it begins between the request and the end of the reply."""

TIMES = np.dtype([(name, np.float64) for name in ("rto", "smoothed", "variation")])
"""What a sender knows of round trips."""


class Course(NamedTuple):
    """What the sessions are made of, see `Plan`; forms and bytes are [flow, segment of a session]."""

    rules: np.ndarray
    forms: np.ndarray
    user_bytes: np.ndarray
    counts: np.ndarray
    bursts: np.ndarray
    small: int
    request: int
    reply: int
    goodbye: int
    pause: int
    handshake: bool
    lossy: bool


class Found(NamedTuple):
    """What has been found: futures, what happens in them to senders, samples; states, and where to find them.

    Attributes:
        futures, flows: [future], [future, flow].
        samples: round trips of all futures (ns).
        states, times: [state], [state, flow] as it was when the state was found.
        keys: [state, level].
        table: numbers of states by their exact key, NONE where there is none.
    """

    futures: np.ndarray
    flows: np.ndarray
    samples: np.ndarray
    states: np.ndarray
    times: np.ndarray
    keys: np.ndarray
    table: np.ndarray


def nothing_found(states: int, futures: int) -> Found:
    """Return room for so many."""

    def rows(kind: np.dtype, *shape: int) -> np.ndarray:
        return np.zeros(shape, kind).view(np.recarray)

    return Found(
        rows(FUTURE, futures), rows(FLOW, futures, 2), np.zeros(8 * futures),
        rows(STATE, states), rows(TIMES, states, 2), np.zeros((states, LEVELS), np.int64),
        np.full(2 * states + 1, NONE, np.int64),
    )  # fmt: skip


@compiled(ends, entries, keys, polled_hop, records, stages, way, request_reply_transfer)
def follow(net, plan, branches, examples, found, chosen, least):
    """Find all futures of the chosen states; branches rarer than `least` are not followed, [state].

    If there is no state yet, the first one, 0, is made before.
    """
    if net.counters[0].states == 0:
        begin(net, plan, branches, examples, found)
    for i in range(len(chosen)):
        if net.counters[0].too_small == 0:
            follow_one(net, plan, branches, examples, found, chosen[i], least[i])


@part
def begin(net, plan, branches, examples, found):
    """Make the first state: that before the first session, with losses that after some without any.

    What has begun with the first timeout of a connection would be no example of what comes later.
    """
    open_connection(plan, branches, 0)
    for _ in range(SESSIONS_BEFORE if plan.lossy else 0):
        begin_stage(net, plan, branches, 0)
        event = LOSS
        while event != STAGE:
            event = run(net, plan, branches, 0)
            if event != STAGE:
                choose(net, plan, branches, 0, event, 0)
    number_of(net, plan, branches, examples, found, 0)


@part
def follow_one(net, plan, branches, examples, found, chosen, least):
    """Find all futures of a state."""
    copy(examples, chosen, branches, 0)
    branches.odds[0].nominal = branches.odds[0].ratio = 1.0
    begin_stage(net, plan, branches, 0)
    found.states[chosen].followed = True
    open_ends, owed = 1, 0.0
    while open_ends > 0 and net.counters[0].too_small == 0:
        s = open_ends - 1
        event = run(net, plan, branches, s)
        if event == STAGE:
            open_ends -= 1
            keep(net, plan, branches, examples, found, chosen, s)
            continue
        all_of_it, likely = branches.odds[s].nominal, 0
        options, most = 0, 0.0
        while odds_of(net, branches, s, event, options)[0] > 0.0:
            if odds_of(net, branches, s, event, options)[0] > most:
                likely, most = options, odds_of(net, branches, s, event, options)[0]
            options += 1
        taken = likely
        for option in range(options):
            nominal, ratio = odds_of(net, branches, s, event, option)
            share = all_of_it * nominal
            if option == likely:
                continue
            if share > least:
                if open_ends == len(branches.clocks):
                    net.counters[0].too_small = 1
                    return
                # this one goes on with the option, later on, and its copy with what is likely
                copy(branches, s, branches, open_ends)
                branches.odds[open_ends].nominal -= share
                branches.odds[s].nominal = share
                branches.odds[s].ratio *= ratio
                choose(net, plan, branches, s, event, option)
                s, open_ends = open_ends, open_ends + 1
            else:
                owed += share
                if owed >= all_of_it / 2:
                    owed -= all_of_it
                    taken = option
        branches.odds[s].ratio *= odds_of(net, branches, s, event, taken)[1]
        choose(net, plan, branches, s, event, taken)


@part
def odds_of(net, branches, s, event, option):
    """Return the nominal probability of an option, and its probability in nominal ones; 0 behind the last."""
    parcel = branches.current[s]
    if event != LOSS:
        return catch(net, branches.clocks[s], parcel.direction, option)[0], 1.0
    if option > 1:
        return 0.0, 1.0
    actual = net.losses[parcel.form, parcel.direction, parcel.hop]
    nominal = net.nominal[parcel.form, parcel.direction, parcel.hop]
    if option == 0:
        return 1.0 - nominal, (1.0 - actual) / (1.0 - nominal)
    return nominal, actual / nominal


@part
def choose(net, plan, branches, s, event, option):
    """Let a branch go on with an option."""
    if event != LOSS:
        parcel = branches.current[s]
        release(net, branches, s, catch(net, branches.clocks[s], parcel.direction, option)[1])
    elif option == 0:
        spare(net, plan, branches, s)


@part
def keep(net, plan, branches, examples, found, source, s):
    """Keep a future that has reached the next stage."""
    counters, session, odds = net.counters[0], branches.sessions[s], branches.odds[s]
    target = number_of(net, plan, branches, examples, found, s)
    if counters.futures == len(found.futures) or target == NONE:
        counters.too_small = 1
        return
    future = found.futures[counters.futures]
    future.source, future.target, future.elapsed = source, target, branches.clocks[s].now - session.since
    future.started, future.finished, future.connected = session.started, session.finished, session.connected
    future.delays, future.history, future.repeated = session.delays, session.history, session.repeated
    future.weight, future.ratio, future.timer = odds.nominal, odds.ratio, NONE
    for flow in (0, 1):
        sender, own = branches.senders[s, flow], found.flows[counters.futures, flow]
        if session.action == TIMER and session.action_flow == flow and sender.set_after >= 0:
            future.timer, future.set_at = flow, int(sender.set_at) - session.since
        own.sent_bytes, own.late = branches.ends[s, flow].sent_bytes, branches.ends[s, flow].late
        own.resent, own.timeouts = sender.resent, sender.timeouts
        own.fast_retransmits, own.set_after = sender.fast_retransmits, sender.set_after
        own.first, own.sampled, own.based_after = counters.samples, sender.sampled, sender.based_after
        own.based_rto, own.based_smoothed = sender.based_rto, sender.based_smoothed
        own.based_variation = sender.based_variation
        if counters.samples + sender.sampled > len(found.samples) or (
            sender.sampled > branches.samples.shape[2]
        ):
            counters.too_small = 1
            return
        for i in range(sender.sampled):
            found.samples[counters.samples + i] = branches.samples[s, flow, i]
        counters.samples += sender.sampled
    counters.futures += 1


@subroutine
def number_of(net, plan, branches, examples, found, s):
    """Return the number of the state that a moment is in, a new one if it has not been seen; NONE if full."""
    number = net.counters[0].states
    if number == len(found.states):
        return NONE
    write_keys(net, plan, branches, s, found.keys[number])
    place = found.keys[number, 0] % len(found.table)
    while found.table[place] != NONE:
        known = found.table[place]
        if found.keys[known, 0] == found.keys[number, 0]:
            return known
        place = (place + 1) % len(found.table)
    found.table[place] = number
    copy(branches, s, examples, number)
    session, state = branches.sessions[s], found.states[number]
    state.action, state.action_flow, state.followed = session.action, session.action_flow, False
    state.in_session = session.phase == REQUEST or session.phase == REPLY
    state.doublings = 0
    for flow in (0, 1):
        sender, times = branches.senders[s, flow], found.times[number, flow]
        state.doublings += sender.doublings
        times.rto, times.smoothed, times.variation = sender.rto, sender.smoothed, sender.variation
    net.counters[0].states = number + 1
    return number
