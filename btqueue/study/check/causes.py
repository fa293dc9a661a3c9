"""Likely causes of a disagreement: neighbours of the scenario that fit the file's numbers.

Mistakes of simulators are seldom wild. A buffer that counts the packet in service, or does not, is a buffer
of one place more or less; a timer that does not double and a warm-up that was not left out are scenarios,
too. So are keys read in another unit, and defaults of another program. Each of these neighbours is simulated.
The report names the neighbours that fit, of each key the best value; among values that fit equally the usual
one comes first. Of the keys whose neighbours came nearest, further values are tried, round values first.
Where none fits, the neighbour that explains most is named, and the metrics that remain.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import xarray as xr
from scipy.optimize import minimize_scalar

from btqueue.baseband.low_energy import PhyName
from btqueue.network.bounds import on_air
from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError
from btqueue.scenario.low_energy import CONTROLLERS
from btqueue.scenario.metrics import Results
from btqueue.scenario.topology import topology
from btqueue.scenario.traits import shares_segments
from btqueue.scenario.transport import PRESETS
from btqueue.study.check.agreement import (
    Agreement,
    Rules,
    asked_quantities,
    compare_all,
    compared_metrics,
    model_values,
    reference_samples,
    shows,
    tests_of,
)
from btqueue.study.check.results import ForeignResults
from btqueue.study.comparison import long_name
from btqueue.study.points import is_number
from btqueue.study.sensitivity.factors import changed as scenario_with

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
"""Multiples to try; usual mistakes are no multiples near 1."""
STAMPS = 12
"""Bytes of the time stamps option (RFC 7323), padding included."""
LONGEST_WINDOW = 65_535
"""Bytes that a window has without scaling (RFC 9293)."""
FAR = 1e9
"""Misfit of a value that no scenario can have, or that is not tried; finite, as searches take differences."""
EQUAL = 1.0
"""Difference of the misfits of two neighbours that fit equally."""
USUAL, ROUNDED, ANY = range(3)
"""Of a value: a usual mistake, a round number, any number. The first are named first where several fit."""
OFF_BY_ONE = "an off-by-one, as if the packet in service were counted"


@dataclass(frozen=True)
class Cause:
    """A changed scenario whose simulation fits the file.

    Attributes:
        changes: keys and values; of the first outside link as `network.outside_links[1].buffer_packets`.
        sentence: the mistake that it stands for.
        misfit: distance of its simulation from the file (`misfit`).
        remains: metrics that still differ; none unless nothing fits.
    """

    changes: Mapping[str, Any]
    sentence: str
    misfit: float
    remains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Neighbour:
    """A change of the scenario that stands for a usual mistake; `judged` once it was simulated.

    `rank`: whether its value is usual, round or any.
    """

    changes: Mapping[str, Any]
    meaning: str
    rank: int = USUAL
    judged: tuple[Agreement, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether no metric differs from its simulation."""
        return not self.remains

    @property
    def remains(self) -> tuple[str, ...]:
        """Return the metrics that differ from its simulation."""
        return tuple(one.metric for one in self.judged if one.verdict == "differs")


def neighbours(scenario: Scenario, results: ForeignResults) -> Iterator[Neighbour]:
    """Yield the changes to try, none twice: of one key, or of several that go together."""
    tried = []
    for name, values, meaning in _ladders(scenario, results):
        keys = name.split()
        for value in values:
            changes = dict(zip(keys, value if len(keys) > 1 else (value,), strict=True))
            if changes not in tried and any(scenario.value_of(key) != new for key, new in changes.items()):
                tried.append(changes)
                own = scenario.value_of(keys[0])
                number = isinstance(own, int | float) and meaning.startswith("another")
                slight = number and value != own and value in _times(own)[1:-1]
                yield Neighbour(changes, meaning, ROUNDED if slight else USUAL)


def _ladders(scenario: Scenario, results: ForeignResults) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """Yield keys with the values that usual mistakes give them; of several keys together as `one two`."""
    if scenario.link.bearer == "le":
        yield from _low_energy(scenario)
    else:
        yield from _classic(scenario)
    yield from _outside(scenario)
    if scenario.transport.protocol == "tcp":
        yield from _of_tcp(scenario)
    if scenario.radio.model == "constant" and scenario.radio.per is None:
        rates = _times(scenario.radio.ber, (0.1, 0.2, *SEVERAL, 5.0, 10.0))
        yield "radio.ber", rates, "another bit error rate"
    if scenario.radio.model != "perfect":
        yield "radio.model", ("perfect",), "the radio makes no errors"
        hit = "bit errors hit the payload alone, or the headers, too"
        yield "radio.bits", ("payload", "on-air"), hit
    if scenario.traffic.source not in ("greedy", "file"):
        yield "traffic.load_kbps", _times(scenario.traffic.load_kbps), "another load"
    if not results.measured_from_start and scenario.run.warmup_s != 0:
        yield "run.warmup_s", (0.0,), "the warm-up was not left out"
        if isinstance(scenario.run.warmup_s, float):
            whole = scenario.run.warmup_s + scenario.run.duration_s
            text = "the time is counted from 0, warm-up and all"
            yield "run.warmup_s run.duration_s", ((0.0, whole),), text


def _low_energy(scenario: Scenario) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    le = scenario.le
    intervals = (le.interval_s / 2, 2 * le.interval_s, 0.0075, 0.03, 0.05)
    yield "le.interval_s", intervals, "another connection interval"
    yield "le.phy", get_args(PhyName), "another PHY"
    yield "le.payload_bytes", (27, 251), "PDUs without, or with, the extension of their length"
    yield "le.encrypted", (not le.encrypted,), "packets are encrypted in one of the two alone"
    other = {name: scenario_with(scenario, {"le.controller": name}) for name in CONTROLLERS}
    others = tuple(name for name, found in other.items() if found not in (None, scenario))
    yield "le.controller", others, "another controller: all keys of its defaults"
    yield "le.event_packets", (1, 4, 6, None), "another limit of the exchanges of an event"
    yield "le.latency", (0,), "a peripheral that skips no event"
    yield "le.subrate", (1,), "every event is used"
    if le.transfer == "coc":
        credits = (*_one_off(le.credits), *_times(le.credits))
        yield "le.credits", credits, "other credits, or an off-by-one in them"
        batch = (1, le.credits)
        yield "le.credits_returned_every", batch, "credits are returned one by one, or all at once"
    else:
        yield "le.att_mtu_bytes", (23, 185, 247, 517), "another ATT_MTU"
    if le.acl_buffers is not None:
        buffers = (*_one_off(le.acl_buffers), None)
        yield "le.acl_buffers", buffers, "other buffers of the controller, or an off-by-one in them"


def _classic(scenario: Scenario) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    flow = scenario.flow_control
    packets = round(on_air(scenario, scenario.transport.mss_bytes).packets)
    of_segments = "a queue that counts segments, not packets"
    if flow.enabled:
        key, places = "flow_control.buffer_packets", flow.buffer_packets
        yield key, _one_off(places), f"{OFF_BY_ONE}, at the token buffer S"
        yield key, (packets * places,), of_segments
        yield key, _times(places), "another size of the token buffer S"
        yield "flow_control.token_rate_kbps", _times(flow.token_rate_kbps), "another token rate"
        price = "another price of a packet: the bytes that it carries, or the bytes that it could carry"
        yield "flow_control.charge", ("payload", "actual"), price
        yield "flow_control.drop", ("packet", "segment"), "a full buffer refuses packets, or whole segments"
    if flow.baseband_packets is not None:
        key = "flow_control.baseband_packets"
        yield key, _one_off(flow.baseband_packets), f"{OFF_BY_ONE}, at the baseband queue L"
        yield key, (packets * flow.baseband_packets,), of_segments
        yield key, _times(flow.baseband_packets), "another size of the baseband queue L"
    if scenario.polling.discipline == "e-limited":
        yield "polling.limit", _one_off(scenario.polling.limit), "an off-by-one in the polling limit M"


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
    mss = transport.mss_bytes
    stamped = "an MSS without, or with, the bytes of time stamps"
    yield "transport.mss_bytes", (mss - STAMPS, mss + STAMPS), stamped
    yield "transport.mss_bytes", (536, 1000, 1448, 1460), "another MSS"
    senders = ("tahoe", "reno", "newreno", "sack", "vegas", "cubic")
    yield "transport.variant", senders, "another kind of TCP sender"
    if any(scenario.of_flow(flow.spec).transport.variant == "vegas" for flow in topology(scenario).flows):
        thresholds = ((1.0, 3.0), (2.0, 4.0), (1.0, 2.0), (3.0, 6.0), (4.0, 6.0))
        yield "transport.alpha transport.beta", thresholds, "other thresholds of Vegas"
        often = "Vegas moves its window at each ACK, or once in a round trip"
        yield "transport.vegas_adjustment", ("per-ack", "per-rtt"), often
    yield "transport.preset", tuple(PRESETS), "another TCP: all keys of the preset"
    yield "transport.sack", (not transport.sack,), "selective acknowledgements in one of the two alone"
    early = "limited transmit (RFC 3042) in one of the two alone"
    yield "transport.limited_transmit", (not transport.limited_transmit,), early
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
            ways = "as the round-trip delay in place of the one-way delay"
            yield f"{key}.delay_s", _times(link.delay_s), f"another delay {where}, {ways}"
        if link.loss:
            yield f"{key}.loss", (0.0, *_times(link.loss)), f"another loss {where}"


def _one_off(value: int) -> tuple[int, ...]:
    return (value - 1, value + 1)


def _times(value: Any, factors: tuple[float, ...] = SEVERAL) -> tuple[Any, ...]:
    """Return multiples of a number, whole ones of a whole number."""
    found = (value * factor for factor in factors)
    return tuple(dict.fromkeys(round(x) if isinstance(value, int) else float(f"{x:.6g}") for x in found))


def likely_causes(
    scenario: Scenario,
    results: ForeignResults,
    simulate: Callable[[Scenario], Results | xr.Dataset],
    own: tuple[Agreement, ...],
    rules: Rules,
) -> tuple[tuple[Cause, ...], int]:
    """Return the neighbours that fit, the best one first, and how many were tried.

    A neighbour fits if no metric differs from its simulation, judged as the scenario itself was, and if it is
    nearer than the scenario. If none fits, the neighbour that leaves fewest metrics different is returned,
    unless it explains none.

    Args:
        scenario: as it was simulated.
        results: read from the file.
        simulate: the simulator.
        own: the file beside the simulation of the scenario itself.
        rules: as for the scenario.
    """
    tried: list[Neighbour] = []

    def judge(neighbour: Neighbour) -> Neighbour | None:
        try:
            changed = scenario.changed(neighbour.changes)
        except ScenarioError:  # a limit of 0, for instance
            return None
        samples = reference_samples(simulate(changed), results.flow, asked_quantities(results, scenario))
        judged = compare_all(results, samples, {}, rules=rules)
        tried.append(replace(neighbour, judged=judged))
        return tried[-1]

    def far(one: Neighbour) -> float:
        return misfit(one.judged, own, random=rules.random)

    farthest = misfit(own, own, random=rules.random)
    for neighbour in neighbours(scenario, results):
        judge(neighbour)
    found_one = any(one.fits and far(one) < farthest for one in tried)
    _search(scenario, list(tried), judge, far, keys=1 if found_one else SEARCHED)
    nearer = [one for one in tried if far(one) < farthest]
    of_keys: dict[tuple[str, ...], Neighbour] = {}
    for one in sorted((one for one in nearer if one.fits), key=lambda one: (one.rank, far(one))):
        of_keys.setdefault(tuple(one.changes), one)
    best = min(map(far, of_keys.values()), default=0.0)
    found = sorted(of_keys.values(), key=lambda one: (max(far(one), best + EQUAL), one.rank, far(one)))
    if not found:
        differing = {one.metric for one in own if one.verdict == "differs"}
        partial = [one for one in nearer if set(one.remains) < differing]
        found = sorted(partial, key=lambda one: (len(one.remains), one.rank, far(one)))[:1]
    causes = (Cause(one.changes, _sentence(scenario, one, own), far(one), one.remains) for one in found)
    return tuple(causes), len(tried)


def unseen_keys(
    scenario: Scenario,
    results: ForeignResults,
    solve: Callable[[Scenario], Results | xr.Dataset],
    model: Mapping[str, float],
    simulated: Mapping[str, np.ndarray],
    rules: Rules,
) -> tuple[str, ...]:
    """Return the keys of which the file's metrics cannot tell half from twice, as far as the model knows.

    The model says by which factor a change of the key moves each metric; `shows` says whether the file would
    be called different if it were moved so far.

    Args:
        scenario: the scenario.
        results: read from the file.
        solve: the model; changes that it cannot answer are left out.
        model: its answer to the scenario, by metric.
        simulated: our samples.
        rules: rules of the comparison.
    """
    from btqueue.network import ImpossibleAnswer, NoConvergence  # loads JAX

    level = tests_of(results, simulated, rules)[1]
    metrics = [one for name, one in compared_metrics(results).items() if name in simulated and name in model]
    asked, seen = asked_quantities(results, scenario), {}
    for one in neighbours(scenario, results):
        ((key, value), *more), own = one.changes.items(), scenario.value_of(next(iter(one.changes)))
        if more or not is_number(own) or value not in (own // 2, own / 2, 2 * own):
            continue
        try:
            changed = model_values(solve(scenario.changed(one.changes)), results.flow, asked)
        except (ScenarioError, NotBuiltYet, NoConvergence, ImpossibleAnswer):
            continue
        ratios = {x.name: changed.get(x.name, math.nan) / model[x.name] for x in metrics if model[x.name]}
        seen[key] = seen.get(key, False) or any(
            shows(x, simulated[x.name], float(simulated[x.name].mean()) * ratios[x.name], level, rules)
            for x in metrics
            if math.isfinite(ratios.get(x.name, math.nan))
        )
    return tuple(key for key, shown in seen.items() if not shown)


def _search(
    scenario: Scenario,
    tried: list[Neighbour],
    judge: Callable[[Neighbour], Neighbour | None],
    distance: Callable[[Neighbour], float],
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
        (key, value), *more = one.changes.items()
        numbers = [value, scenario.value_of(key)]
        if not more and all(is_number(x) and x > 0 for x in numbers):
            of_key[key][value] = distance(one)
            meanings[key] = one.meaning
    for key, known in sorted(of_key.items(), key=lambda item: min(item[1].values()))[:keys]:
        own = scenario.value_of(key)

        def far(value: float, rank: int = ANY, key: str = key, known: Any = known, own: Any = own) -> float:
            value = round(value) if isinstance(own, int) else float(f"{value:.3g}")
            if value == own:
                return FAR
            if value not in known:
                one = judge(Neighbour({key: value}, meanings[key], rank))
                known[value] = FAR if one is None else distance(one)
            return known[value]

        low, high = _around(known, own)
        decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        every, fewer = (
            [x * 10.0**decade for decade in decades for x in beginnings if low < x * 10.0**decade < high]
            for beginnings in (ROUND, ROUNDER)
        )
        for value in every if len(every) <= MOST_ROUND else fewer:
            far(value, ROUNDED)
        ends = tuple(math.log(x) for x in _around(known, own))
        if ends[1] > ends[0]:
            options = {"maxiter": STEPS}
            minimize_scalar(
                lambda x, far=far: far(math.exp(x)), bounds=ends, method="bounded", options=options
            )


def _around(known: Mapping[float, float], own: float) -> tuple[float, float]:
    """Return the values next to the best one, one of them the scenario's, or half and twice the best one."""
    best = min(known, key=known.__getitem__)
    values = sorted({own, *known})
    place = values.index(best)
    low = values[place - 1] if place else best / 2
    return low, values[place + 1] if place + 1 < len(values) else best * 2


def misfit(judged: tuple[Agreement, ...], scenarios: tuple[Agreement, ...], *, random: bool = True) -> float:
    """Return how far a simulation is from the file: the sum over metrics of ln(1 + z^2).

    z is the difference over a width: the half-width of the file's interval (of the scenario's if the file has
    none) and the negligible difference. Unlike p-values it ranks simulations that are all far away, and a
    neighbour does not fit merely because its replications scatter widely.

    Args:
        judged: the file beside the simulation.
        scenarios: the file beside the simulation of the scenario itself.
        random: whether chance explains differences; else the negligible difference alone is the width.
    """
    widths = {one.metric: one.simulation_ci95 for one in scenarios}
    total = 0.0
    for one in judged:
        if math.isnan(one.simulation):
            continue
        width = one.theirs_ci95 if math.isfinite(one.theirs_ci95) else widths.get(one.metric, math.nan)
        scale = math.hypot(width if random and math.isfinite(width) else 0.0, one.limit)
        total += math.log1p((one.away / scale) ** 2) if scale > 0 else (NO_SCALE if one.away else 0.0)
    return total


def _sentence(scenario: Scenario, neighbour: Neighbour, own: tuple[Agreement, ...]) -> str:
    def shown(value: object) -> str:
        return (
            f"{value:g}"
            if isinstance(value, float)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
        )

    change = " and ".join(
        f"{key} = {shown(value)} (the scenario has {shown(scenario.value_of(key))})"
        for key, value in neighbour.changes.items()
    )
    if neighbour.fits:
        return f"their numbers fit {change}: {neighbour.meaning}"
    before = [one.metric for one in own if one.verdict == "differs"]
    explained, remains = (
        " and ".join(long_name(name) for name in before if (name in neighbour.remains) == left)
        for left in (False, True)
    )
    verb = "remain" if remains.endswith("s") or " and " in remains else "remains"
    return f"{change} explains {explained}; {remains} {verb}: {neighbour.meaning}"
