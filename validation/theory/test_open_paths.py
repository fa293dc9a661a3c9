"""Loads over outside links and a gateway: queues in a row with known waits, refusals and doubts."""

import numpy as np
import pytest
from btqueue.network.models import MODELS
from btqueue.network.open_paths.model import wait_for_window
from btqueue.network.open_paths.waits import Streams, Visits, loads, waits
from hypothesis import given, settings
from hypothesis import strategies as st
from thesis import thesis_of

import btqueue as bt
from btqueue.queueing._precision import in_float64
from btqueue.scenario.scope import problems_of

SEGMENT_BITS, ACK_BITS, DATAGRAM_BITS = 1500 * 8, 40 * 8, 1488 * 8
HOME = {"name": "home", "central": "c", "peripherals": ["p", "q"]}


def scenario(links, flows, *, load=100.0, **changes):
    """Return loads of full segments over links (from, to, kbit/s, changes), 10 ms each."""
    wires = [
        {"name": f"{a}-{b}", "from": a, "to": b, "rate_kbps": rate, "delay_s": 0.01, **more}
        for a, b, rate, more in links
    ]
    return thesis_of(
        {
            "network": {
                "topology": "custom",
                "piconet_list": [HOME],
                "outside_links": wires,
                "flows": [{"from": a, "to": b, **more} for a, b, more in flows],
            },
            "link": {"arq": "unlimited"},
            "flow_control": {"enabled": False, "baseband_packets": 400},
            "traffic": {"load_kbps": load},
        }
    ).with_(**changes)


def md1_wait(load_kbps, rate_kbps):
    """Return the wait of Poisson datagrams for a wire (s): Pollaczek and Khinchine."""
    service = DATAGRAM_BITS / rate_kbps / 1e3
    use = load_kbps / 11.68 * service
    return use * service / (2 * (1 - use))


@pytest.mark.parametrize("load", [1.0, 100.0, 250.0, 450.0])
def test_datagrams_on_a_wire_are_an_md1_queue(load):
    wire = scenario([("a", "b", 500.0, {})], [("a", "b", {})], load=load, transport__protocol="none")
    solved = bt.solve(wire)
    assert solved.attrs["model"] == "open_paths"
    assert float(solved.delay_s[0]) == pytest.approx(
        0.01 + DATAGRAM_BITS / 500e3 + md1_wait(load, 500.0), rel=1e-9
    )
    assert float(solved.goodput_kbps[0]) == load


@pytest.mark.parametrize("rates", [(500.0, 2000.0), (2000.0, 500.0), (500.0, 500.0)])
def test_constant_servers_in_a_row_wait_as_the_slowest_alone(rates):
    links = [("a", "b", rates[0], {}), ("b", "d", rates[1], {})]
    solved = bt.solve(scenario(links, [("a", "d", {})], load=250.0, transport__protocol="none"))
    alone = sum(DATAGRAM_BITS / rate / 1e3 for rate in rates) + 0.02
    assert float(solved.delay_s[0]) == pytest.approx(alone + md1_wait(250.0, 500.0), rel=1e-9)


def test_what_did_not_pass_the_slowest_waits_again():
    links = [("a", "b", 300.0, {}), ("b", "d", 400.0, {})]
    datagrams = {"transport__protocol": "none", "load": 200.0}
    lone = bt.solve(scenario(links, [("a", "d", {})], **datagrams))
    joined = bt.solve(scenario(links, [("a", "d", {}), ("b", "d", {"load_kbps": 20.0})], **datagrams))
    service = DATAGRAM_BITS / 400e3
    own, other = (load / 11.68 * service for load in (200.0, 20.0))
    by_the_other = other * service / 2.0 / (1.0 - own - other)
    assert float(joined.delay_s[0] - lone.delay_s[0]) == pytest.approx(by_the_other, rel=1e-9)


def test_a_lone_segment_takes_its_time_on_each_link():
    solved = bt.solve(scenario([("a", "b", 500.0, {})], [("a", "b", {})], load=1e-4))
    assert float(solved.rtt_s[0]) == pytest.approx(0.02 + (SEGMENT_BITS + ACK_BITS) / 500e3, rel=1e-5)


@pytest.mark.parametrize(("gateway", "to"), [("c", "p"), ("p", "q")])
def test_a_lone_segment_crosses_the_piconet_as_if_it_came_from_the_gateway(gateway, to):
    behind = scenario([(gateway, "s", 1000.0, {})], [("s", to, {})], load=1e-3)
    alone = scenario([], [(gateway, to, {})], load=1e-3, network__relay="segment")
    wire = 0.02 + (SEGMENT_BITS + ACK_BITS) / 1e6
    assert float(bt.solve(behind).rtt_s[0]) == pytest.approx(float(bt.solve(alone).rtt_s[0]) + wire, rel=1e-4)


@given(st.floats(0.001, 0.98))
def test_a_window_of_one_is_an_md1_queue_of_round_trips_and_a_large_one_never_waits(load):
    one, large = wait_for_window(np.array([load, load]), np.array([1.0, 2048.0]))
    assert one == pytest.approx(load / 2.0 / (1.0 - load))
    assert large == 0.0


def test_segments_wait_at_their_sender_for_a_short_window():
    """A wire without queues is an M/D/2 queue of round trips, half used.

    Its wait is 0.177 of them, simulated 10.70 ms with a standard error of 0.08; half of M/M/2's is 1/6.
    """
    far = scenario([("a", "b", 1e6, {"delay_s": 0.03})], [("a", "b", {})], load=194.5)
    two = bt.solve(far.with_(transport__receive_window_segments=2, transport__initial_window_segments=2))
    many = bt.solve(far.with_(transport__receive_window_segments=100))
    rtt = float(two.rtt_s[0])
    assert 194.5 / 11.68 * rtt == pytest.approx(1.0, rel=0.01)
    wait = float(two.delay_s[0] - many.delay_s[0])
    assert wait == pytest.approx(rtt / 6.0, rel=0.02)


def test_a_fast_wire_adds_no_wait():
    loaded = {"load": 200.0}
    behind = bt.solve(scenario([("c", "s", 1e7, {"delay_s": 0.0})], [("s", "p", {})], **loaded))
    alone = bt.solve(scenario([], [("c", "p", {})], network__relay="segment", **loaded))
    assert float(behind.rtt_s[0]) == pytest.approx(float(alone.rtt_s[0]), rel=1e-4)


def test_a_lone_periodic_source_never_waits():
    links = [("a", "b", 500.0, {"half_duplex": False})]
    solved = bt.solve(scenario(links, [("a", "b", {})], load=400.0, traffic__source="periodic"))
    assert float(solved.rtt_s[0]) == pytest.approx(0.02 + (SEGMENT_BITS + ACK_BITS) / 500e3, rel=1e-9)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.floats(1e-4, 0.02), min_size=1, max_size=5),
    st.lists(st.sampled_from("xyz"), min_size=5, max_size=5),
    st.floats(0.05, 0.95),
)
def test_turns_of_ports_change_no_work(services, ports, use):
    """Kleinrock's conservation law: the mean wait, weighted by work, does not depend on the order."""
    number = len(services)
    visits = Visits(
        np.arange(number), np.array(["wire"] * number), np.array(ports[:number]), np.array(services),
        np.zeros(number, bool), np.full(number, np.inf), np.zeros(number),
    )  # fmt: skip
    none = np.zeros(number)
    streams = Streams(use / number / np.array(services), none, none, none)
    rho = loads(visits, streams)
    found = in_float64(waits)(visits, streams).sum(axis=1)
    residual = float(rho @ np.array(services)) / 2.0
    assert float(rho @ found) == pytest.approx(use * residual / (1.0 - use), rel=1e-9)


def test_a_load_that_is_not_carried_is_a_greedy_one():
    wire = [("a", "b", 250.0, {})]
    offered = bt.solve(scenario(wire, [("a", "b", {})], load=900.0))
    greedy = bt.solve(scenario(wire, [("a", "b", {})], traffic__source="greedy"))
    assert float(offered.goodput_kbps[0]) == float(greedy.goodput_kbps[0])
    assert float(offered.rtt_s[0]) == float(greedy.rtt_s[0])
    assert "overloaded" in " ".join(offered.attrs["warnings"])


TO_CENTRAL, TO_Q, WIRE = ("s", "c", {}), ("s", "q", {}), ("a", "b", {})


@pytest.mark.parametrize(
    ("links", "flows", "load", "words"),
    [
        ([("p", "s", 2000.0, {})], [TO_CENTRAL, TO_Q], 70.0, None),
        ([("p", "s", 2000.0, {})], [TO_Q, ("s", "q", {"load_kbps": 60.0})], 60.0, "same peripheral"),
        ([("a", "b", 200.0, {"buffer_packets": 2})], [WIRE], 130.0, "overflows"),
        ([("a", "b", 200.0, {})], [WIRE], 165.0, "in use"),
    ],
)
def test_what_is_in_doubt_is_said(links, flows, load, words):
    warnings = " ".join(bt.solve(scenario(links, flows, load=load)).attrs["warnings"])
    assert (words in warnings) if words else not warnings


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"loss": 0.01}, "network.outside_links[1].loss"),
        ({"up_s": 5.0, "down_s": 1.0}, "network.outside_links"),
    ],
)
def test_links_that_lose_or_break_are_refused_by_name(more, key):
    asked = scenario([("a", "b", 500.0, more)], [("a", "b", {})])
    assert [one.key for one in problems_of(MODELS["open_paths"], asked)] == [key]
