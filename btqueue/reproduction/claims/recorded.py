"""Checks that the record itself describes, by keys of a claim in `published.toml`.

A claim is one check, or several: each entry of `cases` overrides keys of the claim (`set` is added to), and
`each` repeats them at values of a key. With `together` they are one check, which holds if all of them do.
Kinds of checks:

* value: a number, within its tolerance; bound: within lower and upper; order: each entry of `order` exceeds
  the next one; with a sweep, at each of its places
* trend: rising, falling or flat along the sweep; steps: each place exceeds its neighbour
* growth: differences of pairs have an order, or the relative differences (`relative`)
* share: the last is at most a share of the first
* best: where the largest value lies; smallest: the first place that reaches the largest value
* inner: a local extreme between lower and upper
* procedure: a function of the publication's own module
* summary: other claims together

A sample is a metric of a scenario: `metric` (a sum a+b, or a product a*b), as its mean over flows, of a
`flow`, or the `sum` over flows; divided by another metric (`per`); to a `power`. Then the samples of the
entries `over`, `minus` and `plus` divide it, and are taken away from it or added to it; they override keys of
the check. At last it is multiplied by `times`; or it is the mean at the places of `average`, a sweep. With
`means` the mean over the replications stands for them, so that no interval widens a tolerance; with
`every_run` a value or a bound must hold in each replication by itself. With `load`
the load is a share of the goodput of the scenario `load_1` at the same packet error probability, by
the same engine; 0 leaves the load as it is.

Tolerances and shares follow from `word`, a key of `judgement.WORDS`; a number may have a rel_tol or abs_tol
of its own. With `peak`, a sweep, a number is judged where the goodput is largest. An order is judged by
logarithms with `logarithmic`. Where the publication is silent, `readings` holds the settings of other
readings by name, and `fit` a fitted scenario: the checks are shown for them, too, and do not count.

Keys in the table `[check]` of a record hold for all its claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from btqueue.reproduction.claims import judgement
from btqueue.reproduction.claims.engines import Answer, Engine, NoAnswer
from btqueue.reproduction.claims.judgement import Finding, limit
from btqueue.reproduction.claims.record import (
    REPRODUCED,
    Claim,
    Judged,
    Part,
    claims_of,
    is_judged,
    is_tested,
)
from btqueue.scenario import Scenario, load

JITTER_S = 0.002
"""Processing delays that average over the limit cycles of a saturated perfect radio."""
COMBINED = {"over": np.divide, "minus": np.subtract, "plus": np.add}
"""Keys of a sample that hold other samples."""

Procedure = Callable[[Engine, Claim], Judged | Finding]


def within(check: Claim, *entries: Claim | str) -> Claim:
    """Return a check in which entries replace keys, and add to `set`; a text is the name of a scenario."""
    for entry in entries:
        entry = {"scenario": entry} if isinstance(entry, str) else entry
        check = {**check, **entry, "set": [*check.get("set", ()), *entry.get("set", ())]}
    return check


def scenario_of(check: Claim) -> Scenario:
    """Return the scenario of a check, whatever its `load`."""
    names = {"run__replications": "replications", "run__jitter_s": "jitter_s"}
    own = {key: check[name] for key, name in names.items() if name in check}
    return load(str(check.get("scenario")), check.get("set", ())).with_(**own)


def sample_of(engine: Engine, check: Claim, *entries: Claim | str) -> np.ndarray:
    """Return the sample of a check in which entries replace keys, shape (replications,)."""
    wanted = within(check, *entries)
    if "average" in wanted:
        outer = {key: value for key, value in wanted.items() if key != "average"}
        return np.mean([sample_of(engine, one) for one in at_places(outer | {"sweep": wanted["average"]})], 0)
    scenario = scenario_of(wanted)
    if wanted.get("load"):
        full = load(wanted["load_1"]).with_(radio__per=scenario.radio.per)
        unit = float(engine.sample(full, "goodput_kbps").mean())
        scenario = scenario.with_(traffic__load_kbps=wanted["load"] * unit)
    answer = engine(scenario)
    sample = _values(answer, wanted, wanted["metric"])
    if "per" in wanted:
        sample = sample / _values(answer, wanted, wanted["per"])
    sample = sample ** wanted.get("power", 1)
    inner = {key: value for key, value in wanted.items() if key not in (*COMBINED, "times")}
    for name, combine in COMBINED.items():
        if name in wanted:
            sample = combine(sample, sample_of(engine, inner, wanted[name]))
    sample = sample * wanted.get("times", 1)
    return sample.mean(keepdims=True) if wanted.get("means") else sample


def _values(answer: Answer, check: Claim, names: str) -> np.ndarray:
    """Return a metric, or a sum or product of metrics, in each replication, of the flows that are meant."""
    combine = np.prod if "*" in names else np.sum
    values = combine([answer[name].values for name in names.replace("*", "+").split("+")], axis=0)
    if values.ndim == 1:
        return values
    if "flow" in check:
        return values[:, check["flow"] - 1]
    return (np.nansum if check.get("sum") else np.nanmean)(values, axis=1)


def entries(engine: Engine, check: Claim) -> list[np.ndarray]:
    """Return the samples of the entries of `order`."""
    return [sample_of(engine, check, entry) for entry in check["order"]]


def at_places(check: Claim) -> list[Claim]:
    """Return the check at each place of its sweep; without a sweep the check alone."""
    if "sweep" not in check:
        return [check]
    key, beside = check["sweep"]["key"], check["sweep"].get("beside", {})
    found = []
    for number, place in enumerate(check["sweep"]["values"]):
        changes = {key: place, **{other: values[number] for other, values in beside.items()}}
        found.append(within(check, _changed(changes)))
    return found


def _changed(changes: Mapping[str, Any]) -> Claim:
    """Return the entry that changes keys of a check, and dotted keys of its scenario."""
    own = {key: value for key, value in changes.items() if "." not in key}
    return own | {"set": [f"{key}={value}" for key, value in changes.items() if "." in key]}


def sweep(engine: Engine, check: Claim) -> tuple[list[float], np.ndarray]:
    """Return the places of the sweep and their samples, shape (places, replications)."""
    samples = [sample_of(engine, one) for one in at_places(check)]
    return check["sweep"].get("places", check["sweep"]["values"]), np.array(samples)


def at_peak(engine: Engine, check: Claim) -> Claim:
    """Return the check at the place of its `peak` with the largest goodput; without this key the check."""
    if "peak" not in check:
        return check
    places, samples = sweep(engine, check | {"sweep": check["peak"], "metric": "goodput_kbps"})
    place = places[int(np.argmax(samples.mean(axis=1)))]
    return within(check, {"set": [f"{check['peak']['key']}={place}"]})


def judge_value(engine: Engine, check: Claim) -> Finding:
    """Judge a value, at each place of a sweep if there is one."""
    wanted = at_places(at_peak(engine, check))
    samples = [sample_of(engine, one) for one in wanted]
    values = [one["value"] for one in wanted]
    tolerances = [check.get("abs_tol", limit(check) * abs(one)) for one in values]
    findings = [
        judged(check, sample, partial(judgement.value, published=value, tolerance=tolerance))
        for sample, value, tolerance in zip(samples, values, tolerances, strict=True)
    ]
    return together(findings, samples)


def judge_bound(engine: Engine, check: Claim) -> Finding:
    """Judge a bound, at each place of a sweep if there is one."""
    samples, findings, slack = [], [], 1 + check.get("rel_tol", 0.0)
    for one in at_places(check):
        upper = one.get("upper", np.inf if "lower" in one else limit(one))
        samples.append(sample_of(engine, one))
        within_bounds = partial(judgement.bound, lower=one.get("lower", -np.inf) / slack, upper=upper * slack)
        findings.append(judged(one, samples[-1], within_bounds))
    return together(findings, samples)


def judged(check: Claim, sample: np.ndarray, judge: Callable[[np.ndarray], Finding]) -> Finding:
    """Judge a sample, or with `every_run` each of its replications."""
    found = judge(sample)
    if not check.get("every_run"):
        return found
    return found._replace(holds=all(judge(one).holds for one in sample[:, None]))


def together(findings: Sequence[Finding], samples: Sequence[np.ndarray]) -> Finding:
    """Return one finding for all places of a sweep; a single finding is returned as it is."""
    if len(findings) == 1:
        return findings[0]
    return Finding(all(finding.holds for finding in findings), judgement.listed(samples))


def judge_trend(engine: Engine, check: Claim) -> Finding:
    """Judge a trend along a sweep."""
    places, samples = sweep(engine, check)
    if check["direction"] == "flat":
        return judgement.flat(samples, limit(check))
    return judgement.trend(samples, np.array(places, float), check["direction"] == "rising")


def judge_steps(engine: Engine, check: Claim) -> Finding:
    """Judge the steps of a sweep, each by itself: rising, falling, or never falling."""
    _, samples = sweep(engine, check)
    tests = {
        "falling": lambda: judgement.falling(list(samples)),
        "rising": lambda: judgement.falling(list(samples[::-1])),
        "never falling": lambda: not any(map(judgement.exceeds, samples, samples[1:])),
    }
    return Finding(tests[check["direction"]](), judgement.listed(samples))


def judge_order(engine: Engine, check: Claim) -> Finding:
    """Judge an order of values; if a word asks for it, each value against a share of the value before."""
    share, logarithmic = limit(check, 1.0), check.get("logarithmic", False)
    findings = [
        judgement.order(entries(engine, one), share, logarithmic=logarithmic) for one in at_places(check)
    ]
    return Finding(all(one.holds for one in findings), ", ".join(one.seen for one in findings))


def judge_growth(engine: Engine, check: Claim) -> Finding:
    """Judge an order of differences."""
    pairs = [[sample_of(engine, check, name) for name in pair] for pair in check["order"]]
    rises = [high - low for high, low in pairs]
    if check.get("relative"):
        rises = [rise / high for rise, (high, _) in zip(rises, pairs, strict=True)]
    return judgement.order(rises, limit(check, 1.0))


def judge_share(engine: Engine, check: Claim) -> Finding:
    """Judge the last sample of an order against the first."""
    samples = entries(engine, check) if "order" in check else sweep(engine, check)[1]
    first, last = float(samples[0].mean()), float(samples[-1].mean())
    return Finding(last <= limit(check, 1.0) * first, f"{last:.3g} against {first:.3g}")


def judge_place(engine: Engine, check: Claim) -> Finding:
    """Judge where along a sweep an extreme lies."""
    places, samples = sweep(engine, check)
    lower = check.get("lower", check.get("value", 0) - check.get("abs_tol", 0))
    upper = check.get("upper", check.get("value", 0) + check.get("abs_tol", 0))
    if check["kind"] == "inner":
        compared = np.log(samples) if check.get("logarithmic") else samples
        found = judgement.inner(compared, places, lower, upper, check.get("least", False))
        return Finding(found.holds, judgement.listed(samples))
    judge_it = judgement.best if check["kind"] == "best" else judgement.smallest_sufficient
    return judge_it(samples, places, lower, upper)


JUDGES: dict[str, Callable[[Engine, Claim], Finding]] = {
    "value": judge_value,
    "bound": judge_bound,
    "trend": judge_trend,
    "steps": judge_steps,
    "order": judge_order,
    "growth": judge_growth,
    "share": judge_share,
    "best": judge_place,
    "smallest": judge_place,
    "inner": judge_place,
}


def cases(claim: Claim) -> Iterator[Claim]:
    """Yield the checks of a claim: its cases, each at each combination of the values in `each`."""
    found = [within({"label": ""} | claim, case) for case in claim.get("cases", [{}])]
    for axis in claim.get("each", ()):
        found = [
            within(
                one,
                {"label": joined(one["label"], axis["label"].format(value))},
                _changed({axis["key"]: value}),
            )
            for one in found
            for value in axis["values"]
        ]
    yield from found


def joined(label: str, more: str) -> str:
    """Return the label of a check with more words about it."""
    return f"{label}, {more}".lstrip(", ")


def checks(claim: Claim) -> Iterator[Claim]:
    """Yield the checks of a claim, each with and without jitter where `[check]` asks for both."""
    for check in cases(claim):
        yield check
        if check.get("jitter") and all(
            s.radio.model == "perfect" and s.transport.protocol == "tcp" for s in scenarios(check)
        ):
            yield check | {"jitter_s": JITTER_S, "label": joined(check["label"], "jitter")}
        others = {name: {"set": sets} for name, sets in claim.get("readings", {}).items()}
        if "fit" in claim:
            others["fit"] = {"scenario": claim["fit"]}
        for name, changes in others.items():
            yield within(check, changes, {"counts": False, "label": joined(check["label"], name)})


def scenarios(check: Claim) -> list[Scenario]:
    """Return the scenarios of a check before its sweep."""
    order = check.get("order", [{}])
    flat = [entry for pair in order for entry in pair] if check["kind"] == "growth" else order
    return [scenario_of(within(check, entry)) for entry in flat]


def module_of(paper: str) -> ModuleType:
    """Return the module of a publication, whose functions are the procedures that its record names."""
    return import_module(f"btqueue.reproduction.claims.{paper.replace('-', '_')}")


def judge(paper: str, claim: Claim, engine: Engine) -> Judged:
    """Judge a claim; for a claim that unit tests check, pytest tells whether they pass.

    Theory has no limit cycles, so checks with jitter are for the simulator alone.
    """
    if not is_judged(claim):
        return Judged(())
    if is_tested(claim):
        return _by_tests(claim)
    if claim["kind"] == "procedure":
        return of_procedure(engine, getattr(module_of(paper), claim["procedure"]), claim)
    if claim["kind"] == "summary":
        record = claims_of(paper)
        return Judged(tuple(summarised(name, judge(paper, record[name], engine)) for name in claim["claims"]))
    wanted = [check for check in checks(claim) if engine.is_simulator or "jitter_s" not in check]
    parts = [part(engine, JUDGES[check["kind"]], check) for check in wanted]
    return Judged(tuple(as_one(parts) if claim.get("together") else parts))


def _by_tests(claim: Claim) -> Judged:
    named = [Part("", True, f"checked by test {name.rpartition('/')[2]}") for name in claim["tests"]]
    return Judged((*named, *(Part("", False, f"no test: {what}") for what in claim.get("untested", ()))))


def as_one(parts: Sequence[Part]) -> list[Part]:
    """Return the checks that count as one, which holds if all of them do; and the others."""
    counted = [one for one in parts if one.counts]
    answered = [one.holds for one in counted if one.holds is not None]
    seen = "; ".join(f"{one.label}: {one.seen}" if one.label else one.seen for one in counted)
    whole = Part("", all(answered) if len(answered) == len(counted) else None, seen)
    return [whole, *(one for one in parts if not one.counts)]


def of_procedure(engine: Engine, procedure: Procedure, claim: Claim) -> Judged:
    """Return the checks of a function, or why the engine has no answer."""
    try:
        found = procedure(engine, claim)
    except NoAnswer as reason:
        return Judged((Part("", None, str(reason)),))
    return Judged((Part("", bool(found.holds), found.seen),)) if isinstance(found, Finding) else found


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
