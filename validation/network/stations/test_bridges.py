"""Bridges in `btqueue.network.stations`: lone round trips, capacity, buffers and windows."""

from math import comb, inf

import pytest
from beside import doubted, mean, near_simulation

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.stations.bridge_buffers import Brought, _most_waiting
from btqueue.network.stations.description import network_of
from btqueue.network.stations.model import answer
from btqueue.network.stations.point import operating_point

ONE = bt.Scenario().changed({
    "network.topology": "scatternet", "network.peripherals": 1, "traffic.source": "greedy",
    "network.flows": [{"from": "p1.1", "to": "p2.1"}], "transport.receive_window_segments": 32,
    "transport.delayed_ack": False, "flow_control.baseband_packets": 1000, "network.piconets": 2,
    "polling.bridge_buffer_packets": 1000, "run.duration_s": 60.0, "run.warmup_s": 5.0, "run.replications": 1,
})  # fmt: skip
"""One connection over a bridge between two piconets, with buffers that do not matter."""
NOTHING = "no segment gets through"
LOSSY = {"radio__model": "constant", "radio__per": 0.05}


SPARSE = ONE.with_(traffic__source="poisson", traffic__load_kbps=1e-3, transport__preset="thesis")
"""A flow of single segments at random over the bridge."""


def goodput(s):
    return mean(s, "goodput_kbps")


def test_flows_that_never_meet_do_not_slow_each_other_down():
    # in two piconets of which the bridge carries nothing
    alone = mean(SPARSE.with_(network__flows=[{"from": "p1.1", "to": "c1"}]), "rtt_s")
    flows = [{"from": "p1.1", "to": "c1"}, {"from": "p2.1", "to": "c2", "load_kbps": 50.0}]
    beside = answer(SPARSE.with_(network__flows=flows))[0]["rtt_s"][0]
    assert beside == pytest.approx(alone, rel=0.01)


def test_a_poll_of_a_bridge_costs_time_also_without_flows_over_it():
    # the piconet in the middle has two bridges, so that a cycle is more than 2 slots longer
    flows = [{"from": f"p{k}.1", "to": f"c{k}"} for k in (1, 2)]
    one, two = answer(SPARSE.with_(network__piconets=3, network__flows=flows))[0]["rtt_s"]
    assert two > one + 2.0 * SLOT_S


def test_full_windows_are_w_round_trips_over_the_rate():
    metrics = answer(ONE.with_(network__flows="pairs", transport__receive_window_segments=8))[0]
    assert metrics["rtt_s"] * metrics["goodput_kbps"] / 11.68 == pytest.approx(8.0, rel=0.01)


def test_a_longer_visit_carries_more():
    assert goodput(ONE.with_(polling__bridge_limit=20)) > 1.02 * goodput(ONE.with_(polling__bridge_limit=5))
    assert goodput(ONE.with_(polling__bridge_limit=2)) < 0.9 * goodput(ONE.with_(polling__bridge_limit=5))


@pytest.mark.parametrize(("places", "passes"), [(2, False), (5, True)])
def test_whole_segments_need_room_at_the_bridge(places, passes):
    s = ONE.with_(
        network__topology="chain", network__bridge="MS", network__flows="end-to-end",
        network__relay="segment", polling__bridge_buffer_packets=places,
        transport__receive_window_segments=1,
    )  # fmt: skip
    assert (goodput(s) > 0.0) == passes
    assert not doubted(s, NOTHING)
    if not passes:  # the timer has doubled to its end
        assert answer(s)[0]["timeouts_per_s"] == pytest.approx(1.0 / s.transport.max_rto_s)


@pytest.mark.parametrize(
    ("changes", "divided"),
    [
        ({}, False),
        ({"polling__discipline": "gated"}, True),
        ({"polling__residence": "cycle"}, True),
        (LOSSY, True),
        ({"traffic__source": "poisson", "traffic__message_bytes": 1600, "traffic__load_kbps": 20.0}, True),
    ],
)
def test_packets_that_come_at_once_pass_a_small_buffer_only_where_something_divides_them(changes, divided):
    s = ONE.with_(polling__bridge_buffer_packets=3, **changes)
    assert goodput(s) == 0.0
    assert doubted(s, NOTHING) is divided


def test_losses_of_many_windows_at_bridges_settle_although_rates_answer_them_steeply():
    s = ONE.with_(
        network__piconets=4, network__peripherals=5, network__flows="pairs", link__packets=["DM5", "DM3"],
        traffic__source="poisson", traffic__load_kbps=37.8, flow_control__baseband_packets=20,
        polling__bridge_buffer_packets=20, transport__receive_window_segments=8,
    )  # fmt: skip
    metrics, notes = answer(s)
    assert notes["residual"] < 1e-3
    assert (metrics["segment_loss"] > 0.01).all() and (metrics["goodput_kbps"] > 1.0).all()


def test_windows_in_turn_of_a_line_of_centrals_never_meet():
    s = ONE.with_(network__piconets=3, network__bridge="MS", polling__bridge_schedule="sniff")
    assert goodput(s.with_(network__flows=[{"from": "p1.1", "to": "p3.1"}])) == 0.0


@pytest.mark.parametrize("piconets", [2, 5])
def test_segments_of_many_in_a_row_of_equal_bridges_wait_for_each_other_once(piconets):
    s = ONE.with_(
        network__flows=[{"from": f"p1.{n}", "to": f"p{piconets}.{n}"} for n in (1, 2, 3, 4, 5)],
        network__piconets=piconets, network__peripherals=5, traffic__source="poisson",
        traffic__load_kbps=18.0, run__duration_s=300.0, polling__bridge_limit=5,
        transport__receive_window_segments=64, run__replications=4,
    )  # fmt: skip
    network = network_of(s)
    point = operating_point(network)
    assert (point.rate @ point.service)[: len(network.ports)].max() > 0.3
    near_simulation(s, rtt_s=0.12)


ROW = {"polling.bridge_buffer_packets": 5, "run.duration_s": 200.0}
"""Room for one segment."""


@pytest.mark.parametrize(
    "stays",
    [
        {"polling.residence": "complete"},
        {"polling.bridge_limit": 10},
        {"polling.bridge_schedule": "sniff", "polling.rendezvous_s": 0.1},
    ],
)
def test_a_stay_that_brings_two_segments_needs_room_for_both(stays):
    """Within 12 % of goodput, chosen when 5 to 7 % had been seen; it was half to twice as high before."""
    s = ONE.changed(ROW | stays)
    near_simulation(s, goodput_kbps=0.12)
    assert doubted(s, "has no room for some segments")
    assert not doubted(
        s.with_(polling__bridge_buffer_packets=40, transport__receive_window_segments=8), "no room"
    )


def test_packets_gather_without_limit_where_a_stay_brings_more_than_the_next_sends():
    assert _most_waiting(5, 3, 1) == inf
    assert _most_waiting(3, 5, 1) == 3.0


def test_errors_leave_packets_of_a_row_behind():
    """The chance that a stay brings more than the stay before has sent, by all pairs of binomial numbers."""
    s = ONE.changed(ROW | {"radio.model": "constant", "radio.per": 0.1, "polling.bridge_limit": 5})
    network = network_of(s)
    port = next(
        v.index for v in network.flows[0].forth if v.kind == "port" and network.ports[v.index].places == 5
    )
    here = [comb(5, k) * 0.9**k * 0.1 ** (5 - k) for k in range(6)]
    expected = sum(here[sent] * here[come] for sent in range(6) for come in range(sent + 1, 6))
    assert Brought(network).coming[port].rows[0] == pytest.approx(expected)


def unequal(first: int, second: int, **more: object) -> bt.Scenario:
    """Return a greedy connection between two piconets with a bridge and this many other peripherals."""
    members = [("a", first), ("b", second)]
    piconets = [
        {"name": one, "central": f"c{one}", "peripherals": ["x", *(f"{one}{n}" for n in range(count))]}
        for one, count in members
    ]
    network = {"topology": "custom", "piconet_list": piconets, "flows": [{"from": "a0", "to": "b0"}]}
    run = {"duration_s": 120.0, "warmup_s": 60.0, "replications": 6}
    radio = {"model": "constant", "ber": 1e-5}
    base = {"network": network, "radio": radio, "run": run, "traffic": {"source": "greedy"}}
    return bt.Scenario.from_dict(base).changed({"polling.bridge_buffer_packets": 60} | more)


@pytest.mark.parametrize(("first", "second"), [(1, 3), (3, 1)])
def test_a_visit_to_a_bridge_lasts_for_the_packets_that_are_exchanged_not_for_its_limit(first, second):
    """Visits of 5 frames here and 15 there exchange 5: goodput was 43 % too low where both counted as full.

    From the longer visits the bridge brings 15 and loses 10 of them, so that theory doubts the round trip.
    """
    asked = unequal(first, second)
    simulated = bt.simulate(asked)
    truth = float(simulated.goodput_kbps.mean())
    assert goodput(asked) == pytest.approx(truth, rel=0.21)  # the error that the doubt names
    spills = "its buffer of 60 packets has no room"
    assert any(spills in why for why in bt.solve(asked).attrs["why"]) == (first > second)
    assert (float(simulated.loss_relay.mean()) > 1e-3) == (first > second)


@pytest.mark.parametrize(("second", "places", "loses"), [(1, 10, True), (3, 5, False)])
def test_errors_leave_packets_in_the_buffer_of_a_bridge(second, places, loses):
    """They gather where both visits have 5 frames, and leave at once in a visit of 15."""
    asked = unequal(1, second, **{"polling.bridge_buffer_packets": places})
    doubts = " ".join(bt.solve(asked).attrs["why"])
    assert (f"its buffer of {places} packets has no room" in doubts) == loses
    assert (float(bt.simulate(asked).loss_relay.mean()) > 0.0) == loses


@pytest.mark.parametrize(
    "first",
    [
        2,
        pytest.param(3, marks=pytest.mark.xfail(strict=True, reason="round trip 20.2 % too long, was 12 %")),
    ],
)
def test_a_queue_before_the_shorter_visits_overflows_the_buffer_of_the_bridge(first):
    """Within 20 % of goodput and round trip, chosen when errors to 18 and 44 % had been seen in 40 cases.

    Without these losses round trips were 7 to 9 times too long. Segments that come in pairs brought goodput
    from 6 % too high to 6 % too low with three other peripherals, and nearer with none to two.
    """
    asked = unequal(first, 1, **{"polling.bridge_buffer_packets": 60, "radio.ber": 0.0})
    near_simulation(asked, goodput_kbps=0.2, rtt_s=0.2)


@pytest.mark.parametrize(("hops", "slots"), [(2, 62.0), (3, 64.0), (6, 64.0)])
def test_bridges_in_a_row_are_in_step(hops, slots):
    """An exchange takes 4 * 6 + 4 slots, the acknowledgement 2 more; a member waits for a poll."""
    network = {"topology": "chain", "bridge": "MS", "flows": "end-to-end", "hops": hops}
    row = bt.Scenario(
        network=network,
        traffic={"source": "greedy"},
        transport={"delayed_ack": False},
        run={"duration_s": 40.0, "warmup_s": 20.0, "replications": 2},
    )
    exact = 8.0 * row.traffic.message_bytes / (slots * SLOT_S) / 1e3
    assert bt.solve(row).goodput_kbps.item() == pytest.approx(exact, rel=1e-6)
    assert bt.simulate(row).goodput_kbps.mean().item() == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("discipline", ["gated", "exhaustive", "fep"])
def test_rows_whose_visits_end_at_no_limit_are_in_doubt(discipline):
    """Under gated polling the law of a row in step was 9 % too low."""
    changes = {
        "network.topology": "chain", "network.bridge": "MS", "network.flows": "end-to-end",
        "network.hops": 2, "traffic.source": "greedy", "transport.delayed_ack": False,
        "transport.receive_window_segments": 20, "polling.bridge_buffer_packets": 1000,
    }  # fmt: skip
    assert bt.solve(bt.Scenario().changed(changes)).attrs["stands"]
    assert not bt.solve(bt.Scenario().changed(changes | {"polling.discipline": discipline})).attrs["stands"]


def test_segments_that_share_an_acknowledgement_delay_a_bridge_together():
    """Within 8 %, chosen when 7 % had been seen; without pairs theory was 21 % too high."""
    network = {"topology": "chain", "bridge": "SS", "flows": "end-to-end", "hops": 3}
    run = {"duration_s": 40.0, "warmup_s": 20.0, "replications": 2}
    near_simulation(
        bt.Scenario(network=network, traffic={"source": "greedy"}, run=run), goodput_kbps=0.08, rtt_s=0.08
    )
