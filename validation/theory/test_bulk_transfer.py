"""Bulk transfers: closed network and sawtooth by hand, Little's law, and the limits of the loss chain."""

import numpy as np
import pytest

import btqueue as bt
from btqueue.network import NoConvergence
from btqueue.network.models import model_of
from btqueue.scenario.errors import NotBuiltYet

SLOT_S = 625e-6
KILOBITS = 1460 * 8e-3


def wire(**changes):
    """Return a transfer over a single wired link of 1 Mbit/s, 50 ms each way."""
    link = {"name": "wire", "from": "a", "to": "b", "rate_kbps": 1000, "delay_s": 0.05} | changes.pop(
        "link", {}
    )
    return bt.Scenario.from_dict(
        {
            "network": {
                "topology": "custom",
                "relay": "segment",
                "piconet_list": [{"name": "idle", "central": "c", "peripherals": ["p"]}],
                "outside_links": [link],
                "flows": [{"from": "a", "to": "b"}],
            },
            "traffic": {"source": "greedy"},
        }
    ).with_(**changes)


SERVICE_S, ACK_S = 1500 * 8e-6, 40 * 8e-6
EMPTY_S = SERVICE_S + ACK_S + 0.1


@pytest.mark.parametrize("window", [1, 4, 8])
def test_window_below_the_pipe(window: int):
    # W segments in a round trip of the empty path; the others of a burst wait for those before them.
    solved = bt.solve(wire(transport__receive_window_segments=window))
    assert float(solved.goodput_kbps[0]) == pytest.approx(window / EMPTY_S * KILOBITS, rel=0.01)
    assert float(solved.rtt_s[0]) == pytest.approx(EMPTY_S, rel=0.01)


@pytest.mark.parametrize("window", [16, 40])
def test_window_above_the_pipe_waits_by_littles_law(window: int):
    solved = bt.solve(wire(transport__receive_window_segments=window))
    assert float(solved.goodput_kbps[0]) == pytest.approx(KILOBITS / SERVICE_S, rel=0.01)
    assert float(solved.rtt_s[0]) == pytest.approx(window * SERVICE_S, rel=0.01)
    assert float(solved.segment_loss[0]) == 0.0


def test_polled_transfer_is_limited_by_its_slots():
    # 4 DH5 and a DH3 down; six idle polls after each; one ACK of three slots instead of one for a NULL, since
    # the second segment comes after the 40 ms of a delayed acknowledgement.
    solved = bt.solve(bt.load("suliman-2005/one-of-seven").with_(transport__receive_window_segments=22))
    slots = 4 * 6 + 4 + 5 * 6 * 2 + 2
    assert float(solved.goodput_kbps[0]) == pytest.approx(KILOBITS / (slots * SLOT_S), rel=0.005)
    assert float(solved.rtt_s[0]) == pytest.approx(22 * slots * SLOT_S, rel=0.005)
    assert float(solved.cycle_s) == pytest.approx(slots / 5 * SLOT_S, rel=0.005)


def test_arq_stretches_service_by_the_mean_number_of_transmissions():
    base = bt.load("suliman-2005/round-trips").with_(transport__receive_window_segments=22)
    rates = [float(bt.solve(noisy(base, per)).goodput_kbps[0]) for per in (0.0, 0.2, 0.5)]
    # The acknowledgement's two further slots are repeated as well.
    assert np.array(rates[1:]) / rates[0] == pytest.approx([0.8, 0.5], rel=0.02)


def noisy(scenario, per: float):
    return scenario.with_(radio__model="constant", radio__per=per)


def test_sawtooth_between_half_and_all_of_the_buffer():
    # Windows between w/2 and w, each for w/rate seconds and w acknowledgements: mean round trip 7/9 of the
    # greatest; the whole segments, and the recovery at half a window, make it a little less.
    solved = bt.solve(wire(link={"buffer_packets": 30}, transport__receive_window_segments=128))
    greatest = (30 + EMPTY_S / SERVICE_S) * SERVICE_S
    assert float(solved.goodput_kbps[0]) == pytest.approx(KILOBITS / SERVICE_S, rel=0.01)
    assert float(solved.rtt_s[0]) == pytest.approx(7 / 9 * greatest, rel=0.05)
    assert float(solved.timeouts_per_s[0]) == 0.0
    teeth = float(solved.fast_retransmits_per_s[0])
    # A tooth has 3/8 w^2 segments.
    assert teeth == pytest.approx(1.0 / SERVICE_S / (3 / 8 * (greatest / SERVICE_S) ** 2), rel=0.15)


def test_equal_flows_share_a_full_link_equally():
    base = wire().to_dict()
    base["network"]["flows"] = [{"from": "a", "to": "b"}] * 2
    solved = bt.solve(bt.Scenario.from_dict(base))
    assert solved.goodput_kbps.values == pytest.approx([KILOBITS / SERVICE_S / 2] * 2, rel=0.02)


def test_session_waits_for_its_turn_among_greedy_transfers():
    # A request, a reply of one segment each: at least four crossings of a cell that is never idle.
    solved = bt.solve(bt.load("avancha-2002/wlan-chargen").with_(traffic__reply_bytes=64))
    alone = 2 * (72 + 104) * 8 / 4e6 + 4 * 0.0005
    assert alone + 4 * 3e-3 < float(solved.session_time_s[0]) < alone + 4 * 4 * 3.1e-3
    assert float(solved.sessions_per_s[0] * (solved.session_time_s[0] + 0.01)) < 1.0


def test_scope_refuses_by_name():
    assert model_of(bt.load("suliman-2005/connections").with_(run__solver="followed")) == "bulk_transfer"
    for change, key in (
        ({"transport__variant": "vegas"}, "transport"),
        ({"radio__model": "gilbert-elliott"}, "radio"),
        ({"flow_control__enabled": True}, "flow_control"),
        ({"transport__receive_window_segments": 2000}, "receive_window"),
    ):
        with pytest.raises(NotBuiltYet, match=key):
            bt.solve(bt.load("suliman-2005/round-trips").with_(**change))


def test_a_transfer_that_measures_no_round_trip_has_none():
    found = bt.solve(
        bt.load("suliman-2005/connections").changed(
            {"traffic.load_kbps": 50, "transport.mss_bytes": 60000, "traffic.message_bytes": 100000}
        )
    )
    assert np.isnan(found.rtt_s).all() and np.isfinite(found.goodput_kbps).all()


@pytest.mark.parametrize("key", ["traffic.request_bytes", "traffic.message_bytes"])
def test_messages_of_very_many_segments_are_refused(key):
    with pytest.raises(NotBuiltYet, match="at most 10,000 segments"):
        bt.solve(bt.load("avancha-2002/wlan-chargen").changed({key: 10**9}))


def test_where_no_segment_gets_through_nothing_is_made_up():
    tight = bt.load("suliman-2005/round-trips").with_(link__node_buffer_bytes=1)
    solved = bt.solve(tight)
    assert not solved.goodput_kbps.any() and solved.rtt_s.isnull().all()
    assert any("no segment gets through" in warning for warning in solved.attrs["warnings"])


@pytest.mark.parametrize("radio", [{"radio__per": 1.0}, {"radio__per": 0.95}, {"radio__ber": 0.01}])
def test_a_radio_that_lets_next_to_nothing_through_has_no_answer(radio):
    dead = bt.load("suliman-2005/round-trips").with_(radio__model="constant", **radio)
    with pytest.raises(NoConvergence, match="packets arrive damaged with probability"):
        bt.solve(dead)
