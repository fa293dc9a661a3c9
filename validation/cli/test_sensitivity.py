"""The command `btqueue sensitivity`."""

import csv
import json

import pytest
import typer
import xarray as xr
from typer.testing import CliRunner

from btqueue.cli.errors import Commands
from btqueue.cli.sensitivity import sensitivity

CHAIN = "chen-2004/adaptive-1"
KEYS = ["--key", "radio.ber", "--key", "transport.receive_window_segments"]


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    app = typer.Typer(cls=Commands)
    app.callback()(lambda: None)
    app.command()(sensitivity)

    def invoke(*arguments: str):
        return CliRunner().invoke(app, ["sensitivity", *arguments])

    return invoke


def test_the_table_names_keys_and_elasticities(run):
    result = run(CHAIN, *KEYS)
    assert result.exit_code == 0, result.output
    assert "radio.ber" in result.stdout and "-0.00795" in result.stdout
    assert "0.00045..0.00055" in result.stdout
    assert "no key has an effect" in result.stdout  # on timeouts


def test_the_table_says_where_a_metric_jumps_bends_and_does_not_react(run):
    keys = ("traffic.message_bytes", "transport.mss_bytes", "link.node_buffer_bytes", "traffic.load_kbps")
    metrics = ("--metric", "goodput_kbps", "--metric", "rtt_s")
    result = run(CHAIN, *metrics, *(word for key in keys for word in ("--key", key)))
    assert result.exit_code == 0, result.output
    # a byte more is another packet; messages of a byte less carry a byte less a segment
    line = next(line for line in result.stdout.splitlines() if "traffic.message_bytes" in line)
    assert "0.7083 below, jumps above" in line
    assert "without effect: traffic.load_kbps" in result.stdout  # the source is greedy
    assert "no effect on goodput: link.node_buffer_bytes" in result.stdout


def test_files_are_written(run, tmp_path):
    result = run(CHAIN, *KEYS, "--metric", "rtt_s", "--out", "a.csv", "--plot", "a.svg")
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text("utf-8").splitlines()))
    assert [row["key"] for row in rows] == KEYS[1::2]
    assert float(rows[0]["elasticity"]) == pytest.approx(0.007948, rel=1e-3)
    assert "radio.ber" in (tmp_path / "a.svg").read_text()
    assert run(CHAIN, *KEYS, "--out", "a.nc").exit_code == 0
    with xr.open_dataset("a.nc", engine="h5netcdf") as stored:
        elasticity = float(stored["elasticity"].sel(metric="rtt_s", key="radio.ber"))
        assert elasticity == pytest.approx(0.007948, rel=1e-3)
        assert "scenario" in stored.attrs


def test_pairs_of_keys_are_told_drawn_and_written(run, tmp_path):
    options = ["--method", "sobol", "--samples", "4", "--metric", "rtt_s", "--pairs"]
    result = run(CHAIN, *KEYS, *options, "--out", "a.csv", "--plot", "a.svg")
    assert result.exit_code == 0, result.output
    assert "together" in result.stdout and "24 points in 4 blocks" in result.stdout
    rows = {row["key"]: row for row in csv.DictReader((tmp_path / "a.csv").read_text("utf-8").splitlines())}
    one, other = KEYS[1::2]
    assert rows[one][f"pair with {other}"] == rows[other][f"pair with {one}"] != ""
    assert rows[one][f"pair with {one}"] == ""
    assert "two keys together" in (tmp_path / "a.svg").read_text()
    found = json.loads(run(CHAIN, *KEYS, *options, "--json").stdout)["sensitivity"]["metrics"]["rtt_s"]
    both = pytest.approx(float(rows[one][f"pair with {other}"]))
    assert found["keys"][one]["pair"] == {one: None, other: both}


def test_formulas_with_and_without_a_scenario(run):
    result = run("--formula", "attempts", "--at", "h=1", "--at", "s=0.8", "--at", "r=1")
    assert result.exit_code == 0, result.output
    assert "value: 1.25\n" in result.stdout and r"\frac" in result.stdout
    listed = run(CHAIN, "--method", "closed")
    assert "packet error rate, DM5 payload" in listed.stdout and "radio.ber" in listed.stdout
    one = run(CHAIN, "--formula", "packet error rate, DH5 payload", "--json")
    formula = json.loads(one.stdout)["formulas"]["packet error rate, DH5 payload"]
    assert formula["value"] == pytest.approx(1 - (1 - 5e-4) ** 2712)
    assert formula["symbols"]["b"]["derivative"] == pytest.approx(2712 * (1 - 5e-4) ** 2711)
    assert (formula["holds"], formula["doubt"]) == (True, "")
    incomplete = run("--formula", "attempts")
    assert "--at h=..." in incomplete.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a SCENARIO"),
        ([CHAIN, "--spread", "lots"], "KEY=LOW..HIGH"),
        ([CHAIN, "--method", "gradient"], "'gradient' is not one of"),
        ([CHAIN, "--samples", "8"], "goes with --method sobol"),
        ([CHAIN, "--method", "closed", "--out", "a.csv"], "formulas are printed"),
        ([CHAIN, "--key", "link.l2cap_delay_s", "--method", "sobol"], "give its spread"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(run, arguments, words, tmp_path):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_too_many_failures_are_no_answer(run):
    spread = ["--spread", "transport.min_rto_s=1..1000"]  # beyond the largest timeout
    result = run(CHAIN, "--method", "sobol", *spread, "--key", "transport.min_rto_s", "--samples", "8")
    assert result.exit_code == 3
    assert "points have no answer" in result.stderr
