"""Analytic answers of many points, found together: the same as one by one."""

import numpy as np
import pytest
from btqueue.network.ahead import FEW
from single_systems import by_model

import btqueue as bt
from btqueue.network import NoConvergence, answers_ahead
from btqueue.study.evaluate import evaluate
from btqueue.study.many_points import map_points

RING = bt.load("venugopal-2006/piconet")
POINTS = [
    {"network.peripherals": 2 + number % 3, "traffic.load_kbps": 10.0 + 20.0 * number}
    for number in range(FEW + 4)
]
"""From light loads to overload, where the analytic model has no answer."""
CLOSE = 1e-9, 1e-13
"""Rounding: losses are a difference of numbers close to 1."""


@pytest.fixture(scope="module")
def ahead():
    return answers_ahead([RING.changed(point) for point in POINTS])


def test_together_is_one_by_one(ahead):
    assert len(ahead) == len(POINTS)
    for point in POINTS:
        scenario = RING.changed(point)
        known = ahead[RING.changed(point)]
        if isinstance(known, NoConvergence):
            with pytest.raises(NoConvergence):
                by_model(scenario)
            continue
        alone, (metrics, notes) = bt.solve(scenario), known
        for name in {"goodput_kbps", "rtt_s", "segment_loss", "slot_utilisation"} & set(metrics):
            np.testing.assert_allclose(np.broadcast_to(metrics[name], alone[name].shape), alone[name], *CLOSE)
        assert set(notes["warnings"]) <= set(alone.attrs["warnings"])


def test_few_points_and_other_models_are_left_to_be_asked_one_by_one():
    assert not answers_ahead([RING.changed(point) for point in POINTS[:FEW]])
    links = [bt.load("johansson-2000/smooth").with_(traffic__load_kbps=10.0 + n) for n in range(2 * FEW)]
    assert not answers_ahead(links)


def test_points_of_a_study_are_those_of_single_questions():
    found = {one.number: one.answers["solve"] for one in map_points(RING, POINTS, workers=1)}
    for number, point in enumerate(POINTS):
        alone = evaluate(RING.changed(point))
        assert found[number].notes["answered_by"] == alone.notes["answered_by"]
        assert found[number].notes["why"] == alone.notes["why"]
        assert found[number].means.keys() == alone.means.keys()
        for name, value in alone.means.items():
            assert found[number].means[name] == pytest.approx(value, rel=1e-9, abs=1e-13)


def test_steps_of_a_load_are_found_together_too():
    steps = RING.with_(
        run__duration_s=100.0, run__warmup_s=0.0, traffic__load_schedule=[{"at_s": 50.0, "load_kbps": 30.0}]
    )
    many = [steps.with_(traffic__load_kbps=10.0 + number) for number in range(FEW)]
    found = answers_ahead(many)
    assert len(found) == FEW + 1  # a first step each, and the second one of all
    alone, together = bt.solve(many[0]), bt.solve(many[0], found)
    np.testing.assert_allclose(together["rtt_s"], alone["rtt_s"], *CLOSE)


def test_a_point_that_breaks_a_batch_fails_alone(monkeypatch, caplog):
    from btqueue.network.piconet import model

    real = model.Plan.__init__

    def broken(self, scenario, **options):
        if scenario.traffic.load_kbps == POINTS[1]["traffic.load_kbps"]:
            raise ZeroDivisionError("never met")
        real(self, scenario, **options)

    monkeypatch.setattr(model.Plan, "__init__", broken)
    caplog.set_level("WARNING", "btqueue")
    found = {one.number: one.answers["solve"] for one in map_points(RING, POINTS, workers=1)}
    failed = {number: str(answer.failure) for number, answer in found.items() if answer.failure is not None}
    assert list(failed) == [1] and "never met" in failed[1]
    assert "were not found together (ZeroDivisionError: never met)" in caplog.text
