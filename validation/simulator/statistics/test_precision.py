"""Running until a quantity is known: which one, when it stops, what its interval is worth, the CPU time."""

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from thesis import thesis
from typer.testing import CliRunner

from btqueue.cli import app
from btqueue.scenario import ScenarioError
from btqueue.scenario.expressions import precision_keys
from btqueue.simulator import simulate
from btqueue.simulator.construction.state import empty_network
from btqueue.simulator.statistics import precision
from btqueue.simulator.statistics.doubts import TooShort
from btqueue.simulator.statistics.precision import FEWEST_OBSERVATIONS, next_target
from btqueue.simulator.statistics.student import student_half_width

LIGHT = thesis().with_(traffic__load_kbps=20, run__duration_s=20, run__warmup_s=5, run__replications=2)
GREEDY = LIGHT.with_(traffic__source="greedy")
"""Nothing random happens in it."""


def until_known(draw, first, precision):
    """Return mean and half-width of what `simulate` stops with, if the observations are drawn so."""
    values, wanted = np.array([]), first
    while True:
        values = np.append(values, draw(wanted - len(values)))
        width = student_half_width(values) / abs(values.mean())
        if len(values) >= FEWEST_OBSERVATIONS and width <= precision:
            return values.mean(), max(width, precision) * abs(values.mean())
        wanted = next_target(len(values), width, precision)


@pytest.mark.parametrize("first", [2, 4, 10])
@pytest.mark.parametrize("needed", [6, 15, 40])
def test_intervals_of_a_normal_law_hold_the_mean_as_often_as_they_say(first, needed):
    rng, runs, spread = np.random.default_rng(first * needed), 1000, 0.1
    relative = spread * 1.96 / math.sqrt(needed)
    intervals = (until_known(lambda n: rng.normal(1, spread, n), first, relative) for _ in range(runs))
    held = sum(abs(mean - 1) <= half_width for mean, half_width in intervals)
    # false-alarm rate 0.1 % over the nine if the coverage is 95 %
    assert held >= stats.binom.ppf(0.001 / 9, runs, 0.95)


def test_any_quantity_can_be_asked_for():
    asked = LIGHT.with_(run__precision=0.2, run__precision_of="delay_p95_s[2]")
    result = simulate(asked)
    attrs, values = result.attrs, result["delay_p95_s"].values[:, 1]
    assert result.sizes["replication"] >= FEWEST_OBSERVATIONS
    assert attrs["precision_of"] == "delay_p95_s[2]"
    assert attrs["estimate"] == pytest.approx(values.mean())
    assert student_half_width(values) <= 0.2 * values.mean()
    assert attrs["relative_half_width"] == 0.2
    assert attrs["half_width"] == pytest.approx(0.2 * values.mean())
    worst = simulate(asked.with_(run__precision_of="2 * max(rtt_s) - 10 ms + traffic.load_kbps / 1000"))
    trips = worst["rtt_s"].values.mean(axis=0)
    assert worst.attrs["estimate"] == pytest.approx(2 * trips.max() - 0.01 + 0.02)


def test_what_was_not_reached_is_named_with_what_was_asked_and_reached():
    result = simulate(LIGHT.with_(run__precision=1e-4, run__precision_of="rtt_s"), most=6)
    reached = 100 * result.attrs["relative_half_width"]
    (warning,) = (one for one in result.attrs["warnings"] if "precision" in one)
    assert warning == (
        f"the precision was not reached: rtt_s is known to {reached:.2g} % after 6 replications, "
        "and run.precision asks for 0.01 %"
    )
    half_width = student_half_width(result.metrics["rtt_s"].values.mean(axis=1))
    assert result.attrs["half_width"] == pytest.approx(half_width)


def test_what_has_no_value_ends_the_simulation():
    overloaded = LIGHT.with_(traffic__load_kbps=900, run__precision=0.1, run__precision_of="delay_s")
    result = simulate(overloaded)
    assert result.sizes["replication"] == FEWEST_OBSERVATIONS
    assert any("delay_s has no value after 4 replications" in one for one in result.attrs["warnings"])


@pytest.mark.parametrize("quantity", ["goodput_kbps", "loss_radio"])
def test_where_nothing_is_random_it_stops_at_once(quantity):
    result = simulate(GREEDY.with_(run__precision=1e-6, run__precision_of=quantity))
    assert result.sizes["replication"] == 2
    assert result.attrs["half_width"] == result.attrs["relative_half_width"] == 0
    assert not any("precision was not" in one for one in result.attrs["warnings"])


STEPS = ({"at_s": 20.0, "load_kbps": 25.0},)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"run__precision": 0.02},  # needs more
        {"run__precision_of": "rtt_s"},  # has a bias in short runs
        {"run__limit_cpu_s": 1e6},
        {"traffic__load_schedule": STEPS},
        {"traffic__source": "periodic"},  # few of its phases collide
    ],
)
def test_goodput_may_be_known_from_fewer_and_shorter_runs(changes):
    asked = LIGHT.with_(run__duration_s=160, run__replications=6, run__precision=0.3).with_(**changes)
    result, whole = simulate(asked), simulate(asked, most=1000)
    if changes:
        assert result.identical(whole)
    else:
        assert result.coords["measured_s"].values.tolist() == [20.0] * FEWEST_OBSERVATIONS
        assert result.attrs["estimate"] == pytest.approx(whole.attrs["estimate"], rel=0.3)


@pytest.mark.parametrize(
    ("half", "whole", "warnings", "enough"),
    [(50, 100, [], True), (45, 100, [], False), (50, 100, [TooShort("runs")], False), (0, 0, [], False)],
)
def test_short_runs_are_enough_if_goodput_has_settled(half, whole, warnings, enough):
    """To 5 %: of 100 bytes 45 in the first half are a change by a tenth."""
    asked = LIGHT.with_(run__precision=0.05)
    watched = precision.Watched(asked, empty_network(asked).state)
    counts = SimpleNamespace(
        halfway={"bytes_delivered": np.array([half])}, flows={"bytes_delivered": np.array([whole])}
    )
    complete: Any = [SimpleNamespace(counts=counts)] * FEWEST_OBSERVATIONS
    known = precision.Known(float(whole), 0.0, final=True)
    results: Any = SimpleNamespace(attrs={"warnings": warnings})
    assert watched.is_enough_early(known, complete, results) == enough


def test_short_runs_in_which_nothing_is_random_have_the_precision_as_their_interval():
    """Longer runs differ from them, although they are all alike."""
    result = simulate(GREEDY.with_(run__duration_s=160, run__precision=0.05))
    assert result.coords["measured_s"].values[0] < 160.0
    assert result.attrs["half_width"] == pytest.approx(0.05 * result.attrs["estimate"])


def count_seconds(monkeypatch, step=1.0):
    """Let every piece of a simulation take a second of CPU time."""
    seconds = iter(np.arange(0.0, 1e6, step))
    monkeypatch.setattr(precision.time, "thread_time", lambda: float(next(seconds)))


def test_the_cpu_time_ends_a_simulation_which_keeps_what_it_has(monkeypatch):
    count_seconds(monkeypatch)
    result = simulate(LIGHT.with_(run__replications=1000, run__limit_cpu_s=50), threads=1)
    attrs = result.attrs
    assert 2 <= attrs["finished"] == result.sizes["replication"] < 50
    assert attrs["complete"] == 0
    np.testing.assert_allclose(result.coords["measured_s"].values, 20)
    assert (
        f"run.limit_cpu_s = 50 ended the simulation after {attrs['finished']} of 1000 replications"
        in attrs["warnings"]
    )
    same = simulate(LIGHT.with_(run__replications=attrs["finished"]))
    np.testing.assert_array_equal(result.metrics["rtt_s"].values, same.metrics["rtt_s"].values)


@pytest.mark.parametrize("replications", [4, 1])
def test_the_cpu_time_ends_a_run_until_precision(replications, monkeypatch):
    count_seconds(monkeypatch)
    asked = LIGHT.with_(run__precision=1e-5, run__replications=replications, run__limit_cpu_s=60)
    result = simulate(asked, threads=1)
    assert result.attrs["finished"] >= 4
    warning = next(one for one in result.attrs["warnings"] if "precision" in one)
    assert "goodput_kbps is known to" in warning
    assert warning.endswith("run.precision asks for 0.001 % (run.limit_cpu_s = 60 ended the simulation)")
    assert math.isfinite(result.attrs["relative_half_width"])


UNKNOWN = {
    # cannot be read
    "rtt": "did you mean rtt_s?",
    "rtt_s + 1 kbit/s": "rtt_s is in s",
    "rtt_s[0]": "numbered from 1",
    "rtt_s * delay_s": "by a number",
    "rtt_s + link.packets": "which is no number",
    "polling.limit": "names no metric",
    "3": "names no metric",
    # is not there
    "session_time_s": "this network has no session_time_s; it has goodput_kbps",
    "goodput_kbps[3]": "goodput_kbps has 2 values",
    "fairness[1]": "fairness has one value only",
}
"""Quantities, and why they cannot be known."""


@pytest.mark.parametrize(
    ("changes", "device", "key", "words"),
    [
        ({"run__warmup_s": 1e5, "run__limit_cpu_s": 2}, "cpu", "run.limit_cpu_s", "a part of the warm-up"),
        ({"run__limit_cpu_s": 2}, "gpu", "run.limit_cpu_s", "a GPU plays"),
        *(({"run__precision_of": one}, "cpu", "run.precision_of", why) for one, why in UNKNOWN.items()),
    ],
)
def test_what_cannot_be_known_is_refused_by_its_key_before_anything_runs(
    changes, device, key, words, monkeypatch
):
    count_seconds(monkeypatch)
    with pytest.raises(ScenarioError) as error:
        simulate(LIGHT.with_(run__duration_s=1e6, **changes), device=device)
    assert error.value.key == key and words in str(error.value)


def test_the_command_says_how_well_the_quantity_is_known():
    sets = [f"--set={key}" for key in ("run.duration_s=5", "run.warmup_s=1", "run.replications=4")]
    command = ["simulate", "venugopal-2006/piconet", "--quiet", "--until", "rtt_s[1] to 50 %", *sets]
    table = CliRunner().invoke(app, command).stdout
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    known = found["simulate"]["precision"]
    assert found["scenario"]["run"]["precision"] == 0.5
    assert (known["of"], known["relative"]) == ("rtt_s[1]", 0.5)
    assert known["ci95"] == pytest.approx(known["mean"] / 2)
    assert "known with 95 % confidence: rtt_s[1] = 0." in table and "(50 %)" in table


@pytest.mark.parametrize("text", ["", "rtt_s", "to 5 %", "rtt_s to 5", "rtt_s to x %", "rtt_s to -5 %"])
def test_a_precision_that_cannot_be_read_is_refused_in_words(text):
    with pytest.raises(ScenarioError, match="write QUANTITY to NUMBER %"):
        precision_keys(text)
