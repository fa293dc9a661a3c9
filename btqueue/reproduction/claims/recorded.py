"""Checks that the record itself describes, by keys of a claim in `published.toml`.

A claim is one check, or several: each entry of `cases` overrides keys of the claim (`set` is added to).
Kinds of checks:

* value: a number, within its tolerance; bound: within lower and upper, at each place of the sweep
* trend: rising, falling or flat along the sweep
* order: each entry of `order` exceeds the next one; growth: so do the differences of pairs, or the relative
  differences (`relative`)
* share: the last is at most a share of the first
* best: where the largest value lies; smallest: the first place that reaches the largest value
* inner: a local extreme between lower and upper
* procedure: a function of the publication's own module
* summary: other claims together

Tolerances and shares follow from `word`, a key of `judgement.WORDS`; a number may have a rel_tol or abs_tol
of its own. With `peak`, a sweep, a number is judged where the goodput is largest; with `over`, as a ratio.
Where the publication is silent, `readings` holds the settings of other readings by name, and `fit` a fitted
scenario: the checks are shown for them, too, and do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from btqueue.reproduction.claims import judgement
from btqueue.reproduction.claims.engines import Engine, NoAnswer
from btqueue.reproduction.claims.judgement import WORDS, Finding
from btqueue.reproduction.claims.record import REPRODUCED, Claim, Judged, Part
from btqueue.scenario import Scenario, load

JITTER_S = 0.002
"""Processing delays that average over the limit cycles of a saturated perfect radio."""

Procedure = Callable[[Engine, Claim], Finding]


def scenario_of(check: Claim, *more: Claim | str) -> Scenario:
    """Return the scenario of a check, with the name and the settings of `more` on top."""
    name, sets = check.get("scenario"), list(check.get("set", ()))
    for entry in more:
        entry = {"scenario": entry} if isinstance(entry, str) else entry
        name = entry.get("scenario", name)
        sets += entry.get("set", ())
    scenario = load(str(name), sets)
    return scenario.with_(run__replications=check.get("replications", 10), run__jitter_s=check["jitter_s"])


def sample_of(engine: Engine, check: Claim, scenario: Scenario, metric: str | None = None) -> np.ndarray:
    """Return the metric of each replication: of the named flow, or its mean over all flows with a value.

    A plus sign adds two metrics.
    """
    answer = engine(scenario)
    values = np.sum([answer[name].values for name in (metric or check["metric"]).split("+")], axis=0)
    if values.ndim > 1:
        values = values[:, check["flow"] - 1] if "flow" in check else np.nanmean(values, axis=1)
    return values * check.get("times", 1)


def entries(engine: Engine, check: Claim) -> list[np.ndarray]:
    """Return the samples of the entries of `order`."""
    entries = [{"scenario": e} if isinstance(e, str) else e for e in check["order"]]
    return [sample_of(engine, check, scenario_of(check, e), e.get("metric")) for e in entries]


def sweep(engine: Engine, check: Claim) -> tuple[list[float], np.ndarray]:
    """Return the places of the sweep and their samples, shape (places, replications)."""
    key, places = check["sweep"]["key"], check["sweep"]["values"]
    beside = check["sweep"].get("beside", {})
    samples = []
    for i, place in enumerate(places):
        sets = [f"{key}={place}", *(f"{other}={values[i]}" for other, values in beside.items())]
        samples.append(sample_of(engine, check, scenario_of(check, {"set": sets})))
    return places, np.array(samples)


def limit(check: Claim, otherwise: float = 0.0) -> float:
    """Return the limit of the check's word, or its own tolerance."""
    return check.get("rel_tol", WORDS[check["word"]].limit if check.get("word") else otherwise)


def at_peak(engine: Engine, check: Claim) -> Claim:
    """Return the check at the place of its `peak` with the largest goodput; without this key the check."""
    if "peak" not in check:
        return check
    places, samples = sweep(engine, check | {"sweep": check["peak"], "metric": "goodput_kbps"})
    place = places[int(np.argmax(samples.mean(axis=1)))]
    return check | {"set": [*check["set"], f"{check['peak']['key']}={place}"]}


def judge_value(engine: Engine, check: Claim) -> Finding:
    """Judge a value."""
    sample = sample_of(engine, check, scenario_of(at_peak(engine, check)))
    if "over" in check:
        sample = sample / sample_of(engine, check, scenario_of(check, check["over"]))
    return judgement.value(sample, check["value"], check.get("abs_tol", limit(check) * check["value"]))


def judge_bound(engine: Engine, check: Claim) -> Finding:
    """Judge a bound, at each place of a sweep if there is one."""
    slack = 1 + check.get("rel_tol", 0.0)
    lower = check.get("lower", -np.inf) / slack
    upper = check.get("upper", np.inf if "lower" in check else limit(check)) * slack
    if "sweep" not in check:
        return judgement.bound(sample_of(engine, check, scenario_of(check)), lower, upper)
    _, samples = sweep(engine, check)
    findings = [judgement.bound(one, lower, upper) for one in samples]
    return Finding(all(finding.holds for finding in findings), judgement.listed(samples))


def judge_trend(engine: Engine, check: Claim) -> Finding:
    """Judge a trend along a sweep."""
    places, samples = sweep(engine, check)
    if check["direction"] == "flat":
        return judgement.flat(samples, limit(check))
    return judgement.trend(samples, np.array(places, float), check["direction"] == "rising")


def judge_order(engine: Engine, check: Claim) -> Finding:
    """Judge an order, each value against a share of the one before if a word asks for it."""
    return judgement.order(entries(engine, check), limit(check, 1.0))


def judge_growth(engine: Engine, check: Claim) -> Finding:
    """Judge an order of differences."""
    pairs = [[sample_of(engine, check, scenario_of(check, name)) for name in pair] for pair in check["order"]]
    rises = [high - low for high, low in pairs]
    if check.get("relative"):
        rises = [rise / high for rise, (high, _) in zip(rises, pairs, strict=True)]
    return judgement.order(rises, limit(check, 1.0))


def judge_share(engine: Engine, check: Claim) -> Finding:
    """Judge the last against the first."""
    samples = entries(engine, check) if "order" in check else sweep(engine, check)[1]
    first, last = float(samples[0].mean()), float(samples[-1].mean())
    return Finding(last <= limit(check, 1.0) * first, f"{last:.3g} against {first:.3g}")


def judge_place(engine: Engine, check: Claim) -> Finding:
    """Judge where along a sweep an extreme lies."""
    places, samples = sweep(engine, check)
    lower = check.get("lower", check.get("value", 0) - check.get("abs_tol", 0))
    upper = check.get("upper", check.get("value", 0) + check.get("abs_tol", 0))
    if check["kind"] == "inner":
        return judgement.inner(samples, places, lower, upper, check.get("least", False))
    judge_it = judgement.best if check["kind"] == "best" else judgement.smallest_sufficient
    return judge_it(samples, places, lower, upper)


JUDGES: dict[str, Callable[[Engine, Claim], Finding]] = {
    "value": judge_value,
    "bound": judge_bound,
    "trend": judge_trend,
    "order": judge_order,
    "growth": judge_growth,
    "share": judge_share,
    "best": judge_place,
    "smallest": judge_place,
    "inner": judge_place,
}


def checks(claim: Claim) -> Iterator[Claim]:
    """Yield the checks of a claim, each with and without jitter where the radio is perfect."""
    for case in claim.get("cases", [{}]):
        check = {"label": "", "jitter_s": 0.0} | claim | case
        check["set"] = [*claim.get("set", ()), *case.get("set", ())]
        yield check
        if all(s.radio.model == "perfect" and s.transport.protocol == "tcp" for s in scenarios(check)):
            yield check | {"jitter_s": JITTER_S, "label": f"{check['label']}, jitter".lstrip(", ")}
        others = {name: {"set": [*check["set"], *sets]} for name, sets in claim.get("readings", {}).items()}
        if "fit" in claim:
            others["fit"] = {"scenario": claim["fit"]}
        for name, changes in others.items():
            yield check | changes | {"counts": False, "label": f"{check['label']}, {name}".lstrip(", ")}


def scenarios(check: Claim) -> list[Scenario]:
    """Return the scenarios of a check before its sweep."""
    if check["kind"] == "growth":
        return [scenario_of(check, name) for pair in check["order"] for name in pair]
    return [scenario_of(check, entry) for entry in check.get("order", [{}])]


def points(claim: Claim) -> int:
    """Return about how many points of ten replications a claim simulates."""
    if claim["kind"] not in JUDGES:
        return 100 if claim["kind"] == "procedure" else 0
    sizes = (len(c["sweep"]["values"]) if "sweep" in c else len(scenarios(c)) for c in checks(claim))
    return sum(sizes) * claim.get("replications", 10) // 10


def judge(
    engine: Engine, claim: Claim, procedures: Mapping[str, Procedure], record: Mapping[str, Claim]
) -> Judged:
    """Judge a claim that the record describes; `record` holds all claims of the publication by id.

    A model has no limit cycles to average over, so checks with jitter are for the simulator alone.
    """
    if claim["kind"] == "procedure":
        return Judged((part(engine, procedures[claim["procedure"]], claim),))
    if claim["kind"] == "summary":
        return Judged(
            tuple(
                summarised(name, judge(engine, record[name], procedures, record)) for name in claim["claims"]
            )
        )
    wanted = (check for check in checks(claim) if engine.is_simulator or not check["jitter_s"])
    return Judged(tuple(part(engine, JUDGES[check["kind"]], check) for check in wanted))


def part(engine: Engine, judge_it: Callable[[Engine, Claim], Finding], check: Claim) -> Part:
    """Run one check."""
    label, counts = check.get("label", ""), check.get("counts", True)
    try:
        finding = judge_it(engine, check)
    except NoAnswer as reason:
        return Part(label, None, str(reason), counts)
    return Part(label, bool(finding.holds), finding.seen, counts)


def summarised(name: str, judged: Judged) -> Part:
    """Return another claim as a check of a summary."""
    answered = any(one.holds is not None for one in judged.parts)
    return Part(name, judged.verdict == REPRODUCED if answered else None, judged.verdict)
