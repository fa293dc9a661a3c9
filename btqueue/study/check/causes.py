"""Likely causes of a disagreement: neighbours of the scenario that fit the file's numbers.

Mistakes of simulators are seldom wild. A buffer that counts the packet in service, or does not, is a buffer
of one place more or less; a timer that does not double and a warm-up that was not left out are scenarios,
too. Each is simulated, and those that fit are reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from btqueue.scenario import Scenario, ScenarioError
from btqueue.study.check.agreement import Agreement, compare_all, reference_samples
from btqueue.study.check.results import ForeignResults

LEAST_P = 1e-12
"""p-values below this count alike when neighbours are ranked."""


@dataclass(frozen=True)
class Cause:
    """A changed scenario whose simulation fits the file.

    Attributes:
        changes: keys and values.
        sentence: what it would mean.
        misfit: sum of -ln p over the metrics; smaller fits better.
    """

    changes: Mapping[str, Any]
    sentence: str
    misfit: float


@dataclass(frozen=True)
class Neighbour:
    """A change of the scenario that a usual mistake amounts to."""

    changes: Mapping[str, Any]
    meaning: str


def neighbours(scenario: Scenario, results: ForeignResults) -> Iterator[Neighbour]:
    """Yield the changes to try."""
    flow, transport = scenario.flow_control, scenario.transport
    one_off = "an off-by-one, such as counting the packet in service"
    if flow.enabled:
        for step in (-1, 1):
            yield Neighbour(
                {"flow_control.buffer_packets": flow.buffer_packets + step},
                f"{one_off}, at the token buffer S",
            )
    for step in (-1, 1):
        yield Neighbour(
            {"flow_control.baseband_packets": flow.baseband_packets + step},
            f"{one_off}, at the baseband queue L",
        )
    if scenario.polling.discipline == "e-limited":
        for step in (-1, 1):
            yield Neighbour(
                {"polling.limit": scenario.polling.limit + step}, "an off-by-one in the polling limit M"
            )
    if transport.protocol == "tcp":
        if transport.rto_backoff:
            yield Neighbour({"transport.rto_backoff": False}, "the retransmission timer does not double")
        if transport.min_rto_s > 0.2:
            yield Neighbour({"transport.min_rto_s": 0.2}, "a least timeout of 0.2 s, as in Linux")
        yield Neighbour(
            {"transport.delayed_ack": not transport.delayed_ack},
            "acknowledgements are delayed in one of the two and not in the other",
        )
        window = transport.receive_window_segments
        for step in (-1, 1):
            yield Neighbour(
                {"transport.receive_window_segments": window + step}, "an off-by-one in the receive window"
            )
    if not results.measured_from_start and scenario.run.warmup_s != 0:
        yield Neighbour({"run.warmup_s": 0.0}, "the warm-up was not left out")


def likely_causes(
    scenario: Scenario,
    results: ForeignResults,
    simulate: Callable[[Scenario], xr.Dataset],
    *,
    confidence: float,
    seconds: float,
) -> tuple[tuple[Cause, ...], int]:
    """Return the neighbours that fit, the best one first, and how many were tried.

    A neighbour fits if no metric differs from its simulation, judged as the scenario itself was.

    Args:
        scenario: as it was simulated.
        results: what the file says.
        simulate: the simulator.
        confidence: as for the scenario.
        seconds: simulated time of one run.
    """
    found, tried = [], 0
    for neighbour in neighbours(scenario, results):
        try:
            changed = scenario.changed(neighbour.changes)
        except ScenarioError:  # a limit of 0, for instance
            continue
        tried += 1
        samples = reference_samples(simulate(changed), results.flow)
        judged = compare_all(
            results, samples, {}, confidence=confidence, runs=scenario.run.replications, seconds=seconds
        )
        if all(one.verdict != "differs" for one in judged):
            found.append(Cause(neighbour.changes, _sentence(scenario, neighbour), misfit(judged)))
    return tuple(sorted(found, key=lambda cause: cause.misfit)), tried


def misfit(judged: tuple[Agreement, ...]) -> float:
    """Return the sum of -ln p over the metrics that were compared."""
    return sum(-math.log(max(one.p_value, LEAST_P)) for one in judged if not math.isnan(one.p_value))


def _sentence(scenario: Scenario, neighbour: Neighbour) -> str:
    tables = scenario.to_dict()
    parts = []
    for key, value in neighbour.changes.items():
        table, _, name = key.partition(".")
        parts.append(f"{key} = {_shown(value)} (the scenario has {_shown(tables[table][name])})")
    return f"their numbers fit {' and '.join(parts)}: {neighbour.meaning}"


def _shown(value: object) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
