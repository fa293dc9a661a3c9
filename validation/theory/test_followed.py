"""Connections that are followed: values worked out by hand, Little's law, limits, and invariants.

That the follower's network is the simulator's, event by event, is in
`validation/crosscheck/test_followed_against_simulation.py`.
"""

from math import inf

import numpy as np
import pytest
from thesis import thesis_of
from wires import wire

import btqueue as bt
from btqueue.baseband import PACKET_TYPES, SLOT_S
from btqueue.channel import TwoStateChannel, packet_error_rate
from btqueue.network import NoConvergence
from btqueue.network.followed import averages, plan, radio, runs
from btqueue.network.followed.events import ALARM, TURN, drop_first, schedule
from btqueue.network.followed.model import answer
from btqueue.network.followed.plan import Plan
from btqueue.scenario import Scenario
from btqueue.scenario.errors import NotBuiltYet

KILOBITS = 1460 * 8e-3
GREEDY = {
    "traffic__source": "greedy", "flow_control__enabled": False, "flow_control__baseband_packets": 1000,
}  # fmt: skip
"""Always data, and room for them."""


def followed(scenario: Scenario):
    return bt.solve(scenario.with_(run__solver="followed"))


def mean(found, name: str) -> float:
    return float(found[name].mean())


def ring(**changes) -> Scenario:
    return bt.load("venugopal-2006/piconet").with_(run__jitter_s=0.005, **changes)


def scatternet(**changes) -> Scenario:
    return bt.load("venugopal-2006/scatternet-1").with_(**changes)


# --------------------------------------------------------------------------------------------------- parts


def test_events_come_in_order_of_time_then_half_frames_by_piconet_then_of_entry():
    world = Plan(scatternet()).world(0)
    entered = [(5.0, 7, 1), (2.0, TURN, 1), (2.0, 6, 3), (2.0, TURN, 0), (2.0, 6, 2), (1.0, 8, 0)]
    for event in entered:
        schedule(world, *event)
    found = []
    while world.clock[0].events:
        first = world.events[0]
        found.append((float(first.time), int(first.action), int(first.argument)))
        drop_first(world)
    assert found == [(1.0, 8, 0), (2.0, TURN, 0), (2.0, TURN, 1), (2.0, 6, 3), (2.0, 6, 2), (5.0, 7, 1)]


def test_a_channel_has_the_transition_probabilities_of_its_markov_chain():
    asked = ring(radio__model="gilbert-elliott", radio__ber_good=0.0, radio__ber_bad=1e-9)
    own = asked.radio
    channel = TwoStateChannel(ber_good=0.0, ber_bad=0.0, good_s=own.good_s, bad_s=own.bad_s)
    rng, looks = np.random.default_rng(7), 20_000
    for typical in (0.01, 0.1, 1.0):
        world = Plan(asked).world(0)
        elapsed = rng.choice([typical / 2, typical], looks)
        found = []
        for now in np.cumsum(elapsed) / SLOT_S:
            world.random[:2] = rng.random(2)
            world.clock[0].drawn = -1
            radio.is_hit(world, 0, 0, now)
            found.append(int(world.channels[0].bad))
        states = np.array(found)
        for step in (typical / 2, typical):
            expected = channel.transition(step)
            for before in (0, 1):
                these = (elapsed[1:] == step) & (states[:-1] == before)
                # four standard errors, twelve times: a false alarm in one of 1,300 runs
                error = 4 * (expected[before, 1] * expected[before, 0] / these.sum()) ** 0.5
                assert states[1:][these].mean() == pytest.approx(expected[before, 1], abs=error)


def test_arrays_that_are_too_small_grow_and_nothing_else_changes(monkeypatch: pytest.MonkeyPatch):
    asked = Plan(ring(transport__receive_window_segments=64))
    usual = runs.Run(asked, 0)
    usual.follow(2)
    monkeypatch.setattr(plan, "ITEMS", 1)
    small = runs.Run(asked, 0)
    small.follow(2)
    assert np.array_equal(usual.counts.flows, small.counts.flows)


def test_an_alarm_that_was_set_anew_is_not_set_again_when_it_goes_off():
    """Each flow has the alarm in force, and now and then one that an earlier deadline took the place of."""
    busy = runs.Run(Plan(bt.load("venugopal-2006/piconet-6")), 0)
    busy.follow(24)
    clock, events = busy.world.clock[0], busy.world.events
    alarms = events["action"][: int(clock.events)] == ALARM
    assert 6 <= alarms.sum() <= 2 * 6


def test_flows_alike_are_of_one_class():
    listed = scatternet(
        network__piconets=3,
        network__flows=[
            {"from": "p1.1", "to": "p2.1", "load_kbps": 10},
            {"from": "p2.1", "to": "p3.1", "load_kbps": 20},
            {"from": "p3.1", "to": "p1.1", "load_kbps": 10},
        ],
    )
    assert len(set(Plan(listed).kind_of)) == 3
    found = followed(listed)
    assert found.goodput_kbps.values == pytest.approx([10.0, 20.0, 10.0])
    assert found.rtt_s[2] > 1.3 * found.rtt_s[0]
    assert len(set(Plan(ring(network__peripherals=5)).kind_of)) == 1


# -------------------------------------------------------------------------------------------- outside links

SERVICE_S, ACK_S = 1500 * 8e-6, 40 * 8e-6
EMPTY_S = SERVICE_S + ACK_S + 0.1


@pytest.mark.parametrize(
    ("window", "rtt_s"), [(1, EMPTY_S), (8, EMPTY_S), (16, 16 * SERVICE_S), (40, 40 * SERVICE_S)]
)
def test_a_window_below_and_above_the_pipe(window: int, rtt_s: float):
    """Below it W segments go round in an empty path, the others of a burst behind those before them."""
    found = followed(wire(transport__receive_window_segments=window))
    assert mean(found, "goodput_kbps") == pytest.approx(window / rtt_s * KILOBITS, rel=0.01)
    assert mean(found, "rtt_s") == pytest.approx(rtt_s, rel=0.01)
    assert mean(found, "segment_loss") == 0.0


def test_a_load_on_a_wire_waits_as_an_md1_queue_does():
    """Datagram-like: a window that never fills, so that the wire is M/D/1; Pollaczek and Khinchine."""
    load = 0.5 * KILOBITS / SERVICE_S
    window = {f"transport__{name}_window_segments": 500 for name in ("receive", "initial")}
    found = followed(wire(traffic__source="poisson", traffic__load_kbps=load, **window))
    wait = 0.5 * SERVICE_S / (2 * (1 - 0.5))
    assert mean(found, "delay_s") == pytest.approx(SERVICE_S + 0.05 + wait, rel=0.02)


def test_a_link_that_is_down_part_of_the_time_carries_the_rest():
    """A greedy flow, a full queue: up 2 s and down 1 s on average leave two thirds of the rate."""
    patient = {"transport__receive_window_segments": 500, "transport__min_rto_s": 30.0}
    found = followed(wire(link={"up_s": 0.2, "down_s": 0.1, "delay_s": 0.0}, **patient))
    assert mean(found, "goodput_kbps") == pytest.approx(2 / 3 * KILOBITS / SERVICE_S, rel=0.05)


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno", "sack"])
def test_the_loss_of_segments_is_that_of_the_link(variant: str):
    """A repetition is lost as often as a first try: p of all that is sent."""
    losses = {"loss": 0.02, "loss_back": 0.0}
    found = followed(wire(link=losses, transport__variant=variant, transport__receive_window_segments=12))
    sent = mean(found, "throughput_kbps") / KILOBITS
    assert mean(found, "segment_loss") == pytest.approx(0.02, rel=0.12)  # some 2,000 losses: five errors
    assert sent > mean(found, "goodput_kbps") / KILOBITS


def test_interfering_vegas_keeps_its_segments_in_the_queue():
    """Between alpha and beta segments of Vegas wait in the queue of the bottleneck."""
    found = followed(wire(transport__variant="vegas", transport__receive_window_segments=64))
    waiting = mean(found, "goodput_kbps") / KILOBITS * (mean(found, "rtt_s") - EMPTY_S)
    assert 0.5 < waiting < 4.0
    assert mean(found, "goodput_kbps") == pytest.approx(KILOBITS / SERVICE_S, rel=0.02)


# ------------------------------------------------------------------------------------------------- piconets


def test_packets_are_damaged_on_either_hop():
    one_kind = {"link__packets": ("DH5",), "flow_control__enabled": False}
    found = followed(ring(radio__model="constant", radio__ber=1e-5, **one_kind))
    through = 1.0 - float(packet_error_rate(PACKET_TYPES["DH5"], np.array(1e-5)))
    assert mean(found, "loss_radio") == pytest.approx(1.0 - through**2, rel=0.05)
    assert mean(followed(ring(**one_kind)), "loss_radio") == 0.0


def test_arq_stretches_service_by_the_mean_number_of_transmissions():
    """One station that always sends: the slots of its frames, 1/(1 - e) times."""
    lone = ring(network__peripherals=1, network__flows="uplink", link__arq="unlimited", **GREEDY)
    perfect, noisy = followed(lone), followed(lone.with_(radio__model="constant", radio__per=0.25))
    ratio = mean(noisy, "goodput_kbps") / mean(perfect, "goodput_kbps")
    # data are repeated; acknowledgements travel in the empty halves of frames
    assert ratio == pytest.approx(0.75, rel=0.02)


def test_beside_voice_a_packet_a_period_is_all_there_is():
    """Four free slots carry a DH3 and its answer: 9 and 1 of them on both hops, 120 slots for a segment."""
    voice = {"voice__packet": "HV3", "voice__links": 1, "link__packets": ("DH3",)}
    found = followed(ring(network__peripherals=1, **voice, **GREEDY))
    assert mean(found, "goodput_kbps") == pytest.approx(KILOBITS / (120 * SLOT_S), rel=1e-3)
    assert mean(found, "slot_utilisation") == pytest.approx(3 / 4, rel=1e-3)


def test_two_stations_beside_voice_leave_the_second_one_two_slots_for_ever():
    found = followed(ring(voice__packet="HV3", voice__links=1, link__packets=("DH3",), traffic__load_kbps=5))
    assert mean(found, "goodput_kbps") == 0.0
    assert any("get nothing through" in warning for warning in found.attrs["warnings"])


def test_a_light_load_is_carried_at_the_round_trip_of_a_lone_segment():
    """By hand: half a frame of waiting, 46 slots to the other end, NULL, POLL, and twice three slots back."""
    light = bt.load("venugopal-2006/piconet").with_(
        network__peripherals=1, traffic__load_kbps=1.0, flow_control__token_rate_kbps=400
    )
    found = followed(light)
    assert mean(found, "goodput_kbps") == pytest.approx(1.0)
    assert mean(found, "rtt_s") == pytest.approx((1 + 46 + 1 + 1 + 6) * SLOT_S, rel=0.01)


@pytest.mark.parametrize("discipline", ["e-limited", "exhaustive", "gated", "fep", "lwrr", "slq", "ldq"])
def test_every_discipline_wastes_no_slot_of_a_lone_greedy_station(discipline: str):
    """With one member there is nobody else to poll: all disciplines are one."""
    asked = ring(network__peripherals=1, network__flows="uplink", **GREEDY)
    found, usual = (followed(asked.with_(polling__discipline=name)) for name in (discipline, "round-robin"))
    assert mean(found, "goodput_kbps") == pytest.approx(mean(usual, "goodput_kbps"), rel=0.01)


def test_a_radio_without_errors_is_a_perfect_one():
    zero = followed(ring(radio__model="constant", radio__ber=0.0))
    assert np.array_equal(zero.rtt_s, followed(ring()).rtt_s)


def test_one_channel_for_all_links_is_better_than_one_for_each():
    """Both hops are good at the same time then."""
    errors = bt.load("venugopal-2006/piconet-errors")
    apart = mean(followed(errors), "goodput_kbps")
    assert mean(followed(errors.with_(radio__fading="per-piconet")), "goodput_kbps") > 1.1 * apart


def test_a_radio_that_lets_nothing_through_stalls():
    found = followed(ring(radio__model="constant", radio__ber=1e-2))
    assert mean(found, "goodput_kbps") == 0.0
    assert mean(found, "segment_loss") == 1.0
    assert "rtt_s" not in found  # no round trip ended
    # a timer that has doubled up to its end expires every 64 s
    assert mean(found, "timeouts_per_s") == pytest.approx(1 / 64, rel=0.05)


def test_buffers_too_small_for_any_segment_stall_the_connection():
    found = followed(ring(flow_control__enabled=False, flow_control__baseband_packets=1))
    assert mean(found, "goodput_kbps") == 0.0
    tight = bt.load("suliman-2005/round-trips").with_(link__node_buffer_bytes=1)
    assert not followed(tight).goodput_kbps.any()


def test_phases_of_periodic_sources_are_sampled():
    """Two sources of one period meet or do not, for ever: what runs differ in is the error."""
    periodic = {"traffic__source": "periodic", "traffic__load_kbps": 130, "flow_control__enabled": False}
    asked = ring(network__flows="downlink", **periodic).with_(run__jitter_s=0.0)
    found = averages.follow(Plan(asked))
    assert len(found.runs) == averages.PHASES
    trips = [float(run.counts.of("trip_time").sum() / run.counts.of("trips").sum()) for run in found.runs]
    assert np.std(trips) / np.mean(trips) / len(trips) ** 0.5 == pytest.approx(found.trip_error, rel=0.2)


# ---------------------------------------------------------------------------------------------- scatternets


def test_an_empty_scatternet_by_hand():
    """Slots of a cycle with one peripheral: 4 without the bridge, 6 with it. A period has one of each.

    As central the bridge is back after 10 slots: 2 for its own cycle, 4 for a cycle in whose poll it is too
    late, 2 for the other peripheral and a NULL, 2 for POLL and NULL.
    """
    for kind, expected in (("SS", [200, 200]), ("MS", [200, 100])):
        run = runs.Run(Plan(scatternet(traffic__load_kbps=1e-3, network__bridge=kind)), 0)
        counts = run.counts if len(run.looks) > 1 else run.looks[0]
        cycles = counts.visits / np.array([2, 1] if kind == "MS" else [2, 2])
        assert cycles / counts.time * 1000 == pytest.approx(np.array(expected), rel=0.02)


def test_an_overloaded_scatternet_obeys_littles_law():
    found = followed(scatternet())
    segments = mean(found, "goodput_kbps") / KILOBITS
    assert segments * mean(found, "rtt_s") == pytest.approx(8.0, rel=0.02)
    assert mean(found, "segment_loss") == 0.0


def test_packets_are_damaged_on_every_hop_of_a_scatternet():
    ber = 2e-6
    asked = scatternet(radio__model="constant", radio__ber=ber, traffic__load_kbps=20, link__packets=("DH5",))
    one = float(packet_error_rate(PACKET_TYPES["DH5"], ber, bits=asked.radio.bits))
    assert mean(followed(asked), "loss_radio") == pytest.approx(1.0 - (1.0 - one) ** 4, rel=0.1)


@pytest.mark.parametrize("kind", ["SS", "MS"])
def test_every_piconet_on_the_way_takes_time(kind: str):
    light = scatternet(traffic__load_kbps=5.0, network__bridge=kind)
    trips = [mean(followed(light.with_(network__piconets=count)), "rtt_s") for count in (2, 3, 4)]
    assert trips == sorted(trips)
    # the third and the fourth piconet cost the same
    assert trips[2] - trips[1] == pytest.approx(trips[1] - trips[0], rel=0.25)


def test_a_longer_stay_costs_goodput():
    changes = {"polling__residence": "cycle", "polling__bridge_buffer_packets": 10}
    longer, usual = (mean(followed(scatternet(**c)), "goodput_kbps") for c in (changes, {}))
    assert longer < 0.9 * usual


@pytest.mark.parametrize("schedule", ["sniff", "pcss"])
def test_a_bridge_with_windows_is_in_each_piconet_half_of_the_time(schedule: str):
    """A round trip takes two windows at least; with room for what comes meanwhile the load is carried."""
    windows = {"polling__bridge_schedule": schedule, "polling__rendezvous_s": 0.1}
    found = followed(scatternet(**windows, polling__bridge_buffer_packets=200, traffic__load_kbps=20))
    assert mean(found, "rtt_s") > 0.05
    assert mean(found, "goodput_kbps") == pytest.approx(20.0, rel=0.02)


def test_a_bridge_with_too_little_room_starves_who_sends_through_it():
    # Whole cycles of a central's own piconet go into the bridge's room; on the way back single exchanges do.
    found = followed(scatternet(network__piconets=3, network__bridge="MS", polling__bridge_buffer_packets=2))
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
    return thesis_of(data).with_(**changes)


def test_a_custom_network_is_the_scatternet_that_it_describes():
    asked = scatternet(network__piconets=3, network__bridge="MS", traffic__load_kbps=30)
    piconets = {"c1": ["p1", "c2"], "c2": ["p2", "c3"], "c3": ["p3"]}
    same = drawn(piconets, [("p1", "p3"), ("p3", "p1")], traffic__load_kbps=30)
    assert np.array_equal(followed(asked).rtt_s, followed(same).rtt_s)


def test_centrals_that_wait_for_each_other_for_ever_are_found_out():
    around = {"a": ["pa", "b"], "b": ["pb", "c"], "c": ["pc", "a"]}
    with pytest.raises(NoConvergence, match="waits to be polled"):
        followed(drawn(around, [("pa", "pb")]))
    line = {"a": ["pa", "b"], "b": ["pb", "c"], "c": ["pc"]}
    assert mean(followed(drawn(line, [("pa", "pb")])), "goodput_kbps") > 0.0


# --------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"polling__discipline": "prc-lwrr"}, "polling.discipline"),
        ({"link__arq": "unlimited", "link__arq_feedback": "lossy"}, "link.arq_feedback"),
        ({"transport__protocol": "none"}, "transport.protocol"),
        ({"transport__receive_window_segments": 2000}, "transport.receive_window_segments"),
        ({"traffic__message_bytes": 10**9}, "traffic.message_bytes"),
        ({f"transport__{name}_rto_s": 1e-4 for name in ("initial", "min", "max")}, "transport.max_rto_s"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(change: dict, key: str):
    with pytest.raises(NotBuiltYet) as caught:
        followed(ring(**change))
    assert key in {problem.key for problem in caught.value.problems}


def test_messages_that_are_too_rare_have_no_answer():
    with pytest.raises(NoConvergence, match="too rare"):
        followed(ring(traffic__load_kbps=1e-9))


def test_the_same_question_has_the_same_answer_and_runs_differ():
    first, second = answer(ring()), answer(ring())
    assert np.array_equal(first[0]["rtt_s"], second[0]["rtt_s"])
    found = averages.follow(Plan(ring()))
    assert len(set(found.goodputs)) == averages.RUNS


def test_the_standard_error_of_a_ratio_is_that_of_its_scatter():
    rng = np.random.default_rng(3)
    ratios, said = [], []
    for _ in range(400):
        whole = rng.gamma(4.0, 1.0, 8)
        part = whole * 2.0 + rng.normal(0.0, 0.3, 8)
        ratios.append(part.sum() / whole.sum())
        said.append(averages.ratio_error([(part, whole)]))
    assert np.std(ratios) / np.mean(ratios) == pytest.approx(np.mean(said), rel=0.15)
    assert averages.ratio_error([(np.zeros(4), np.ones(4))]) == 0.0
    assert inf > averages.ratio_error([(np.ones(4), np.ones(4))]) >= 0.0


def test_a_flow_that_begins_after_the_warm_up_is_warned_of():
    flows = [{"from": "a", "to": "b"}, {"from": "b", "to": "a", "start_s": 100.0}]
    warnings = {
        warmup_s: " ".join(followed(wire(network__flows=flows, run__warmup_s=warmup_s)).attrs["warnings"])
        for warmup_s in (30.0, 100.0)
    }
    assert "later than run.warmup_s ends" in warnings[30.0]
    assert "run.warmup_s" not in warnings[100.0]
