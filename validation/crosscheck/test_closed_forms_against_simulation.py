"""Closed forms beside recorded simulations: errors as wanted, and scenarios that they are not for."""

import json

import numpy as np
import pytest
from closed_forms_against_simulation import (
    AIMS,
    aim_of,
    doubt,
    errors,
    evaluated,
    recorded,
    scenario_of,
    table,
)

import btqueue as bt
from btqueue.study.sensitivity.formulas import formula

ROWS = recorded()
ERRORS = errors(ROWS)
ENOUGH = 20
RING = {
    "network.flows": "ring", "network.peripherals": 4, "polling.limit": 5, "traffic.load_kbps": 30.0,
    "transport.mss_bytes": 1460,
}  # fmt: skip
CARRIED = "round trip, carried in a ring"


@pytest.mark.parametrize("form", ERRORS)
def test_errors_are_as_small_as_was_wanted(form):
    (median, high), size = aim_of(form), abs(ERRORS[form])
    assert len(size) >= ENOUGH
    assert np.median(size) <= median
    assert np.quantile(size, 0.95) <= high


def test_the_page_shows_the_errors(pytestconfig):
    page = (pytestconfig.rootpath / "docs/explanation/closed-forms.md").read_text("utf-8")
    assert table(ERRORS) in page


@pytest.mark.parametrize("form", [form for form in ERRORS if form.startswith("round trip")])
def test_theory_is_the_twin_of_carried_round_trips(form):
    """Where random sources fill more of the air than theory knows well, the simulation is the only judge."""
    drawn = [json.loads(row.changes) for row in ROWS if row.form == form]
    solved = [(changes, bt.solve(scenario_of(form, changes))) for changes in drawn[:10]]
    known = [pair for pair in solved if not any("of the air" in said for said in pair[1].attrs["why"])]
    assert len(known) >= 5
    for changes, answer in known[:5]:
        twin = pytest.approx(float(answer["rtt_s"].mean()), rel=AIMS["round trip"][1])
        assert evaluated(form, changes).value == twin


def test_waits_for_tokens_as_long_as_timeouts_are_refused():
    form = f"{CARRIED} behind tokens"
    tokens = RING | {"traffic.load_kbps": 5.0, "flow_control.enabled": True}
    fast, slow = (evaluated(form, tokens | {"flow_control.token_rate_kbps": rate}) for rate in (60.0, 8.0))
    assert doubt(fast) == "" and "flow_control.token_rate_kbps" in doubt(slow)
    none = scenario_of(form, tokens | {"flow_control.token_rate_kbps": 1.0})
    assert "590% of the tokens are asked for" in formula(form, scenario=none).doubt


SEGMENTS = "transport.receive_window_segments"
GREEDY = RING | {"traffic.source": "greedy", SEGMENTS: 1}
WIRE = {"rate_kbps": 1000, "delay_s": 0.05, "buffer_packets": 1000}
WINDOW = {"link": WIRE, SEGMENTS: 5}
SAW = {"link": WIRE | {"buffer_packets": 20}, SEGMENTS: 1000}
REFUSED = [
    *((CARRIED, RING, changes, key) for changes, key in [
        ({"polling.discipline": "exhaustive"}, "polling.discipline"),
        ({"transport.delayed_ack": True}, "transport.delayed_ack"),
        ({"transport.ack_path": "direct"}, "transport.ack_path"),
        ({"network.relay": "segment"}, "network.relay"),
        ({"traffic.source": "periodic"}, "traffic.source"),
        ({"traffic.two_way": True}, "traffic.two_way"),
        ({"traffic.load_kbps": 65.0}, "traffic.load_kbps"),
        ({"traffic.message_bytes": 3000}, "traffic.message_bytes"),
        ({"flow_control.baseband_packets": 20}, "flow_control.baseband_packets"),
        ({SEGMENTS: 1}, SEGMENTS),
        ({"radio.model": "constant", "radio.ber": 1e-4}, "damaged"),
        ({"run.jitter_s": 0.01}, "run.jitter_s"),
        ({"voice.packet": "HV3", "voice.links": 1, "link.packets": ["DH3", "DH1"]}, "voice.packet"),
        ({"link.packets": ["DH1"]}, "link.packets"),
    ]),
    ("saw over a path", SAW, {"transport.variant": "tahoe"}, "transport.variant"),
    ("saw over a path", SAW, {"transport.min_rto_s": 0.2}, "transport.min_rto_s"),
    ("saw over a path", SAW, {"transport.delayed_ack": True}, "transport.delayed_ack"),
    ("window over a path", WINDOW, {"link": WIRE | {"loss": 0.01}}, "loss of wire"),
    ("window over a path", WINDOW, {"link": WIRE | {"half_duplex": True}}, "half_duplex of wire"),
    ("capacity of a star, each flow", GREEDY, {"network.flows": "uplink"}, SEGMENTS),
    ("capacity of a ring under ARQ", GREEDY, {SEGMENTS: 3}, SEGMENTS),
    ("window of one in a star, each flow", GREEDY, {"network.flows": "uplink"}, "polling.limit"),
]  # fmt: skip
"""A form, the keys of a scenario, what is changed there, and words of the refusal."""


@pytest.mark.parametrize(("form", "keys", "changes", "key"), REFUSED)
def test_scenarios_are_refused_by_key(form, keys, changes, key):
    assert keys is GREEDY or doubt(evaluated(form, keys)) == ""
    assert key in doubt(evaluated(form, keys | changes))
