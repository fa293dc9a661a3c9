"""Several piconets: light traffic by hand, queues at bridges, cycles, derivatives, refusals, simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from btqueue.network.models import MODELS
from btqueue.network.multihop.limits import Network, limits_of
from btqueue.network.multihop.model import Plan, answer, found
from single_systems import by_model
from thesis import thesis

import btqueue as bt
from btqueue.network import slopes
from btqueue.network.answers import NoConvergence
from btqueue.queueing._precision import in_float64
from btqueue.scenario import NotBuiltYet
from btqueue.scenario.scope import problems_of


def line(load: float = 1e-3, **changes) -> bt.Scenario:
    """Two piconets of a peripheral each, a bridge between them, and a flow from one end to the other."""
    scenario = thesis().with_(network__topology="scatternet", network__peripherals=1)
    flows = [{"from": "p1.1", "to": "p2.1"}]
    changes = {"network__flows": flows, "flow_control__enabled": False, **changes}
    return scenario.with_(traffic__load_kbps=load, **changes)


def limits_at(scenario: bt.Scenario):
    """Limits of a network without errors."""
    plan = Plan(scenario)
    slots = [np.array([packet.slots for packet in train.packets], float) for train in plan.trains]
    none = [np.zeros(own.size) for own in slots]
    window = scenario.transport.receive_window_segments
    return limits_of(Network(plan.routes, slots, none, window, 2))


def test_a_lone_segment_takes_what_each_visit_takes():
    """By hand, slots: a bridge that is a central comes 2 slots after an exchange, too late for a poll.

    So a turn is 10 slots: 2 for the other member, 2 for the poll that is missed, 2 for the member again, and
    4 for the exchange. A segment waits at most a turn for its visit; five packets of 28 slots go up, behind
    POLL and NULL down to the bridge, and down in its own piconet. The acknowledgement of 4 slots waits less
    than a turn for each of three visits.
    """
    limits = limits_at(line(network__bridge="MS"))
    assert limits.cycles[0] == pytest.approx([2 / 10, 1 / 10], rel=1e-2)
    there, back = 28 + 2 + 28 + 28, 3 * 4
    assert there + back < limits.lone[0] < there + back + 4 * 10


def test_flows_that_never_meet_do_not_slow_each_other_down():
    """Between two piconets of which the bridge carries nothing, only by the time that it is there longer."""
    flows = [{"from": "p1.1", "to": "c1"}, {"from": "p2.1", "to": "c2"}]
    limits = limits_at(line(network__flows=flows))
    assert abs(limits.slopes[0, 1]) < 0.1 * limits.slopes[0, 0]


def test_a_window_of_one_is_a_round_trip_of_its_own():
    """Alone in the network a flow gets W segments a round trip: with one segment, that of a lone one.

    To 3 %: a lone one comes at any time, the next of a saturated flow when the one before is acknowledged.
    """
    limits = limits_at(line(transport__receive_window_segments=1))
    assert limits.most[0] * limits.lone[0] == pytest.approx(1.0, rel=0.1)
    assert limits.slopes[0, 0] == 0.0


def test_saturated_bridges_give_what_their_visits_take():
    """In each piconet a turn is POLL, NULL, M = 5 full frames, and at most a segment of a member besides.

    Six packets each way are a segment and an acknowledgement: four of 5 slots, two of 3.
    """
    limits = limits_at(line(network__flows="pairs"))
    frame = 2 * (4 * 5 + 2 * 3) / 6
    least, most = 2 * (2 + 5 * frame), 2 * (2 + 5 * frame + 28 + 4)
    assert 5 / 6 / most < limits.most[0] < 5 / 6 / least
    assert limits.most[1] == pytest.approx(limits.most[0], rel=0.05)


def test_errors_make_a_lone_segment_longer_by_what_is_sent_again():
    """With an error rate e packets are sent 1 / (1 - e) times, each time with the slot that answers.

    Where only whole trains are sent on, so that no hop begins before the last one has ended.
    """
    plan = Plan(line())
    slots = [np.array([packet.slots for packet in train.packets], float) for train in plan.trains]
    none, fifth = ([np.full(own.size, rate) for own in slots] for rate in (0.0, 0.2))
    whole, some = (
        limits_of(Network(plan.routes, slots, errors, 8, 2, whole=True)) for errors in (none, fifth)
    )
    own = sum(4 * (own + 1.0).sum() for own in slots)
    # at least what is sent again; at most a turn and a cycle more for each of eight trains
    assert 0.25 * own < some.lone[0] - whole.lone[0] < 0.25 * own + 8 * 16


@pytest.mark.parametrize("bridge", ["SS", "MS"])
def test_derivatives_are_those_of_differences(bridge):
    """To 1e-5 of the derivative, of all round trips by loads."""
    plan = Plan(line(15.0, network__bridge=bridge, network__piconets=3, network__flows="pairs"))

    @in_float64
    def exact_and_by_differences():
        system = jax.tree.map(jnp.asarray, plan.system)

        def mean(value):
            return found(system._replace(rate=value)).rtt_s.mean()

        here = system.rate
        exact, step = jax.grad(mean)(here), 1e-4 * here
        more, less = (jax.vmap(mean)(here + sign * step * jnp.eye(here.size)) for sign in (1.0, -1.0))
        return np.asarray(exact), np.asarray((more - less) / (2.0 * step))

    exact, differences = exact_and_by_differences()
    assert np.abs(differences).min() > 0.0
    assert exact == pytest.approx(differences, rel=1e-5)


def test_a_plan_varies_what_a_scenario_says():
    """Metrics at changed keys are those of the changed scenario; slopes are their differences, to 1e-5."""
    plan = Plan(line(15.0, network__piconets=3, network__flows="pairs", flow_control__enabled=True))
    changed = Plan(line(20.0, network__piconets=3, network__flows="pairs", flow_control__enabled=True))
    metrics, _ = plan.with_findings({"traffic.load_kbps": 20.0})
    assert np.asarray(metrics["rtt_s"]) == pytest.approx(changed.found().rtt_s, rel=1e-9)
    exact = plan.derivatives(["rtt_s", "goodput_kbps"])
    assert exact["goodput_kbps"]["traffic.load_kbps"] == pytest.approx(1.0)
    more, less = (
        plan.with_findings({"traffic.load_kbps": 15.0 + step})[0]["rtt_s"].mean() for step in (1e-3, -1e-3)
    )
    assert exact["rtt_s"]["traffic.load_kbps"] == pytest.approx(float(more - less) / 2e-3, rel=1e-5)


def test_round_trips_grow_with_load_and_answers_do_not_ask_how_long_a_run_is():
    loads = (1.0, 10.0, 20.0, 40.0)
    trips = [float(answer(line(load))[0]["rtt_s"][0]) for load in loads]
    assert trips == sorted(trips)
    short = line(10.0).with_(run__duration_s=1.0, run__seed=7, run__replications=2)
    assert float(answer(short)[0]["rtt_s"][0]) == trips[1]


def test_more_than_the_network_carries_has_no_answer():
    with pytest.raises(NoConvergence, match="load_kbps"):
        answer(line(400.0, network__flows="pairs"))
    with pytest.raises(NoConvergence, match="load_kbps"):
        by_model(bt.load("venugopal-2006/scatternet-1"))


def always_busy(**changes) -> bt.Scenario:
    """Flows both ways that always have data, with room for their windows."""
    changes = {"network__flows": "pairs", "flow_control__baseband_packets": 1000, **changes}
    return line(traffic__source="greedy", **changes)


def test_windows_that_are_always_full_are_w_round_trips_over_the_rate():
    """And the rate is that of bridges that find all that a visit takes (see above), with nothing lost."""
    metrics, notes = answer(always_busy())
    assert notes["warnings"] == []
    frame, a_slot = 2 * (4 * 5 + 2 * 3) / 6, metrics["goodput_kbps"] / (1460 * 8e-3) * 625e-6
    assert (a_slot < 5 / 6 / (2 * (2 + 5 * frame))).all()
    assert (a_slot > 5 / 6 / (2 * (2 + 5 * frame + 28 + 4))).all()
    assert metrics["rtt_s"] * a_slot / 625e-6 == pytest.approx(8.0)
    assert not metrics["segment_loss"].any()


def test_a_load_that_no_flow_carries_is_a_greedy_one():
    """Where windows have room; a load of which a part is carried has no answer."""
    room = {"network__flows": "pairs", "flow_control__baseband_packets": 1000}
    overloaded, greedy = line(400.0, **room), always_busy()
    for name, value in answer(greedy)[0].items():
        np.testing.assert_array_equal(answer(overloaded)[0][name], value)
    assert slopes(overloaded, ["goodput_kbps"]) == {}
    flows = [{"from": "p1.1", "to": "p2.1"}, {"from": "p2.1", "to": "p1.1", "load_kbps": 1.0}]
    with pytest.raises(NoConvergence, match="load_kbps"):
        answer(line(400.0, **room | {"network__flows": flows}))


def test_saturated_flows_that_depend_on_their_start_are_in_doubt():
    """Eight flows, each with one segment: bridges find them in step, or not, for good."""
    one = {"transport__receive_window_segments": 1, "transport__initial_window_segments": 1}
    rhythms, window = answer(always_busy(network__peripherals=4, **one))[1]["warnings"]
    assert "from one start to another" in rhythms
    assert "receive_window_segments = 1" in window


def test_much_of_what_saturated_flows_get_is_in_doubt():
    assert answer(line(1.0))[1]["warnings"] == []
    (doubt,) = answer(line(90.0, network__flows="pairs", flow_control__baseband_packets=400))[1]["warnings"]
    assert "saturated flows" in doubt


def test_a_short_queue_of_a_sender_is_in_doubt_unless_its_window_fits():
    short = {"network__flows": "pairs", "flow_control__baseband_packets": 5}
    (doubt,) = answer(line(20.0, **short))[1]["warnings"]
    assert "holds 1 segments" in doubt
    one = {"transport__receive_window_segments": 1, "transport__initial_window_segments": 1}
    assert answer(line(20.0, **short, **one))[1]["warnings"] == []
    assert answer(line(0.1, **short))[1]["warnings"] == []


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"traffic__source": "greedy"}, "flow_control.baseband_packets"),
        ({"traffic__source": "greedy", "flow_control__enabled": True}, "flow_control.enabled"),
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
        by_model(scenario)


@pytest.mark.parametrize("changes", [{}, {"network__bridge": "MS"}, {"network__piconets": 3}])
def test_saturated_networks_are_near_the_simulator(changes):
    """Within 3 % of goodput and 5 % of round trips, the aims; nothing is random here."""
    scenario = always_busy(run__replications=2, run__duration_s=60.0, **changes)
    solved, simulated = bt.solve(scenario), bt.simulate(scenario, threads=1)
    assert solved.attrs["warnings"] == []
    for name, most in (("goodput_kbps", 0.03), ("rtt_s", 0.05)):
        np.testing.assert_allclose(solved[name], simulated[name].mean("replication"), rtol=most)


SIMULATED: dict[str, dict] = {
    "two piconets": {},
    "ARQ without errors": {"link__arq": "unlimited"},
    "central as bridge": {"network__bridge": "MS"},
    "three piconets": {"network__piconets": 3, "network__flows": [{"from": "p1.1", "to": "p3.1"}]},
    "tokens": {
        "load": 65.0, "network__flows": "uplink", "network__peripherals": 2, "network__piconets": 3,
        "flow_control__enabled": True,
    },
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("point", SIMULATED)
def test_the_model_is_near_the_simulator(point):
    """Within 5 % and the interval: the aim for the median, at a load at which the model stands.

    With intervals of 99.9 % a model that is 5 % off fails in one of a thousand runs.
    """
    scenario = line(**{"load": 5.0} | SIMULATED[point], run__replications=6, run__duration_s=600.0)
    solved = bt.solve(scenario)
    values = bt.simulate(scenario, threads=1).rtt_s.mean("flow").values
    half = 6.87 * values.std(ddof=1) / np.sqrt(values.size)  # Student's t of 5 degrees, 99.9 %
    assert abs(float(solved.rtt_s.mean()) - values.mean()) < 0.05 * values.mean() + half
    assert solved.attrs["warnings"] == []
