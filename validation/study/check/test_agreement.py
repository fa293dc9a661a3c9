"""Agreement: tests by hand, Holm's procedure, and verdicts in sentences."""

import dataclasses
import math
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from thesis import thesis

from btqueue.network import solve
from btqueue.network.measured_errors import Kind, MeasuredError, measured_errors
from btqueue.scenario import Scenario, ScenarioError, load
from btqueue.study.check import ForeignResults, Quantity, check
from btqueue.study.check.agreement import (
    UNMEASURED,
    Rules,
    compare_all,
    holm,
    model_values,
    p_value,
    prediction_p_value,
    reference_samples,
)
from btqueue.study.check.causes import neighbours
from btqueue.study.check.consistency import check_spread
from btqueue.study.check.facts import Facts
from btqueue.study.evaluate import evaluate
from btqueue.study.summary import partial_times

OURS = np.array([100.0, 102.0, 98.0, 101.0, 99.0])
RULES = Rules(runs=10, seconds=480.0)


def compared(
    quantity: Quantity, ours: np.ndarray | None = OURS, model: float | None = None, rules=RULES, **options
):
    results = ForeignResults("theirs", "CSV", {quantity.name: quantity})
    samples = {} if ours is None else {quantity.name: ours}
    answers = {} if model is None else {quantity.name: model}
    return compare_all(results, samples, answers, rules=rules, **options)[0]


def test_replications_and_the_interval_that_stands_for_them_are_compared_by_welch():
    theirs = (101.0, 105.0, 103.0, 104.0)
    found: Any = stats.ttest_ind(theirs, OURS, equal_var=False)
    width = float(stats.t.ppf(0.975, 3) * np.std(theirs, ddof=1) / 2)
    mean = float(np.mean(theirs))
    for quantity in (
        Quantity("goodput_kbps", mean, theirs),
        Quantity("goodput_kbps", mean, half_width=width, replications=4),
    ):
        assert p_value(quantity, OURS, 10) == pytest.approx(found.pvalue)


def test_a_file_of_one_flow_is_compared_with_this_flow_and_others_with_the_mean():
    simulated = xr.Dataset({"rtt_s": (("replication", "flow"), [[1.0, 2.0], [1.5, 3.5]])})
    for flow, expected in ((1, [1.0, 1.5]), (2, [2.0, 3.5]), (None, [1.5, 2.5])):
        results = ForeignResults("theirs", "CSV", {}, flow=flow)
        assert reference_samples(simulated, results, thesis())["rtt_s"].tolist() == expected


def test_times_that_theory_gives_for_some_flows_are_no_mean_over_all(monkeypatch):
    """A greedy flow has no delay; two others have one, and theory knows it of one of them only."""
    laws = {"p1.1": "greedy", "p1.2": "ibp", "p1.3": "ibp"}
    flows = [{"from": node, "to": "c1", "law": law} for node, law in laws.items()]
    run = {"run.duration_s": 20.0, "run.warmup_s": 5.0, "run.replications": 2, "traffic.load_kbps": 20.0}
    scenario = Scenario().changed({"network.peripherals": 3, "network.flows": flows, **run})
    values = {"goodput_kbps": [400.0, 20.0, 20.0], "delay_s": [math.nan, 0.02, math.nan]}
    solved = xr.Dataset({name: ("flow", value) for name, value in values.items()})
    assert partial_times(solved, scenario) == {"delay_s"}
    theirs = ForeignResults("theirs", "CSV", {})
    assert model_values(solved, theirs, scenario).keys() == {"goodput_kbps"}
    assert model_values(solved, replace(theirs, flow=2), scenario)["delay_s"] == 0.02
    monkeypatch.setattr("btqueue.network.solve", lambda _, **__: solved.assign_attrs(stands=True, why=()))
    found = evaluate(scenario, metrics=("delay_s",))
    assert "theory gives no delay_s here" in found.notes["why"] and "replications" in found.notes
    known = solved.assign(delay_s=("flow", [math.nan, 0.02, 0.02]))
    assert not partial_times(known, scenario)


def test_a_single_run_is_compared_with_single_runs():
    assert prediction_p_value(100.5, OURS) >= 2 / 6
    outside = prediction_p_value(120.0, OURS)
    normal = 2 * stats.t.sf(20 / math.sqrt(OURS.var(ddof=1) * 1.2), 4)
    assert normal <= outside < 0.01


def test_a_single_skewed_run_is_judged_on_the_scale_that_accuses_least():
    # 200 log-normal values, level 1 %: more than 8 alarms have a probability of 0.0002 at most.
    generator = np.random.default_rng(1)
    samples = np.exp(generator.normal(size=(200, 31)))
    assert sum(prediction_p_value(each[0], each[1:]) < 0.01 for each in samples) <= 8


def test_where_nothing_is_random_the_range_of_our_runs_and_the_tolerance_judge():
    rules = Rules(tolerance=0.03, random=False)
    for value, verdict, words in (
        (98.5, "agrees", "within the range of our runs with jittered starts, 98 to 102"),
        (103.2, "agrees", "differs by 1.2 %, within the tolerance of 3 %"),
        (105.2, "differs", "differs by 3.2 %, beyond the tolerance of 3 % (chance explains nothing here; "),
        (94.9, "differs", "ours is 98 to 102"),
    ):
        # an interval of the file has no say either
        for quantity in (Quantity("rtt_s", value), Quantity("rtt_s", value, half_width=50.0)):
            one = compared(quantity, OURS, rules=rules)
            assert (one.verdict, words in one.sentence) == (verdict, True), one.sentence
            assert math.isnan(one.p_value)
    none = compared(Quantity("rtt_sd_s", 0.02), np.zeros(3), rules=rules)
    assert "differs by 0.02, beyond the 1e-06 that do not matter" in none.sentence
    rare = compared(Quantity("timeouts_per_s", 0.02), np.array([0.015, 0.015]), rules=rules)
    assert "differs by 0.005, within the 0.01 that do not matter" in rare.sentence


def test_a_test_that_would_pass_half_or_twice_as_much_cannot_tell():
    def at(value, half_width):
        return compared(Quantity("rtt_s", value, half_width=half_width, replications=10), OURS)

    vague, sharp = at(100.0, 60.0), at(100.0, 3.0)
    assert (vague.verdict, sharp.verdict) == ("cannot tell", "agrees")
    assert "which chance explains (p = 1), but half or twice as much would pass, too" in vague.sentence
    excess = float(sharp.sentence.split("; ")[1].split("%")[0]) / 100
    for factor, verdict in ((0.9, "agrees"), (1.1, "differs")):
        assert at(100 * (1 + factor * excess), 3.0).verdict == verdict


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}, 0.05) == {"a"}
    assert holm({"a": 0.01, "b": 0.02, "c": 0.03, "d": math.nan}, 0.05) == {"a", "b", "c"}
    assert holm({}, 0.05) == set()


ERRORS = {"goodput_kbps": MeasuredError(213, 0.004, 0.04, 0.12)}
NEAR = "the model (97, error at most 4%) does not contradict theirs"
MEASURED, OF_POINTS = "its measured error of 4.0%", "(95 % of 213 points keep it) | weak evidence"
ALLOWED = "the 50% allowed, for its error in this metric was never measured"


def goodput(value: float, **fields) -> Quantity:
    return Quantity("goodput_kbps", value, **fields)


@pytest.mark.parametrize(
    ("quantity", "ours", "model", "verdict", "words"),
    [
        (goodput(100.5), OURS, 97.0, "agrees", f"which chance explains | {NEAR}"),
        (goodput(100.9), OURS / 1000 + 100, None, "negligible", "too small a difference to matter"),
        (goodput(130.0), OURS, 100.0, "differs", "30.0% above the simulation, more than chance explains"),
        (goodput(130.0), None, None, "not compared", ""),
        (goodput(104.0), None, 100.0, "agrees", f"within {MEASURED} {OF_POINTS}"),
        (goodput(110.0), None, 100.0, "differs", f"beyond {MEASURED}"),
        # their own interval is chance, which the model's error does not cover
        (goodput(110.0, half_width=7.0), None, 100.0, "agrees", f"within {MEASURED}"),
        (Quantity("loss_arq", 0.014), None, 0.01, "agrees", f"within {ALLOWED}"),
        (Quantity("loss_arq", 0.03), None, 0.01, "differs", f"beyond {ALLOWED}"),
    ],
)
def test_verdicts_and_their_sentences(quantity, ours, model, verdict, words):
    """Without a simulation the model judges within its measured error, or within a stated default."""
    one = compared(quantity, ours, model, errors=ERRORS)
    assert one.verdict == verdict and all(each in one.sentence for each in words.split(" | ")), one.sentence
    if ours is None and model is not None:
        assert one.model_error == (0.04 if quantity.name in ERRORS else UNMEASURED) and UNMEASURED == 0.5


def test_the_errors_are_those_of_the_model_that_answered():
    # in goodput the piconet is within a few per cent at 95 of 100 points
    star = thesis().with_(network__flows="downlink", link__arq="unlimited", flow_control__enabled=False)
    lossy = load("venugopal-2006/piconet-errors")
    for scenario in (star, lossy):
        answer = solve(scenario)
        solved = float(answer.goodput_kbps.mean())
        kind = Kind(answer.attrs["system"], answer.attrs["regime"])
        known = measured_errors(answer.attrs["errors_of"], kind)["goodput_kbps"].high
        for factor, verdict in ((1 + 0.9 * known, "agrees"), (1 / (1 - 1.2 * known), "differs")):
            quantity = Quantity("goodput_kbps", solved * factor, half_width=0.0)
            results = ForeignResults("theirs", "CSV", {"goodput_kbps": quantity})
            (found,) = check(results, scenario, simulate=None).agreements
            assert (found.verdict, found.model_error) == (verdict, known)


def test_replications_that_vary_too_little_are_doubted():
    ours = {"rtt_s": np.random.default_rng(3).normal(1, 0.1, 20)}
    narrow, fair = (Quantity("rtt_s", 1.0, half_width=width, replications=10) for width in (0.001, 0.07))
    (found,) = check_spread(ForeignResults("t", "CSV", {"rtt_s": narrow}), ours, RULES)
    assert found.status == "doubtful" and "too optimistic" in found.sentence
    assert check_spread(ForeignResults("t", "CSV", {"rtt_s": fair}), ours, RULES) == ()


@pytest.mark.parametrize(
    "name", ["suliman-2005/round-trips", "johansson-2000/asymmetric", "ble-sensors/sensors"]
)
def test_the_neighbours_of_a_scenario_differ_from_it_and_from_each_other(name):
    scenario = load(name)
    found = list(neighbours(scenario, ForeignResults("t", "CSV", {})))
    for one in found:
        assert any(scenario.value_of(key) != value for key, value in one.changes.items())
        try:
            changed = scenario.changed(one.changes)
        except ScenarioError:  # a limit of 0
            continue
        assert {key: changed.value_of(key) for key in one.changes} == one.changes
        assert changed != scenario
    assert len({str(one.changes) for one in found}) == len(found)


def test_a_controller_that_the_interval_rules_out_is_not_tried():
    short = load("ble-throughput/notifications-softdevice").changed({"le.interval_s": 0.004})
    found = neighbours(short, ForeignResults("t", "CSV", {}))
    tried = {one.changes["le.controller"] for one in found if "le.controller" in one.changes}
    assert tried and "softdevice" not in tried


def test_another_call_is_tried_beside_a_call_only():
    scenario = load("practice/car")
    for packet, others in (("HV3", ["none", "EV3", "2-EV3"]), ("none", [])):
        found = neighbours(scenario.with_(voice__packet=packet), ForeignResults("t", "CSV", {}))
        assert [one.changes["voice.packet"] for one in found if "voice.packet" in one.changes] == others


def runs(**values: float) -> xr.Dataset:
    """Return ten replications of a flow, a thousandth apart."""
    spread = 1 + 0.001 * np.arange(10)[:, None]
    return xr.Dataset({name: (("replication", "flow"), value * spread) for name, value in values.items()})


def made_up(scenario):
    """A stand-in for a simulator: goodput and round trip are the buffer, timeouts the least timeout."""
    buffer = scenario.value_of("network.outside_links[1].buffer_packets")
    return runs(goodput_kbps=buffer * 10, rtt_s=buffer / 100, timeouts_per_s=scenario.transport.min_rto_s)


def checked(scenario, simulator=made_up, facts=(), model=None, spread=0.01, **values: float):
    """Check three replications, off by 0 and by this share of these values; or these values, if it is 0."""
    factors = (1.0 - spread, 1.0 + spread, 1.0) if spread else ()
    found = {
        name: Quantity(name, mean, tuple(mean * one for one in factors)) for name, mean in values.items()
    }
    theirs = ForeignResults("theirs", "CSV", found, facts=facts)
    return check(theirs, scenario, simulate=simulator, solve=model)


LINK = {"name": "wire", "from": "p1.0", "to": "host", "buffer_packets": 12, "loss": 0.1}
WIRE = thesis().changed({"network.outside_links": [LINK]})


@pytest.mark.parametrize(
    ("timeouts", "words", "remains"),
    [
        (1.0, "numbers fit network.outside_links[1].buffer_packets = 24 (the scenario has 12): another", ()),
        (7.0, "explains goodput and round-trip time; timeouts remain: another buffer", ("timeouts_per_s",)),
        (0.2, "24 (the scenario has 12) and transport.min_rto_s = 0.2 (the scenario has 1): another", ()),
    ],
)
def test_the_cause_that_explains_most_is_named_with_what_remains(timeouts, words, remains):
    report = checked(WIRE, goodput_kbps=240.0, rtt_s=0.24, timeouts_per_s=timeouts)
    assert any(words in one.sentence for one in report.causes)
    assert report.causes[0].remains == remains


WEAK = {"node": "p1.2", "model": "constant", "ber": 1e-4}
KEYS = Scenario.from_dict(
    {"radio": {"links": [WEAK]}, "link": {"arq": 4}, "polling": {"limit": 5}, "traffic": {"source": "greedy"}}
).changed({"transport.mss_bytes": 1460})
STATED: Any = dict.fromkeys(field.name for field in dataclasses.fields(Facts)) | {
    "place": "at the receiver", "segment_bytes": 1460, "option_bytes": 0, "under_way_bytes": 0,
    "timestamps": False, "begins_s": 0.0, "ends_s": 1.0, "paces": False,
}  # fmt: skip
"""The packets say 1460."""


@pytest.mark.parametrize(
    ("metric", "key", "value", "facts", "found"),
    [
        ("rtt_s", "link.arq", 5, (), True),
        ("goodput_kbps", "radio.links[1].ber", 2e-4, (), True),
        ("goodput_kbps", "polling.limit", 17, (), True),  # found between the values that are tried
        ("goodput_kbps", "transport.mss_bytes", 1600, (), True),
        ("goodput_kbps", "transport.mss_bytes", 1600, (Facts(**STATED),), False),
    ],
)
def test_the_value_of_a_key_is_found_unless_the_packets_state_another(metric, key, value, facts, found):
    """The stand-in has the value of the key in one of two metrics; replications differ by 0.3 %."""

    def simulator(one):
        return runs(**{"goodput_kbps": 1.0, "rtt_s": 1.0, metric: 1e6 * one.value_of(key)})

    theirs = {"goodput_kbps": 1.0, "rtt_s": 1.0, metric: 1e6 * value}
    report = checked(KEYS, simulator, facts, spread=0.003, **theirs)
    assert [dict(one.changes) for one in report.causes[:1]] == ([{key: value}] if found else [])
    assert {changed for one in report.causes for changed in one.changes} <= {key}
    assert key != "polling.limit" or "off-by-one" not in report.causes[0].sentence


@pytest.mark.parametrize(
    ("metric", "factor", "unit"),
    [
        ("rtt_s", 1000.0, "ms"),
        ("rtt_s", 1080.0, "ms"),  # wrong by 8 %, too
        ("goodput_kbps", 0.125, "kbyte/s"),
        ("goodput_kbps", 1024.0, "bit/s"),
    ],
)
def test_numbers_in_another_unit_are_recognised_before_any_neighbour_is_simulated(metric, factor, unit):
    simulator = Mock(side_effect=made_up)
    true = {str(name): float(values.mean()) for name, values in made_up(WIRE).items()}
    (cause,) = checked(WIRE, simulator, spread=0.0, **true | {metric: true[metric] * factor}).causes
    assert f"given in {unit}, not in " in cause.sentence and not cause.changes
    assert simulator.call_count == 1


def test_a_change_that_explains_less_than_half_is_no_cause():
    report = checked(WIRE, goodput_kbps=240.0, rtt_s=0.7, timeouts_per_s=7.0)
    assert len(report.differing) == 3 and report.tried and not report.causes


def test_keys_of_which_the_numbers_cannot_tell_are_named():
    report = checked(
        WIRE, model=lambda one: made_up(one).mean("replication"), spread=0.008, goodput_kbps=120.0
    )
    assert report.agrees
    assert "network.outside_links[1].loss" in report.unseen
    assert "network.outside_links[1].buffer_packets" not in report.unseen


def test_without_chance_the_runs_beside_theirs_are_jittered():
    seen = []

    def simulator(scenario):
        seen.append((scenario.run.replications, scenario.run.jitter_s))
        rtt = 0.5 + 10 * scenario.run.jitter_s * np.arange(scenario.run.replications)
        return xr.Dataset({"rtt_s": (("replication", "flow"), rtt[:, None])})

    quiet = thesis().with_(traffic__source="greedy", run__jitter_s=0.0)
    report = checked(quiet, simulator, spread=0.0, rtt_s=1.26)
    assert seen == [(1, 0.0), (16, 0.005)]  # a hundredth of the round trip
    assert report.agrees  # the range is 0.5 to 1.25
    assert report.summary == "agrees: 1 of 1 metrics, nothing inconsistent (nothing is random: tolerance 3 %)"
    with pytest.raises(ValueError, match="tolerance = 1: must be at least 0 and below 1"):
        check("theirs.csv", quiet, tolerance=1)
