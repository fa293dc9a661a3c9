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
from btqueue.network.chain.link import HopService, Piece, hop_service
from btqueue.network.chain.quantiles import condensed
from btqueue.scenario import Scenario
from btqueue.scenario.radio import Radio
from btqueue.scenario.recordings import read_trace

Trips = NDArray[np.float64]
"""Round trips: rows of means and deviations (s), and of weights."""

ALIKE = 0.1
"""Largest difference in the success of a packet within a state."""
PHASES, DISTINCT = 48, 512
"""Round trips that are told apart: of a state, and of all."""
SAMPLES = 64
"""Steps in which a state of an alternating radio is followed."""


class RadioState(NamedTuple):
    """A state: its share of the time, and the service of a hop."""

    share: float
    service: HopService


class RadioCourse(NamedTuple):
    """How the states follow each other; the course repeats itself.

    Attributes:
        states: the best first.
        order: the state in each step.
        slowness: time of a segment in each step, in times of the step's state.
        step: of the course (s).
    """

    states: tuple[RadioState, ...]
    order: NDArray[np.int64]
    slowness: NDArray[np.float64]
    step: float


def radio_course(scenario: Scenario) -> RadioCourse:
    """Return the states of the radio, which all hops share, the best first, and their course.

    Raises:
        ScenarioError: the trace cannot be read.
    """
    levels, order, step = _levels(scenario.radio)
    shares = np.bincount(order, minlength=len(levels)) / len(order)
    services = [hop_service(scenario, ber, quality) for ber, quality in levels]
    ranking = sorted(range(len(levels)), key=lambda level: levels[level])
    groups = [list(group) for _, group in groupby(ranking, key=lambda level: _kind(services[level]))]
    state_of, slowness = np.zeros(len(levels), int), np.ones(len(levels))
    states = []
    for number, group in enumerate(groups):
        state_of[group] = number
        service = _mean_service([services[level] for level in group], [shares[level] for level in group])
        states.append(RadioState(float(shares[group].sum()), service))
        slowness[group] = [services[level].segment_slots / service.segment_slots for level in group]
    return RadioCourse(tuple(states), state_of[order], slowness[order], step)


def progress(course: RadioCourse, means: Sequence[float] | NDArray) -> tuple[NDArray, NDArray]:
    """Return how many round trips have passed at the edges of the course's steps, and these times (s).

    Args:
        course: of the radio.
        means: mean round trip in each state (s).
    """
    lasting = np.asarray(means)[course.order] * course.slowness
    passed = np.concatenate([[0.0], np.cumsum(course.step / lasting)])
    return passed, course.step * np.arange(len(passed))


def stretched(course: RadioCourse, trips: Sequence[Trips], rates: Sequence[float]) -> Trips:
    """Return the round trips of all states where the radio changes on their way.

    A round trip that would last w mean round trips of its state lasts until as much has passed: in each step
    of the course the way goes on by the step over the mean round trip that belongs to it. Round trips end
    everywhere in the course, as often as segments are delivered there.

    Args:
        course: of the radio.
        trips: of each state, as if it lasted.
        rates: segments a second in each state.
    """
    if len(trips) == 1 and np.ptp(course.slowness) == 0.0:
        return trips[0]
    means = np.array([np.average(state[0], weights=state[2]) for state in trips])
    passed, edges = progress(course, means)
    ends = (edges[1:] + edges[:-1]) / 2.0
    found = []
    for number, (phases, rate) in enumerate(zip(trips, rates, strict=True)):
        state = condensed(phases, PHASES)
        here = course.order == number
        begun = ((passed[1:] + passed[:-1]) / 2.0)[here, None] - state[0] / means[number]
        turns = np.floor(begun / passed[-1])
        begins = np.interp(begun - turns * passed[-1], passed, edges) + turns * edges[-1]
        lasting = ends[here, None] - begins
        weights = np.outer(rate / course.slowness[here], state[2] / state[2].sum())
        found.append(np.stack([lasting, lasting * (state[1] / state[0]), weights]).reshape(3, -1))
    return condensed(np.concatenate(found, axis=1), DISTINCT)


def _kind(service: HopService) -> tuple:
    """What the services of one state have in common."""
    return tuple(
        tuple((piece.slots, int(piece.success / ALIKE)) for piece in pieces)
        for pieces in (service.data, service.ack)
    )


def _mean_service(services: list[HopService], shares: list[float]) -> HopService:
    """The service of the mean success of each piece."""

    def mean(rows: list[tuple[Piece, ...]]) -> tuple[Piece, ...]:
        return tuple(
            Piece(pieces[0].slots, float(np.average([p.success for p in pieces], weights=shares)))
            for pieces in zip(*rows, strict=True)
        )

    return HopService(mean([s.data for s in services]), mean([s.ack for s in services]))


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
