"""Checks of theory by a short simulation: the rule, its words, and what is simulated."""

import math

import numpy as np
import pytest
from thesis import thesis

from btqueue.scenario.metrics import Results, Variable
from btqueue.study import Estimate
from btqueue.study import checked_answers as checks
from btqueue.study.checked_answers import Check, Difference, check_answer

GOODPUT, ROUND_TRIP, TIMEOUTS = "goodput_kbps", "rtt_s", "timeouts_per_s"


@pytest.mark.parametrize(
    ("metric", "value", "half_width", "verdict"),
    [
        (GOODPUT, 0.03, 0.01, "confirmed"),
        (GOODPUT, -0.05, 0.021, "confirmed"),  # the tolerance lies within the interval
        (GOODPUT, -0.05, 0.019, "not confirmed"),
        (GOODPUT, 0.0, 0.11, "undecided"),
        (GOODPUT, 0.08, 0.06, "undecided"),  # right or 14 % off, who knows
        (ROUND_TRIP, 0.05, 0.01, "confirmed"),
        (ROUND_TRIP, 0.065, 0.01, "not confirmed"),
        (TIMEOUTS, -0.5, 0.41, "undecided"),
        (TIMEOUTS, -0.5, 0.39, "not confirmed"),
        (GOODPUT, math.inf, 0.0, "not confirmed"),
    ],
)
def test_the_rule(metric, value, half_width, verdict):
    assert Difference(metric, value, half_width).verdict == verdict


def test_timeouts_speak_against_an_answer_and_keep_none_from_being_confirmed():
    right = Difference(GOODPUT, 0.0, 0.01)
    assert Check((right, Difference(TIMEOUTS, -0.5, 0.6))).verdict == "confirmed"
    assert Check((right, Difference(TIMEOUTS, -0.9, 0.1))).verdict == "not confirmed"
    assert Check((Difference(TIMEOUTS, 0.0, 0.01),)).verdict == "undecided"


class Simulator:
    """Stands for the simulator: 1,000 events a second, and intervals that narrow as runs become longer."""

    def __init__(self) -> None:
        self.runs = []

    def __call__(self, scenario, *, threads=None):
        run = scenario.run
        self.runs.append(run)
        shape = run.replications, 2
        spread = 100.0 / math.sqrt(run.duration_s) * np.resize([-1.0, 1.0], shape[::-1]).T
        values = {GOODPUT: 100.0 + spread, TIMEOUTS: np.full(shape, 0.1)}
        events = round(1000 * run.duration_s * run.replications)
        metrics = {name: Variable(("replication", "flow"), value) for name, value in values.items()}
        return Results(metrics, {}, {"events": events})


@pytest.fixture
def simulator(monkeypatch):
    """Put the stand-in in the simulator's place."""
    stand_in = Simulator()
    monkeypatch.setattr("btqueue.simulator.simulate", stand_in, raising=False)
    return stand_in


def asked(goodput: float, timeouts: float = 0.1) -> dict[str, Estimate]:
    return {GOODPUT: Estimate(goodput), TIMEOUTS: Estimate(timeouts)}


def test_a_pilot_and_one_round_where_that_decides(simulator):
    limited = thesis().with_(run__precision=0.001, run__precision_of="rtt_s", run__limit_cpu_s=0.001)
    found = check_answer(limited, asked(200.0), events=8_000_000)
    assert {(run.precision, run.limit_cpu_s) for run in simulator.runs} == {(None, None)}
    assert found.verdict == "not confirmed" and len(simulator.runs) == 3  # pilots: 20,000 events are enough
    pilots, run = simulator.runs[:2], simulator.runs[2]
    assert [one.replications for one in pilots] == [1, 1]
    assert pilots[1].duration_s == pytest.approx(10 * pilots[0].duration_s)
    total_s = run.replications * (run.duration_s + run.warmup_s)
    assert total_s == pytest.approx(checks.FIRST_SHARE * 8000)
    assert run.warmup_s == pytest.approx(checks.WARMUP_SHARE * (run.duration_s + run.warmup_s))


def test_what_the_first_round_does_not_decide_a_longer_one_may(simulator):
    found = check_answer(thesis(), asked(100.0), events=2_000_000)
    *_, first, second = simulator.runs
    assert second.duration_s == pytest.approx(3 * first.duration_s)
    assert found.verdict == "confirmed"
    short = check_answer(thesis(), asked(100.0), events=200_000)
    assert short.verdict == "undecided"


def test_groups_are_judged_apart_and_the_worst_is_named(simulator):
    """Theory is right for the download, and 60 % below for the sensors; over both it is 30 % below."""
    flows = [{"from": "p1.1", "to": "c1", "group": name} for name in ("download", "sensors")]
    theory = {GOODPUT: Estimate(70.0, part="flow", means=(100.0, 40.0))}
    found = check_answer(thesis().changed({"network.flows": flows}), theory, events=8_000_000)
    assert [one.group for one in found.differences] == ["sensors"]
    assert str(found) == "not confirmed: goodput of sensors -60 %: simulate"
    theory = {GOODPUT: Estimate(100.0, part="flow", means=(100.0, math.nan))}
    assert check_answer(thesis(), theory, events=8_000_000).verdict == "confirmed"


def test_runs_in_which_the_load_changes_keep_their_length(simulator):
    stepped = thesis().changed(
        {"traffic.load_schedule": [{"at_s": 60.0, "load_kbps": 20.0}], "run.duration_s": 90.0}
    )
    check_answer(stepped, asked(100.0), events=8_000_000)
    assert {(run.duration_s, run.warmup_s) for run in simulator.runs[2:]} == {(90.0, stepped.run.warmup_s)}
    simulator.runs.clear()
    found = check_answer(stepped, asked(100.0), events=400_000)
    assert found == Check() and all(run.replications == 1 for run in simulator.runs)
