"""The error classes that answers carry are those of the page in the documentation."""

import csv
from pathlib import Path

import numpy as np
import pytest

import btqueue
from btqueue.network.measured_errors import in_words, measured_errors
from btqueue.network.models import MODELS

POINTS = Path(__file__).parents[2] / "docs" / "explanation" / "model-against-simulation.csv"


@pytest.mark.parametrize("model", MODELS)
def test_the_classes_of_every_model_are_those_of_its_points(model):
    with POINTS.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == model]
    errors = [
        float(row["solved"]) / float(row["simulated"]) - 1 for row in rows if row["metric"] == "goodput_kbps"
    ]
    known = measured_errors(model)["goodput_kbps"]
    assert known.points == len(errors) > 10
    # the points are written to six digits, the classes to four
    assert known.median == pytest.approx(np.median(np.abs(errors)), rel=1e-3, abs=2e-6)
    assert known.high == pytest.approx(np.quantile(np.abs(errors), 0.95), rel=1e-3, abs=2e-6)
    assert abs(known.worst) == pytest.approx(np.abs(errors).max(), rel=1e-3)
    assert f"{known.points} points" in in_words(model)


def test_an_answer_carries_them():
    answer = btqueue.solve(btqueue.load("johansson-2000/symmetric"))
    assert answer.attrs["measured_errors"] == in_words("two_way_link")
    assert measured_errors("none such") == {}
