"""Whether an answer of theory stands, why not, and what is refused."""

from unittest.mock import Mock

import numpy as np
import pytest

import btqueue as bt
from btqueue.network import regime
from btqueue.network.answers import NoConvergence, label
from btqueue.network.piconet import model as piconet
from btqueue.network.stations import model as stations
from btqueue.scenario import ScenarioError
from btqueue.study.sensitivity import gradient

RING = bt.load("venugopal-2006/piconet").with_(traffic__load_kbps=40.0)


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


def test_an_answer_without_doubts_stands():
    solved = bt.solve(RING)
    assert (solved.attrs["answered_by"], solved.attrs["stands"], solved.attrs["why"]) == ("theory", True, ())
    assert solved.attrs["errors_of"] == "theory"


def test_an_answer_in_doubt_is_given_with_its_doubts(doubtful):
    solved = bt.solve(RING)
    assert (solved.attrs["stands"], solved.attrs["why"]) == (False, ("it may rain",))
    assert "it may rain" in solved.attrs["warnings"] and solved.attrs["errors_of"] == "theory, in doubt"


def test_a_refusal_says_who_answers(monkeypatch):
    for model in (piconet, stations):
        monkeypatch.setattr(model, "answer", Mock(side_effect=NoConvergence("nothing settles")))
    with pytest.raises(NoConvergence, match="nothing settles") as refusal:
        bt.solve(RING)
    assert any("simulate" in words for words in refusal.value.__notes__)


def test_doubts_of_any_step_of_a_load_count():
    steps = RING.with_(
        run__duration_s=100.0, run__warmup_s=0.0, traffic__load_schedule=[{"at_s": 50.0, "load_kbps": 158.0}]
    )
    assert bt.solve(RING).attrs["stands"] and not bt.solve(steps).attrs["stands"]


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


FLOWS = [{"from": "p1.1", "to": "c1"}, {"from": "p1.2", "to": "c1"}]
TEN_A_SECOND = 10 * 1460 * 8e-3
"""Segments of a flow, in kbit/s."""


@pytest.mark.parametrize(
    "flows", [[{**FLOWS[0], "law": "ibp"}, FLOWS[1]], [{**one, "law": "ibp"} for one in FLOWS]]
)
def test_the_regime_test_reads_the_law_of_each_flow(flows):
    metrics, notes = {"goodput_kbps": TEN_A_SECOND, "rtt_s": 0.1}, {"warnings": [], "utilisation": 0.8}
    assert regime.doubts("piconet", RING.with_(network__flows=FLOWS), metrics, notes) == []
    (doubt,) = regime.doubts("piconet", RING.with_(network__flows=flows), metrics, notes)
    assert "in use to 80%" in doubt


WIRE = {"name": "lan", "from": "host", "to": "c1", "delay_s": 0.01}
REPEATED = {"link.arq": "unlimited", "radio.model": "constant", "radio.ber": 1e-4}
LOST = REPEATED | {"link.arq": "none"}
TWO_STATES = {"radio.model": "gilbert-elliott", "radio.ber_bad": 1e-3, "link.arq": 4}
DM5 = {"link.packets": ["DM5", "DM3"], "transport.receive_window_segments": 2}  # 7 packets a segment


def behind(jitter_s):
    """Return a flow over a wire with this jitter."""
    return {
        "network.outside_links": [{**WIRE, "jitter_s": jitter_s}],
        "network.flows": [{"from": "host", "to": "p1.1"}],
    }


@pytest.mark.parametrize(
    ("model", "changes", "metrics", "words"),
    [
        # a packet waits for the one in front with a probability of 10 / s x 5 ms / 2, for 5 ms, each way
        ("paths", behind(0.005), {"rtt_s": 0.03}, None),
        ("paths", behind(0.05), {"rtt_s": 0.15}, "[network] outside_links[1].jitter_s = 0.05"),
        ("open_paths", behind(0.05), {"rtt_s": 0.15}, "[network] outside_links[1].jitter_s = 0.05"),
        ("piconet", {**REPEATED, "transport.variant": "vegas"}, {}, "TCP Vegas"),
        ("piconet", {"transport.variant": "vegas"}, {}, None),
        ("piconet", {**LOST, "transport.variant": "vegas"}, {}, None),
        ("piconet", REPEATED, {}, None),
        ("piconet", {**DM5, "polling.limit": 7}, {"rtt_s": 0.2}, "too few segments"),
        ("piconet", {**DM5, "polling.limit": 7}, {"rtt_s": 0.1}, None),  # the load is carried
        ("piconet", {**DM5, "polling.limit": 7, "network.flows": FLOWS}, {"rtt_s": 0.2}, None),
        ("piconet", {**DM5, "polling.limit": 14, "network.flows": FLOWS}, {"rtt_s": 0.2}, None),
        ("piconet", {**DM5, "polling.limit": 15, "network.flows": FLOWS}, {"rtt_s": 0.2}, "too few segments"),
        ("piconet", {**DM5, **LOST, "polling.limit": 8}, {"rtt_s": 0.1}, "[polling] limit = 8"),
        ("piconet", {**DM5, **LOST, "polling.limit": 7}, {"rtt_s": 0.1}, None),
        ("piconet", {**DM5, **REPEATED, "polling.limit": 8}, {"rtt_s": 0.1}, None),
        ("piconet", {**TWO_STATES, "radio.good_s": 0.01, "radio.bad_s": 0.004}, {}, "stays for 0.004 s"),
        ("piconet", {**TWO_STATES, "radio.good_s": 2.0, "radio.bad_s": 1.0}, {}, None),
    ],
)
def test_doubts_of_any_model(model, changes, metrics, words):
    asked = RING.changed({"network.relay": None, **changes})
    found = regime.doubts(model, asked, {"goodput_kbps": TEN_A_SECOND, **metrics}, {"warnings": []})
    assert len(found) == (words is not None), found
    assert all(words in one for one in found)


def test_a_mean_over_nothing_is_no_number():
    solved = label(RING, {"delay_s": np.array([0.1, np.inf])}, {})
    np.testing.assert_array_equal(solved.variables["delay_s"].values, [0.1, np.nan])


@pytest.mark.parametrize("solver", ["auto", "analytic", "followed"])
def test_the_choice_of_a_solver_is_read_and_changes_nothing(solver):
    """Files of earlier versions have the key."""
    written = RING.with_(run__solver=solver)
    assert written == RING and hash(written) == hash(RING) and written.to_dict() == RING.to_dict()
    old, new = bt.solve(written), bt.solve(RING)
    assert old.equals(new) and old.attrs["stands"]
    (line,) = set(old.attrs["warnings"]) - set(new.attrs["warnings"])
    assert f'[run] solver = "{solver}"' in line and "changes nothing" in line


def test_a_solver_that_never_was_is_refused():
    with pytest.raises(ScenarioError) as refusal:
        RING.with_(run__solver="best")
    assert (refusal.value.key, refusal.value.value, refusal.value.guess) == ("run.solver", "best", "auto")
    assert '"followed"' in refusal.value.allowed


def test_a_slope_is_of_theory_although_a_neighbour_is_in_doubt(doubt):
    """A step above the load the model doubts its answer; both ends are theory's all the same."""
    wanted = ["rtt_s"], ["traffic.load_kbps"]
    expected = gradient(RING, *wanted)
    doubt(RING.traffic.load_kbps)
    found = gradient(RING, *wanted)
    assert [row.derivative for row in found.rows] == [row.derivative for row in expected.rows]
