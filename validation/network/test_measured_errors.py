"""The errors that answers quote are those of the page in the documentation."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import btqueue
from btqueue.network.measured_errors import FEW, Kind, in_words, measured_errors

ALL: dict[str, Any] = dict.fromkeys(("goodput_kbps", "rtt_s", "session_time_s", "timeouts_per_s"), 1.0)
POINTS = Path(__file__).parents[2] / "docs" / "explanation" / "model-against-simulation.csv"


def test_the_errors_of_every_kind_are_those_of_its_points():
    found = {}
    for row in csv.DictReader(POINTS.read_text("utf-8").splitlines()):
        if row["metric"] == "goodput_kbps":
            kind = row["answers"], Kind(row["system"], row["regime"])
            found.setdefault(kind, []).append(float(row["solved"]) / float(row["simulated"]) - 1)
    large = {kind: np.array(errors) for kind, errors in found.items() if len(errors) >= FEW}
    systems = {"one piconet", "several piconets", "outside links", "sessions"}
    assert {kind.system for _, kind in large} == systems
    for (answers, kind), errors in large.items():
        known = measured_errors(answers, kind)["goodput_kbps"]
        assert known.points == len(errors)
        # the points are written to six digits, which moves a ratio of two by up to 1e-5, the errors to four
        assert known.median == pytest.approx(np.median(np.abs(errors)), rel=1e-3, abs=1e-5)
        assert known.high == pytest.approx(np.quantile(np.abs(errors), 0.95), rel=1e-3, abs=1e-5)
        assert abs(known.worst) == pytest.approx(np.abs(errors).max(), rel=1e-3, abs=1e-5)
        words = in_words(answers, kind, ALL)
        assert f"goodput {known.median:.1%} and {known.high:.0%}" in words
        assert re.search(rf"percentile of .*\b{known.points}\b.* points: {kind.system}, {kind.regime}", words)


def test_a_regime_of_few_points_is_judged_by_its_system():
    everywhere = measured_errors("theory", Kind("one piconet", ""))
    assert everywhere == measured_errors("theory", Kind("one piconet", "none such"))
    assert everywhere["goodput_kbps"].points > 2 * FEW
    assert measured_errors("theory", Kind("none such", "")) == {}
    assert in_words("theory", Kind("none such", "x"), ALL) == "never measured: none such, x"


def test_an_answer_carries_them():
    answer: Any = btqueue.solve(btqueue.load("johansson-2000/symmetric"))
    kind = Kind(answer.attrs["system"], answer.attrs["regime"])
    assert answer.attrs["measured_errors"] == in_words(answer.attrs["errors_of"], kind, answer)


def test_errors_of_metrics_that_are_0_are_left_out():
    kind, quiet = Kind("one piconet", ""), ALL | {"timeouts_per_s": np.zeros(3)}
    assert "timeouts" in in_words("theory", kind, ALL) and "timeouts" not in in_words("theory", kind, quiet)
