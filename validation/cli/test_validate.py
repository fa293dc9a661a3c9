"""The command `btqueue validate`: what is asked for, errors, a cheap claim of each publication, Ctrl-C."""

import json
from unittest.mock import Mock

import pytest
from command_line import failure, run

from btqueue.network import NoConvergence
from btqueue.reproduction.claims.engines import Model, NoAnswer, Simulator
from btqueue.scenario import load

pytestmark = pytest.mark.usefixtures("kept")

# of Venugopal, Johansson, Chen, Suliman and Avancha
CHEAP = ["goodput-6", "asymmetric-over-symmetric", "two-hops-halve", "III.B-adaptive-better", "5.3.2-linear"]


def test_a_cheap_claim_of_each_publication(tmp_path):
    only = [part for name in CHEAP for part in ("--claims", name)]
    result = run("validate", *only, "--out", tmp_path / "report", "--json")
    counted = json.loads(result.stdout)["counts"]
    assert counted["simulated"] == {"reproduced": 5}
    assert sum(counted["solved"].values()) == 5
    again = ("validate", *only, "--out", tmp_path / "report")
    assert "report.html: exists already; --force" in failure(*again)
    assert run(*again, "--force").output.count("(known") == 5
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    assert page.count('<b class="reproduced">reproduced</b>') == 2 * 5  # by simulation and by the models
    assert "&lt;br&gt;" not in page and "<br>" in page


def test_ctrl_c_says_what_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(Simulator, "run", Mock(side_effect=KeyboardInterrupt))
    words = ("--claims", "pcss-misses,rtt-2", "--out", tmp_path / "report")
    result = run("validate", *words, code=130)
    assert "interrupted: 1 of 2 claims are kept" in result.output
    assert not list((tmp_path / "report").iterdir())


def test_a_model_answers_with_one_replication_or_says_why_not(monkeypatch):
    model, scenario = Model(), load("venugopal-2006/piconet-capacity")
    assert model.sample(scenario, "goodput_kbps").shape == (1,)
    monkeypatch.setattr("btqueue.network.solve", Mock(side_effect=NoConvergence("to and fro")))
    with pytest.raises(NoAnswer, match="no operating point: to and fro"):
        Model()(scenario.with_(run__seed=99))
