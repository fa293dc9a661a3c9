"""The chain of stages in the long run: visits of its states, and what each knows of round trips in the mean.

A state that has not been followed is replaced by one like it. Estimates of round trips are linear in what was
known before, but for an absolute value and two bounds, and the timeout decides how long a stage lasts but
hardly what comes next: so the mean timeout of each state, over all ways into it, gives the mean times.
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.request_reply import exploration
from btqueue.network.request_reply.records import NONE, TIMER
from btqueue.transport import request_reply_transfer
from btqueue.transport.compilation import compiled, part
from btqueue.transport.request_reply_transfer import estimated

RELIABLE = 0.5
"""Share of a stage's futures that must lead to stages followed, before it stands in for others."""

DAMPING = 0.1
"""Part of the old visits that a sweep keeps; else what it finds in a cycle may turn round and round."""

SURE = 1.0 - 1e-12
"""Probability from which on a state leads to itself only."""


class Arrivals(NamedTuple):
    """Futures in the order of their targets, so that those into a state can be gone through.

    Attributes:
        sources, targets: states, those that are not followed replaced.
        order: futures in the order of their targets; those into a state begin at its place in `starts`.
    """

    sources: np.ndarray
    targets: np.ndarray
    order: np.ndarray
    starts: np.ndarray


def arrivals(sources: np.ndarray, targets: np.ndarray, states: int) -> Arrivals:
    """Return the futures in the order of their targets."""
    order = np.argsort(targets, kind="stable")
    return Arrivals(sources, targets, order, np.searchsorted(targets[order], np.arange(states + 1)))


def substitutes(keys: np.ndarray, followed: np.ndarray, closed: np.ndarray) -> np.ndarray:
    """Return which state goes on for each: itself if it has been followed, else the first one most like it.

    That is one which agrees in the most exact key possible; at worst the very first one.

    Args:
        keys: ``(states, levels)``, the most exact one first.
        followed: whether the futures of a state are known.
        closed: what part of them leads to states followed; it must be `RELIABLE` of one that stands in.
    """
    found = np.where(followed, np.arange(len(keys)), NONE)
    candidates = np.flatnonzero(followed & (closed >= RELIABLE))
    for level in range(1, keys.shape[1]):
        left = np.flatnonzero(found == NONE)
        known, first = np.unique(keys[candidates, level], return_index=True)
        if not len(left) or not len(known):
            break
        place = np.minimum(np.searchsorted(known, keys[left, level]), len(known) - 1)
        agree = known[place] == keys[left, level]
        found[left[agree]] = candidates[first[place[agree]]]
    return np.maximum(found, 0)


@compiled()
def visit(arriving, likely, visits, most, enough, sweeps):
    """Find the visits of states in the long run by sweeps of Gauss and Seidel.

    Args:
        arriving: `Arrivals`.
        likely: probability of each future.
        visits: a guess, and the answer; they add up to 1.
        most: sweeps at most.
        enough: change of all visits together at which to stop.
        sweeps: receives how many there were.
    """
    states = len(visits)
    while sweeps[0] < most:
        change, total = 0.0, 0.0
        for i in range(states):
            j = i if sweeps[0] % 2 == 0 else states - 1 - i
            into, kept = 0.0, 0.0
            for place in range(arriving.starts[j], arriving.starts[j + 1]):
                f = arriving.order[place]
                if arriving.sources[f] == j:
                    kept += likely[f]
                else:
                    into += visits[arriving.sources[f]] * likely[f]
            new = into / (1.0 - kept) if kept < SURE else visits[j] + into
            new += DAMPING * (visits[j] - new)
            change += abs(new - visits[j])
            visits[j] = new
            total += new
        for j in range(states):
            visits[j] /= total
        sweeps[0] += 1
        if change <= enough:
            return


@compiled(exploration, request_reply_transfer)
def estimate(rules, found, arriving, shares, times, most, enough):
    """Find what each state knows of round trips, in the mean over all ways into it.

    Args:
        rules: of the connection, `RULES`.
        found: states and futures, `Found`.
        arriving: `Arrivals`.
        shares: how often each future happens.
        times: `TIMES` of each state and sender: a guess, and the answer.
        most: sweeps at most.
        enough: relative change, of all states together, at which to stop.
    """
    for _ in range(most):
        change = 0.0
        for j in range(len(times)):
            for flow in (0, 1):
                weight, rto, smoothed, variation = 0.0, 0.0, 0.0, 0.0
                for place in range(arriving.starts[j], arriving.starts[j + 1]):
                    f = arriving.order[place]
                    if shares[f] > 0.0:
                        after = known_after(rules[0], found, times, f, flow, NONE)
                        weight += shares[f]
                        rto += shares[f] * after[0]
                        smoothed += shares[f] * after[1]
                        variation += shares[f] * after[2]
                if weight > 0.0:
                    own = times[j, flow]
                    change += abs(rto / own.rto - weight)
                    own.rto, own.smoothed, own.variation = rto / weight, smoothed / weight, variation / weight
        if change <= enough:
            return


@part
def known_after(rules, found, times, f, flow, count):
    """Return timeout, mean and deviation of round trips of a sender after so many samples of a future."""
    future, own = found.futures[f], found.flows[f, flow]
    state, before = found.states[future.source], times[future.source, flow]
    rto, smoothed, variation, first = before.rto, before.smoothed, before.variation, 0
    if state.action == TIMER and state.action_flow == flow and rules.backoff:
        rto = min(2.0 * rto, rules.max_rto)
    if count == NONE:
        count = own.sampled
    if own.based_after != NONE and own.based_after <= count:
        rto, smoothed, variation = own.based_rto, own.based_smoothed, own.based_variation
        first = own.based_after
    for i in range(own.first + first, own.first + count):
        rto, smoothed, variation = estimated(rules, rto, smoothed, variation, found.samples[i])
    return rto, smoothed, variation


@compiled(exploration, request_reply_transfer)
def last(rules, found, times, elapsed):
    """Write how long each future lasts (ns): those that a timer ends, until it is due in the mean."""
    for f in range(len(elapsed)):
        future = found.futures[f]
        elapsed[f] = future.elapsed
        if future.timer != NONE:
            own = found.flows[f, future.timer]
            rto = known_after(rules[0], found, times, f, future.timer, own.set_after)[0]
            elapsed[f] = future.set_at + rto + 1.0
