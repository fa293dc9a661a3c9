"""The claims of publications: what is on record, how a claim is checked, and its verdict.

`models/<paper>/published.toml` holds the claims. A module claims_<paper>.py checks them by functions, or the
record itself says how. Such a claim is one check, or several: each entry of `cases` overrides keys of the
claim (`set` is added to). Kinds of checks:

* value: a number within rel_tol or abs_tol; bound: within lower and upper, at each place of the sweep
* trend: rising, falling or flat along the sweep
* order: each entry of `order` exceeds the next one; growth: so do the differences of pairs
* share: the last against the first is at most `upper`
* best: where the largest value lies; smallest: the first place that reaches the largest value
* inner: a local extreme between lower and upper
* test: unit tests that check it (`untested` says what they leave out)
* procedure: a function of the publication's own module
* summary: other claims together; none: not simulated
"""

import sys
import tomllib
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import judgement
import numpy as np
import xarray as xr
from judgement import Finding

import btqueue as bt
from btqueue.scenario import Scenario
from btqueue.scenario.library import models_folder

ROOT = Path(__file__).parents[2]
JITTER_S = 0.002
"""Processing delays that average over the limit cycles of a saturated perfect radio."""
REPRODUCED, IN_PART, NOT_REPRODUCED = "reproduced", "in part", "not reproduced"
NOT_SIMULATED = "not simulated"

Claim = dict[str, Any]
Procedure = Callable[[Claim], Finding]
Found = TypeVar("Found")


def claims_of(paper: str) -> dict[str, Claim]:
    """Return the claims on record, by id."""
    record = tomllib.loads((models_folder() / paper / "published.toml").read_text("utf-8"))
    return {claim["id"]: claim for claim in record["claim"]}


def run(checks: Mapping[str, Callable[[], Found]]) -> dict[str, Found]:
    """Run checks by name; which one is under way and what it found is said on stderr."""
    found = {}
    for number, (name, check) in enumerate(checks.items(), start=1):
        print(f"{number}/{len(checks)} {name}:", end=" ", file=sys.stderr, flush=True)
        found[name] = check()
        print(found[name], file=sys.stderr, flush=True)
    return found


def verdict(holds: Collection[bool]) -> str:
    """Return the verdict on a claim from whether each of its checks, or parts, holds."""
    if not holds:
        return NOT_SIMULATED
    return REPRODUCED if all(holds) else IN_PART if any(holds) else NOT_REPRODUCED


class Comparison(NamedTuple):
    """What a paper says beside what was simulated, and which parts of it hold."""

    published: str
    simulated: str
    parts: Mapping[str, bool]

    @property
    def failed(self) -> list[str]:
        """The parts that do not hold."""
        return [part for part, holds in self.parts.items() if not holds]

    @property
    def verdict(self) -> str:
        """The verdict; a claim that holds in part names what does not."""
        judged = verdict(self.parts.values())
        return f"{judged}; not: {', '.join(self.failed)}" if judged == IN_PART else judged


def mean_over_flows(result: xr.Dataset, metric: str) -> np.ndarray:
    """Return the metric's mean over flows in each replication."""
    values = result[metric]
    return (values.mean("flow") if "flow" in values.dims else values).values


def sample(scenario: Scenario, metric: str, **changes: Any) -> np.ndarray:
    """Simulate and return the metric's mean over flows in each replication."""
    return mean_over_flows(bt.simulate(scenario.with_(**changes)), metric)


# ---------------------------------------------------------------- checks that the record describes


class Result(NamedTuple):
    """A check of a claim: its name, what was found, and whether it counts for the verdict."""

    label: str
    finding: Finding
    counts: bool = True


@cache
def simulated(scenario: Hashable) -> dict[str, np.ndarray]:
    """Return every metric, per flow with shape (replications, flows), or of the whole network."""
    assert isinstance(scenario, Scenario)
    result = bt.simulate(scenario)
    return {str(name): variable.values for name, variable in result.data_vars.items()}


def scenario_of(check: Claim, *more: Claim | str) -> Scenario:
    """Return the scenario of a check, with the name and the settings of `more` on top."""
    name, sets = check.get("scenario"), list(check.get("set", ()))
    for entry in more:
        entry = {"scenario": entry} if isinstance(entry, str) else entry
        name = entry.get("scenario", name)
        sets += entry.get("set", ())
    scenario = bt.load(str(name), sets)
    return scenario.with_(run__replications=check.get("replications", 10), run__jitter_s=check["jitter_s"])


def sample_of(check: Claim, scenario: Scenario, metric: str | None = None) -> np.ndarray:
    """Return the metric of each replication: of the named flow, or its mean over those that have it."""
    values = simulated(cast(Hashable, scenario))[metric or check["metric"]]
    if values.ndim > 1:
        values = values[:, check["flow"] - 1] if "flow" in check else np.nanmean(values, axis=1)
    return values * check.get("times", 1)


def entries(check: Claim) -> list[np.ndarray]:
    """Return the samples of the entries of `order`."""
    entries = [{"scenario": e} if isinstance(e, str) else e for e in check["order"]]
    return [sample_of(check, scenario_of(check, e), e.get("metric")) for e in entries]


def sweep(check: Claim) -> tuple[list[float], np.ndarray]:
    """Return the places of the sweep and their samples, shape (places, replications)."""
    key, places = check["sweep"]["key"], check["sweep"]["values"]
    beside = check["sweep"].get("beside", {})
    samples = []
    for i, place in enumerate(places):
        sets = [f"{key}={place}", *(f"{other}={values[i]}" for other, values in beside.items())]
        samples.append(sample_of(check, scenario_of(check, {"set": sets})))
    return places, np.array(samples)


def tolerance(check: Claim) -> float:
    """Return the absolute tolerance of the published value."""
    return check.get("abs_tol", check.get("rel_tol", 0.0) * check["value"])


def judge(check: Claim) -> Finding:
    """Run one check that needs simulations."""
    return JUDGES[check["kind"]](check)


def judge_value(check: Claim) -> Finding:
    return judgement.value(sample_of(check, scenario_of(check)), check["value"], tolerance(check))


def judge_bound(check: Claim) -> Finding:
    slack = 1 + check.get("rel_tol", 0.0)
    lower, upper = check.get("lower", -np.inf) / slack, check.get("upper", np.inf) * slack
    if "sweep" not in check:
        return judgement.bound(sample_of(check, scenario_of(check)), lower, upper)
    _, samples = sweep(check)
    findings = [judgement.bound(one, lower, upper) for one in samples]
    return Finding(all(finding.holds for finding in findings), judgement.listed(samples))


def judge_trend(check: Claim) -> Finding:
    places, samples = sweep(check)
    if check["direction"] == "flat":
        return judgement.flat(samples, check["rel_tol"])
    return judgement.trend(samples, np.array(places, float), check["direction"] == "rising")


def judge_order(check: Claim) -> Finding:
    return judgement.order(entries(check))


def judge_growth(check: Claim) -> Finding:
    pairs = [[sample_of(check, scenario_of(check, name)) for name in pair] for pair in check["order"]]
    return judgement.order([high - low for high, low in pairs])


def judge_share(check: Claim) -> Finding:
    samples = entries(check) if "order" in check else sweep(check)[1]
    first, last = samples[0].mean(), samples[-1].mean()
    return Finding(last <= check["upper"] * first, f"{last:.3g} against {first:.3g}")


def judge_place(check: Claim) -> Finding:
    places, samples = sweep(check)
    lower = check.get("lower", check.get("value", 0) - check.get("abs_tol", 0))
    upper = check.get("upper", check.get("value", 0) + check.get("abs_tol", 0))
    if check["kind"] == "inner":
        return judgement.inner(samples, places, lower, upper, check.get("least", False))
    judge_it = judgement.best if check["kind"] == "best" else judgement.smallest_sufficient
    return judge_it(samples, places, lower, upper, check["tie_tol"])


JUDGES: dict[str, Callable[[Claim], Finding]] = {
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
        if "fit" in claim:
            yield check | {"scenario": claim["fit"], "label": f"{check['label']}, fit".lstrip(", ")}


def scenarios(check: Claim) -> list[Scenario]:
    """Return the scenarios of a check before its sweep."""
    if check["kind"] == "growth":
        return [scenario_of(check, name) for pair in check["order"] for name in pair]
    return [scenario_of(check, entry) for entry in check.get("order", [{}])]


def points(claim: Claim) -> int:
    """Return about how many points a claim simulates."""
    if claim["kind"] not in JUDGES:
        return 100 if claim["kind"] == "procedure" else 0
    sizes = (len(c["sweep"]["values"]) if "sweep" in c else len(scenarios(c)) for c in checks(claim))
    return sum(sizes) * claim.get("replications", 10) // 10


def results(claim: Claim, procedures: dict[str, Procedure]) -> list[Result]:
    """Run all checks of a claim."""
    if claim["kind"] == "procedure":
        return [Result("", procedures[claim["procedure"]](claim))]
    if claim["kind"] == "test":
        left_out = [Result("", Finding(False, text)) for text in claim.get("untested", ())]
        return [Result("", tested(name)) for name in claim["tests"]] + left_out
    return [
        Result(c["label"], judge(c), c["scenario"] != claim.get("fit") if "fit" in claim else True)
        for c in checks(claim)
    ]


def tested(name: str) -> Finding:
    """Find the test that checks a mechanism; whether it passes is for pytest to say."""
    path, _, function = name.partition("::")
    found = f"def {function}" in (ROOT / path).read_text("utf-8")
    return Finding(found, f"`{function or path}`")


def verdict_of(found: list[Result]) -> str:
    """Return what the checks that count say together."""
    return verdict([result.finding.holds for result in found if result.counts])


def judged(
    claim: Claim, procedures: dict[str, Procedure], record: dict[str, Claim]
) -> tuple[str, list[Result]]:
    """Return verdict and results of a claim; `record` holds all claims by id."""
    if claim["kind"] == "none":
        return NOT_SIMULATED, []
    if claim["kind"] == "summary":
        parts = [(name, judged(record[name], procedures, record)[0]) for name in claim["claims"]]
        found = [Result(name, Finding(part == REPRODUCED, part)) for name, part in parts]
        return verdict_of(found), found
    found = results(claim, procedures)
    return verdict_of(found), found
