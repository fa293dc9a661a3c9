"""The station of Bluetooth Low Energy: measured and calculated rows, limits, schedules of several links."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import btqueue as bt
from btqueue.network.stations.anchors import schedule
from btqueue.scenario.metrics import Results

DATA = json.loads((Path(__file__).parents[1] / "peers" / "low_energy.json").read_text(encoding="utf-8"))
ROWS = [row for row in (*DATA["measured"], *DATA["calculated"]) if row.get("counted", True)]
ONE = {
    "link.bearer": "le", "network.peripherals": 1, "network.flows": "uplink", "le.ip": "none",
    "transport.protocol": "none", "traffic.message_bytes": 100, "transport.mss_bytes": 100,
}  # fmt: skip


def solved(keys: dict[str, Any]) -> Results:
    return bt.solve(bt.Scenario().changed(keys))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_rows(row: dict[str, Any]) -> None:
    """Hardware within 2 % or the tolerance of the row, hand calculations within 0.1 % (delays 2 %)."""
    found = float(solved({**DATA["base"], **row["keys"]})[row["metric"]].mean())
    least, most = row["value"] if isinstance(row["value"], list) else (row["value"],) * 2
    assert least * (1.0 - row["tolerance"]) <= found <= most * (1.0 + row["tolerance"])


@pytest.mark.parametrize("use", [0.2, 0.5, 0.8])
def test_one_packet_an_event_is_the_slotted_queue(use: float) -> None:
    """M/D/1 with service at multiples of T: a wait of T / (2 (1 - use)), then its own time on the air."""
    interval_s, own_s = 0.05, 1e-6 * (80 + 150 + 80 + 8 * 106)
    keys = {
        **ONE, "le.interval_s": interval_s, "le.event_packets": 1, "traffic.source": "poisson",
        "traffic.load_kbps": use * 0.8 / interval_s,
    }  # fmt: skip
    expected = interval_s / (2.0 * (1.0 - use)) + own_s
    assert float(solved(keys)["delay_s"][0]) == pytest.approx(expected, rel=0.02)


@given(links=st.integers(1, 20), length=st.integers(1, 80), extends=st.booleans(), subrate=st.integers(1, 3))
def test_reservations_share_the_time_of_a_node(links: int, length: int, extends: bool, subrate: int) -> None:
    """Events of a node do not overlap, and a node that has time for all of them misses none."""
    interval = 80
    found = schedule(links, float(length), float(interval * subrate), float(interval), extends, False)
    assert all(0.0 <= taken <= 1.0 for taken, _ in found)
    assert all(window >= length - 1e-9 for taken, window in found if taken)
    if links > 1:
        time = sum(taken * window for taken, window in found)
        assert time <= interval * subrate * (1.0 + 1.0 / 64) + 1e-9  # the last event may go on
    if links * length <= interval:
        assert [taken for taken, _ in found] == [1.0] * links


def test_more_errors_never_help() -> None:
    greedy = {**ONE, "traffic.source": "greedy", "radio.model": "constant"}
    found = [solved({**greedy, "radio.ber": ber})["goodput_kbps"] for ber in (0.0, 1e-5, 1e-4, 1e-3)]
    goodputs = [float(one[0]) for one in found]
    assert goodputs == sorted(goodputs, reverse=True)


def test_delays_have_quantiles_of_a_uniform_wait() -> None:
    """Rare messages wait for the next anchor point, and hardly for each other."""
    found = solved({**ONE, "traffic.source": "poisson", "traffic.load_kbps": 0.01, "le.interval_s": 0.1})
    mean = float(found["delay_s"][0])
    for percent in (50, 90, 95, 99):
        expected = mean + 0.1 * (percent / 100 - 0.5)
        assert float(found[f"delay_p{percent}_s"][0]) == pytest.approx(expected, rel=0.02)
