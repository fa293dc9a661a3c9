"""Packets and exchanges of Bluetooth Low Energy against hand calculations, and keys that do not agree."""

import json
from pathlib import Path
from typing import Any

import pytest

from btqueue.baseband import low_energy as air
from btqueue.scenario import Scenario, ScenarioError

DATA = json.loads((Path(__file__).parents[1] / "peers" / "low_energy.json").read_text(encoding="utf-8"))
LE = {"link": {"bearer": "le"}}


@pytest.mark.parametrize("row", DATA["tables"]["air_time"])
def test_air_time(row: dict[str, Any]) -> None:
    found = air.air_time_us(row["phy"], row["payload_bytes"], encrypted=row["encrypted"])
    assert found == row["us"]


@pytest.mark.parametrize("row", DATA["tables"]["exchange"])
def test_exchange(row: dict[str, Any]) -> None:
    options = {"frame_space_us": row["frame_space_us"], "encrypted": row["encrypted"]}
    full = row["payload_bytes"]
    assert air.exchange_us(row["phy"], row["against_bytes"], full, **options) == row["us"]
    assert air.exchange_us(row["phy"], full, full, **options) == row["both_full_us"]


@pytest.mark.parametrize("row", DATA["tables"]["exchanges_per_event"])
def test_exchanges_of_an_event(row: dict[str, Any]) -> None:
    space = row["frame_space_us"]
    exchange = air.exchange_us(row["phy"], 0, row["payload_bytes"], frame_space_us=space)
    assert air.exchanges_that_fit(1e3 * row["length_ms"], exchange, exchange, space) == row["exchanges"]


def test_the_largest_exchange_has_to_fit() -> None:
    """A reserve of 1.3 ms at the end of 50 ms: 34 exchanges of a full and an empty PDU at 2M."""
    exchange, largest = (air.exchange_us("2M", central, 251, frame_space_us=150) for central in (0, 251))
    assert air.exchanges_that_fit(48_700, exchange, largest, 150) == 34


@pytest.mark.parametrize(
    ("sdu", "frames"), [(492, (251, 251)), (2000, (251,) * 8 + (30,)), (100, (106,)), (245, (251,))]
)
def test_k_frames(sdu: int, frames: tuple[int, ...]) -> None:
    assert air.k_frames(sdu, 247) == frames
    assert sum(frames) == sdu + 2 + 4 * len(frames)


def test_notifications_are_cut_over_packets() -> None:
    assert air.notifications(244, 247) == (251,)
    assert air.notifications(495, 498) == (502,)
    assert air.pdus(502, 251) == (251, 251)
    assert air.pdus(30, 27) == (27, 3)


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"le": {"phy": "2M"}}, "le.phy"),
        ({"energy": {"tx_ma": 8}}, "energy.tx_ma"),
        (LE | {"polling": {"limit": 3}}, "polling.limit"),
        (LE | {"voice": {"packet": "HV3"}}, "voice.packet"),
        (LE | {"flow_control": {"enabled": True}}, "flow_control.enabled"),
        ({"link": {"bearer": "le", "packets": ["DH5"]}}, "link.packets"),
        ({"link": {"bearer": "le", "arq": "none"}}, "link.arq"),
        (LE | {"le": {"interval_s": 0.008}}, "le.interval_s"),
        (LE | {"le": {"interval_s": 0.0005001}}, "le.interval_s"),
        (LE | {"le": {"interval_s": 0.5, "latency": 20}}, "le.supervision_timeout_s"),
        (LE | {"le": {"transfer": "notifications", "credits": 3}}, "le.credits"),
        (LE | {"le": {"att_mtu_bytes": 100}}, "le.att_mtu_bytes"),
        (LE | {"le": {"event_length_s": 0.1}}, "le.event_length_s"),
        (LE | {"le": {"channel_classes": [{"channels": 36, "ber": 0.01}]}}, "le.channel_classes"),
        (LE | {"le": {"iso_interval_s": 0.01, "iso_length_s": 0.0099}}, "le.iso_length_s"),
        (LE | {"le": {"iso_interval_s": 0.01}}, "le.iso_length_s"),
        (LE | {"le": {"ip": "none"}}, "le.ip"),
        ({"network": {"peripherals": 8}}, "network.peripherals"),
        (LE | {"network": {"peripherals": 21}}, "network.peripherals"),
    ],
)
def test_bad_input_is_named(tables: dict[str, Any], key: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        Scenario.from_dict(tables)
    assert refusal.value.key == key
