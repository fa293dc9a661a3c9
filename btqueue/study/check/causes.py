"""Likely causes of a disagreement: neighbours of the scenario that fit the file's numbers.

Mistakes of simulators are seldom wild. A buffer that counts the packet in service, or does not, is a buffer
of one place more or less; a timer that does not double and a warm-up that was not left out are scenarios,
too. So are keys read in another unit, and defaults of another program. Each such neighbour is simulated. The
report names the neighbours that fit, of each key the best value. Of the keys whose neighbours came nearest,
further values are tried, round values first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import xarray as xr
from scipy.optimize import minimize_scalar

from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.metrics import Results
from btqueue.scenario.topology import topology
from btqueue.scenario.traits import shares_segments
from btqueue.scenario.transport import PRESETS
from btqueue.study.check.agreement import Agreement, asked_quantities, compare_all, reference_samples
from btqueue.study.check.results import ForeignResults

SEARCHED = 3
"""Keys whose value is searched where no neighbour fits; where one does, the nearest alone."""
STEPS = 6
"""Simulations of a search between round values."""
TWENTIETHS = (20, 22, 24, 25, 26, 28, 30, 32, 35, 36, 40, 50, 60, 70, 80, 90, 100, 120, 140, 150, 160, 180)
ROUND = tuple(number / 20 for number in TWENTIETHS)
ROUNDER = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
"""Leading digits of round numbers, and of the roundest."""
MOST_ROUND = 10
"""Most round values to try; if there are more, only the roundest."""
NO_SCALE = 20.0
"""Share of the misfit where nothing at all may differ and something does."""
SEVERAL = (0.5, 0.9, 1.1, 2.0)
LONGEST_WINDOW = 65_535
"""Bytes that a window has without scaling (RFC 9293)."""
OFF_BY_ONE = "an off-by-one, such as counting the packet in service"


@dataclass(frozen=True)
class Cause:
    """A changed scenario whose simulation fits the file.

    Attributes:
        changes: keys and values; of the first outside link as `network.outside_links[1].buffer_packets`.
        sentence: the mistake that it stands for.
        misfit: distance of its simulation from the file (`misfit`).
    """

    changes: Mapping[str, Any]
    sentence: str
    misfit: float


@dataclass(frozen=True)
class Neighbour:
    """A change of the scenario that stands for a usual mistake; `judged` once it was simulated."""

    changes: Mapping[str, Any]
    meaning: str
    judged: tuple[Agreement, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether no metric differs from its simulation."""
        return all(one.verdict != "differs" for one in self.judged)


def neighbours(scenario: Scenario, results: ForeignResults) -> Iterator[Neighbour]:
    """Yield the changes to try, each of one key, none twice."""
    tried = set()
    for key, values, meaning in _ladders(scenario, results):
        own = scenario.value_of(key)
        for value in values:
            if value != own and (key, value) not in tried:
                tried.add((key, value))
                yield Neighbour({key: value}, meaning)


def _ladders(scenario: Scenario, results: ForeignResults) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """Yield keys with the values that usual mistakes give them."""
    flow = scenario.flow_control
    if flow.enabled:
        yield (
            "flow_control.buffer_packets",
            _one_off(flow.buffer_packets),
            f"{OFF_BY_ONE}, at the token buffer S",
        )
        yield "flow_control.buffer_packets", _times(flow.buffer_packets), "another size of the token buffer S"
        yield "flow_control.token_rate_kbps", _times(flow.token_rate_kbps), "another token rate"
    if flow.baseband_packets is not None:
        key = "flow_control.baseband_packets"
        yield key, _one_off(flow.baseband_packets), f"{OFF_BY_ONE}, at the baseband queue L"
        yield key, _times(flow.baseband_packets), "another size of the baseband queue L"
    if scenario.polling.discipline == "e-limited":
        yield "polling.limit", _one_off(scenario.polling.limit), "an off-by-one in the polling limit M"
    yield from _outside(scenario)
    if scenario.transport.protocol == "tcp":
        yield from _of_tcp(scenario)
    if scenario.radio.model == "constant" and scenario.radio.per is None:
        yield (
            "radio.ber",
            tuple(scenario.radio.ber * x for x in (0.1, 0.2, *SEVERAL, 5.0, 10.0)),
            "another bit error rate",
        )
    if scenario.radio.model != "perfect":
        yield "radio.model", ("perfect",), "the radio makes no errors"
    if scenario.traffic.source not in ("greedy", "file"):
        yield "traffic.load_kbps", _times(scenario.traffic.load_kbps), "another load"
    if not results.measured_from_start and scenario.run.warmup_s != 0:
        yield "run.warmup_s", (0.0,), "the warm-up was not left out"


def _of_tcp(scenario: Scenario) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    transport = scenario.transport
    yield "transport.rto_backoff", (False, True), "the retransmission timer does not double"
    yield "transport.min_rto_s", (0.2, 1.0), "another least timeout: 0.2 s in Linux, 1 s in RFC 6298"
    yield "transport.initial_rto_s", (1.0, 3.0), "another first timeout: 1 s in RFC 6298, 3 s before it"
    delayed = "acknowledgements are delayed in one of the two and not in the other"
    yield "transport.delayed_ack", (not transport.delayed_ack,), delayed
    if transport.delayed_ack:
        yield "transport.ack_delay_s", (0.04, 0.1, 0.2, 0.5), "acknowledgements wait for another time"
    window = transport.receive_window_segments
    yield "transport.receive_window_segments", _one_off(window), "an off-by-one in the receive window"
    wide = (*_times(window), LONGEST_WINDOW // transport.mss_bytes)
    yield "transport.receive_window_segments", wide, "another receive window"
    initial = "another initial window: 1 in RFC 5681, 2 to 4 in RFC 3390, 10 in RFC 6928"
    yield "transport.initial_window_segments", (1, 2, 3, 4, 10), initial
    yield "transport.mss_bytes", (536, 1000, 1448, 1460), "another MSS"
    senders = ("tahoe", "reno", "newreno", "sack", "cubic")
    yield "transport.variant", senders, "another kind of TCP sender"
    yield "transport.preset", tuple(PRESETS), "another TCP: all keys of the preset"
    yield "transport.sack", (not transport.sack,), "selective acknowledgements in one of the two alone"
    yield "transport.handshake", (not transport.handshake,), "connections that open with a SYN in one alone"
    if any(shares_segments(scenario.of_flow(flow.spec)) for flow in topology(scenario).flows):
        nagle = tuple({True, False, "minshall"} - {transport.nagle})
        yield "transport.nagle", nagle, "another rule for segments that are not full (Nagle's algorithm)"
        yield "transport.windows", ("segments",), "windows that count segments, not bytes"
    for name in ("tcp_delay_s", "ip_delay_s"):
        if delay := getattr(transport, name):
            yield f"transport.{name}", (0.0, *_times(delay)), "another processing time"


def _outside(scenario: Scenario) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    for number, link in enumerate(scenario.network.outside_links, 1):
        key = f"network.outside_links[{number}]"
        where = f"of the link {link.name}"
        yield f"{key}.buffer_packets", _one_off(link.buffer_packets), f"{OFF_BY_ONE}, at the buffer {where}"
        yield f"{key}.buffer_packets", _times(link.buffer_packets), f"another buffer {where}"
        yield f"{key}.rate_kbps", _times(link.rate_kbps), f"another rate {where}"
        if link.delay_s:
            ways = "such as the round-trip delay in place of the one-way delay"
            yield f"{key}.delay_s", _times(link.delay_s), f"another delay {where}, {ways}"
        if link.loss:
            yield f"{key}.loss", (0.0, *_times(link.loss)), f"another loss {where}"


def _one_off(value: int) -> tuple[int, ...]:
    return (value - 1, value + 1)


def _times(value: Any) -> tuple[Any, ...]:
    """Return multiples of a number, whole ones of a whole number."""
    found = (value * factor for factor in SEVERAL)
    return tuple(dict.fromkeys(round(x) if isinstance(value, int) else float(f"{x:.6g}") for x in found))


def likely_causes(
    scenario: Scenario,
    results: ForeignResults,
    simulate: Callable[[Scenario], Results | xr.Dataset],
    own: tuple[Agreement, ...],
    *,
    confidence: float,
    seconds: float,
) -> tuple[tuple[Cause, ...], int]:
    """Return the neighbours that fit, the best one first, and how many were tried.

    A neighbour fits if no metric differs from its simulation, judged as the scenario itself was.

    Args:
        scenario: as it was simulated.
        results: read from the file.
        simulate: the simulator.
        own: the file beside the simulation of the scenario itself.
        confidence: as for the scenario.
        seconds: simulated time of one run.
    """
    tried: list[Neighbour] = []

    def judge(neighbour: Neighbour) -> Neighbour | None:
        try:
            changed = scenario.changed(neighbour.changes)
        except ScenarioError:  # a limit of 0, for instance
            return None
        samples = reference_samples(simulate(changed), results.flow, asked_quantities(results, scenario))
        judged = compare_all(
            results, samples, {}, confidence=confidence, runs=scenario.run.replications, seconds=seconds
        )
        tried.append(replace(neighbour, judged=judged))
        return tried[-1]

    for neighbour in neighbours(scenario, results):
        judge(neighbour)
    found_one = any(one.fits and misfit(one.judged, own) < misfit(own, own) for one in tried)
    _search(scenario, list(tried), judge, own, keys=1 if found_one else SEARCHED)
    found: dict[tuple[str, ...], Cause] = {}
    for one in sorted(tried, key=lambda one: misfit(one.judged, own)):
        if one.fits:
            cause = Cause(one.changes, _sentence(scenario, one), misfit(one.judged, own))
            found.setdefault(tuple(cause.changes), cause)
    return tuple(found.values()), len(tried)


def _search(
    scenario: Scenario,
    tried: list[Neighbour],
    judge: Callable[[Neighbour], Neighbour | None],
    agreements: tuple[Agreement, ...],
    *,
    keys: int,
) -> None:
    """Search the values of the *keys* keys that came nearest, between the neighbours of the best value.

    Round values first; then on a scale of logarithms by Brent's method, where neighbours of the best round
    value are known. Counts are rounded, and no value is simulated twice.
    """
    of_key: dict[str, dict[float, float]] = defaultdict(dict)
    meanings: dict[str, str] = {}
    for one in tried:
        ((key, value),) = one.changes.items()
        numbers = [value, scenario.value_of(key)]
        if all(isinstance(x, int | float) and not isinstance(x, bool) and x > 0 for x in numbers):
            of_key[key][value] = misfit(one.judged, agreements)
            meanings[key] = one.meaning
    for key, known in sorted(of_key.items(), key=lambda item: min(item[1].values()))[:keys]:
        own = scenario.value_of(key)

        def far(value: float, key: str = key, known: dict[float, float] = known, own: float = own) -> float:
            value = round(value) if isinstance(own, int) else float(f"{value:.3g}")
            if value == own:
                return math.inf
            if value not in known:
                one = judge(Neighbour({key: value}, meanings[key]))
                known[value] = math.inf if one is None else misfit(one.judged, agreements)
            return known[value]

        for value in _round_values(*_around(known, own)):
            far(value)
        low, high = (math.log(x) for x in _around(known, own))
        if high > low:
            minimize_scalar(
                lambda x, far=far: far(math.exp(x)),
                bounds=(low, high),
                method="bounded",
                options={"maxiter": STEPS},
            )


def _around(known: Mapping[float, float], own: float) -> tuple[float, float]:
    """Return the values next to the best one, one of them the scenario's, or half and twice the best one."""
    best = min(known, key=known.__getitem__)
    values = sorted({own, *known})
    place = values.index(best)
    low = values[place - 1] if place else best / 2
    return low, values[place + 1] if place + 1 < len(values) else best * 2


def _round_values(low: float, high: float) -> list[float]:
    """Return the round values between two numbers."""
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    every, fewer = (
        [x * 10.0**decade for decade in decades for x in beginnings if low < x * 10.0**decade < high]
        for beginnings in (ROUND, ROUNDER)
    )
    return every if len(every) <= MOST_ROUND else fewer


def misfit(judged: tuple[Agreement, ...], scenarios: tuple[Agreement, ...]) -> float:
    """Return how far a simulation is from the file: the sum over metrics of ln(1 + z^2).

    z is the difference over a width: the half-width of the file's interval (of the scenario's if the file has
    none) and the negligible difference. Unlike p-values it ranks simulations that are all far away, and a
    neighbour does not fit merely because its replications scatter widely.

    Args:
        judged: the file beside the simulation.
        scenarios: the file beside the simulation of the scenario itself.
    """
    widths = {one.metric: one.simulation_ci95 for one in scenarios}
    total = 0.0
    for one in judged:
        if math.isnan(one.simulation):
            continue
        width = one.theirs_ci95 if math.isfinite(one.theirs_ci95) else widths.get(one.metric, math.nan)
        scale = math.hypot(width if math.isfinite(width) else 0.0, one.limit)
        gap = abs(one.theirs - one.simulation)
        total += math.log1p((gap / scale) ** 2) if scale > 0 else (NO_SCALE if gap else 0.0)
    return total


def _sentence(scenario: Scenario, neighbour: Neighbour) -> str:
    parts = [
        f"{key} = {_shown(value)} (the scenario has {_shown(scenario.value_of(key))})"
        for key, value in neighbour.changes.items()
    ]
    return f"their numbers fit {' and '.join(parts)}: {neighbour.meaning}"


def _shown(value: object) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
