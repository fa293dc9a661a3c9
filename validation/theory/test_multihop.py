"""Several piconets: light traffic by hand, queues at bridges, cycles, derivatives, refusals, simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import btqueue as bt
from btqueue.network.answers import NoConvergence
from btqueue.network.models import MODELS
from btqueue.network.multihop.airs import turns
from btqueue.network.multihop.model import Plan, answer, answers, found
from btqueue.queueing._precision import in_float64
from btqueue.scenario import NotBuiltYet
from btqueue.scenario.scope import problems_of

SLOT_S = 625e-6


def line(load: float = 1e-3, **changes) -> bt.Scenario:
    """Two piconets of a peripheral each, a bridge between them, and a flow from one end to the other."""
    scenario = bt.Scenario().with_(network__topology="scatternet", network__peripherals=1)
    flows = [{"from": "p1.1", "to": "p2.1"}]
    changes = {"network__flows": flows, "flow_control__enabled": False, **changes}
    return scenario.with_(traffic__load_kbps=load, **changes)


@in_float64
def turns_of(scenario: bt.Scenario):
    plan = Plan(scenario)
    network, steps = plan.system.network, plan.system.steps
    rate = np.asarray(plan.system.rate) * SLOT_S
    network = network._replace(rate=(steps.there * rate[:, None, None]).reshape(-1))
    return jax.tree.map(np.asarray, turns(jax.tree.map(jnp.asarray, network))[0])


def test_a_lone_segment_takes_what_each_visit_takes():
    """By hand, with the bridge at any time of each cycle; slots.

    An exchange is POLL and NULL twice. Polls come every 4 slots, the wait is 3 in the first piconet and 1 in
    the second, which is in time: a turn takes 3 + 4 + 1 + 4, and lengthens a sixth of the time by 2 slots.
    """
    seen = turns_of(line(1e-9))
    assert seen.stay[[1, 3]] == pytest.approx([7.0, 5.0], rel=1e-6)
    assert seen.turn[[1, 3]] == pytest.approx([12.0, 12.0], rel=1e-6)
    half_cycle = 2.0 / (1.0 - 2.0 / 12.0)
    # up after half a cycle; probe, down; poll, probe, up; down at once: five packets of 28 slots fill visits
    there = half_cycle + 28 + 2 + 28 + 1 + 2 + 28 + 28
    # the acknowledgement has missed its visit, goes up, closes that visit, and finds the bridge away with
    # the 7 slots of its other stay and turn, of which 6 have passed: then it waits for a poll, too
    away = (7 - 6) ** 2 / (2 * 12) + (7 - 6) / 12 * 1
    back = half_cycle + 4 + 2 + away + 2 + 4 + 2 + 3 + 2 + 4 + 2 + 4 - 1
    assert float(Plan(line(1e-9)).found().rtt_s[0]) / SLOT_S == pytest.approx(there + back, rel=1e-6)


def test_what_a_full_visit_leaves_is_the_maximum_of_a_walk():
    """The Wiener-Hopf factor of the transforms is the stationary law of (Q + A - M)+, iterated."""
    scenario = line(110.0, network__flows="pairs")
    plan, seen = Plan(scenario), turns_of(scenario)
    link = int(np.flatnonzero(np.asarray(plan.system.network.limit == 5) & (seen.turn > 0))[0])
    turn, most, size = float(seen.turn[link]), 5, 400
    rate = float(np.asarray(plan.system.rate)[0]) * SLOT_S * turn
    # a segment of 5 packets one way and an acknowledgement of 1 the other, each Poisson
    law = np.zeros(size)
    segments = np.exp(-rate) * np.cumprod(np.r_[1.0, rate / np.arange(1, 60)])
    for count, share in enumerate(segments):
        single = np.convolve(np.eye(size)[min(5 * count, size - 1)], segments)[:size]
        law += share * single
    left = np.eye(size)[0]
    for _ in range(4000):
        there = np.convolve(left, law)[:size]
        left = np.r_[there[: most + 1].sum(), there[most + 1 :], np.zeros(most)]
    assert 0.3 < rate * 6 / most < 0.95  # the limit matters
    assert seen.left[link, 0] == pytest.approx(left @ np.arange(size), rel=1e-6)


def test_a_cycle_is_what_its_members_cost():
    """By the balance of slots: empty frames of members, and what is sent."""
    scenario = line(20.0, network__piconets=3, network__peripherals=2, network__flows="uplink")
    seen, plan = turns_of(scenario), Plan(scenario)
    members = plan.routes.members
    work = (np.asarray(plan.system.network.air_of_link).T @ seen.work)[: members.size]
    assert seen.cycle[: members.size] == pytest.approx(2.0 * members / (1.0 - work), rel=1e-8)
    assert np.all(seen.absence == 0.0)


@pytest.mark.parametrize(("bridge", "name"), [("SS", "window"), ("MS", "rate")])
def test_derivatives_are_those_of_differences(bridge, name):
    """To 1e-5 of the derivative, of all round trips by loads and windows."""
    plan = Plan(line(15.0, network__bridge=bridge, network__piconets=3, network__flows="pairs"))

    @in_float64
    def slopes():
        system = jax.tree.map(jnp.asarray, plan.system)

        def mean(value):
            return found(system._replace(**{name: value})).rtt_s.mean()

        here = getattr(system, name)
        exact, step = jax.grad(mean)(here), 1e-4 * here
        more, less = (jax.vmap(mean)(here + sign * step * jnp.eye(here.size)) for sign in (1.0, -1.0))
        return np.asarray(exact), np.asarray((more - less) / (2.0 * step))

    exact, differences = slopes()
    assert np.abs(differences).min() > 0.0
    assert exact == pytest.approx(differences, rel=1e-5)


def test_a_plan_varies_what_a_scenario_says():
    """Metrics at changed keys are those of the changed scenario; slopes are their differences, to 1e-5."""
    plan = Plan(line(15.0, network__piconets=3, network__flows="pairs", flow_control__enabled=True))
    changes = {"traffic.load_kbps": 20.0, "transport.receive_window_segments": 2.0}
    changed = Plan(
        line(
            20.0,
            network__piconets=3,
            network__flows="pairs",
            flow_control__enabled=True,
            transport__receive_window_segments=2,
        )
    )
    assert np.asarray(plan.metrics(changes)["rtt_s"]) == pytest.approx(changed.found().rtt_s, rel=1e-9)
    exact = plan.slopes(["rtt_s", "goodput_kbps"])
    assert exact["goodput_kbps"]["traffic.load_kbps"] == pytest.approx(1.0)
    more, less = (plan.metrics({"traffic.load_kbps": 15.0 + step})["rtt_s"].mean() for step in (1e-3, -1e-3))
    assert exact["rtt_s"]["traffic.load_kbps"] == pytest.approx(float(more - less) / 2e-3, rel=1e-5)


def test_networks_solved_together_are_those_solved_alone():
    """Of two shapes, one of them overloaded in part; to rounding."""
    scenarios = [line(load, network__flows="pairs") for load in (5.0, 400.0, 30.0)]
    scenarios.append(line(5.0, network__piconets=3))
    together = answers(scenarios)
    assert isinstance(together[1], NoConvergence)
    for number in (0, 2, 3):
        assert together[number][0]["rtt_s"] == pytest.approx(answer(scenarios[number])[0]["rtt_s"], rel=1e-8)


def test_round_trips_grow_with_load_and_answers_do_not_ask_how_long_a_run_is():
    loads = (1.0, 10.0, 20.0, 40.0)
    trips = [float(answer(line(load))[0]["rtt_s"][0]) for load in loads]
    assert trips == sorted(trips)
    short = line(10.0).with_(run__duration_s=1.0, run__seed=7, run__replications=2)
    assert float(answer(short)[0]["rtt_s"][0]) == trips[1]


def test_more_than_the_network_carries_has_no_answer_and_is_followed():
    with pytest.raises(NoConvergence, match="load_kbps"):
        answer(line(400.0, network__flows="pairs"))
    heavy = bt.solve(bt.load("venugopal-2006/scatternet-1"))
    assert (heavy.attrs["solver"], heavy.attrs["model"]) == ("followed", "scatternet")


def test_round_trips_far_above_those_of_lone_segments_are_in_doubt():
    assert answer(line(1.0))[1]["warnings"] == []
    (doubt,) = answer(line(60.0, network__flows="pairs"))[1]["warnings"]
    assert "lone segments" in doubt


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"traffic__source": "greedy"}, "traffic.source"),
        ({"polling__bridge_schedule": "sniff"}, "polling.bridge_schedule"),
        ({"polling__residence": "cycle"}, "polling.residence"),
        ({"radio__model": "constant", "radio__ber": 1e-4}, "link.arq"),
        ({"network__flows": [{"from": "b1", "to": "p2.1"}]}, "network.flows"),
        ({"transport__delayed_ack": True}, "transport.delayed_ack"),
    ],
)
def test_what_is_not_covered_is_named(changes, key):
    scenario = line(**changes)
    assert key in {problem.key for problem in problems_of(MODELS["multihop"], scenario)}
    with pytest.raises(NotBuiltYet):
        bt.solve(scenario.with_(run__solver="analytic"))


SIMULATED = {
    "two piconets": {},
    "ARQ without errors": {"link__arq": "unlimited"},
    "central as bridge": {"network__bridge": "MS"},
    "three piconets": {"network__piconets": 3, "network__flows": [{"from": "p1.1", "to": "p3.1"}]},
}


@pytest.mark.long
@pytest.mark.parametrize("point", SIMULATED)
def test_the_model_is_near_the_simulator(point):
    """Within 5 % and the interval: the aim for the median, at a load at which the model stands.

    With intervals of 99.9 % a model that is 5 % off fails in one of a thousand runs.
    """
    scenario = line(5.0, run__replications=6, run__duration_s=600.0, **SIMULATED[point])
    solved = bt.solve(scenario.with_(run__solver="analytic"))
    values = bt.simulate(scenario, threads=1).rtt_s.mean("flow").values
    half = 6.87 * values.std(ddof=1) / np.sqrt(values.size)  # Student's t of 5 degrees, 99.9 %
    assert abs(float(solved.rtt_s.mean()) - values.mean()) < 0.05 * values.mean() + half
    assert solved.attrs["warnings"] == []
