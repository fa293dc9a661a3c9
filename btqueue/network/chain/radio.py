"""The radio of a chain as a few states with shares of the time, each with the service that it allows.

The states of a radio that alternates follow each other at fixed times, those of a trace as its values do. A
round trip sees the states averaged over the time that it takes (`felt`). Values at which a segment crosses in
packets of the same types, and that differ by at most `ALIKE` in the success of a packet, are one state at the
mean success, so that a long trace stays a few states.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.channel import ber_from_link_quality, link_quality
from btqueue.network.chain.link import HopService, Piece, hop_service
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.errors import Problem
from btqueue.scenario.radio import Radio

ALIKE = 0.1
"""Largest difference in the success of a packet within a state."""
SAMPLES = 64
"""Steps in which a state of an alternating radio is followed."""


class RadioState(NamedTuple):
    """A state: its share of the time, and the service of a hop."""

    share: float
    service: HopService


class RadioCourse(NamedTuple):
    """The states in the order in which they follow each other, and the time between two of them (s)."""

    states: tuple[RadioState, ...]
    order: NDArray[np.int64]
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
    state_of = np.zeros(len(levels), int)
    states = []
    for number, group in enumerate(groups):
        state_of[group] = number
        service = _mean_service([services[level] for level in group], [shares[level] for level in group])
        states.append(RadioState(float(shares[group].sum()), service))
    return RadioCourse(tuple(states), state_of[order], step)


def felt(course: RadioCourse, values: Sequence[float], time: float) -> float:
    """How much of a value's deviation over the states is left when it is averaged over a time (s): 0 to 1.

    The course is taken to repeat itself.
    """
    along = np.asarray(values)[course.order]
    if np.ptp(along) == 0.0:
        return 1.0
    steps = min(len(along), max(1, round(time / course.step)))
    sums = np.cumsum(np.concatenate([[0.0], along, along[: steps - 1]]))
    return float(np.std((sums[steps:] - sums[:-steps]) / steps) / np.std(along))


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


def read_trace(radio: Radio) -> np.ndarray:
    """Return the values of the trace, one a line; what follows a `#` does not count.

    Raises:
        ScenarioError: the file cannot be read, or holds something else.
    """
    path = Path(radio.trace_file or "")
    try:
        values = np.loadtxt(path, comments="#", ndmin=1, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise _refused(path, f"cannot be read: {error}") from None
    most = 0.5 if radio.trace_quantity == "ber" else 255.0
    if values.ndim != 1 or len(values) == 0 or not ((values >= 0) & (values <= most)).all():
        raise _refused(path, f"must hold values from 0 to {most:g}, one a line")
    return values


def _refused(path: Path, why: str) -> ScenarioError:
    return ScenarioError(
        Problem(f"trace file {path} {why}", key="radio.trace_file", value=str(path), allowed="a trace")
    )
