"""Whether an answer of theory stands, why not, and what is refused."""

from unittest.mock import Mock

import pytest

import btqueue as bt
from btqueue.network.answers import NoConvergence
from btqueue.network.stations import model as stations
from btqueue.scenario import ScenarioError
from btqueue.study.sensitivity import local_sensitivity

RING = bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=40.0)


@pytest.fixture
def doubt(monkeypatch):
    """Let theory doubt its answers beyond a load (kbit/s)."""
    real = stations.answer

    def beyond(load_kbps):
        def answer(scenario):
            metrics, notes = real(scenario)
            doubts = ["it may rain"] if scenario.traffic.load_kbps > load_kbps else []
            return metrics, {**notes, "warnings": doubts}

        monkeypatch.setattr(stations, "answer", answer)

    return beyond


@pytest.fixture
def doubtful(doubt):
    doubt(0.0)


def test_an_answer_without_doubts_stands():
    solved = bt.solve(RING)
    assert (solved.attrs["answered_by"], solved.attrs["stands"], solved.attrs["why"]) == ("theory", True, ())
    assert solved.attrs["errors_of"] == "theory"


def test_an_answer_in_doubt_is_given_with_its_doubts(doubtful):
    solved = bt.solve(RING)
    assert (solved.attrs["stands"], solved.attrs["why"]) == (False, ("it may rain",))
    assert "it may rain" in solved.attrs["warnings"] and solved.attrs["errors_of"] == "theory, in doubt"


def test_a_refusal_says_who_answers(monkeypatch):
    monkeypatch.setattr(stations, "answer", Mock(side_effect=NoConvergence("nothing settles")))
    with pytest.raises(NoConvergence, match="nothing settles") as refusal:
        bt.solve(RING)
    assert any("simulate" in words for words in refusal.value.__notes__)


def test_doubts_of_any_step_of_a_load_count():
    steps = RING.with_(
        run__duration_s=100.0, run__warmup_s=0.0, traffic__load_schedule=[{"at_s": 50.0, "load_kbps": 158.0}]
    )
    assert bt.solve(RING).attrs["stands"] and not bt.solve(steps).attrs["stands"]


@pytest.mark.parametrize("solver", ["auto", "analytic", "followed"])
def test_the_choice_of_a_solver_is_read_and_changes_nothing(solver):
    """Files of earlier versions have the key."""
    written = RING.with_(run__solver=solver)
    assert written == RING and hash(written) == hash(RING) and written.to_dict() == RING.to_dict()
    old, new = bt.solve(written), bt.solve(RING)
    assert old.equals(new) and old.attrs["stands"]


def test_a_solver_that_never_was_is_refused():
    with pytest.raises(ScenarioError) as refusal:
        RING.with_(run__solver="best")
    assert (refusal.value.key, refusal.value.value) == ("run.solver", "best")


def test_a_slope_is_of_theory_although_a_neighbour_is_in_doubt(doubt):
    """A step above the load the model doubts its answer; both ends are theory's all the same."""
    wanted = ["rtt_s"], ["traffic.load_kbps"]
    expected = local_sensitivity(RING, *wanted)
    doubt(RING.traffic.load_kbps)
    found = local_sensitivity(RING, *wanted)
    assert [row.derivative for row in found.rows] == [row.derivative for row in expected.rows]


DATAGRAMS = {"transport.protocol": "none", "traffic.source": "ibp", "traffic.load_kbps": 190.0}
GREEDY = {"traffic.source": "greedy", "network.flows": "downlink", "network.peripherals": 3}
LONG = {"traffic.source": "poisson", "traffic.message_bytes": 1800, "traffic.load_kbps": 130.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (DATAGRAMS | {"flow_control.baseband_packets": 20}, "bursts of datagrams"),
        (GREEDY | {"polling.discipline": "ldq"}, '"ldq"'),
        (GREEDY | {"polling.discipline": "exhaustive"}, "keeps the central to itself"),
        (
            {"polling.discipline": "prc-lwrr", "transport.receive_window_segments": 2}
            | {"traffic.source": "greedy", "network.flows": [{"from": "c1", "to": "p1.1"}]},
            "prc-lwrr",
        ),
        (LONG | {"transport.nagle": "minshall"}, "last segment of a message"),
        (LONG | {"transport.nagle": False}, "last segment of a message"),
    ],
)
def test_answers_that_were_wrong_on_unseen_scenarios_are_in_doubt(changes, said):
    one = bt.Scenario().changed({"network.peripherals": 3, "network.flows": "uplink"} | changes)
    assert any(said in why for why in bt.solve(one).attrs["why"])
