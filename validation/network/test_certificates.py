"""Certificates: every law is kept by good answers, broken by bad ones, and refuses what models get wrong."""

import importlib
from typing import Any

import numpy as np
import pytest
import xarray as xr

import btqueue as bt
from btqueue.network import ImpossibleAnswer
from btqueue.network.certificates import certificates, certify, is_broken
from btqueue.scenario import Scenario

PICONET = bt.load("venugopal-2006/piconet")
GOOD = {
    "goodput_kbps": 160.0,
    "throughput_kbps": 168.0,
    "retransmissions_per_s": 0.72,
    "segment_loss": 0.045,
    "loss_token_buffer": 0.0064,
    "loss_baseband_buffer": 0.0057,
    "loss_radio": 0.0,
    "rtt_s": 0.26,
    "slot_utilisation": 0.92,
    "fairness": 1.0,
}
"""As `solve` answers the piconet, to a few digits."""


def answer(scenario: Scenario = PICONET, *, queues: dict | None = None, **changes) -> xr.Dataset:
    """Return the good answer with some numbers changed; None leaves one out."""
    metrics = {name: value for name, value in (GOOD | changes).items() if value is not None}
    variables: dict[str, Any] = {
        name: ((), value) if name in ("slot_utilisation", "fairness") else ("flow", np.broadcast_to(value, 2))
        for name, value in metrics.items()
    }
    if queues:
        variables["queue_packets"] = ("queue", list(queues.values()))
    coords = {"flow": [1, 2]} | ({"queue": list(queues)} if queues else {})
    return xr.Dataset(variables, coords, {"model": "stand-in", "residual": 0.0, "sampled": False})


def test_a_good_answer_keeps_them_all():
    certify(PICONET, answer(queues={"token_buffer": 3.1, "uplink": 6.8, "downlink": 1.8}))


LOSSLESS = {
    name: 0.0
    for name in ("segment_loss", "loss_token_buffer", "loss_baseband_buffer", "retransmissions_per_s")
}
BAD = {
    "more than is sent": ({"throughput_kbps": 159.9}, "160 kbit/s, more than is sent"),
    "more than arrives": ({"segment_loss": 0.06}, "160 kbit/s, more than is sent: 157.92"),
    "more than is offered": ({"goodput_kbps": 160.1}, "160.1 kbit/s, more than is offered: 160"),
    "more than load and repetitions": ({"retransmissions_per_s": 0.5}, "over load and repetitions: 165.84"),
    "more than the slots": (
        {"goodput_kbps": 201.0, "throughput_kbps": 300.0, "retransmissions_per_s": 12.0},
        "device c1 busy for 1.00565 times its time",
    ),
    "more than the window holds": (
        {**LOSSLESS, "throughput_kbps": 160.0, "rtt_s": 0.6},
        "are 8.21918 segments under way, and the window is 8",
    ),
    "segments lost without packets": (
        {"loss_token_buffer": 0.001, "loss_baseband_buffer": 0.002},
        "a share of 0.045 of the segments of p1.1>p1.2 is lost, but 0.003 of their packets",
    ),
    "a share above one": ({"slot_utilisation": 1.01}, "slot_utilisation is 1.01, above 1"),
    "a negative time": ({"rtt_s": -0.1}, "rtt_s is -0.1, below 0"),
    "a queue beyond its places": ({"queues": {"token_buffer": 25.1}}, "25.1 packets in a queue"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_each_violation_is_refused_with_its_numbers(name):
    changes, words = BAD[name]
    scenario = PICONET if "slots" not in name else PICONET.with_(traffic__source="greedy")
    with pytest.raises(ImpossibleAnswer) as refused:
        certify(scenario, answer(**changes))
    assert words in str(refused.value)
    assert str(refused.value).startswith("stand-in: ")


def test_loads_bound_only_sources_that_have_one_and_are_averaged_over_a_schedule():
    certify(PICONET.with_(traffic__source="greedy"), answer(goodput_kbps=165.0, segment_loss=0.01))
    steps = [{"at_s": 300.0, "load_kbps": 40.0}]  # of 480 s after a warm-up of 60 s
    halved = PICONET.with_(traffic__load_schedule=steps)
    found = [one.sentence for one in certificates(halved, answer()) if is_broken(one, 0.0)]
    assert "the goodput of p1.1>p1.2 is 160 kbit/s, more than is offered: 100" in found


def test_the_error_that_an_answer_tells_of_itself_is_allowed_for():
    certify(PICONET, answer(goodput_kbps=160.6).assign_attrs(residual=0.004))
    with pytest.raises(ImpossibleAnswer):
        certify(PICONET, answer(goodput_kbps=160.8).assign_attrs(residual=0.004))
    sampled = {"residual": 0.001, "sampled": True}  # the residual is a standard error
    certify(PICONET, answer(goodput_kbps=160.6).assign_attrs(sampled))


@pytest.mark.parametrize("pause_s", [0.0, 0.1])
def test_sessions_of_a_connection_and_the_pauses_behind_them_do_not_overlap(pause_s):
    scenario = bt.load("avancha-2002/bluetooth-tcp").with_(traffic__pause_s=pause_s)
    solved = bt.solve(scenario).to_dataset()
    busy = float(solved["sessions_per_s"][0] * (solved["session_time_s"][0] + scenario.traffic.pause_s))
    assert 0.5 < busy <= 1.0
    solved["sessions_per_s"] = solved["sessions_per_s"] * (1.01 / busy)
    with pytest.raises(ImpossibleAnswer, match="do not fit"):
        certify(scenario, solved)


def test_each_flow_is_judged_by_its_own_pause_and_protocol():
    """The table of the scenario says no pause and TCP; its flows pause, and one sends datagrams."""
    flows = [
        {"from": "p1.1", "to": "c1", "law": "periodic", "load_kbps": 33.0, "protocol": "none"},
        {"from": "c1", "to": "p1.2", "law": "request-reply", "pause_s": 0.2},
        {"from": "p1.2", "to": "c1", "law": "request-reply", "pause_s": 1.0},
    ]
    keys = {"network.peripherals": 2, "network.flows": flows, "traffic.request_bytes": 500}
    scenario = bt.Scenario().changed(keys | {"transport.delayed_ack": False})
    solved = bt.solve(scenario).to_dataset()
    busy = solved["sessions_per_s"] * (solved["session_time_s"] + np.array([0.0, 0.2, 1.0, 0.2, 1.0]))
    assert np.nanmax(busy) == pytest.approx(1.0, rel=1e-6)
    solved["throughput_kbps"] = solved["throughput_kbps"] * 1.1
    with pytest.raises(ImpossibleAnswer, match=r"throughput of p1\.1>c1 .* over load and repetitions"):
        certify(scenario, solved)


def test_an_impossible_answer_is_not_given(monkeypatch):
    stations = importlib.import_module("btqueue.network.stations.model")
    right = stations.answer

    def wrong(scenario, **_):
        metrics, notes = right(scenario)
        return metrics | {"goodput_kbps": 1.05 * metrics["throughput_kbps"]}, notes

    monkeypatch.setattr(stations, "answer", wrong)
    with pytest.raises(ImpossibleAnswer, match=r"the goodput of p1\.1>p1\.2 is"):
        bt.solve(PICONET)
    from btqueue.study.evaluate import evaluate

    failure = evaluate(PICONET, "theory").failure
    assert failure is not None and failure.kind == "impossible answer"
