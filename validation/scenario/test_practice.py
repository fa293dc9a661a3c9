"""Scenarios of practice: the answers in their comments are the answers of their commands."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator

import pytest
from command_line import run

from btqueue.scenario import Scenario, list_models, load
from btqueue.scenario.loading import models_folder

NAMES = [name for name in list_models() if name.startswith("practice/")]


def stated(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield command, metric and number of each answer in the comment of a scenario."""
    comment = (models_folder() / f"{name}.toml").read_text("utf-8").partition("\n\n")[0]
    answers = r"^# \$ btqueue (.+)\n# Answer: (\w+) = (\d+\.\d+)"
    yield from re.findall(answers, comment, re.MULTILINE)


ANSWERS = [answer for name in NAMES for answer in stated(name)]


def test_each_scenario_of_practice_asks_and_answers_and_is_a_file_to_start_from(tmp_path):
    assert len(NAMES) == 6
    for name in NAMES:
        text = (models_folder() / f"{name}.toml").read_text("utf-8")
        assert text.startswith("# Question: "), name
        assert text.count("\n# Answer: ") == text.count("\n# $ btqueue ") == len(list(stated(name))) == 2
        assert "\n# By hand: " in text
        mine = tmp_path / "mine.toml"
        mine.write_text(run("models", name).stdout, "utf-8")
        assert load(str(mine)) == load(name)
        assert f"`{name.partition('/')[2]}`" in (models_folder() / "practice" / "README.md").read_text()


@pytest.mark.parametrize(("line", "metric", "number"), ANSWERS, ids=[line for line, _, _ in ANSWERS])
def test_the_answer_of_a_scenario_of_practice_is_the_answer_of_its_command(line, metric, number):
    """To the last digit that the comment gives."""
    document = json.loads(run(*shlex.split(line), "--quiet", "--json").stdout)
    found = document[line.split()[0]]["metrics"][metric]
    mean = found["mean"] if isinstance(found, dict) else found
    assert mean == pytest.approx(float(number), abs=10.0 ** -len(number.partition(".")[2]))


def test_the_question_of_the_readme_is_the_printer():
    text = (models_folder().parent / "README.md").read_text("utf-8").partition("```toml\n")[2]
    asked, printer = Scenario.from_dict(tomllib.loads(text.partition("```")[0])), load("practice/printer")
    assert asked.to_dict() | {"title": printer.title} == printer.to_dict()
    assert "501.5 kbit/s" in text
