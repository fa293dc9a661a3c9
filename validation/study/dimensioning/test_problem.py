"""What a dimensioning is asked: expressions, bounds and choices, read or refused in words."""

import math

import pytest
from dimension_stand_ins import CountingSolver, dimension_by, tent
from hypothesis import given
from hypothesis import strategies as st

from btqueue.scenario import ScenarioError
from btqueue.scenario.expressions import Quantity, parse_expression
from btqueue.study.dimensioning.problem import parse_choices, parse_constraint
from btqueue.study.points import grid
from btqueue.study.summary import Estimate


@pytest.mark.parametrize(
    ("text", "sense", "bound", "strict"),
    [
        ("rtt_s <= 0.4", "<=", 0.4, False),
        ("rtt_s<=400ms", "<=", 0.4, False),
        ("400 ms >= rtt_s", "<=", 0.4, False),
        ("goodput_kbps > 0.15 Mbit/s", ">=", 150.0, True),
        ("loss_token_buffer < 5 %", "<=", 0.05, True),
        ("current_ma <= 26 uA", "<=", 0.026, False),
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


numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@given(numbers, numbers, numbers)
def test_an_expression_is_worth_what_python_says(a, b, c):
    first, second = "-" if a < 0 else "", "-" if b < 0 else "+"
    text = f"{first}{abs(a)!r} * rtt_s {second} goodput_kbps * {abs(b)!r} + {abs(c)!r}"
    linear = parse_expression(text, "test")
    value = linear.value({"rtt_s": Estimate(0.25), "goodput_kbps": Estimate(80.0)}, {})
    assert value == pytest.approx(a * 0.25 + b * 80.0 + abs(c), rel=1e-12, abs=1e-9)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_in_words(text):
    for read in (lambda: parse_constraint(text), lambda: parse_expression(text, "--maximize")):
        try:
            read()
        except ScenarioError as error:
            assert str(error)


def test_a_range_of_a_key_with_a_grid_means_the_values_of_the_grid():
    """Nearly all points of a continuous range are no intervals of Low Energy."""
    interval, rate = parse_choices(["le.interval_s=0.0075..0.01", "flow_control.token_rate_kbps=1.0..2.0"])
    assert interval.values == (0.0075, 0.00875, 0.01) and interval.interval is None
    assert rate.interval is not None


def test_aggregates_are_over_the_flows_that_have_a_value():
    value = Estimate(20.0, part="flow", means=(10.0, math.nan, 30.0))
    assert [Quantity("rtt_s", how).of(value) for how in ("mean", "min", "max")] == [20.0, 10.0, 30.0]
    assert Quantity("cycle_s", "max").of(Estimate(0.5)) == 0.5


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"maximize": "godput_kbps"}, "did you mean goodput_kbps?"),
        ({"maximize": "goodput_kbps", "minimize": "rtt_s"}, "name one objective"),
        ({"maximize": "goodput_kbps", "pareto": "rtt_s, delay_s"}, "name one objective"),
        ({"pareto": "goodput_kbps"}, "name two metrics"),
        ({"pareto": "goodput_kbps, goodput_kbps"}, "name two metrics"),
        ({"pareto": "rtt_s, delay_s, goodput_kbps"}, "name two metrics"),
        ({"maximize": "link.packets"}, "no number"),
        ({"maximize": "min(polling.limit)"}, "one value"),
        ({"maximize": "rtt_s / 0"}, "division by 0"),
        ({"maximize": "rtt_s * delay_s"}, "by a number"),
        ({"maximize": f"rtt_s / {'9' * 60_000}"}, "is too large a number"),
        ({"maximize": "1e308 * rtt_s + 1e308 * rtt_s"}, "too large together"),
        ({"maximize": "2 min(rtt_s)"}, "write a * between the number and min"),
        ({"maximize": "rtt_s", "choose": "run.seed=0..9e18"}, "more than 1,000,000 values"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s <= 0.4 kbps"}, "rtt_s is in s"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s"}, "has no bound"),
        ({"maximize": "goodput_kbps", "subject_to": "0.1 <= rtt_s <= 0.4"}, "each of them alone"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s = 0.4"}, "equality"),
        ({"maximize": "goodput_kbps", "subject_to": "rtt_s - rtt_s <= 1"}, "names no metric"),
        ({"maximize": "goodput_kbps", "choose": "polling.limt=1..5"}, "polling.limit"),
        ({"maximize": "goodput_kbps", "choose": "polling.limit=0..5"}, "at least 1"),
        ({"maximize": "goodput_kbps", "choose": "polling.limit=log(1,9)"}, "how many values"),
        ({"maximize": "goodput_kbps", "choose": ["polling.limit=1,2", "polling.limit=3"]}, "given twice"),
        ({"maximize": "goodput_kbps", "budget": 0}, "at least 1"),
        ({"maximize": "goodput_kbps", "engine": "theory"}, 'engine = "theory": must be auto or simulate'),
    ],
)
def test_what_cannot_be_read_is_said_in_words(question, words):
    solver = CountingSolver(tent)
    with pytest.raises(ScenarioError) as caught:
        dimension_by(solver, **{"choose": "polling.limit=1..5", **question})
    assert words in str(caught.value)
    assert not solver.asked


def test_all_that_cannot_be_read_is_said_at_once():
    with pytest.raises(ScenarioError) as caught:
        dimension_by(
            CountingSolver(tent),
            maximize="godput_kbps",
            subject_to=["rtt_s", "loudness <= 3", "rtt_s <= 1"],
            choose={"polling.limit": "1..x", "traffic.load_kbps": "3..1"},
        )
    problems = [problem.message for problem in caught.value.problems]
    for words, problem in zip(("godput_kbps", "1..x", "3..1", '"rtt_s"', "loudness"), problems, strict=True):
        assert words in problem
    with pytest.raises(ScenarioError) as caught:
        grid(["polling.limt=1..3", "trafic.load_kbps=1..3"])
    assert len(caught.value.problems) == 2
