"""Names and groups of flows: in scenarios, results and expressions."""

import csv
import json
import math

import numpy as np
import pytest
from command_line import failure, run

from btqueue import simulate, solve
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.expressions import Quantity, parse_metric, parse_quantity
from btqueue.scenario.topology import topology
from btqueue.study.dimensioning.problem import parse_constraint
from btqueue.study.summary import Estimate, student_half_width
from btqueue.study.sweep import sweep

DOWNLOAD = {"from": "c1", "to": "p1.1", "name": "download", "law": "greedy"}
SENSORS = [
    {"from": f"p1.{number}", "to": "c1", "group": "sensors", "load_kbps": load}
    for number, load in ((2, 20), (3, 5), (4, 20))
]
WARD = Scenario(
    network={"peripherals": 4, "flows": [DOWNLOAD, *SENSORS]},
    traffic={"load_kbps": 20, "message_bytes": 100},
    run={"duration_s": 5, "warmup_s": 1, "replications": 2},
)
VALUE = Estimate(126.25, part="flow", means=(460.0, 20.0, 5.0, 20.0))


def test_a_group_of_flows_chooses_the_links_of_its_peripherals():
    """`current_ma[sensors]` was refused, although `current_ma[1]` was not."""
    sensors = WARD.changed({"link.bearer": "le"})
    links = Estimate(4.0, part="link", means=(9.0, 1.0, 2.0, 3.0))
    for text, mean in (("current_ma[sensors]", 2.0), ("max(current_ma, sensors)", 3.0)):
        quantity = parse_metric(text, "--metric", sensors)
        assert quantity.places == (2, 3, 4) and quantity.of(links) == mean
    assert parse_metric("slot_share[download]", "--metric", WARD).places == (1,)
    flows = [{"from": "p2.1", "to": "p1.2", "name": "over"}, {"from": "c1", "to": "c2", "name": "none"}]
    bridged = Scenario(network={"topology": "scatternet", "peripherals": 2, "flows": flows})
    assert parse_metric("slot_share[over]", "", bridged).places == (2, 4)
    with pytest.raises(ScenarioError, match="no peripheral is an end of"):
        parse_metric("slot_share[none]", "", bridged)


def test_flows_are_called_by_their_names_and_else_by_their_ends():
    plan = topology(WARD)
    assert plan.flow_names == ["download", "p1.2>c1", "p1.3>c1", "p1.4>c1"]
    assert plan.groups == ("sensors",)
    members = {"download": (1,), "sensors": (2, 3, 4), "p1.4>c1": (4,), "": ()}
    assert {name: plan.members(name) for name in members} == members
    # the way back of a flow is another flow in another group
    plan = topology(WARD.with_(traffic__two_way=True))
    assert plan.flow_names[4:] == ["download back", "c1>p1.2", "c1>p1.3", "c1>p1.4"]
    assert plan.groups == ("sensors", "sensors back")


@pytest.mark.parametrize("listed", [True, False])
def test_flows_over_radio_links_with_own_keys_are_another_group(listed):
    """Theory and simulation then show the rate of the weak link beside the others, not a mean of both."""
    flows = [{"from": f"p1.{number}", "to": "c1"} for number in (1, 2, 3)] if listed else "uplink"
    weak = {"node": "p1.3", "model": "constant", "ber": 1e-4}
    scenario = Scenario.from_dict({"network": {"peripherals": 3, "flows": flows}, "radio": {"links": [weak]}})
    both = "p1.1>c1 and 1 alike"
    assert topology(scenario).kinds == (both, both, "p1.3>c1")
    assert solve(scenario).group.values.tolist() == [both, both, "p1.3>c1"]


def test_patterns_keep_their_labels_and_have_no_groups():
    solved = solve(Scenario().with_(network__flows="downlink"))
    assert solved.flow_name.values.tolist() == ["c1>p1.1", "c1>p1.2"]
    assert "group" not in solved.coords


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("goodput_kbps", 126.25, "goodput_kbps"),
        ("goodput_kbps[2]", 20, "goodput_kbps[2]"),
        ("goodput_kbps[download]", 460, "goodput_kbps[download]"),
        ("goodput_kbps[ sensors ]", 15, "goodput_kbps[sensors]"),
        ("goodput_kbps[p1.3>c1]", 5, "goodput_kbps[p1.3>c1]"),
        ("mean(goodput_kbps, sensors)", 15, "goodput_kbps[sensors]"),
        ("min(goodput_kbps, sensors)", 5, "min(goodput_kbps, sensors)"),
        ("max(goodput_kbps,sensors)", 20, "max(goodput_kbps, sensors)"),
        ("sum(goodput_kbps, sensors)", 45, "sum(goodput_kbps, sensors)"),
        ("sum(goodput_kbps)", 505, "sum(goodput_kbps)"),
        ("max(goodput_kbps, 3)", 5, "max(goodput_kbps, 3)"),
    ],
)
def test_an_expression_is_over_the_flows_that_it_names(text, value, shown):
    quantity = parse_metric(text, "test", WARD)
    assert str(quantity) == shown
    assert quantity.of(VALUE) == value
    np.testing.assert_allclose(quantity.over(np.array([VALUE.means] * 2)), value)
    assert parse_quantity(f"2 * {text}", "test", WARD).value({"goodput_kbps": VALUE}, {}) == 2 * value


def test_a_percentile_is_that_of_the_flow_where_it_is_greatest():
    quantity = parse_metric("p95(delay_s, sensors)", "test", WARD)
    assert quantity == Quantity("delay_p95_s", "max", (2, 3, 4), "sensors")
    assert quantity.of(Estimate(9.0, part="flow", means=(9.0, 0.1, math.nan, 0.3))) == 0.3


def test_a_bound_may_name_flows_by_their_ends():
    bound = parse_constraint("min(goodput_kbps, p1.3>c1) >= 2 * goodput_kbps[p1.2>c1] - 50", WARD)
    assert (bound.sense, bound.bound) == (">=", -50)
    assert bound.expression.value({"goodput_kbps": VALUE}, {}) == 5 - 40


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("goodput_kbps[sensor]", 'mean "sensors"? the groups are sensors; the flows are download, p1.2>c1'),
        ("max(goodput_kbps, nobody)", "there is no flow and no group"),
        ("goodput_kbps[]", "there is no flow and no group"),
        ("goodput_kbps[sensors", "is not closed"),
        ("queue_packets[sensors]", "has no value for each flow"),
        ("p95(goodput_kbps, sensors)", "has no percentiles"),
        ("p97(delay_s)", "did you mean p9"),
    ],
)
def test_names_that_nobody_has_are_refused_with_those_that_exist(text, words):
    with pytest.raises(ScenarioError) as error:
        parse_quantity(text, "--maximize", WARD)
    assert words in str(error.value)


def test_a_sweep_has_values_of_groups_and_their_intervals_over_replications():
    base = WARD.with_(run__precision_of="goodput_kbps[download]")
    texts = ["sum(goodput_kbps, sensors)", "goodput_kbps[download]"]
    over = {"traffic.message_bytes": [100, 200]}
    found = sweep(base, over, engine="simulate", metrics=texts, workers=1)
    assert found["group"].values.tolist() == ["download", "sensors", "sensors", "sensors"]
    assert found[texts[0]].attrs == {"units": "kbit/s", "long_name": texts[0]}
    alone = simulate(base.with_(traffic__message_bytes=200)).goodput_kbps
    for text, samples in zip(texts, (alone[:, 1:].sum("flow"), alone[:, 0]), strict=True):
        assert float(found[text][1]) == pytest.approx(float(samples.mean()))
        assert float(found[f"{text}_ci95"][1]) == pytest.approx(student_half_width(samples.values))
    solved = sweep(base, over, metrics=texts, workers=1)
    assert np.isfinite(solved[texts[0]]).all()


def test_commands_carry_names_and_refuse_unknown_ones(tmp_path):
    (tmp_path / "ward.toml").write_text(WARD.to_toml(resolved=False))
    scenario, out = str(tmp_path / "ward.toml"), tmp_path / "ward.csv"
    words = ("--out", out, "--json", "--quiet", "--until", "goodput_kbps[download] to 90 %")
    found = run("simulate", scenario, *words)
    assert json.loads(found.stdout)["simulate"]["precision"]["of"] == "goodput_kbps[download]"
    rows = [row for row in csv.DictReader(out.read_text().splitlines()) if row["metric"] == "goodput_kbps"]
    labels = topology(WARD).flow_labels()
    every = zip(map(str, labels["flow"]), labels["flow_name"], labels["group"], strict=True)
    assert {(row["flow"], row["flow_name"], row["group"]) for row in rows} == {*every}
    for name, wanted in (("flows", labels["flow_name"]), ("groups", labels["group"])):
        for engine in ("solve", "simulate"):
            assert json.loads(run(engine, scenario, "--json", "--quiet").stdout)[engine][name] == wanted
    words = ("--over", "traffic.load_kbps=5,6", "--metric", "goodput_kbps[downlod]")
    assert 'did you mean "download"?' in failure("sweep", scenario, *words)
    words = ("--set", "run.precision_of=max(rtt_s, sensor)")
    assert "the groups are sensors" in failure("simulate", scenario, *words)


def test_check_compares_flows_and_groups_by_name(tmp_path):
    (tmp_path / "ward.toml").write_text(WARD.to_toml(resolved=False))
    theirs = tmp_path / "theirs.csv"
    words = ["check", str(theirs), "--scenario", str(tmp_path / "ward.toml"), "--no-simulate", "--json"]
    theirs.write_text('metric,value\ngoodput_kbps[download],2000\n"sum(goodput_kbps, sensors)",45\n')
    judged = json.loads(run(*words).stdout)["check"]["metrics"]
    verdicts = {name: one["verdict"] for name, one in judged.items()}
    assert verdicts == {"goodput_kbps[download]": "differs", "sum(goodput_kbps, sensors)": "agrees"}
    theirs.write_text("metric,value\ngoodput_kbps[downlod],2000\n")
    assert 'did you mean "download"?' in failure(*words)
