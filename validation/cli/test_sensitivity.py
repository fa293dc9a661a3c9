"""The command `btqueue sensitivity`."""

import csv
import json

import pytest
import xarray as xr
from command_line import run

from btqueue.scenario import Scenario

CHAIN = "chen-2004/adaptive-1"
KEYS = ["--key", "radio.ber", "--key", "transport.receive_window_segments"]


def test_the_table_names_keys_and_elasticities():
    result = run("sensitivity", CHAIN, *KEYS)
    assert "radio.ber" in result.stdout and "-0.00795" in result.stdout
    assert "0.00045..0.00055" in result.stdout
    assert "no key has an effect" in result.stdout  # on timeouts


def test_keys_without_numbers_are_named_as_left_out_unless_keys_are_chosen():
    """The packet type, `link.rate`, may matter most, and is no number."""
    for keys, told in (([], True), (KEYS, False)):
        stdout = run("sensitivity", CHAIN, *keys, "--metric", "goodput_kbps").stdout
        assert ("left out: keys that hold no number" in stdout) == told


def test_the_table_says_where_a_metric_bends_and_does_not_react():
    keys = ("traffic.message_bytes", "transport.mss_bytes", "link.node_buffer_bytes", "traffic.load_kbps")
    metrics = ("--metric", "goodput_kbps", "--metric", "rtt_s")
    result = run("sensitivity", CHAIN, *metrics, *(word for key in keys for word in ("--key", key)))
    # a byte more is another packet; messages of a byte less carry a byte less a segment
    line = next(line for line in result.stdout.splitlines() if "traffic.message_bytes" in line)
    assert "0.7083 below, -" in line and "above, a step" in line
    assert "without effect: traffic.load_kbps" in result.stdout  # the source is greedy
    assert "no effect on goodput: link.node_buffer_bytes" in result.stdout


@pytest.mark.parametrize(
    ("options", "column", "drawn"),
    [
        ([], "elasticity", "radio.ber"),
        (["--method", "sobol", "--samples", "4"], "total", "share of the variance"),
    ],
)
def test_elasticities_and_shares_of_variance_are_told_drawn_and_written(tmp_path, options, column, drawn):
    table, picture, stored = (tmp_path / f"a.{suffix}" for suffix in ("csv", "svg", "nc"))
    words = ("sensitivity", CHAIN, *KEYS, *options, "--metric", "rtt_s")
    told = run(*words, "--out", table, "--plot", picture).stdout
    assert ("with interactions" in told and "16 points in 4 blocks" in told) == bool(options)
    rows = {row["key"]: float(row[column]) for row in csv.DictReader(table.read_text("utf-8").splitlines())}
    assert list(rows) == KEYS[1::2] and drawn in picture.read_text()
    assert options or rows["radio.ber"] == pytest.approx(0.007948, rel=1e-3)
    document = json.loads(run(*words, "--out", stored, "--json").stdout)
    keys = document["sensitivity"]["metrics"]["rtt_s"]["keys"]
    assert {key: one[column] for key, one in keys.items()} == pytest.approx(rows)
    with xr.open_dataset(stored, engine="h5netcdf") as dataset:
        assert dataset[column].sel(metric="rtt_s").values.tolist() == pytest.approx(list(rows.values()))
        assert "scenario" in dataset.attrs


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


def test_an_unknown_formula_is_answered_by_the_names_that_begin_so():
    begun = run("sensitivity", "--formula", "round trip", code=2).stderr
    assert "there are round trip, lone segment up a star; " in begun and "fairness" not in begun
    assert "names begin with wait, cycle, " in run("sensitivity", "--formula", "xyz", code=2).stderr


def test_a_long_formula_is_printed_in_steps():
    told = run("sensitivity", "--formula", "round trip, carried in a ring").stdout.splitlines()
    assert "l = lambda*T_s" in told and max(map(len, told)) < 600


def test_too_many_failures_are_no_answer():
    key = "transport.min_rto_s"
    beyond = ["--spread", f"{key}=1..1000", "--key", key]  # the largest timeout
    result = run("sensitivity", CHAIN, "--method", "sobol", *beyond, "--samples", "8", code=3)
    assert "points have no answer" in result.stderr


def test_formulas_of_unlike_flows_say_that_their_numbers_are_means(tmp_path):
    """A loss and a round trip over two kinds of flows are of no connection."""
    weak = {"node": "p1.2", "model": "constant", "ber": 1e-4}
    keys = {"network.peripherals": 2, "traffic.source": "greedy", "radio.links": [weak]}
    own = [{"from": f"p1.{number}", "to": "c1"} for number in (1, 2)]
    file = tmp_path / "unlike.toml"
    for flows, arq, words in (
        ("uplink", 4, "means over unlike flows"),
        (own, "unlimited", "no closed form applies"),
    ):
        file.write_text(Scenario().changed(keys | {"network.flows": flows, "link.arq": arq}).to_toml())
        assert words in " ".join(run("sensitivity", file, "--method", "closed").stdout.split())
