"""The theory of stations, laws and one fixed point: exact values, limits, invariants, beside simulation."""

from __future__ import annotations

import numpy as np
import pytest
from beside import near_simulation
from hypothesis import given, settings
from hypothesis import strategies as st
from thesis import thesis
from wires import wire

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.stations import laws
from btqueue.network.stations.description import network_of
from btqueue.network.stations.model import answer
from btqueue.network.stations.network import alike
from btqueue.network.stations.point import settle
from btqueue.scenario.traits import in_tables

SEGMENT_KBIT = 1460 * 8 / 1000
PLAIN = {
    "network.peripherals": 4,
    "network.flows": [{"from": "c1", "to": "p1.1"}],
    "traffic.source": "greedy",
    "transport.windows": "segments",
    "transport.delayed_ack": False,
    "transport.receive_window_segments": 8,
}
"""A download of segments of four DH5 and a DH3 (23 slots), acknowledged by a DH3."""
UP = {"network.flows": [{"from": "p1.1", "to": "c1"}]}


def asked(**changes):
    keys = {name.replace("__", "."): value for name, value in changes.items()}
    metrics, notes = answer(bt.Scenario().changed({**PLAIN, **keys}))
    numbers = {name: value for name, value in metrics.items() if name != "queue_packets"}
    return {name: np.asarray(value, float) for name, value in numbers.items()}, notes


@pytest.mark.parametrize(
    ("changes", "slots"),
    [
        # 23 of the segment, 5 of its answers, POLL and acknowledgement, and an empty frame that is too early
        ({"network.peripherals": 1}, 28 + 4 + 2),
        # three polls of the others after the acknowledgement's visit, and after that of the segment
        ({}, 2 + 6 + 28 + 6 + 4),
        # four packets fit into the visit of the acknowledgement, one waits for the others' polls
        (UP, 2 + 23 + 6 + 1 + 3 + 2 + 6 + 3),
        ({**UP, "polling.limit": 20}, 2 + 27 + 2 + 6 + 3),
    ],
)
def test_a_window_of_one_goes_round_in_slots_that_can_be_counted(changes, slots):
    metrics, _ = answer(bt.Scenario().changed({**PLAIN, "transport.receive_window_segments": 1, **changes}))
    assert float(metrics["rtt_s"][0]) == pytest.approx(slots * SLOT_S, rel=1e-3)
    assert float(metrics["goodput_kbps"][0]) == pytest.approx(SEGMENT_KBIT / (slots * SLOT_S), rel=1e-3)


@pytest.mark.parametrize("window", [4, 12, 40])
@pytest.mark.parametrize(
    ("links", "flows", "slots", "used", "discipline"),
    [
        (1, "downlink", 30, 26, "e-limited"),
        (5, "uplink", 150, 5 * 26, "e-limited"),
        (5, "ring", 260, 260, "e-limited"),
        (4, "downlink", 120, 4 * 26, "fep"),
    ],
)
def test_windows_that_fill_the_air_share_it(links, flows, slots, used, discipline, window):
    """A segment takes 30 slots of a link with its acknowledgement, and 52 of two links that it crosses.

    Of the 30 slots 26 are of data and acknowledgement; where both ways carry data, none is empty.
    """
    metrics, notes = asked(
        network__peripherals=links, network__flows=flows, transport__receive_window_segments=window,
        polling__discipline=discipline,
    )  # fmt: skip
    assert metrics["goodput_kbps"] == pytest.approx(SEGMENT_KBIT / (slots * SLOT_S), rel=1e-3)
    assert metrics["rtt_s"] == pytest.approx(window * slots * SLOT_S, rel=1e-3)
    assert metrics["slot_utilisation"] == pytest.approx(used / slots, rel=2e-3)
    assert notes["converged"] and notes["warnings"] == []


@pytest.mark.parametrize("use", [0.2, 0.5, 0.8])
def test_segments_of_one_packet_wait_for_tokens_as_in_an_md1_queue(use):
    """The bucket holds one segment: its deficit is the work of M/D/1 (Pollaczek & Khinchine)."""
    price_s = 339 * 8 / 20e3
    load = use / price_s * 200 * 8 / 1000
    alone = {"network__peripherals": 1, "network__flows": "downlink", "link__packets": ["DH5"]}
    source = {"traffic__source": "poisson", "traffic__load_kbps": load, "traffic__message_bytes": 200}
    lone = alone | source | {"transport__mss_bytes": 200, "transport__receive_window_segments": 40}
    free, _ = asked(**lone)
    waits, _ = asked(
        **lone, flow_control__enabled=True, flow_control__token_rate_kbps=20.0,
        flow_control__bucket_bytes=339, flow_control__buffer_packets=1000,
    )  # fmt: skip
    expected = use * price_s / (2.0 * (1.0 - use))
    assert (waits["delay_s"] - free["delay_s"]) == pytest.approx(expected, rel=0.01)


def test_a_queue_with_less_room_than_a_segment_lets_none_through():
    metrics, _ = asked(flow_control__baseband_packets=4, network__flows=UP["network.flows"])
    assert metrics["goodput_kbps"] == 0.0
    assert metrics["timeouts_per_s"] == pytest.approx(1.0 / 64.0)


def test_exhaustive_visits_to_a_link_that_always_has_data_keep_the_others_out():
    metrics, notes = asked(network__flows="downlink", polling__discipline="exhaustive")
    assert np.count_nonzero(metrics["goodput_kbps"]) == 1
    assert metrics["goodput_kbps"].sum() == pytest.approx(SEGMENT_KBIT / (30 * SLOT_S), rel=1e-3)
    # theory cannot tell which of the equal links it is
    assert any("keeps the central to itself" in one for one in notes["warnings"])


DOWNLOAD = {"from": "c1", "to": "p1.1"}
SENSORS = [
    {"from": f"p1.{n}", "to": "c1", "law": "poisson", "load_kbps": 8.0, "message_bytes": 100} for n in (2, 3)
]


def exhaustive(*flows, **changes):
    return asked(network__flows=[*flows], polling__discipline="exhaustive", **changes)


def test_a_download_under_exhaustive_visits_keeps_sensors_of_other_links_out():
    metrics, notes = exhaustive(DOWNLOAD, *SENSORS)
    alone, _ = exhaustive(DOWNLOAD)
    assert metrics["goodput_kbps"].tolist() == pytest.approx([float(alone["goodput_kbps"][0]), 0.0, 0.0])
    assert notes["warnings"] == [], "the link is certain"
    same_link, _ = exhaustive(DOWNLOAD, SENSORS[0] | {"from": "p1.1"})
    assert same_link["goodput_kbps"][1] == pytest.approx(8.0)


def test_a_window_of_one_segment_ends_each_exhaustive_visit():
    metrics, _ = exhaustive(DOWNLOAD, *SENSORS, transport__receive_window_segments=1)
    assert metrics["goodput_kbps"][1:].tolist() == pytest.approx([8.0, 8.0])


def test_a_lost_segment_gives_other_links_a_turn_and_the_answer_is_in_doubt():
    lossy = {"link__arq": "none", "radio__model": "constant", "radio__ber": 1e-6}
    metrics, notes = exhaustive(DOWNLOAD, *SENSORS, **lossy)
    assert (metrics["goodput_kbps"][1:] > 0.0).all()
    assert any("until it loses a segment" in one for one in notes["warnings"])


def test_a_segment_of_many_visits_waits_for_a_full_link_between_all_of_them():
    """13 frames of 4 slots with 12 frames of the download between, after half of a cycle of 6 slots.

    An acknowledgement of the download is 2 slots longer than an empty answer, and comes every 13th frame.
    """
    keys = {"network.peripherals": 2, "link.packets": ["DM3", "DM1"], "transport.delayed_ack": False}
    upload = {"from": "p1.2", "to": "c1", "law": "poisson", "load_kbps": 0.5, "message_bytes": 1460}
    flows = {"network.flows": [DOWNLOAD | {"law": "greedy"}, upload], "polling.limit": 1}
    answer = bt.solve(bt.Scenario().changed(keys | flows))
    slots = float(answer["delay_s"].values[1]) / SLOT_S
    assert slots == pytest.approx(13 * 4 + 12 * (4 + 2 / 13) + 3, abs=1.0)


def test_messages_wait_behind_a_full_window_of_another_flow_on_their_way():
    """An upload fills a wire of 500 kbit/s: its window of 20 segments of 1,500 bytes takes 0.48 s there."""
    wire = {"name": "net", "from": "server", "to": "c1", "kind": "other", "rate_kbps": 500.0}
    sensor = {"from": "p1.2", "to": "server", "law": "poisson", "load_kbps": 5.0}
    keys = {
        "network.peripherals": 2, "network.outside_links": [wire], "transport.receive_window_segments": 20,
        "network.flows": [{"from": "p1.1", "to": "server", "law": "greedy"}, sensor],
    }  # fmt: skip
    answer = bt.solve(bt.Scenario().changed(keys))
    assert answer["delay_s"].values[1] == pytest.approx(20 * 1500 * 8 / 500e3, rel=0.1)
    assert answer["delay_s"].values[1] < answer["rtt_s"].values[1]


def test_uploads_share_segments_while_acknowledgements_wait_behind_a_download():
    """Windows of 44 segments take half a second: some 30 messages of 100 bytes share two segments."""
    keys = {"network.peripherals": 1, "link.packets": ["2-DH5", "2-DH1"], "transport.delayed_ack": False}
    upload = {"from": "p1.1", "to": "c1", "law": "poisson", "load_kbps": 54.8, "message_bytes": 100}
    download = DOWNLOAD | {"law": "greedy"}
    few, both = (
        bt.solve(bt.Scenario().changed(keys | {"network.flows": flows}))["goodput_kbps"].values
        for flows in ([download], [download, upload])
    )
    # full segments up: 4.7 a second, each with 12 slots more up and two for its acknowledgement down
    assert both[0] == pytest.approx(few[0], rel=0.05)
    assert both[1] == pytest.approx(54.8)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.floats(0.01, 1.0), st.floats(1.0, 200.0)), min_size=1, max_size=5
    ),
    st.lists(st.floats(0.001, 0.05), min_size=3, max_size=3),
)
def test_the_fixed_point_of_windows_keeps_littles_law_and_every_capacity(flows, services):
    window, base, load = (np.array(column, float) for column in zip(*flows, strict=True))
    service = np.array([services[: 1 + f % 3] + [0.0] * (2 - f % 3) for f in range(len(flows))])
    rate, wait, change = settle(window, load, base, service)
    assert change < 1e-6
    assert (rate @ service <= 1.0 + 1e-6).all() and (wait >= 0.0).all()
    assert rate == pytest.approx(np.minimum(load, window / (base + (service > 0.0) @ wait)), rel=1e-6)
    full = rate @ service > 1.0 - 1e-6
    assert (wait[~full] < 1e-9).all()  # only what is full makes anyone wait


def test_the_fixed_point_of_windows_is_found_from_waits_at_another_full_resource():
    """Six ports of 0.12 s fill before the layer of their host, of 0.0185 s, which had the wait before."""
    service = np.hstack([0.12 * np.eye(6), np.full((6, 1), 0.0185)])
    start = np.array([0.0] * 6 + [4.766])
    rate, wait, off = settle(np.full(6, 44.0), np.full(6, np.inf), np.full(6, 0.27), service, start)
    assert rate == pytest.approx(1.0 / 0.12) and wait[:6] == pytest.approx(44.0 * 0.12 - 0.27)
    assert wait[6] == 0.0 and off < 1e-9


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 7), st.sampled_from(["downlink", "uplink"]), st.floats(0.05, 0.4),
    st.sampled_from(["e-limited", "1-limited", "exhaustive"]), st.integers(1, 12),
)  # fmt: skip
def test_what_is_carried_is_what_is_offered_and_more_load_makes_nobody_faster(
    links, flows, share, discipline, limit
):
    trips = []
    for part in (share, share + 0.1):
        metrics, _ = asked(
            network__peripherals=links, network__flows=flows, polling__discipline=discipline,
            polling__limit=limit, traffic__source="poisson", traffic__load_kbps=part * 600.0 / links,
            transport__receive_window_segments=64,
        )  # fmt: skip
        assert metrics["goodput_kbps"] == pytest.approx(part * 600.0 / links, rel=1e-6)
        trips.append(metrics["rtt_s"].mean())
    assert trips[1] >= trips[0]


@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_source_that_offers_more_than_its_window_carries_is_one_that_always_has_data(window):
    keys = {"network__peripherals": 1, "network__flows": UP["network.flows"], "polling__limit": 2}
    keys |= {"transport__receive_window_segments": window}
    greedy, _ = asked(**keys)
    held, _ = asked(**keys, traffic__source="periodic", traffic__load_kbps=2000.0)
    for name in ("goodput_kbps", "rtt_s"):
        assert held[name] == pytest.approx(greedy[name], rel=1e-6)


# --------------------------------------------------------------------------------------------- outside links

SEGMENT_BITS, ACK_BITS = 1500 * 8, 40 * 8


def over_wires(links, flows, *, load=100.0, **changes):
    """Return the answer to loads of full segments over links (from, to, kbit/s, changes), 10 ms each."""
    wires = [
        {"name": f"{a}-{b}", "from": a, "to": b, "rate_kbps": rate, "delay_s": 0.01, **more}
        for a, b, rate, more in links
    ]
    home = {"name": "home", "central": "c", "peripherals": ["p", "q"]}
    flows = [{"from": a, "to": b} for a, b in flows]
    network = {"topology": "custom", "piconet_list": [home], "outside_links": wires, "flows": flows}
    scenario = thesis(network=network).with_(
        link__arq="unlimited", flow_control__enabled=False, flow_control__baseband_packets=400
    )
    return answer(scenario.with_(traffic__load_kbps=load, **changes))[0]


@pytest.mark.parametrize("key", ["transport__ip_delay_s", "link__l2cap_delay_s"])
@pytest.mark.parametrize(
    ("host_s", "wire_kbps", "load"),
    [
        *((0.0, 500.0, load) for load in (1e-4, 50.0, 200.0, 300.0)),
        *((host_s, kbps, 180.0) for host_s, kbps in ((0.04, 500.0), (0.01, 500.0), (0.04, 1e6))),
    ],
)
def test_segments_wait_in_a_row_of_layers_and_a_wire_as_before_the_slowest(key, host_s, wire_kbps, load):
    """Friedman (1965): servers of constant service in a row have the wait of an M/D/1 queue."""
    links = [("a", "b", wire_kbps, {"half_duplex": False})]
    changes = {key: host_s, "transport__receive_window_segments": 200}
    metrics = over_wires(links, [("a", "b")], load=load, **changes)
    slowest = max(host_s, SEGMENT_BITS / wire_kbps / 1e3)
    use = load / SEGMENT_KBIT * slowest
    lone = 0.02 + 4.0 * host_s + (SEGMENT_BITS + ACK_BITS) / wire_kbps / 1e3
    wait = use * slowest / 2.0 / (1.0 - use)
    assert float(metrics["rtt_s"][0]) == pytest.approx(lone + wait, rel=1e-4)
    assert float(metrics["goodput_kbps"][0]) == pytest.approx(load)


@pytest.mark.parametrize("way", ["uplink", "downlink"])
@pytest.mark.parametrize("source", ["greedy", "poisson"])
def test_the_layers_of_a_host_limit_all_its_flows_together(source, way):
    """Three flows share the layer of the central, which takes 30 ms for a segment: 90 ms for all three."""
    changes = {
        "network.peripherals": 3, "network.flows": way, "traffic.source": source, "traffic.load_kbps": 150.0,
        "transport.receive_window_segments": 20, "transport.delayed_ack": False, "link.l2cap_delay_s": 0.03,
        "run.duration_s": 200.0, "run.replications": 2,
    }  # fmt: skip
    scenario = bt.Scenario().changed(changes)
    theory, simulated = bt.solve(scenario), bt.simulate(scenario)
    each = scenario.transport.mss_bytes * 8.0 / 1000.0 / 0.03 / 3.0
    for found in (theory, simulated):
        assert np.asarray(found["goodput_kbps"]) == pytest.approx(each, rel=0.01)
    assert np.asarray(theory["rtt_s"]) == pytest.approx(20.0 * 0.09, rel=1e-6)  # Little's law
    assert np.asarray(simulated["rtt_s"]) == pytest.approx(20.0 * 0.09, rel=0.01)


@pytest.mark.parametrize(
    ("half_duplex", "load", "wait_s"),
    [
        (False, 400.0, 0.0),
        # segments of 24 ms every 30 ms: the acknowledgement of one comes 10 ms later, 4 ms into the next
        (True, SEGMENT_KBIT / 0.03, 0.02),
    ],
)
def test_only_acknowledgements_of_a_lone_periodic_source_wait(half_duplex, load, wait_s):
    links = [("a", "b", 500.0, {"half_duplex": half_duplex})]
    metrics = over_wires(links, [("a", "b")], load=load, traffic__source="periodic")
    lone = 0.02 + (SEGMENT_BITS + ACK_BITS) / 500e3
    assert float(metrics["rtt_s"][0]) == pytest.approx(lone + wait_s, rel=1e-9)


@pytest.mark.parametrize(("window", "delay_s"), [(3, 0.05), (5, 0.05), (9, 0.05), (5, 0.005), (9, 0.005)])
def test_the_odd_segment_of_a_window_is_in_doubt_on_a_path_that_is_not_full(window, delay_s):
    """It is left at the receiver until the next segments come, and acknowledgements show it."""
    link = {"delay_s": delay_s, "half_duplex": False}
    window_and_pairs = {"transport__receive_window_segments": window, "transport__delayed_ack": True}
    metrics, notes = answer(wire(link=link, **window_and_pairs))
    service, full = SEGMENT_BITS / 1e6, delay_s < 0.01
    assert any("share a delayed acknowledgement" in doubt for doubt in notes["warnings"]) is not full
    if full:
        assert float(metrics["goodput_kbps"][0]) == pytest.approx(SEGMENT_KBIT / service, rel=1e-3)
        assert float(metrics["rtt_s"][0]) == pytest.approx((window + 1.0) * service, rel=1e-3)


@pytest.mark.parametrize(("gateway", "to"), [("c", "p"), ("p", "q")])
def test_a_lone_segment_crosses_the_piconet_as_if_it_came_from_the_gateway(gateway, to):
    behind = over_wires([(gateway, "s", 1000.0, {})], [("s", to)], load=1e-3)
    alone = over_wires([], [(gateway, to)], load=1e-3, network__relay="segment")
    wire_s = 0.02 + (SEGMENT_BITS + ACK_BITS) / 1e6
    assert float(behind["rtt_s"][0]) == pytest.approx(float(alone["rtt_s"][0]) + wire_s, rel=1e-4)


def test_a_lone_segment_that_comes_back_from_a_wire_finds_the_polls_at_a_known_place_in_the_cycle():
    """Five packets to one of seven: the wait for the next visit is certain, and not half a cycle (+6 %)."""
    lone = bt.load("suliman-2005/one-of-seven").with_(
        transport__receive_window_segments=1, transport__initial_window_segments=1,
        transport__delayed_ack=False, run__jitter_s=0,
    )  # fmt: skip
    near_simulation(lone, rtt_s=1e-3)


def test_a_large_window_saws_over_a_drop_tail_buffer():
    """Windows of w/2 to w, with w of places and pipe: a mean round trip of 7/9 of the greatest."""
    metrics, _ = answer(wire(link={"buffer_packets": 20}, transport__receive_window_segments=128))
    greatest = 20 + (12e-3 + 0.32e-3 + 0.1) / 12e-3
    assert float(metrics["goodput_kbps"][0]) == pytest.approx(SEGMENT_KBIT / 12e-3, rel=0.01)
    assert float(metrics["rtt_s"][0]) == pytest.approx(7 / 9 * greatest * 12e-3, rel=0.05)
    assert float(metrics["timeouts_per_s"][0]) == 0.0


@pytest.mark.parametrize("loss", [0.003, 0.03, 0.3])
@pytest.mark.parametrize("variant", ["tahoe", "newreno", "sack"])
def test_segment_loss_is_the_loss_of_the_link(variant, loss):
    """A repetition is lost as often as a first try: p of all that is sent, not p / (1 + p)."""
    link = {"rate_kbps": 10_000, "half_duplex": False, "loss": loss, "loss_back": 0}
    metrics, _ = answer(wire(link=link, transport__variant=variant, transport__receive_window_segments=12))
    assert float(metrics["segment_loss"][0]) == pytest.approx(loss, rel=1e-6)


# ------------------------------------------------------------------------- flows that are equal by symmetry


def classes(**changes) -> list[int]:
    return alike(network_of(in_tables(thesis().with_(**changes))))


def test_another_load_or_direction_is_another_class():
    flows: list[dict] = [{"from": "c1", "to": f"p1.{n}"} for n in range(1, 5)]
    flows[2]["load_kbps"] = 5.0
    assert classes(network__peripherals=4, network__flows=flows) == [0, 0, 2, 0]
    mixed = [*flows[:2], {"from": "p1.3", "to": "c1"}, {"from": "p1.4", "to": "c1"}]
    assert classes(network__peripherals=4, network__flows=mixed) == [0, 0, 2, 2]
    both = [
        flow for n in (1, 2) for flow in ({"from": "c1", "to": f"p1.{n}"}, {"from": f"p1.{n}", "to": "c1"})
    ]
    assert classes(network__peripherals=2, network__flows=both) == [0, 1, 0, 1]


@settings(max_examples=12, deadline=None)
@given(
    st.integers(2, 6), st.sampled_from(["ring", "downlink", "uplink"]), st.floats(10.0, 150.0),
    st.sampled_from(["poisson", "greedy", "periodic"]), st.sampled_from([1, 5]), st.sampled_from([0.0, 2e-5]),
)  # fmt: skip
def test_the_answer_is_that_of_asking_every_flow(stations, flows, load, source, limit, ber):
    scenario = in_tables(
        thesis(radio={"model": "constant", "ber": ber}, link={"arq": "unlimited"}).with_(
            network__peripherals=stations, network__flows=flows, traffic__load_kbps=load,
            traffic__source=source, polling__limit=limit,
        )
    )  # fmt: skip
    grouped = answer(scenario)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laws, "alike", lambda network: list(range(len(network.flows))))
        each = answer(scenario)[0]
    for name, values in each.items():
        if isinstance(values, dict):  # of queues, by their names
            assert grouped[name] == pytest.approx(values, rel=1e-5, abs=1e-12), name
            continue
        assert np.asarray(grouped[name]) == pytest.approx(np.asarray(values), rel=1e-5, abs=1e-12), name


@pytest.mark.parametrize(("loss", "window"), [(0.0019, 51), (0.0066, 60)])
def test_losses_keep_a_window_below_the_one_that_would_wait_at_a_full_station(loss: float, window: int):
    """Goodput is the capacity, yet round trips were those of an open window: 60 to 420 % too long."""
    scenario = bt.load("suliman-2005/round-trips").changed({
        "network.outside_links[1].loss": loss, "network.outside_links[1].rate_kbps": 7000.0,
        "transport.receive_window_segments": window, "transport.delayed_ack": False, "run.jitter_s": 0.0,
        "link.node_buffer_bytes": None, "run.duration_s": 2000.0, "run.warmup_s": 100.0,
        "run.replications": 4,
    })  # fmt: skip
    solved, simulated = bt.solve(scenario), bt.simulate(scenario).mean("replication")
    assert solved.attrs["stands"]
    for name, bound in (("goodput_kbps", 0.02), ("rtt_s", 0.05)):
        assert solved[name].values == pytest.approx(simulated[name].values, rel=bound)
