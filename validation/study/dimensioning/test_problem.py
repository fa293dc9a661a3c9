"""What a dimensioning is asked: expressions, bounds and choices, read or refused in words."""

import math

import pytest
from dimension_stand_ins import BASE, CountingSolver, tent
from hypothesis import given
from hypothesis import strategies as st

from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.expressions import Quantity, parse_expression
from btqueue.scenario.problems import all_keys
from btqueue.study.dimensioning import dimension
from btqueue.study.dimensioning.problem import parse_choice, parse_choices, parse_constraint
from btqueue.study.summary import Estimate


@pytest.mark.parametrize(
    ("text", "sense", "bound", "strict"),
    [
        ("rtt_s <= 0.4", "<=", 0.4, False),
        ("rtt_s<=400ms", "<=", 0.4, False),
        ("400 ms >= rtt_s", "<=", 0.4, False),
        ("goodput_kbps > 0.15 Mbit/s", ">=", 150.0, True),
        ("loss_token_buffer < 5 %", "<=", 0.05, True),
        ("min(goodput_kbps) >= 80", ">=", 80.0, False),
        ("2 * rtt_s + 0.1 <= 0.5 + 0.2 s", "<=", 0.6, False),
        ("timeouts_per_s ≤ 6 1/min", "<=", 0.1, False),
        ("-rtt_s >= -0.4", "<=", 0.4, False),
        ("polling.limit + network.peripherals <= 12", "<=", 12.0, False),
    ],
)
def test_bounds_are_read(text, sense, bound, strict):
    constraint = parse_constraint(text)
    assert (constraint.sense, constraint.strict) == (sense, strict)
    assert constraint.bound == pytest.approx(bound, rel=1e-14)


def test_both_sides_of_a_bound_may_have_metrics_and_keys():
    constraint = parse_constraint("flow_control.token_rate_kbps <= 1.5 * goodput_kbps + 3 kbit/s")
    assert constraint.bound == 3 and not constraint.of_keys_only
    side = constraint.expression.value({"goodput_kbps": Estimate(100)}, {"flow_control.token_rate_kbps": 160})
    assert side == 10 and constraint.slack(side) == -7


numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@given(numbers, numbers, numbers)
def test_an_expression_is_worth_what_python_says(a, b, c):
    first, second = "-" if a < 0 else "", "-" if b < 0 else "+"
    text = f"{first}{abs(a)!r} * rtt_s {second} goodput_kbps * {abs(b)!r} + {abs(c)!r}"
    linear = parse_expression(text, "test").linear
    value = linear.value({"rtt_s": Estimate(0.25), "goodput_kbps": Estimate(80.0)}, {})
    assert value == pytest.approx(a * 0.25 + b * 80.0 + abs(c), rel=1e-12, abs=1e-9)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_in_words(text):
    for read in (lambda: parse_constraint(text), lambda: parse_expression(text, "--maximize")):
        try:
            read()
        except ScenarioError as error:
            assert str(error)


def test_aggregates_are_over_the_flows_that_have_a_value():
    value = Estimate(20.0, part="flow", means=(10.0, math.nan, 30.0))
    assert [Quantity("rtt_s", how).of(value) for how in ("mean", "min", "max")] == [20.0, 10.0, 30.0]
    assert Quantity("cycle_s", "max").of(Estimate(0.5)) == 0.5


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"maximize": "godput_kbps"}, "did you mean goodput_kbps?"),
        ({"maximize": "S"}, "did you mean flow_control.buffer_packets?"),
        ({"maximize": "goodput_kbps", "minimize": "rtt_s"}, "name one objective"),
        ({}, "name one objective"),
        ({"maximize": ""}, "name a metric"),
        ({"maximize": "3"}, "names no metric"),
        ({"maximize": "link.packets"}, "no number"),
        ({"maximize": "avg(goodput_kbps)"}, "mean(...), min(...) or max(...)"),
        ({"maximize": "min(polling.limit)"}, "one value"),
        ({"maximize": "rtt_s / 0"}, "division by 0"),
        ({"maximize": "rtt_s * delay_s"}, "by a number"),
        ({"maximize": "1e999 * rtt_s"}, "1e999 is too large a number"),
        ({"maximize": f"rtt_s / {'9' * 60_000}"}, "is too large a number"),
        ({"maximize": "1e-999 * rtt_s"}, "1e-999 is too close to 0"),
        ({"maximize": "rtt_s / 1e-320"}, "a divisor is too close to 0"),
        ({"maximize": "1e308 * rtt_s + 1e308 * rtt_s"}, "too large together"),
        ({"maximize": "2 min(rtt_s)"}, "write a * between the number and min"),
        ({"maximize": "rtt_s", "subject_to": "rtt_s <= 1e308 min"}, "too large together"),
        ({"maximize": "rtt_s", "subject_to": "rtt_s + 1e308 <= -1e308"}, "too large together"),
        ({"maximize": "rtt_s", "choose": "run.seed=0..9e18"}, "more than 1,000,000 values"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt <= 0.4"}, "did you mean rtt_s?"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <= 0.4 kbps"}, "rtt_s is in s"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <= 4 msec"}, "did you mean ms?"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s"}, "has no bound"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <="}, "nothing to read"),
        ({"maximize": "goodput_kbps", "subject_to": "0.1 <= rtt_s <= 0.4"}, "each of them alone"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s = 0.4"}, "equality"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s - rtt_s <= 1"}, "names no metric"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <= 2 delay_s"}, "write a *"),
        ({"maximize": "goodput_kbps", "choose": "polling.limt=1..5"}, "polling.limit"),
        ({"maximize": "goodput_kbps", "choose": "polling.limit"}, "KEY=VALUES"),
        ({"maximize": "goodput_kbps", "choose": []}, "nothing to choose"),
        ({"maximize": "goodput_kbps", "choose": "polling.limit=0..5"}, "at least 1"),
        ({"maximize": "goodput_kbps", "choose": "polling.limit=log(1,9)"}, "how many values"),
        ({"maximize": "goodput_kbps", "choose": ["polling.limit=1,2", "polling.limit=3"]}, "given twice"),
        ({"maximize": "goodput_kbps", "budget": 0}, "at least 1"),
        ({"maximize": "goodput_kbps", "top": -1}, "0 or more"),
        ({"minimize": "transport.mss_bytes", "choose": "transport.mss_bytes=abc,500"}, "whole number"),
        (
            {"maximize": "goodput_kbps", "subject_to": "link.packets <= 2", "choose": "link.packets=DH5,DH3"},
            "no numbers",
        ),
    ],
)
def test_what_cannot_be_read_is_said_in_words(question, words):
    solver = CountingSolver(tent)
    with pytest.raises(ScenarioError) as caught:
        dimension(BASE, **{"choose": "polling.limit=1..5", "solver": solver, **question})
    assert words in str(caught.value)
    assert not solver.asked


def test_choices_are_read_as_those_of_a_sweep():
    assert parse_choice("polling.limit", "1..4").values == (1, 2, 3, 4)
    assert parse_choice("polling.limit", "lin(1, 4)").values == (1, 2, 3, 4)
    assert parse_choice("polling.limit", "log(1,16,5)").values == (1, 2, 4, 8, 16)
    assert parse_choice("flow_control.token_rate_kbps", "100..300:100").values == (100.0, 200.0, 300.0)
    assert parse_choice("link.packets", "DH5,DH3").values == (["DH5"], ["DH3"])
    assert parse_choice("link.packets", "DH5,[DH5,DH3]").values == (["DH5"], ["DH5", "DH3"])
    assert parse_choice("link.packets", "[DH5],[DH5,DH3]").values == (["DH5"], ["DH5", "DH3"])
    assert not parse_choice("transport.variant", "reno,newreno").ordered
    for text in ("100..400", "100.0..400.0", "lin(100,400)"):
        choice = parse_choice("flow_control.token_rate_kbps", text)
        assert choice.continuous and [choice.at(x) for x in (0.0, 0.5, 1.0)] == [100, 250, 400]
    assert parse_choice("radio.ber", "log(1e-6,1e-4)").at(0.5) == pytest.approx(1e-5)
    assert [c.key for c in parse_choices({"polling.limit": [3, 1]})] == ["polling.limit"]


def test_every_key_of_a_scenario_may_stand_in_an_expression():
    tables = {name: keys for name, keys in BASE.to_dict().items() if isinstance(keys, dict)}
    written = {f"{table}.{key}" for table, keys in tables.items() for key in keys}
    assert len(written) > 50 and written <= set(all_keys(Scenario))
