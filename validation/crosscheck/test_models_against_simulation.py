"""Theory beside simulation, at every recorded point (docs/explanation/model-against-simulation.csv)."""

import pytest
from grids import modules, points_of
from model_against_simulation import Row, Task, kept

import btqueue as bt
from btqueue.network.measured_errors import THEORY
from btqueue.study.summary import partial_times

TOLERANCE = {"goodput_kbps": 0.03, "rtt_s": 0.05, "session_time_s": 0.05, "timeouts_per_s": 0.10}
"""Relative errors of a right answer, beside the half-width of the simulation's 95 % interval."""
LEAST_TIMEOUTS = 0.01
"""Timeouts a second from which on a relative error means something."""
RIGHT = 0.97
"""Share of the answers that stand which must be right."""

ROWS = kept()


def right(row: Row) -> bool:
    """Whether a metric is within its tolerance, or has none."""
    if row.metric not in TOLERANCE or (row.metric == "timeouts_per_s" and row.simulated <= LEAST_TIMEOUTS):
        return True
    return abs(row.solved - row.simulated) <= TOLERANCE[row.metric] * row.simulated + row.ci95


def test_answers_that_stand_are_right():
    answers: dict[tuple[str, str], bool] = {}
    for row in ROWS:
        if row.answers == THEORY:
            point = row.grid, row.point
            answers[point] = answers.get(point, True) and right(row)
    wrong = [point for point, fine in answers.items() if not fine]
    assert len(answers) > 100
    assert len(wrong) <= (1.0 - RIGHT) * len(answers), wrong


@pytest.mark.parametrize("step", [40, pytest.param(5, marks=pytest.mark.long)])
@pytest.mark.parametrize("grid", modules())
def test_recorded_answers_are_those_of_today(grid: str, step: int):
    """Else the page and the errors that answers quote are to be written again."""
    for name, scenario in points_of(grid)[::step]:
        digest, solved = Task(grid, name, scenario).digest, bt.solve(scenario)
        rows = [row for row in ROWS if (row.grid, row.point) == (grid, name)]
        assert rows
        assert {row.scenario for row in rows} == {digest}
        for row in rows:
            assert float(solved[row.metric].mean()) == pytest.approx(row.solved, rel=1e-4), (name, row.metric)


def test_percentiles_are_compared_over_the_same_flows():
    """Theory's 90 % of a download alone stood beside the simulated mean over a download and six sensors."""
    recorded = {row.point for row in ROWS if row.grid == "mixed" and row.metric == "rtt_p90_s"}
    partial = {
        name
        for name, scenario in points_of("mixed")[:20]
        if "rtt_p90_s" in partial_times(bt.solve(scenario), scenario)
    }
    assert len(partial) > 3 and recorded and not partial & recorded
