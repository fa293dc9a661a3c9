"""`btqueue dimension`: output, exit codes, files, and what goes wrong."""

import json
from unittest.mock import Mock

import pytest
from command_line import run
from thesis import thesis

QUESTION = ["dimension", "venugopal-2006/piconet", "--maximize", "goodput_kbps"]
CHOICE = ["--choose", "polling.limit=1..4"]


pytestmark = pytest.mark.usefixtures("engines")  # 101 kbit/s by the model, 100 by simulation, anywhere


def test_a_table_for_people():
    result = run(*QUESTION, *CHOICE, "--subject-to", "cycle_s <= 40 ms", "--quiet")
    for words in ("best", "goodput_kbps", "cycle_s <= 40 ms", "nothing is better", "winner", "common random"):
        assert words in result.stdout
    assert "polling.limit has no effect on the answer" in result.stdout and "as good" not in result.stdout
    of_a_key = run(*QUESTION[:2], "--minimize", "polling.limit", *CHOICE, "--quiet").stdout
    assert "winner" in of_a_key and "no spread" not in of_a_key


def test_one_json_object():
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


def test_nothing_feasible_is_exit_code_3_with_the_nearest_point():
    words = (*QUESTION, *CHOICE, "--subject-to", "goodput_kbps >= 150")
    result = run(*words, code=3)
    assert "nearest" in result.stdout and "fails by 49" in result.stdout
    assert "no point meets all bounds" in result.stderr
    content = json.loads(run(*words, "--json", code=3).stdout)
    assert content["dimension"]["best"] is None
    assert content["dimension"]["nearest"]["slack"] == {"goodput_kbps >= 150": -49.0}


def test_where_nothing_is_feasible_the_hints_at_the_nearest_point_are_said(tmp_path):
    """Nagle's algorithm and the delayed acknowledgement keep small messages longer than any limit allows."""
    ward = tmp_path / "ward.toml"
    ward.write_text('network.flows = "uplink"\ntraffic = { message_bytes = 40, load_kbps = 3.2 }\n')
    words = ["dimension", str(ward), "--choose", "polling.limit=1,2", "--maximize", "goodput_kbps"]
    result = run(*words, "--subject-to", "polling.limit >= 3", "--no-confirm", code=3)
    assert "hint: [transport] nagle = true: messages of 40 bytes wait" in result.stderr


def test_ctrl_c_shows_what_was_solved_and_is_exit_code_130(engines, tmp_path):
    answer = engines.network.solve(thesis()).to_dataset()
    engines.network.solve = Mock(side_effect=[answer, answer, KeyboardInterrupt])
    result = run(*QUESTION, *CHOICE, "--out", tmp_path / "points.csv", code=130)
    assert "interrupted: this answer rests on 2 points" in result.stderr and "best" in result.stdout
    assert len((tmp_path / "points.csv").read_text("utf-8").splitlines()) == 3
