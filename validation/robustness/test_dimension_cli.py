"""`btqueue dimension`: output, exit codes, files, and what goes wrong."""

import json

import pytest
import typer
from typer.testing import CliRunner

from btqueue.cli.dimension import dimension
from btqueue.cli.errors import Commands

QUESTION = ["dimension", "venugopal-2006/piconet", "--maximize", "goodput_kbps"]
CHOICE = ["--choose", "polling.limit=1..4"]


@pytest.fixture
def run(engines):
    """The command with stand-ins for the engines: 101 kbit/s by the model, 100 by simulation, anywhere."""
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    app.command()(dimension)
    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_a_table_for_people(run):
    result = run(*QUESTION, *CHOICE, "--subject-to", "cycle_s <= 40 ms", "--quiet")
    assert result.exit_code == 0
    for words in (
        "best",
        "goodput_kbps",
        "cycle_s <= 40 ms",
        "nothing is better",
        "polling.limit has no effect on the answer",
    ):
        assert words in result.stdout
    assert "winner" in result.stdout and "common random numbers" in result.stdout
    assert "as good" not in result.stdout


def test_one_json_object(run):
    result = run(*QUESTION, *CHOICE, "--subject-to", "cycle_s <= 40 ms", "--json", "--top", "2")
    content = json.loads(result.stdout)
    found = content["dimension"]
    assert found["best"] == {
        "keys": {"polling.limit": 1}, "flows_without_goodput": 0, "objective": 101.0,
        "slack": {"cycle_s <= 40 ms": pytest.approx(0.01)}, "warnings": ["rough"], "answered_by": "theory",
    }  # fmt: skip
    assert found["keys_without_effect"] == ["polling.limit"] and found["runners_up"] == []
    assert found["proved"] and found["combinations"] == 4
    roles = [point["role"] for point in found["confirmation"]["points"]]
    assert roles == ["winner", "polling.limit = 2"]
    assert content["provenance"]["seed"] == 1


def test_nothing_feasible_is_exit_code_3_with_the_nearest_point(run):
    result = run(*QUESTION, *CHOICE, "--subject-to", "goodput_kbps >= 150")
    assert result.exit_code == 3
    assert "nearest" in result.stdout and "fails by 49" in result.stdout
    assert "no point meets all bounds" in result.stderr
    content = json.loads(run(*QUESTION, *CHOICE, "--subject-to", "goodput_kbps >= 150", "--json").stdout)
    assert content["dimension"]["best"] is None
    assert content["dimension"]["nearest"]["slack"] == {"goodput_kbps >= 150": -49.0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*QUESTION, "--choose", "poling.limit=1..4"], "polling.limit"),
        ([*QUESTION, *CHOICE, "--subject-to", "rtt_s <= 1", "--engine", "solve"], "gives no rtt_s"),
    ],
)
def test_bad_input_is_exit_code_2_and_writes_nothing(run, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr and result.stdout == ""
    assert "Traceback" not in result.output and not list(tmp_path.iterdir())


def test_ctrl_c_shows_what_was_solved_and_is_exit_code_130(run, engines, tmp_path):
    solve, calls = engines.network.solve, []

    def interrupted(scenario):
        calls.append(scenario)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(scenario)

    engines.network.solve = interrupted
    result = run(*QUESTION, *CHOICE, "--out", str(tmp_path / "points.csv"))
    assert result.exit_code == 130
    assert "interrupted: this answer rests on 2 points" in result.stderr and "best" in result.stdout
    assert len((tmp_path / "points.csv").read_text("utf-8").splitlines()) == 3


def test_points_that_fail_are_counted_with_their_reason(run, engines):
    solve = engines.network.solve

    def fails(*_, **__):
        raise engines.network.NoConvergence("it does not either")

    def failing(scenario):
        if scenario.polling.limit < 3:
            raise engines.network.NoConvergence("it oscillates")
        return solve(scenario)

    engines.network.solve = failing
    engines.simulator.simulate = fails  # which is asked instead
    result = run(*QUESTION, *CHOICE, "--no-confirm")
    assert result.exit_code == 0 and "failed: 2 x no convergence: it" in result.stdout
