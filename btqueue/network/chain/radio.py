"""The radio of a chain as a few states with shares of the time, each with the service that it allows.

The states of a radio that alternates follow each other at fixed times, those of a trace as its values do.
Values at which a segment crosses in packets of the same types, and that differ by at most `ALIKE` in the
success of a packet, are one state at the mean success, so that a long trace stays a few states. A round trip
goes through the course of the radio at the pace that each value allows (`stretched`).
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.channel import ber_from_link_quality, link_quality
from btqueue.network.chain.link import Hop, hop_of
from btqueue.network.repetition import Train
from btqueue.scenario import Scenario
from btqueue.scenario.radio import Radio
from btqueue.scenario.recordings import read_trace

Vector = NDArray[np.float64]

ALIKE = 0.1
"""Largest difference in the success of a packet within a state."""
SAMPLES = 64
"""Steps in which a state of an alternating radio is followed."""
DISTINCT = 256
"""Round trips that are told apart."""


class Course(NamedTuple):
    """How the states of the radio follow each other; the course repeats itself.

    Attributes:
        hops: the service in each state.
        order: the state in each step.
        slowness: time of a segment in each step, in times of the step's state.
        step: of the course (s).
    """

    hops: tuple[Hop, ...]
    order: NDArray[np.int64]
    slowness: Vector
    step: float

    @property
    def shares(self) -> Vector:
        """Share of the time of each state."""
        return np.bincount(self.order, minlength=len(self.hops)) / len(self.order)


def radio_course(scenario: Scenario) -> Course:
    """Return the states of the radio, which all hops share, the best first, and their course.

    Raises:
        ScenarioError: the trace cannot be read.
    """
    levels, order, step = _levels(scenario.radio)
    shares = np.bincount(order, minlength=len(levels))
    hops = [hop_of(scenario, ber, quality) for ber, quality in levels]
    ranking = sorted(range(len(levels)), key=lambda level: levels[level])
    groups = [list(group) for _, group in groupby(ranking, key=lambda level: _kind(hops[level]))]
    state_of, slowness, states = np.zeros(len(levels), int), np.ones(len(levels)), []
    for number, group in enumerate(groups):
        state_of[group] = number
        states.append(_mean([hops[level] for level in group], shares[group]))
        slowness[group] = [hops[level].time / states[-1].time for level in group]
    return Course(tuple(states), state_of[order], slowness[order], step)


def stretched(
    course: Course, trips: Sequence[tuple[Vector, Vector]], rates: Vector
) -> tuple[NDArray[np.int64], Vector, Vector]:
    """Return round trips where the radio changes on their way: their states, times (s) and weights.

    A round trip that would last w mean round trips of its state lasts until as much has passed: in each step
    of the course the way goes on by the step over the mean round trip that belongs to it. Round trips end
    everywhere in the course, as often as segments are delivered there.

    Args:
        course: of the radio.
        trips: of each state, as if it lasted: times (s) and weights.
        rates: segments a second in each state.
    """
    means = np.array([np.average(times, weights=weights) for times, weights in trips])
    passed = np.concatenate([[0.0], np.cumsum(course.step / (means[course.order] * course.slowness))])
    edges = course.step * np.arange(len(passed))
    ends, middles = (edges[1:] + edges[:-1]) / 2.0, (passed[1:] + passed[:-1]) / 2.0
    found = []
    for number, (times, weights) in enumerate(trips):
        here = course.order == number
        begun = middles[here, None] - times / means[number]
        turns = np.floor(begun / passed[-1])
        begins = np.interp(begun - turns * passed[-1], passed, edges) + turns * edges[-1]
        lasting = (ends[here, None] - begins).ravel()
        often = np.outer(rates[number] / course.slowness[here], weights / weights.sum()).ravel()
        grid = np.linspace(lasting.min(), lasting.max() * (1.0 + 1e-9), DISTINCT // len(trips) + 2)
        total, sums = (np.histogram(lasting, grid, weights=w)[0] for w in (often, often * lasting))
        some = total > 0.0
        found.append((np.full(some.sum(), number), sums[some] / total[some], total[some]))
    state, lasting, often = (np.concatenate(column) for column in zip(*found, strict=True))
    return state, lasting, often


def _kind(hop: Hop) -> tuple:
    """What the services of one state have in common."""
    return tuple(
        tuple((slots, int((1.0 - error) / ALIKE)) for slots, error in train.packets) for train in hop
    )


def _mean(hops: list[Hop], shares: NDArray[np.int64]) -> Hop:
    """The service of the mean success of each packet."""

    def mean(trains: list[Train]) -> Train:
        packets = zip(*(train.packets for train in trains), strict=True)
        return Train(
            tuple(
                (same[0][0], float(np.average([error for _, error in same], weights=shares)))
                for same in packets
            )
        )

    return Hop(mean([hop.data for hop in hops]), mean([hop.ack for hop in hops]))


def _levels(radio: Radio) -> tuple[list[tuple[float, float]], NDArray[np.int64], float]:
    """Levels as bit error rate and link quality, which of them follow each other, and at what step (s)."""
    if radio.model == "trace":
        distinct, order = np.unique(read_trace(radio), return_inverse=True)
        is_ber = radio.trace_quantity == "ber"
        bers = distinct if is_ber else ber_from_link_quality(distinct)
        qualities = link_quality(distinct) if is_ber else distinct
        return list(zip(bers.tolist(), qualities.tolist(), strict=True)), order, radio.trace_step_s
    if radio.model == "alternating":
        levels = [(ber, float(link_quality(ber))) for ber in (radio.ber_good, radio.ber_bad)]
        return levels, np.repeat([0, 1], SAMPLES), radio.period_s / SAMPLES
    ber = radio.ber if radio.model == "constant" else 0.0
    return [(ber, float(link_quality(ber)))], np.zeros(1, int), 1.0
