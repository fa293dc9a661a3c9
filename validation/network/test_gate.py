"""Every door to theory refuses what `solve` refuses, and doubts what it doubts, in the same words.

Studies ask the simulator there, and say so.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from command_line import run

import btqueue as bt
from btqueue.explorer.messages import told_answer
from btqueue.network import InDoubt, NoConvergence, plan, variation
from btqueue.study.dimensioning import dimension
from btqueue.study.evaluate import evaluate
from btqueue.study.sensitivity import sensitivity
from btqueue.study.sweep import sweep

LOAD, BUFFER = "traffic.load_kbps", "flow_control.buffer_packets"
RUN = {"run.duration_s": 2.0, "run.warmup_s": 1.0, "run.replications": 2}
BUSY = {**RUN, BUFFER: 100, "flow_control.baseband_packets": 100, LOAD: 135.0}
POINTS = {
    "piconet-4": (bt.load("venugopal-2006/piconet-4").changed(RUN), "one connection was sampled"),
    "scatternet-2": (bt.load("venugopal-2006/scatternet-2").changed(RUN), "may overflow a buffer"),
    "busy": (bt.load("venugopal-2006/piconet").changed(BUSY), "sources at random fill"),
}
"""Points that `solve` refuses or doubts, and a part of its words."""
ONE_LIMIT = {"polling.limit": [POINTS["busy"][0].polling.limit]}


def by_gradient_of_jax(scenario, key=LOAD):
    """Let the warning be an error: a number has no room for words."""
    asked = plan(scenario)
    with jax.enable_x64(True):
        jax.grad(lambda value: asked.metrics({key: value})["rtt_s"].mean())(asked.parameters[key])


def by_command(key):
    """Return who answered at the busy point, and why not theory, from what the command prints."""

    def ask(scenario):
        changes = [f"--set={name}={value}" for name, value in BUSY.items()]
        options = ["venugopal-2006/piconet", "--metric", "rtt_s", "--key", key, *changes]
        lines = run("sensitivity", *options).stdout.splitlines()
        (by,) = [line.removeprefix("answered by ") for line in lines if line.startswith("answered by ")]
        return by, [line for line in lines if "theory does not stand: " in line]

    return ask


def by_dimension(scenario):
    found = dimension(scenario, maximize="goodput_kbps", choose=ONE_LIMIT, confirm=False)
    assert found.best is not None
    return found.best.answered_by, None


def by_page(scenario):
    told = told_answer(evaluate(scenario))
    assert not told["problem"]
    return told["answered_by"], told["why"]


def by_sweep(scenario):
    found = sweep(scenario, ONE_LIMIT, workers=1)
    return found["answered_by"].item(), [found["why"].item()]


def by_key(key):
    def ask(scenario):
        attrs = sensitivity(scenario, "local", ["rtt_s"], [key]).attrs
        return attrs["answered_by"], attrs["why"]

    return ask


DOORS = {
    "solve": lambda scenario: bt.solve(scenario).attrs["warnings"],
    "compare": lambda scenario: bt.compare(scenario).attrs["model_warnings"],
    "plan.metrics": lambda scenario: plan(scenario).metrics().warnings,
    "plan.slopes": lambda scenario: plan(scenario).slopes(["rtt_s"], keys=[LOAD]).warnings,
    "jax.grad": by_gradient_of_jax,
}
"""What hands out metrics or slopes of theory; each returns its warnings, or raises."""
STUDIES = {
    "by load": by_key(LOAD),
    "by S": by_key(BUFFER),
    "command": by_command(LOAD),
    "command by S": by_command(BUFFER),
    "dimension": by_dimension,
    "page": by_page,
    "sweep": by_sweep,
}
"""What asks the simulator where theory does not stand; each returns who answered, and why not theory."""
SMOOTH = ("plan.metrics", "plan.slopes", "jax.grad")
"""Doors to functions that may be differentiated; they have little room for words, and give a warning, too."""


@pytest.fixture
def refused(monkeypatch):
    """Let theory refuse loads of 100 kbit/s and more."""
    real = variation.gate

    def gate(scenario):
        if scenario.traffic.load_kbps >= 100.0:
            raise NoConvergence("no operating point was found")
        return real(scenario)

    monkeypatch.setattr(variation, "gate", gate)


@pytest.mark.parametrize("door", SMOOTH)
def test_a_door_refuses_what_theory_refuses(door, refused):
    with pytest.raises(NoConvergence, match="no operating point"):
        DOORS[door](POINTS["busy"][0])


@pytest.mark.parametrize("door", ["solve", "compare"])
@pytest.mark.parametrize("point", POINTS)
def test_an_answer_in_doubt_says_why(point, door):
    scenario, words = POINTS[point]
    assert any(words in one for one in DOORS[door](scenario))


@pytest.mark.parametrize("door", SMOOTH)
def test_a_door_doubts_what_solve_doubts(door):
    scenario, words = POINTS["busy"]
    with pytest.raises(InDoubt, match=words):
        DOORS[door](scenario)
    if door != "jax.grad":
        with pytest.warns(InDoubt):
            assert set(bt.solve(scenario).attrs["warnings"]) <= set(DOORS[door](scenario))


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_asks_the_simulator_where_theory_does_not_stand_and_says_why(study):
    scenario, words = POINTS["busy"]
    by, why = STUDIES[study](scenario)
    assert by == "simulation" and (why is None or any(words in one for one in why))


def test_a_comparison_has_no_stand_in_for_theory():
    scenario, words = POINTS["piconet-4"]
    found = sweep(scenario, ONE_LIMIT, engine="both", workers=1)
    assert found["answered_by"].values.ravel().tolist() == ["theory", "simulation"]
    assert any(words in one for one in found["why"].values.ravel().tolist())


@pytest.mark.filterwarnings("ignore::btqueue.network.InDoubt")
def test_where_jax_maps_points_one_that_is_refused_is_no_number_and_the_others_are(refused):
    asked = plan(POINTS["busy"][0].changed({LOAD: 20.0}))
    with jax.enable_x64(True):
        loads = jnp.array([5.0, 100.0])
        found = jax.jit(jax.vmap(lambda load: asked.metrics({LOAD: load})["rtt_s"].mean()))(loads)
        alone = asked.metrics({LOAD: 5.0})["rtt_s"].mean()
    assert np.asarray(found) == pytest.approx([alone, np.nan], nan_ok=True)


def test_a_point_is_judged_where_it_is_and_not_where_the_scenario_is():
    light = plan(POINTS["busy"][0].changed({LOAD: 20.0}))
    assert light.metrics().warnings == ()
    with pytest.warns(InDoubt, match=POINTS["busy"][1]):
        assert light.metrics({LOAD: 135.0}).warnings
    with pytest.raises(bt.ScenarioError, match="load_kbps"):
        light.metrics({LOAD: -1.0})
