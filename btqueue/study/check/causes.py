"""Likely causes of a disagreement: neighbours of the scenario that fit the file's numbers.

Mistakes of simulators are seldom wild. A buffer that counts the packet in service, or does not, is a buffer
of one place more or less; a timer that does not double and a warm-up that was not left out are scenarios,
too. So are keys read in another unit, and defaults of another program. Each of these neighbours is simulated.
The report names the neighbours that fit, of each key the best value; among values that fit equally the usual
one comes first. Of the keys whose neighbours came nearest, further values are tried, round values first.
Where none fits, the neighbour that explains most is tried together with others. If no pair fits either, it is
named as a partial cause, with the metrics that remain, if it explains half of the differing metrics.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, get_args

import numpy as np
import xarray as xr
from scipy.optimize import minimize_scalar

from btqueue.baseband.packets import SLOT_S
from btqueue.network.bounds import on_air
from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError
from btqueue.scenario.metrics import Results
from btqueue.scenario.problems import known_field
from btqueue.scenario.topology import topology
from btqueue.scenario.traits import shares_segments
from btqueue.study.check.agreement import (
    Agreement,
    Rules,
    compare_all,
    compared_metrics,
    model_values,
    reference_samples,
    shows,
    tests_of,
)
from btqueue.study.check.facts import compare_facts
from btqueue.study.check.results import ForeignResults
from btqueue.study.comparison import long_name, metric_of
from btqueue.study.points import is_number, label, parse_one, scenario_with
from btqueue.text_files import table_beside

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
LONGEST_WINDOW = 65_535
"""Bytes that a window has without scaling (RFC 9293)."""
FAR = 1e9
"""Misfit of a value that no scenario can have, or that is not tried; finite, as searches take differences."""
EQUAL = 1.0
"""Difference of the misfits of two neighbours that fit equally."""
STATED, USUAL, ROUNDED, ANY = range(4)
"""Of a value: the file states it, a usual mistake, a round number, any number; named in this order."""
FEW = 4
"""Metrics up to which a sentence names all of them."""
UNITS = {
    "s": {1e3: "ms", 1e6: "µs", 1 / SLOT_S: "slots"},
    "kbit/s": {1e3: "bit/s", 1e-3: "Mbit/s", 1 / 8: "kbyte/s", 125.0: "byte/s"},
    "1": {100.0: "%"},
}
"""Factors by which numbers in other units differ, by the unit of a metric; 1,024 is near 1,000."""
NEAR_FACTOR, LARGE_FACTOR = 0.05, 0.2
"""Relative difference from such a factor up to which the unit is the cause; of factors of 100 and more."""
MOST_ENTRIES = 8
"""Of a list whose entries are changed one by one."""
PAIRED = 10
"""Changes that are tried beside the nearest one, where that explains a part."""


@dataclass(frozen=True)
class Cause:
    """A changed scenario whose simulation fits the file.

    Attributes:
        changes: keys and values; a key of an outside link is `network.outside_links[1].buffer_packets`.
        sentence: the mistake that these changes stand for.
        misfit: distance of its simulation from the file (`misfit`).
        remains: metrics that still differ, if no change explains all.
    """

    changes: Mapping[str, Any]
    sentence: str
    misfit: float
    remains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Neighbour:
    """A change of the scenario that stands for a usual mistake; `judged` once it was simulated.

    `rank`: whether its value is stated, usual, round or any. `misfit`: distance of its simulation from the
    file (`misfit`).
    """

    changes: Mapping[str, Any]
    meaning: str
    rank: int = USUAL
    judged: tuple[Agreement, ...] = ()
    misfit: float = math.nan

    @property
    def fits(self) -> bool:
        """Whether no metric differs from its simulation."""
        return not self.remains

    @property
    def remains(self) -> tuple[str, ...]:
        """Return the metrics that differ from its simulation."""
        return tuple(one.metric for one in self.judged if one.verdict == "differs")


def neighbours(scenario: Scenario, results: ForeignResults) -> Iterator[Neighbour]:
    """Yield the changes to try that the scenario can have, none twice: of a key, or of several together."""
    tried = []
    for name, values, meaning in _ladders(scenario, results):
        keys = name.split()
        for value in values:
            changes = dict(zip(keys, value if len(keys) > 1 else (value,), strict=True))
            if changes not in tried and scenario_with(scenario, changes) not in (None, scenario):
                tried.append(changes)
                own = scenario.value_of(keys[0])
                number = isinstance(own, int | float) and meaning.startswith("another")
                slight = number and value != own and value in _times(own)[1:-1]
                yield Neighbour(changes, meaning, ROUNDED if slight else USUAL)


def _ladders(scenario: Scenario, results: ForeignResults) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """Yield keys with the values that usual mistakes give them; of several keys together as `one two`."""
    for row in table_beside("btqueue.study.check", "mistakes.csv"):
        if all(_holds(one, scenario, results) for one in row["when"].split()):
            for key, name in _entries(scenario, row["key"]):
                values = [_values(scenario, key, text) for text in row["values"].split()]
                yield key, tuple(chain(*values)), row["meaning"].replace("{}", name)
    run = scenario.run
    if not results.measured_from_start and isinstance(run.warmup_s, float) and run.warmup_s != 0:
        whole = (0.0, run.warmup_s + run.duration_s)
        yield "run.warmup_s run.duration_s", (whole,), "the time is counted from 0, warm-up and all"


def _entries(scenario: Scenario, key: str) -> Iterator[tuple[str, str]]:
    """Yield a key of the table, or that key in each entry of a list, with the name of the entry."""
    place, brackets, own = key.partition("[].")
    if not brackets:
        yield key, ""
        return
    entries = scenario.value_of(place)
    if isinstance(entries, str) or len(entries) > MOST_ENTRIES:
        return
    for number, entry in enumerate(entries, 1):
        if getattr(entry, own) is not None:
            yield (
                f"{place}[{number}].{own}",
                getattr(entry, "label", getattr(entry, "name", "")) or entry.node,
            )


def _holds(condition: str, scenario: Scenario, results: ForeignResults) -> bool:
    """Whether a condition of the table holds: `key=value`, `key!=value`, or one of `late` and the flows'."""
    flows = (scenario.of_flow(flow.spec) for flow in topology(scenario).flows)
    if condition == "late":
        return not results.measured_from_start
    if condition == "vegas":
        return any(one.transport.variant == "vegas" for one in flows)
    if condition == "short-segments":
        return any(map(shares_segments, flows))
    key, sign, value = re.split("(!?=)", condition)
    return (label(scenario.value_of(key)) == value) == (sign == "=")


def _values(scenario: Scenario, key: str, text: str) -> tuple[Any, ...]:
    """Return the values of a key that a word of the table gives.

    `any` of its type; `several` multiples; `*F` times its own and `+N` or `-N` beside it; `=KEY` as another
    key; `in-segments` a queue of as many segments; `unscaled` the longest window without scaling (RFC 9293);
    `A/B` of two keys; else a value.
    """
    transport = scenario.transport
    if "/" in text:
        return (tuple(map(float, text.split("/"))),)
    if text == "any":
        return _choices(known_field(Scenario, key).annotation)
    if text == "unscaled":
        return (LONGEST_WINDOW // transport.mss_bytes,)
    if text[0] == "=":
        return (scenario.value_of(text[1:]),)
    own = scenario.value_of(key)
    if (text[0] in "+-*" or text == "several") and not is_number(own):  # a limit that is "unlimited"
        return ()
    if text == "in-segments":
        return (round(on_air(scenario, transport.mss_bytes).packets) * own,)
    if text == "several" or text[0] == "*":
        return _times(own, SEVERAL if text == "several" else (float(text[1:]),))
    return (own + int(text) if text[0] in "+-" else parse_one(key, text),)


def _choices(kind: Any) -> tuple[Any, ...]:
    """Return the values of a type of names or truths."""
    if isinstance(kind, str):
        return (kind,)
    return (False, True) if kind is bool else tuple(chain(*map(_choices, get_args(kind))))


def _times(value: Any, factors: tuple[float, ...] = SEVERAL) -> tuple[Any, ...]:
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
    nearer than the scenario. If none fits, the neighbour that leaves fewest metrics different is tried with
    the best changes of other keys. If no pair fits either, the change that leaves fewest different is
    returned, unless more of them remain than it explains.

    Args:
        scenario: as it was simulated.
        results: read from the file.
        simulate: the simulator.
        own: the file beside the simulation of the scenario itself.
        rules: as for the scenario.
    """
    tried: list[Neighbour] = []
    farthest = misfit(own, own, random=rules.random)
    differing = {one.metric for one in own if one.verdict == "differs"}

    def judge(neighbour: Neighbour) -> Neighbour | None:
        changed = scenario_with(scenario, neighbour.changes)
        if changed is None or _refuted(results, changed, neighbour.changes):  # a limit of 0, for instance
            return None
        samples = reference_samples(simulate(changed), results, changed)
        judged = compare_all(results, samples, {}, rules=rules)
        away = misfit(judged, own, random=rules.random)
        tried.append(replace(neighbour, judged=judged, misfit=away))
        return tried[-1]

    def nearer() -> list[Neighbour]:
        return [one for one in tried if one.misfit < farthest]

    def partial() -> list[Neighbour]:
        part = [one for one in nearer() if len(one.remains) <= len(differing) / 2]
        part = [one for one in part if set(one.remains) < differing]
        return sorted(part, key=lambda one: (len(one.remains), len(one.changes), one.rank, one.misfit))

    said = [
        one for one in compare_facts(results, scenario) if one.status == "failed" and one.value is not None
    ]
    stated = (Neighbour({one.check: one.value}, "the file states it", STATED) for one in said)
    for neighbour in chain(stated, neighbours(scenario, results)):
        judge(neighbour)
    found_one = any(one.fits for one in nearer())
    _search(scenario, list(tried), judge, keys=1 if found_one else SEARCHED)
    if partial() and not any(one.fits for one in nearer()):
        first, best = partial()[0], dict[tuple[str, ...], Neighbour]()
        for one in sorted(tried, key=lambda one: (one.misfit // EQUAL, one.rank, one.misfit)):
            best.setdefault(tuple(one.changes), one)
        others = [
            one for one in best.values() if one.misfit < farthest and not {*one.changes} & {*first.changes}
        ]
        for other in others[:PAIRED]:
            meaning = f"{first.meaning}; and {other.meaning}"
            judge(Neighbour({**first.changes, **other.changes}, meaning, max(first.rank, other.rank)))
    of_keys: dict[tuple[str, ...], Neighbour] = {}
    for one in sorted((one for one in nearer() if one.fits), key=lambda one: (one.rank, one.misfit)):
        of_keys.setdefault(tuple(one.changes), one)
    best = min((one.misfit for one in of_keys.values()), default=0.0)
    found = sorted(
        of_keys.values(),
        key=lambda one: (one.rank != STATED, max(one.misfit, best + EQUAL), one.rank, one.misfit),
    )
    found = found or partial()[:1]
    causes = (Cause(one.changes, _sentence(scenario, one, own), one.misfit, one.remains) for one in found)
    return tuple(causes), len(tried)


def _refuted(results: ForeignResults, changed: Scenario, changes: Mapping[str, Any]) -> bool:
    """Whether the file itself states another value of a changed key, as the packets of a capture do."""
    stated = compare_facts(results, changed)
    return any(one.status == "failed" and one.check in changes for one in stated)


def other_units(agreements: tuple[Agreement, ...]) -> tuple[Cause, ...]:
    """Return the metrics that differ by the factor of another unit, as causes without a change."""
    found = []
    for one in agreements:
        unit, reference = metric_of(one.metric).unit, one.reference
        if one.verdict == "differs" and reference and one.theirs:
            for factor, theirs in UNITS.get(unit, {}).items():
                near = LARGE_FACTOR if factor >= 100.0 else NEAR_FACTOR
                if abs(one.theirs / reference / factor - 1) <= near:
                    text = f"{long_name(one.metric)} is {one.theirs / reference:.4g} times ours"
                    found.append(Cause({}, f"{text}: given in {theirs}, not in {unit}?", 0.0))
    return tuple(found)


def unseen_keys(
    scenario: Scenario,
    results: ForeignResults,
    solve: Callable[[Scenario], Results | xr.Dataset],
    model: Mapping[str, float],
    simulated: Mapping[str, np.ndarray],
    rules: Rules,
) -> tuple[str, ...]:
    """Return the keys whose half and double value change no metric of the file enough, by the model.

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
    from btqueue.network import ImpossibleAnswer, NoConvergence

    level = tests_of(results, simulated, rules)[1]
    metrics = [one for name, one in compared_metrics(results).items() if name in simulated and name in model]
    seen: dict[str, bool] = {}
    for one in neighbours(scenario, results):
        ((key, value), *more), own = one.changes.items(), scenario.value_of(next(iter(one.changes)))
        if more or not is_number(own) or value not in (own // 2, own / 2, 2 * own):
            continue
        try:
            other = scenario.changed(one.changes)
            changed = model_values(solve(other), results, other)
        except (ScenarioError, NotBuiltYet, NoConvergence, ImpossibleAnswer):
            continue
        if _refuted(results, other, one.changes):
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
        if not more and one.rank != STATED and all(is_number(x) and x > 0 for x in numbers):
            of_key[key][value] = one.misfit
            meanings[key] = "another value" if "off-by-one" in one.meaning else one.meaning
    for key, known in sorted(of_key.items(), key=lambda item: min(item[1].values()))[:keys]:
        own = scenario.value_of(key)

        def far(value: float, rank: int = ANY, key: str = key, known: Any = known, own: Any = own) -> float:
            value = round(value) if isinstance(own, int) else float(f"{value:.3g}")
            if value == own:
                return FAR
            if value not in known:
                one = judge(Neighbour({key: value}, meanings[key], rank))
                known[value] = FAR if one is None else one.misfit
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
        return f"{value:g}" if isinstance(value, float) else label(value)

    change = " and ".join(
        f"{key} = {shown(value)} (the scenario has {shown(scenario.value_of(key))})"
        for key, value in neighbour.changes.items()
    )
    if neighbour.fits:
        return f"their numbers fit {change}: {neighbour.meaning}"
    before = [one.metric for one in own if one.verdict == "differs"]
    explained, remains = (
        [long_name(name) for name in before if (name in neighbour.remains) == left] for left in (False, True)
    )
    told = " and ".join(explained) if len(before) <= FEW else f"{len(explained)} of {len(before)} metrics"
    rest = " and ".join(remains) if len(remains) <= FEW else f"{len(remains)} of them"
    verb = "remain" if rest.endswith("s") or len(remains) > 1 else "remains"
    return f"{change} explains {told}; {rest} {verb}: {neighbour.meaning}"
