"""`run.solver`: queues and chains that are solved, connections that are followed, or the one that stands."""

from unittest.mock import Mock

import pytest

import btqueue as bt
from btqueue.network import regime
from btqueue.network.answers import NoConvergence
from btqueue.network.followed import model as follower
from btqueue.network.models import MODELS, SAMPLED, candidates, covering, models_of
from btqueue.network.piconet import model as piconet
from btqueue.network.solve import STANDS
from btqueue.scenario import NotBuiltYet, ScenarioError, list_models
from btqueue.study.sensitivity import gradient

RING = bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=40.0)
NOT_FOLLOWED = {"network.flows": "uplink", "link.arq": "unlimited", "polling.discipline": "prc-lwrr"}


@pytest.fixture
def doubt(monkeypatch):
    """Let the analytic model of a piconet doubt its answers beyond a load (kbit/s)."""
    real = piconet.answer

    def beyond(load_kbps):
        def answer(scenario):
            metrics, notes = real(scenario)
            doubts = ["it may rain"] if scenario.traffic.load_kbps > load_kbps else []
            return metrics, {**notes, "warnings": doubts}

        monkeypatch.setattr(piconet, "answer", answer)

    return beyond


@pytest.fixture
def doubtful(doubt):
    doubt(0.0)


def test_the_default_is_the_analytic_answer_where_it_stands():
    assert RING.run.solver == "auto"
    solved = bt.solve(RING)
    assert (solved.attrs["solver"], solved.attrs["solver_reason"]) == ("analytic", STANDS)
    assert solved.equals(bt.solve(RING.with_(run__solver="analytic")))


def test_connections_are_followed_where_the_analytic_answer_is_in_doubt(doubtful):
    solved = bt.solve(RING)
    assert solved.attrs["solver"] == "followed" and "it may rain" in solved.attrs["solver_reason"]
    assert solved.equals(bt.solve(RING.with_(run__solver="followed")))
    assert "it may rain" not in solved.attrs["warnings"]  # a doubt about another answer


def test_connections_are_followed_where_there_is_no_analytic_answer(monkeypatch):
    monkeypatch.setattr(piconet, "answer", Mock(side_effect=NoConvergence("nothing settles")))
    solved = bt.solve(RING)
    assert solved.attrs["solver"] == "followed" and "nothing settles" in solved.attrs["solver_reason"]
    with pytest.raises(NoConvergence, match="nothing settles"):
        bt.solve(RING.with_(run__solver="analytic"))


def test_an_answer_in_doubt_is_better_than_none(doubtful, monkeypatch):
    monkeypatch.setattr(follower, "answer", Mock(side_effect=NoConvergence("lost its way")))
    solved = bt.solve(RING)
    assert solved.attrs["solver"] == "analytic" and "lost its way" in solved.attrs["solver_reason"]
    assert "it may rain" in solved.attrs["warnings"]


def test_an_answer_in_doubt_without_another_one_says_so(doubtful):
    alone = RING.changed(NOT_FOLLOWED)
    assert list(candidates(alone)) == ["analytic"]
    solved = bt.solve(alone)
    assert "in doubt" in solved.attrs["solver_reason"] and "it may rain" in solved.attrs["warnings"]


def test_doubts_of_any_step_of_a_load_count():
    steps = RING.with_(
        run__duration_s=100.0, run__warmup_s=0.0, traffic__load_schedule=[{"at_s": 50.0, "load_kbps": 158.0}]
    )
    assert bt.solve(RING).attrs["solver"] == "analytic"
    assert bt.solve(steps).attrs["solver"] == "followed"


@pytest.mark.parametrize(
    ("utilisation", "rtt_s", "loss", "radio", "words"),
    [
        (0.69, 0.1, 0.0, "perfect", []),
        (0.71, 0.1, 0.0, "perfect", ["71%"]),
        (1.0, 0.1, 0.0, "perfect", []),
        (0.5, 0.6, 0.0, "perfect", ["windows are under way to 75%"]),  # 10 segments a second, 8 in a window
        (0.5, 0.8, 0.0, "perfect", []),  # held back by the window
        (0.5, 0.1, 0.01, "perfect", ["overflow"]),
        (0.5, 0.1, 0.001, "perfect", []),
        (0.5, 0.1, 0.01, "constant", []),  # lost at random, which TCP's law knows
    ],
)
def test_the_regime_test(utilisation, rtt_s, loss, radio, words):
    scenario = RING.with_(radio__model=radio)
    metrics = {"goodput_kbps": 10 * 1460 * 8e-3, "rtt_s": rtt_s, "segment_loss": loss}
    found = regime.doubts("piconet", scenario, metrics, {"warnings": [], "utilisation": utilisation})
    assert len(found) == len(words) and all(word in text for word, text in zip(words, found, strict=True))


def test_a_window_of_one_is_in_doubt_earlier():
    one = RING.with_(transport__receive_window_segments=1, transport__initial_window_segments=1)
    metrics = {"goodput_kbps": 10 * 1460 * 8e-3, "segment_loss": 0.0}  # ten segments a second
    notes = {"warnings": [], "utilisation": 0.5}
    assert regime.doubts("piconet", one, metrics | {"rtt_s": 0.039}, notes) == []
    (doubt,) = regime.doubts("piconet", one, metrics | {"rtt_s": 0.041}, notes)
    assert "windows of one are under way to 41%" in doubt


def test_each_solver_has_models_of_its_own():
    for name in list_models():
        scenario = bt.load(name)
        analytic, followed = models_of(scenario, "analytic"), models_of(scenario, "followed")
        assert sorted(analytic + followed) == sorted(MODELS)
        assert set(followed) >= SAMPLED
        assert covering(scenario, "analytic") or covering(scenario, "followed")


def test_a_solver_that_cannot_is_refused_and_the_other_one_named():
    with pytest.raises(NotBuiltYet) as refusal:
        bt.solve(bt.load("venugopal-2006/scatternet-errors-6").with_(run__solver="analytic"))
    assert (refusal.value.key, refusal.value.value) == ("run.solver", "analytic")
    assert "followed" in refusal.value.allowed
    with pytest.raises(NotBuiltYet) as refusal:
        bt.solve(RING.changed({**NOT_FOLLOWED, "run.solver": "followed"}))
    assert refusal.value.key == "run.solver" and "analytic" in refusal.value.allowed


def test_what_the_key_was_called_is_guessed():
    with pytest.raises(ScenarioError) as refusal:
        RING.with_(run__solver="best")
    assert (refusal.value.key, refusal.value.value, refusal.value.guess) == ("run.solver", "best", "auto")
    assert '"followed"' in refusal.value.allowed


def test_a_slope_is_of_one_solver_although_a_neighbour_is_in_doubt(doubt):
    """A step above the load the model doubts its answer; both ends are analytic answers all the same."""
    wanted = ["rtt_s"], ["traffic.load_kbps"]
    expected = gradient(RING.with_(run__solver="analytic"), *wanted)
    doubt(RING.traffic.load_kbps)
    found = gradient(RING, *wanted)
    assert [row.derivative for row in found.rows] == [row.derivative for row in expected.rows]
