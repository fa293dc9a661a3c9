"""The scatternet's model: its compiled recursion against a plain one and by hand, limits, and invariants."""

from dataclasses import fields

import numpy as np
import pytest

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.channel import packet_error_rate
from btqueue.network import NoConvergence
from btqueue.network.opening import new_sender
from btqueue.network.ring_piconet.records import BEGINNING_S, rules_of
from btqueue.network.ring_piconet.sequences import MESSAGES, quantile
from btqueue.network.scatternet import runs
from btqueue.network.scatternet.air import play
from btqueue.network.scatternet.network import scatternet_of
from btqueue.network.scatternet.orbit import classes_of
from btqueue.network.scatternet.records import State, at_rest, begin, paths_of
from btqueue.network.scatternet.runs import Run
from btqueue.scenario import NotBuiltYet, Scenario

from .plain_ends import Messages, PacedSender, TcpEnd
from .plain_peripheral import Flow, Peripheral
from .plain_scatternet import Air, Piconet

UNBOUNDED = 1 << 62


def scenario(**changes):
    return bt.load("venugopal-2006/scatternet-1").with_(**changes)


def follow(state: State, net, until_s: float) -> None:
    play(state, rules_of(net.ring), net.radio, paths_of(net), 1, UNBOUNDED, until_s)


def plain_scatternet(asked) -> tuple[Air, list[TcpEnd], list[Peripheral]]:
    ring, plain = scatternet_of(asked).ring, new_sender(asked)
    known = {item.name: getattr(plain, item.name) for item in fields(plain)}
    flows = [[Flow(pair) for pair in range(ring.peripherals)] for _ in range(2)]
    ends, places, piconets = [], [], []
    for here in range(2):
        members = []
        for pair in range(ring.peripherals):
            flow = 2 * pair + here
            begun = BEGINNING_S * quantile(flow, MESSAGES, 0)
            sender = PacedSender(**known, messages=Messages(begun))
            end = TcpEnd(sender, flows[here][pair], flows[1 - here][pair], len(ring.data), len(ring.ack))
            ends.append(end)
            members.append(Peripheral(ring, end, flow))
        places += members
        exchanges = 1 + (asked.polling.residence_cycles if asked.polling.residence == "cycle" else 0)
        limit = ring.peripherals * asked.polling.limit
        piconets.append(Piconet(ring, limit, exchanges, here == 0, members))
    return Air((piconets[0], piconets[1])), ends, places


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"run__jitter_s": 0.005, "flow_control__buffer_packets": 6},
        {"network__peripherals": 3, "flow_control__token_rate_kbps": 90, "flow_control__baseband_packets": 6},
        {
            "polling__residence": "cycle",
            "polling__bridge_buffer_packets": 10,
            "flow_control__drop": "segment",
        },
    ],
)
def test_the_compiled_recursion_is_the_plain_one(changes: dict):
    asked = scenario(traffic__source="greedy", **changes)
    net = scatternet_of(asked)
    state = at_rest(net, 8, 256, 1)
    begin(state, new_sender(asked), [0.0] * net.flows, 0)
    air, ends, places = plain_scatternet(asked)
    for _ in range(400):
        air.step()
        # the other piconet is behind the bridge, and comes to the same time in its own visits
        here = int(np.argmin([piconet.slot for piconet in air.piconets]))
        plain = air.piconets[here]
        follow(state, net, plain.slot * SLOT_S)
        compiled = state.piconets[here]
        assert (compiled.slot, compiled.cycles) == (plain.slot, plain.cycles)
        assert compiled.data_slots == plain.data_slots
    peripherals = net.ring.peripherals
    side = slice(here * peripherals, (here + 1) * peripherals)
    for own, end, place in zip(
        state.peripherals[here : net.flows : 2], ends[side], places[side], strict=True
    ):
        assert (own.expected, own.timeouts, own.fast_retransmits) == end.counters()
        assert own.sent == end.flow.sent
        assert own.refused_at_buffer == place.tally.refused_at_buffer
        assert own.refused_at_baseband == place.tally.refused_at_baseband
    assert sum(end.counters()[0] for end in ends) > 40


def test_an_empty_network_by_hand():
    # Slots of a cycle with one peripheral: 4 without the bridge, 6 with it. A period has one of each.
    joined = scatternet_of(scenario())
    state = at_rest(joined, 1, 64, 1)
    follow(state, joined, 1000 * SLOT_S)
    assert state.piconets["cycles"] == pytest.approx([200, 200], abs=1)
    # As central the bridge is back after 10 slots: 2 for its own cycle, 4 for a cycle in whose poll it is too
    # late, 2 for the other peripheral and a NULL, 2 for POLL and NULL.
    central = scatternet_of(scenario(network__bridge="MS"))
    state = at_rest(central, 1, 64, 1)
    follow(state, central, 1000 * SLOT_S)
    assert state.piconets["cycles"] == pytest.approx([200, 100], abs=1)


@pytest.mark.parametrize("changes", [{}, {"network__bridge": "MS", "network__piconets": 3}])
def test_periods_with_nothing_to_send_are_passed_over_exactly(changes: dict):
    asked = scenario(traffic__load_kbps=5, run__jitter_s=0.005, **changes)
    net = scatternet_of(asked)

    def followed() -> State:
        state = at_rest(net, 8, 64, 100)
        begin(state, new_sender(asked), [2.0] * net.flows, 0)
        follow(state, net, 20.0)
        return state

    quick = followed()
    plainly = at_rest(net, 8, 64, 100)
    begin(plainly, new_sender(asked), [2.0] * net.flows, 0)
    for step in range(1, 2001):  # too short to find a period in
        plainly.clock["looks"] = 0
        follow(plainly, net, step * 0.01)
    for name in ("expected", "sent", "timeouts"):
        assert np.array_equal(quick.peripherals[name], plainly.peripherals[name])
    assert quick.piconets["cycles"] == pytest.approx(plainly.piconets["cycles"], abs=4)
    assert quick.clock[0].trip_time == pytest.approx(plainly.clock[0].trip_time)


def test_a_lone_segment_takes_at_least_its_slots():
    asked = scenario(traffic__load_kbps=1)
    ring = scatternet_of(asked).ring
    pace = sum(piece.packet.slots + 1 for piece in ring.data)
    # the first hop packet by packet, then the last packet's three, then four hops of the acknowledgement
    least = (pace + 3 * ring.data[-1].packet.slots + 4 * ring.ack_slots) * SLOT_S
    found = bt.solve(asked)
    assert least < float(found.rtt_s.mean()) < 4 * least


def test_queues_that_are_too_small_grow(monkeypatch: pytest.MonkeyPatch):
    asked = scenario()
    net = scatternet_of(asked)

    def counted() -> float:
        run = Run(net, lambda: new_sender(asked), 8, [0.0] * net.flows, [0] * net.flows, 0)
        run.follow(1)
        return float(run.batches.time[0])

    before = counted()
    monkeypatch.setattr(runs, "PLACES", 4)
    assert counted() == before


def test_an_overloaded_scatternet_obeys_littles_law():
    found = bt.solve(scenario())
    segments = float(found.goodput_kbps.mean()) / 11.68
    assert segments * float(found.rtt_s.mean()) == pytest.approx(8.0, rel=0.02)
    assert float(found.segment_loss.mean()) == 0.0
    assert segments < scatternet_of(scenario()).air_capacity


def test_a_light_load_is_carried_and_a_single_window_is_its_round_trip():
    light = bt.solve(scenario(traffic__load_kbps=1.0))
    assert float(light.goodput_kbps.mean()) == pytest.approx(1.0)
    assert float(light.rtt_s.mean()) < 0.12
    one = bt.solve(scenario(traffic__source="greedy", transport__receive_window_segments=1))
    assert float(one.goodput_kbps.mean()) / 11.68 * float(one.rtt_s.mean()) == pytest.approx(1.0, rel=0.02)


def test_a_radio_that_lets_nothing_through_stalls():
    found = bt.solve(scenario(radio__model="constant", radio__ber=1e-2))
    assert float(found.goodput_kbps.mean()) == 0.0
    assert float(found.segment_loss.mean()) == 1.0
    assert float(found.timeouts_per_s.mean()) == pytest.approx(1 / 64, rel=0.02)


def test_a_radio_without_errors_is_a_perfect_one():
    clean = bt.solve(scenario(radio__model="constant", radio__ber=0.0))
    assert np.array_equal(clean.rtt_s, bt.solve(scenario()).rtt_s)


def test_packets_are_damaged_as_often_as_the_bit_error_rate_says():
    ber = 2e-6
    asked = scenario(radio__model="constant", radio__ber=ber, traffic__load_kbps=20)
    types = [piece.packet for kind in ("data", "ack") for piece in getattr(scatternet_of(asked).ring, kind)]
    on_a_hop = [float(packet_error_rate(packet, ber, bits=asked.radio.bits)) for packet in types]
    whole = 1.0 - np.mean([(1.0 - share) ** 4 for share in on_a_hop])
    assert float(bt.solve(asked).loss_radio.mean()) == pytest.approx(whole, rel=0.05)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"polling__bridge_schedule": "sniff"}, "polling.bridge_schedule"),
        ({"link__arq": "unlimited", "radio__model": "constant", "radio__ber": 1e-6}, "link.arq"),
        ({"network__flows": "downlink"}, "network.flows"),
        ({"network__flows": [{"from": "p1.1", "to": "b1"}]}, "network.flows"),
        ({"network__flows": [{"from": "p1.1", "to": "p2.1"}] * 2}, "network.flows"),
        (
            {"network__flows": [{"from": "p1.1", "to": "p2.1", "message_bytes": 100}]},
            "network.flows[1].message_bytes",
        ),
        ({"radio__interferers": 2}, "radio.interferers"),
    ],
)
def test_what_the_model_does_not_cover_is_refused_by_name(change: dict, key: str):
    with pytest.raises(NotBuiltYet) as caught:
        bt.solve(scenario(**change).with_(run__solver="followed"))
    assert key in {problem.key for problem in caught.value.problems}


def test_a_longer_stay_costs_goodput():
    changes = {"polling__residence": "cycle", "polling__bridge_buffer_packets": 10}
    longer, usual = (float(bt.solve(scenario(**c)).goodput_kbps.mean()) for c in (changes, {}))
    assert longer < 0.9 * usual


@pytest.mark.parametrize("kind", ["SS", "MS"])
def test_every_piconet_on_the_way_takes_time(kind: str):
    light = scenario(traffic__load_kbps=2.0, network__bridge=kind)
    trips = [float(bt.solve(light.with_(network__piconets=count)).rtt_s.mean()) for count in (2, 3, 4)]
    assert trips == sorted(trips)
    # the third and the fourth piconet cost the same
    assert trips[2] - trips[1] == pytest.approx(trips[1] - trips[0], rel=0.25)


def test_flows_differ_by_their_ways_and_loads():
    listed = scenario(
        network__piconets=3,
        network__flows=[
            {"from": "p1.1", "to": "p2.1", "load_kbps": 10},
            {"from": "p2.1", "to": "p3.1", "load_kbps": 20},
            {"from": "p3.1", "to": "p1.1", "load_kbps": 10},
        ],
    )
    net = scatternet_of(listed)
    assert classes_of(net, [0.1, 0.1, 0.1]) == (0, 1, 2)
    found = bt.solve(listed)
    assert found.goodput_kbps.values == pytest.approx([10.0, 20.0, 10.0])
    assert found.rtt_s[2] > 1.3 * found.rtt_s[0]
    pairs = scatternet_of(scenario(network__piconets=3, network__peripherals=2))
    assert classes_of(pairs, [0.1] * 4) == (0, 0, 0, 0)


def test_littles_law_over_four_piconets():
    greedy = scenario(
        traffic__source="greedy", flow_control__enabled=False, flow_control__baseband_packets=100
    )
    found = bt.solve(greedy.with_(network__piconets=4))
    segments = float(found.goodput_kbps.mean()) / 11.68
    assert segments * float(found.rtt_s.mean()) == pytest.approx(8.0, rel=0.02)
    assert segments < scatternet_of(greedy).air_capacity


def test_a_bridge_with_too_little_room_starves_who_sends_through_it():
    asked = scenario(network__piconets=3, network__bridge="MS", polling__bridge_buffer_packets=2)
    # Whole cycles of a central's own piconet go into the bridge's room; on the way back single exchanges do.
    found = bt.solve(asked)
    assert found.goodput_kbps.values == pytest.approx([180.0, 0.0])
    assert found.segment_loss.values[1] == 1.0


def drawn(piconets: dict[str, list[str]], flows: list[tuple[str, str]], **changes) -> Scenario:
    """Return a custom network: centrals and their peripherals."""
    data = bt.load("venugopal-2006/scatternet-1").to_dict(resolved=False)
    data["network"] = {
        "topology": "custom",
        "flows": [{"from": source, "to": target} for source, target in flows],
        "piconet_list": [
            {"name": central, "central": central, "peripherals": members}
            for central, members in piconets.items()
        ],
    }
    return Scenario.from_dict(data).with_(**changes)


def test_a_custom_network_is_the_scatternet_that_it_describes():
    asked = scenario(network__piconets=3, network__bridge="MS", traffic__load_kbps=30)
    piconets = {"c1": ["p1", "c2"], "c2": ["p2", "c3"], "c3": ["p3"]}
    same = drawn(piconets, [("p1", "p3"), ("p3", "p1")], traffic__load_kbps=30)
    assert np.array_equal(bt.solve(asked).rtt_s, bt.solve(same).rtt_s)


def test_centrals_that_wait_for_each_other_for_ever_are_found_out():
    ring = {"a": ["pa", "b"], "b": ["pb", "c"], "c": ["pc", "a"]}
    with pytest.raises(NoConvergence, match="waits to be polled"):
        bt.solve(drawn(ring, [("pa", "pb")]))
    line = {"a": ["pa", "b"], "b": ["pb", "c"], "c": ["pc"]}
    assert float(bt.solve(drawn(line, [("pa", "pb")])).goodput_kbps.mean()) > 0.0


def test_a_hundred_piconets():
    found = bt.solve(scenario(network__piconets=100, traffic__load_kbps=5))
    assert found.goodput_kbps.values == pytest.approx(5.0)
