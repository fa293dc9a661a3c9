"""Every door to the models refuses what `solve` refuses, and doubts what it doubts, in the same words."""

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import btqueue as bt
from btqueue.cli.exits import NO_ANSWER, Commands
from btqueue.cli.sensitivity import sensitivity
from btqueue.explorer.messages import told_answer
from btqueue.network import InDoubt, NoConvergence, plan, slopes
from btqueue.study.dimensioning import dimension
from btqueue.study.evaluate import evaluate
from btqueue.study.sensitivity import gradient, local_sensitivity

LOAD, BUFFER = "traffic.load_kbps", "flow_control.buffer_packets"
RUN = {"run.solver": "analytic", "run.duration_s": 2.0, "run.warmup_s": 1.0, "run.replications": 2}
POINTS = {
    "piconet-4": (bt.load("venugopal-2006/piconet-4").changed(RUN), "held back by a full buffer"),
    "scatternet-2": (bt.load("venugopal-2006/scatternet-2").changed(RUN), "in use to 132%"),
    "readme": (bt.load("venugopal-2006/piconet").changed(RUN), "windows overflow a buffer"),
    "load 140": (
        bt.load("venugopal-2006/piconet").changed({**RUN, LOAD: 140.0}),
        "windows overflow a buffer",
    ),
}
"""Points that `solve` refuses or doubts by queues and chains, and a part of its words."""


def by_gradient_of_jax(scenario, key=LOAD):
    """Let the warning be an error: a number has no room for words."""
    asked = plan(scenario)
    with jax.enable_x64(True):
        jax.grad(lambda value: asked.metrics({key: value})["rtt_s"].mean())(asked.parameters[key])


def by_command(scenario, key=LOAD):
    app = typer.Typer(cls=Commands)
    app.callback()(lambda: None)
    app.command()(sensitivity)
    load = f"{LOAD}={scenario.traffic.load_kbps}"
    name = {4: "piconet-4", 2: "piconet"}[scenario.network.peripherals]
    name = "scatternet-2" if scenario.network.topology == "scatternet" else name
    options = ["--set", "run.solver=analytic", "--set", load, "--metric", "rtt_s", "--key", key]
    method = "gradient" if key == LOAD else "local"
    found = CliRunner().invoke(app, ["sensitivity", f"venugopal-2006/{name}", "--method", method, *options])
    if found.exit_code == NO_ANSWER:
        raise NoConvergence(found.output)
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    return [line.removeprefix("model warns: ") for line in lines if line.startswith("model warns: ")]


def dimensioned(scenario):
    choose = {"polling.limit": [scenario.polling.limit]}
    return dimension(scenario, maximize="goodput_kbps", choose=choose, engine="solve", confirm=False)


def by_dimension(scenario):
    best = dimensioned(scenario).best
    assert best is not None
    return best.warnings


def by_page(scenario):
    told = told_answer(evaluate(scenario))
    if told["problem"]:
        raise NoConvergence(told["problem"])
    return told["warnings"]


DOORS = {
    "solve": lambda scenario: bt.solve(scenario).attrs["warnings"],
    "compare": lambda scenario: bt.compare(scenario).attrs["model_warnings"],
    "plan.metrics": lambda scenario: plan(scenario).metrics().warnings,
    "plan.slopes": lambda scenario: plan(scenario).slopes(["rtt_s"]).warnings,
    "jax.grad": by_gradient_of_jax,
    "slopes": lambda scenario: slopes(scenario, ["rtt_s"]).warnings,
    "gradient": lambda scenario: gradient(scenario, ["rtt_s"], [LOAD]).dataset().attrs["warnings"],
    "by S": lambda scenario: local_sensitivity(scenario, ["rtt_s"], [BUFFER]).dataset().attrs["warnings"],
    "command": by_command,
    "command by S": lambda scenario: by_command(scenario, BUFFER),
    "dimension": by_dimension,
    "page": by_page,
}
"""What hands out metrics or slopes of a scenario; each returns its warnings, or raises."""
WARN = ("plan.metrics", "plan.slopes", "jax.grad")
"""Doors whose result has little room for words: they give a Python warning, too."""


def doors(*but: str):
    return pytest.mark.parametrize("door", [name for name in DOORS if name not in but])


@doors("dimension")
@pytest.mark.parametrize("point", ["piconet-4", "scatternet-2"])
def test_a_door_refuses_what_solve_refuses(point, door):
    scenario, words = POINTS[point]
    with pytest.raises(NoConvergence, match=words):
        DOORS[door](scenario)


@doors()
@pytest.mark.parametrize("point", ["readme", "load 140"])
def test_a_door_doubts_what_solve_doubts(point, door):
    scenario, words = POINTS[point]
    wanted = bt.solve(scenario).attrs["warnings"]
    assert any(words in one for one in wanted)
    if door in WARN:
        with pytest.raises(InDoubt, match=words):
            DOORS[door](scenario)
    if door == "jax.grad":  # the rest would be a minute of compilation
        return
    with pytest.warns(InDoubt) if door in WARN else nullcontext():
        assert list(DOORS[door](scenario)) == wanted


def test_a_dimensioning_of_refused_points_has_their_reason():
    scenario, words = POINTS["piconet-4"]
    found = dimensioned(scenario)
    assert found.best is None and any(words in reason for reason in found.failures)


@pytest.mark.filterwarnings("ignore::btqueue.network.InDoubt")
def test_where_jax_maps_points_one_that_is_refused_is_no_number_and_the_others_are():
    asked = plan(POINTS["scatternet-2"][0])
    with jax.enable_x64(True):
        loads = jnp.array([5.0, 100.0])
        found = jax.jit(jax.vmap(lambda load: asked.metrics({LOAD: load})["rtt_s"].mean()))(loads)
        alone = asked.metrics({LOAD: 5.0})["rtt_s"].mean()
    assert np.asarray(found) == pytest.approx([alone, np.nan], nan_ok=True)


def test_a_point_is_judged_where_it_is_and_not_where_the_scenario_is():
    light = plan(POINTS["readme"][0].changed({LOAD: 20.0}))
    assert light.metrics().warnings == ()
    with pytest.warns(InDoubt, match="windows overflow a buffer"):
        assert light.metrics({LOAD: 160.0}).warnings
    with pytest.raises(bt.ScenarioError, match="load_kbps"):
        light.metrics({LOAD: -1.0})
