"""The command `btqueue validate`: what is asked for, errors, a cheap claim of each publication, Ctrl-C."""

import json
from dataclasses import replace
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from btqueue.cli import app
from btqueue.network import NoConvergence
from btqueue.reproduction.claims.engines import Model, NoAnswer, Simulator
from btqueue.reproduction.figures.catalogue import catalogue
from btqueue.scenario import load

pytestmark = pytest.mark.usefixtures("kept")


def command(*arguments):
    return CliRunner().invoke(app, ["validate", *arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--paper", "venugopal"], "did you mean 'venugopal-2006'"),
        (["--claims", "goodput-5"], "no such claim; did you mean 'goodput-"),
        (["--paper", "chen-2004", "--claims", "goodput-4"], "no such claim"),
        (["--figures-from", "nowhere"], "there is no such folder"),
        (["--out", "file/in/it"], "cannot be made"),
    ],
)
def test_what_cannot_be_used_is_said(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    result = command(*arguments)
    assert result.exit_code == 2
    assert message in result.output


CHEAP = {
    "venugopal-2006": "goodput-6",
    "johansson-2000": "asymmetric-over-symmetric",
    "chen-2004": "two-hops-halve",
    "suliman-2005": "III.B-adaptive-better",
    "avancha-2002": "5.3.2-linear",
}


def test_a_cheap_claim_of_each_publication(tmp_path):
    only = [part for name in CHEAP.values() for part in ("--claims", name)]
    result = command(*only, "--no-figures", "--out", str(tmp_path / "report"), "--json")
    assert result.exit_code == 0
    counted = json.loads(result.stdout)["counts"]
    assert counted["simulated"] == {"reproduced": 5}
    assert sum(counted["solved"].values()) == 5
    refused = command(*only, "--no-figures", "--out", str(tmp_path / "report"))
    assert refused.exit_code == 2 and "report.html: exists already; --force" in refused.output
    again = command(*only, "--no-figures", "--out", str(tmp_path / "report"), "--force")
    assert again.output.count("(known") == 5
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    assert page.count('<b class="reproduced">reproduced</b>') == 2 * 5  # by simulation and by the models
    assert "&lt;br&gt;" not in page and "<br>" in page


def test_figures_are_drawn_into_the_report_and_one_that_fails_is_told(tmp_path, monkeypatch):
    of_chen = [entry for entry in catalogue("chen-2004") if entry.stem in ("fig_1", "fig_3")]
    broken = tmp_path / "fig_99.py"
    broken.write_text('"""Broken."""\n\n\ndef draw(work):\n    raise ZeroDivisionError("by zero")\n')
    entries = [*of_chen, replace(of_chen[0], name="chen-2004/fig_99", path=broken)]
    monkeypatch.setattr("btqueue.reproduction.figures.catalogue.catalogue", lambda: entries)
    result = command("--claims", "two-hops-halve", "--quick", "--out", str(tmp_path / "report"), "--json")
    assert result.exit_code == 3
    assert "chen-2004/fig_99: failed: ZeroDivisionError: by zero" in result.stderr
    assert json.loads(result.stdout)["counts"]["simulated"] == {"reproduced": 1}
    assert (tmp_path / "report" / "report.html").read_text("utf-8").count("data:image/png") == 2


def test_ctrl_c_says_what_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(Simulator, "run", Mock(side_effect=KeyboardInterrupt))
    result = command("--claims", "pcss-misses,rtt-2", "--no-figures", "--out", str(tmp_path / "report"))
    assert result.exit_code == 130
    assert "interrupted: 1 of 2 claims are kept" in result.output
    assert not list((tmp_path / "report").iterdir())


def test_a_model_answers_with_one_replication_or_says_why_not(monkeypatch):
    model, scenario = Model(), load("venugopal-2006/piconet-capacity")
    assert model.sample(scenario, "goodput_kbps").shape == (1,)
    monkeypatch.setattr("btqueue.network.solve", Mock(side_effect=NoConvergence("to and fro")))
    with pytest.raises(NoAnswer, match="no operating point: to and fro"):
        Model()(scenario.with_(run__seed=99))
