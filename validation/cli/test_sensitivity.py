"""The command `btqueue sensitivity`."""

import csv
import json

import pytest
import xarray as xr
from command_line import run

CHAIN = "chen-2004/adaptive-1"
KEYS = ["--key", "radio.ber", "--key", "transport.receive_window_segments"]


def test_the_table_names_keys_and_elasticities():
    result = run("sensitivity", CHAIN, *KEYS)
    assert "radio.ber" in result.stdout and "-0.00795" in result.stdout
    assert "0.00045..0.00055" in result.stdout
    assert "no key has an effect" in result.stdout  # on timeouts


def test_the_table_says_where_a_metric_bends_and_does_not_react():
    keys = ("traffic.message_bytes", "transport.mss_bytes", "link.node_buffer_bytes", "traffic.load_kbps")
    metrics = ("--metric", "goodput_kbps", "--metric", "rtt_s")
    result = run("sensitivity", CHAIN, *metrics, *(word for key in keys for word in ("--key", key)))
    # a byte more is another packet; messages of a byte less carry a byte less a segment
    line = next(line for line in result.stdout.splitlines() if "traffic.message_bytes" in line)
    assert "0.7083 below, -" in line and "above, a step" in line
    assert "without effect: traffic.load_kbps" in result.stdout  # the source is greedy
    assert "no effect on goodput: link.node_buffer_bytes" in result.stdout


def test_files_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("sensitivity", CHAIN, *KEYS, "--metric", "rtt_s", "--out", "a.csv", "--plot", "a.svg")
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text("utf-8").splitlines()))
    assert [row["key"] for row in rows] == KEYS[1::2]
    assert float(rows[0]["elasticity"]) == pytest.approx(0.007948, rel=1e-3)
    assert "radio.ber" in (tmp_path / "a.svg").read_text()
    run("sensitivity", CHAIN, *KEYS, "--out", "a.nc")
    with xr.open_dataset("a.nc", engine="h5netcdf") as stored:
        elasticity = float(stored["elasticity"].sel(metric="rtt_s", key="radio.ber"))
        assert elasticity == pytest.approx(0.007948, rel=1e-3)
        assert "scenario" in stored.attrs


def test_shares_of_variance_are_told_drawn_and_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--method", "sobol", "--samples", "4", "--metric", "rtt_s"]
    result = run("sensitivity", CHAIN, *KEYS, *options, "--out", "a.csv", "--plot", "a.svg")
    assert "with interactions" in result.stdout and "16 points in 4 blocks" in result.stdout
    rows = {row["key"]: row for row in csv.DictReader((tmp_path / "a.csv").read_text("utf-8").splitlines())}
    assert "share of the variance" in (tmp_path / "a.svg").read_text()
    document = json.loads(run("sensitivity", CHAIN, *KEYS, *options, "--json").stdout)
    keys = document["sensitivity"]["metrics"]["rtt_s"]["keys"]
    assert {key: keys[key]["total"] for key in KEYS[1::2]} == {
        key: pytest.approx(float(rows[key]["total"])) for key in KEYS[1::2]
    }


def test_formulas_with_and_without_a_scenario():
    result = run("sensitivity", "--formula", "attempts", "--at", "h=1", "--at", "s=0.8", "--at", "r=1")
    assert "value: 1.25\n" in result.stdout and r"\frac" in result.stdout
    listed = run("sensitivity", CHAIN, "--method", "closed")
    assert "packet error rate, DM5 payload" in listed.stdout and "radio.ber" in listed.stdout
    one = run("sensitivity", CHAIN, "--formula", "packet error rate, DH5 payload", "--json")
    formula = json.loads(one.stdout)["formulas"]["packet error rate, DH5 payload"]
    assert formula["value"] == pytest.approx(1 - (1 - 5e-4) ** 2712)
    assert formula["symbols"]["b"]["derivative"] == pytest.approx(2712 * (1 - 5e-4) ** 2711)
    assert (formula["holds"], formula["doubt"]) == (True, "")
    incomplete = run("sensitivity", "--formula", "attempts")
    assert "--at h=..." in incomplete.stdout


def test_too_many_failures_are_no_answer():
    key = "transport.min_rto_s"
    beyond = ["--spread", f"{key}=1..1000", "--key", key]  # the largest timeout
    result = run("sensitivity", CHAIN, "--method", "sobol", *beyond, "--samples", "8", code=3)
    assert "points have no answer" in result.stderr


def test_formulas_of_unlike_flows_say_that_their_numbers_are_means(tmp_path):
    """A loss and a round trip over two kinds of flows are of no connection."""
    own = (
        "network = {{ peripherals = 2, flows = {flows} }}\nlink = {{ arq = {arq} }}\n"
        'traffic = {{ source = "greedy" }}\n'
        'radio = {{ links = [{{ node = "p1.2", model = "constant", ber = 1e-4 }}] }}\n'
    )
    (tmp_path / "unlike.toml").write_text(own.format(flows='"uplink"', arq=4))
    listed = run("sensitivity", str(tmp_path / "unlike.toml"), "--method", "closed")
    assert "means over unlike flows" in " ".join(listed.stdout.split())
    flows = '[{ from = "p1.1", to = "c1" }, { from = "p1.2", to = "c1" }]'
    (tmp_path / "none.toml").write_text(own.format(flows=flows, arq='"unlimited"'))
    assert (
        "no closed form applies"
        in run("sensitivity", str(tmp_path / "none.toml"), "--method", "closed").stdout
    )
