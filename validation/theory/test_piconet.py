"""The queueing model of a piconet: limits, identities, scope."""

from math import inf

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from polled_air import passages_of
from single_systems import by_model
from thesis import thesis

import btqueue as bt
from btqueue.baseband import PACKET_TYPES, SLOT_S
from btqueue.channel import packet_error_rate
from btqueue.network.answers import NoConvergence
from btqueue.network.models import MODELS, model_of
from btqueue.network.piconet.air import Passage, bounded
from btqueue.network.piconet.bucket import Bucket, levels, queue
from btqueue.network.piconet.covers import unknown_if_lost
from btqueue.network.piconet.metrics import expiries_of_light_flows
from btqueue.network.piconet.plan import Plan
from btqueue.network.piconet.saturation import closed_rate, window
from btqueue.network.piconet.trains import Sent, attempts, failure_rates, survival, transmissions
from btqueue.queueing._precision import in_float64
from btqueue.queueing.laws import lattice
from btqueue.queueing.single.finite_queue import finite_queue
from btqueue.queueing.traffic.arrivals import PoissonBatches
from btqueue.scenario import NotBuiltYet
from btqueue.scenario.scope import problems_of
from btqueue.transport import law, law_rates

DATA_SLOTS, ACK_SLOTS, PACKETS = 23, 3, 5


def star(**changes) -> bt.Scenario:
    """Two clients that send to their access point, with repetition and room for everything."""
    common = {
        "network.flows": "uplink", "link.arq": "unlimited", "flow_control.enabled": False,
        "flow_control.baseband_packets": 200, "traffic.load_kbps": 100.0,
    }  # fmt: skip
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return bt.load("venugopal-2006/piconet").changed(common | dotted)


@in_float64
def passages(scenario: bt.Scenario, **changes) -> tuple[list[Passage], float]:
    """What each class sees of the polled air at the loads of a scenario, without windows, and the cycle."""
    plan = Plan(scenario.with_(**changes), apart=False)
    system = plan.system(plan.parameters)
    seen, cycles = passages_of(system, system.structure.class_of @ system.inputs.load)
    members = range(len(plan.layout.members))
    return [jax.tree.map(lambda leaf, k=number: leaf[k], seen) for number in members], float(cycles[0])


@in_float64
def sent(scenario: bt.Scenario, most: float) -> tuple[Sent, jax.Array]:
    """The transmissions of a segment, and the error rates of its packets."""
    system = Plan(scenario).system(Plan(scenario).parameters)
    data, radio = system.structure.data, system.inputs.radio
    rates = failure_rates(data, jnp.asarray([radio.ber_good]))[0]
    return transmissions(data, rates, jnp.asarray(most), jnp.asarray(5.0), 64), rates


def goodput(scenario: bt.Scenario) -> float:
    return float(bt.solve(scenario)["goodput_kbps"].mean())


@pytest.mark.parametrize("flows", ["uplink", "downlink"])
@pytest.mark.parametrize("n", [2, 7])
def test_greedy_flows_share_the_slots(flows, n):
    # a frame carries a packet one way; the acknowledgement takes the place of two of the empty answers' slots
    found = bt.solve(star(network__flows=flows, network__peripherals=n, traffic__source="greedy"))
    slots = DATA_SLOTS + PACKETS + (ACK_SLOTS - 1)
    assert found.attrs["model"] == "piconet"
    assert float(found["goodput_kbps"].mean()) == pytest.approx(11.68 / (n * slots * SLOT_S), rel=2e-3)
    assert float(found["rtt_s"].mean()) == pytest.approx(8 * n * slots * SLOT_S, rel=2e-3)
    assert float(found["slot_utilisation"]) == pytest.approx((DATA_SLOTS + ACK_SLOTS) / slots, rel=2e-3)
    assert float(found["cycle_s"]) == pytest.approx(n * slots * SLOT_S, rel=1e-9)
    assert "queue_packets" not in found  # open queues know nothing of full windows


@pytest.mark.parametrize(("flows", "hops"), [("uplink", 1), ("ring", 2)])
def test_each_hop_of_a_carried_load_takes_its_slots(flows, hops):
    scenario = star(network__flows=flows, network__peripherals=3, traffic__load_kbps=20.0)
    segments_per_s = 3 * 20.0 / 11.68
    found = bt.solve(scenario)
    slots = hops * segments_per_s * (DATA_SLOTS + ACK_SLOTS)
    assert float(found["slot_utilisation"]) == pytest.approx(slots * SLOT_S, rel=1e-9)
    assert np.allclose(found["goodput_kbps"], 20.0)
    assert float(found["segment_loss"].max()) == float(found["timeouts_per_s"].max()) == 0.0


def test_layers_that_take_no_time_change_nothing():
    # that an acknowledgement comes with its segment, or apart from it, is no jump at zero
    at_once, soon = (
        float(bt.solve(star(network__peripherals=3, transport__tcp_delay_s=delay_s))["rtt_s"].mean())
        for delay_s in (0.0, 1e-9)
    )
    assert soon == pytest.approx(at_once, rel=1e-6)


def test_delay_grows_with_load_and_errors():
    delays = [float(bt.solve(star(traffic__load_kbps=load))["rtt_s"].mean()) for load in (20, 80, 160, 240)]
    assert delays == sorted(delays)
    errors = [
        float(bt.solve(star(radio__model="constant", radio__ber=ber))["rtt_s"].mean())
        for ber in (0.0, 3e-5, 1e-4)
    ]
    assert errors == sorted(errors)


def test_goodput_is_smooth_where_slots_limit_it():
    greedy = star(traffic__source="greedy", radio__model="constant", radio__ber=5e-5)
    slopes = []
    for step in (1e-3, 1e-4):
        up, down = (goodput(greedy.with_(radio__ber=5e-5 * (1 + sign * step))) for sign in (1, -1))
        slopes.append((up - down) / (2 * step))
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-3)
    assert slopes[0] < 0


@pytest.mark.parametrize("stations", [2, 5, 7])
@pytest.mark.parametrize("limit", [1, 3, 5, 8])
@pytest.mark.parametrize("flows", ["uplink", "downlink"])
def test_a_lone_round_trip_frame_by_frame(flows, stations, limit):
    """A segment in an idle piconet, played by hand from each even slot of a cycle on."""
    scenario = star(network__flows=flows, network__peripherals=stations, polling__limit=limit)
    passage = passages(scenario, traffic__load_kbps=1e-6)[0][0]
    played = [played_round_trip(flows == "uplink", stations, limit, start) for start in range(2 * stations)]
    # the segment comes evenly between two slots: half a slot before the average of whole ones
    assert passage.delay + passage.answer == pytest.approx(np.mean(played) + 0.5, abs=1e-3)


def played_round_trip(up: bool, stations: int, limit: int, start: int) -> int:
    """Play POLLs and NULLs of the first station until the acknowledgement of five packets is there.

    The segment is there at slot `start` of the idle cycle; the first station's visit begins at slot 0. A
    packet that comes while a frame is decided is not in it.
    """
    data, answer, clock, ready = [5, 5, 5, 5, 3], None, 0, start
    while True:
        frames = 0
        while frames < limit:
            packets = {"down": 0, "up": 0}
            for way in ("down", "up"):
                begun = clock
                if (way == "up") is up and data and ready <= begun:
                    packets[way] = data.pop(0)
                elif (way == "up") is not up and answer is not None and answer < begun:
                    clock += ACK_SLOTS
                    return clock - start
                clock += packets[way] or 1
                if packets[way] and not data:
                    answer = clock
            frames += 1
            if not any(packets.values()):
                break
        clock += 2 * (stations - 1)


@pytest.mark.parametrize(("stations", "load"), [(2, 0.1), (2, 0.5), (7, 0.1), (7, 0.5), (7, 0.8)])
def test_equal_stations_under_exhaustive_service(stations, load):
    """The mean wait is that of the pseudo-conservation law, with the absence that the docstring names."""
    slots = DATA_SLOTS + PACKETS
    rate = load / (stations * slots)
    scenario = star(
        network__flows="downlink", network__peripherals=stations, polling__discipline="exhaustive",
        traffic__load_kbps=rate / SLOT_S * 11.68, transport__protocol="none",
    )  # fmt: skip
    (passage,), cycle = passages(scenario)
    own = load / stations
    others = load - own
    conservation = load * slots / (2 * (1 - load)) + stations * (1 - own) / (1 - load)
    named = stations / (1 - others) - stations * (1 - own) / (1 - load)
    assert cycle == pytest.approx(2 * stations / (1 - load), rel=1e-9)
    assert passage.delay + passage.wait == pytest.approx(conservation + named + slots - 1, rel=5e-3)


def test_a_light_flow_does_not_wait_for_a_backlog():
    flows = [{"from": "p1.1", "to": "c1", "load_kbps": 560.0}, {"from": "p1.2", "to": "c1"}]
    beside = star(network__flows=flows, network__peripherals=2)
    passage = passages(beside, traffic__load_kbps=1.0)[0][1]
    # half a cycle and the rest of a visit, its own frames, one cycle until the acknowledgement
    full_visit = DATA_SLOTS + PACKETS + 2
    assert passage.delay + passage.answer < 2 * full_visit + DATA_SLOTS + PACKETS + full_visit + 10


@pytest.mark.parametrize(("packet", "links", "longer"), [("HV3", 1, 1.5), ("HV3", 2, 3.0), ("HV2", 1, 2.0)])
def test_voice_takes_its_share_of_the_slots(packet, links, longer):
    one_slot = {"link__packets": ["DH1"], "traffic__source": "greedy", "flow_control__baseband_packets": 600}
    alone = bt.solve(star(**one_slot))
    beside = bt.solve(star(**one_slot, voice__packet=packet, voice__links=links))
    for metric, share in (("goodput_kbps", 1 / longer), ("rtt_s", longer), ("slot_utilisation", 1)):
        assert float(beside[metric].mean()) == pytest.approx(share * float(alone[metric].mean()), rel=1e-9)


@in_float64
def both(work: np.ndarray, most: np.ndarray) -> tuple[jax.Array, jax.Array]:
    return bounded(jnp.asarray(work), jnp.asarray(most))


@pytest.mark.parametrize("flows", ["uplink", "downlink"])
@pytest.mark.parametrize("n", [1, 4])
def test_packets_that_fill_the_gaps_of_voice_links(flows, n):
    """Nine gaps for the packets, and one for the acknowledgement, which is as long: simulated exactly so."""
    data = star(network__peripherals=n, network__flows=flows, traffic__source="greedy", **VOICE)
    assert goodput(data) * n == pytest.approx(1460 * 8 / 1000 / (10 * 6 * SLOT_S), rel=1e-9)
    light = data.with_(traffic__source="poisson", traffic__load_kbps=50.0)
    carried = bt.solve(light)
    assert carried["goodput_kbps"].values == pytest.approx(50.0)
    assert not {"rtt_s", "delay_s", "cycle_s", "timeouts_per_s"} & set(carried)


def test_bounded_work():
    work, most = np.array([0.0, 1.0, 1.0, 1.0, 0.0]), np.array([1.0, 2.0, 1.0, 0.01, 0.0])
    values, slopes = both(work, most)
    assert np.all(values <= np.minimum(work, np.where(most > 0, most, work)))
    assert values[1] == pytest.approx((257 / 256) ** -0.125, rel=1e-12)
    assert values[3] == pytest.approx(0.01, rel=1e-6)
    step = 1e-6
    assert slopes == pytest.approx((both(work + step, most)[0] - values) / step, abs=1e-4)


def test_the_transmissions_of_a_train_are_a_negative_binomial_law():
    scenario = star(radio__model="constant", radio__ber=1e-4)
    types = [PACKET_TYPES[name] for name in ("DH5",) * 4 + ("DH3",)]
    rates = np.array([float(packet_error_rate(packet, 1e-4)) for packet in types])
    found, ours = sent(scenario, inf)
    assert np.asarray(ours)[:PACKETS] == pytest.approx(rates, rel=1e-12)
    assert found.law.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.mean == pytest.approx(float((1 / (1 - rates)).sum()), rel=1e-6)
    assert found.law[PACKETS] == pytest.approx(float(np.prod(1 - rates)), rel=1e-6)
    assert found.success == 1.0
    twice, _ = sent(scenario, 2)
    assert twice.success == pytest.approx(float(np.prod(1 - rates**2)), rel=1e-12)
    assert not np.asarray(twice.law)[2 * PACKETS + 1 :].any()


@pytest.mark.parametrize("bits", ["payload", "on-air"])
@pytest.mark.parametrize("name", ["DM1", "DH5", "2-DH3"])
@pytest.mark.parametrize("ber", [0.0, 1e-7, 1e-3, 0.3])
def test_error_rates_are_those_of_the_channel(bits, name, ber):
    system = Plan(star(link__packets=[name], radio__bits=bits)).system({})
    with jax.enable_x64(True):
        ours = failure_rates(system.structure.data, jnp.asarray([ber]))[0, 0]
    assert float(ours) == pytest.approx(
        float(packet_error_rate(PACKET_TYPES[name], ber, bits=bits)), rel=1e-9
    )


@pytest.mark.parametrize("error_rate", [0.0, 1e-6, 0.3, 0.9])
@pytest.mark.parametrize("most", [1, 2, 7, inf])
def test_attempts_are_a_law_with_the_right_mean(error_rate, most):
    with jax.enable_x64(True):
        law = np.asarray(attempts(jnp.asarray(error_rate), jnp.asarray(float(most)), 256))
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    # each further attempt is made if all before it failed
    further = sum(error_rate**k for k in range(int(min(most, 256))))
    assert law @ np.arange(law.size) == pytest.approx(further, rel=1e-6)


def closed(population: float, bottleneck_s: float, elsewhere_s: float) -> float:
    with jax.enable_x64(True):
        return float(closed_rate(*map(jnp.asarray, (population, bottleneck_s, elsewhere_s)), most=256))


def test_closed_networks_at_their_ends():
    assert closed(1.0, 0.1, 0.4) == pytest.approx(1 / 0.5)
    assert closed(3.0, 0.1, 0.0) == pytest.approx(1 / 0.1)
    assert closed(200.0, 0.1, 0.4) == pytest.approx(1 / 0.1, rel=1e-6)
    # two exponential customers, one station, a delay: by its three states
    busy, idle = 0.1, 0.4
    weights = np.array([idle**2 / 2, idle * busy, busy**2])
    assert closed(2.0, busy, idle) == pytest.approx((weights[1:].sum() / weights.sum()) / busy)
    assert closed(1.0, busy, idle) < closed(1.5, busy, idle) < closed(2.0, busy, idle)


def test_a_window_that_fits_loses_nothing():
    with jax.enable_x64(True):
        assert window(jnp.asarray(8.0), jnp.asarray(8.0)) == (8.0, 0.0)
        assert window(jnp.asarray(8.0), jnp.asarray(inf)) == (8.0, 0.0)
        tight = window(jnp.asarray(8.0), jnp.asarray(4.0))
    assert float(tight.mean) == 3.0
    # 3/8 w² + w segments from loss to loss, w = 5
    assert float(tight.loss) == pytest.approx(1 / (0.375 * 25 + 5), rel=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"transport__variant": "tahoe"},
        {"transport__variant": "sack", "transport__receive_window_segments": 3},
        {"transport__timestamps": False},
        {"transport__rto_backoff": False},
    ],
)
def test_lossy_radios_leave_what_the_law_of_tcp_makes_of_the_round_trip(changes):
    lossy = {"link__arq": "none", "radio__model": "constant", "radio__per": 0.05, "traffic__source": "greedy"}
    scenario = star(**lossy, **changes)
    found, tcp = Plan(scenario).with_findings()[0], scenario.transport
    tables = law(tcp.variant, tcp.receive_window_segments, timestamps=tcp.timestamps)
    with jax.enable_x64(True):
        rates = law_rates(
            tables, 1.0 - 0.95**PACKETS, 0.05, rtt_s=float(found["rtt_s"][0]),
            min_rto_s=tcp.min_rto_s, max_rto_s=tcp.max_rto_s, backoff=2.0 if tcp.rto_backoff else 1.0,
        )  # fmt: skip
    kilobits = scenario.traffic.message_bytes * 8 / 1000
    assert found["goodput_kbps"][0] == pytest.approx(float(rates.goodput) * kilobits, rel=1e-6)
    assert found["timeouts_per_s"][0] == pytest.approx(float(rates.timeouts), rel=1e-6)
    assert found["window_segments"][0] == pytest.approx(float(rates.window), rel=1e-6)


ROOMY = {"flow_control__baseband_packets": 10_000}


@pytest.mark.parametrize("flows", ["uplink", "downlink"])
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_one_link_is_a_queue_with_constant_service(flows, load):
    """M/D/1 with 30 slots a segment; an acknowledgement goes beside the first packet of the next one, if any.

    Simulated within 1 % at 0.55, where nothing was known of the next segment before (8 % short).
    """
    link = star(network__peripherals=1, network__flows=flows, link__packets=["DH5", "DH1"], **ROOMY)
    link = link.with_(transport__receive_window_segments=640, transport__header_bytes=20)  # answers of a slot
    service_s = 30 * SLOT_S
    quiet, busy = (
        bt.solve(link.with_(traffic__load_kbps=share * 11.68 / service_s)) for share in (1e-4, load)
    )
    assert busy.attrs["model"] == "piconet"
    wait_s = load * service_s / (2 * (1 - load))
    assert float(busy["delay_s"][0] - quiet["delay_s"][0]) == pytest.approx(wait_s, rel=2e-3)
    assert not busy.attrs["warnings"]
    longer_s = wait_s + load * 4 * SLOT_S
    assert float(busy["rtt_s"][0] - quiet["rtt_s"][0]) == pytest.approx(longer_s, rel=2e-3)


VOICE = {"voice__packet": "HV3", "voice__links": 1, "link__packets": ["DH3", "DH1"]}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"flow_control__baseband_packets": 4}, "flow_control.baseband_packets"),
        (
            {"network__flows": "ring", "link__arq": 3, "radio__model": "constant", "radio__ber": 1e-5},
            "link.arq",
        ),
        ({"link__arq": "none", "radio__model": "alternating"}, "radio.model"),
        ({"link__l2cap_delay_s": 0.05}, "link.l2cap_delay_s"),
        ({"link__baseband_delay_s": 0.001, "network__flows": "ring"}, "link.baseband_delay_s"),
        ({"transport__receive_window_segments": 2000}, "transport.receive_window_segments"),
        ({"traffic__two_way": True, **VOICE}, "link.packets"),
    ],
)
def test_what_is_not_covered_is_named(changes, key):
    scenario = star(**changes)
    assert key in {problem.key for problem in problems_of(MODELS["piconet"], scenario)}
    with pytest.raises(NotBuiltYet):
        by_model(scenario)


def test_small_queues_are_enough_for_small_windows():
    changes = {"flow_control__baseband_packets": 10, "transport__receive_window_segments": 2}
    assert not list(unknown_if_lost(star(**changes)))


SHORT = {"flow_control__baseband_packets": 20}


@pytest.mark.parametrize(
    ("changes", "key", "load"),
    [
        ({"flow_control__baseband_packets": 10}, "baseband_packets = 10", 60.0),
        ({"transport__variant": "sack", **SHORT}, 'variant = "sack"', 190.0),
        ({"transport__timestamps": False, **SHORT}, "timestamps = false", 190.0),
    ],
)
def test_senders_matter_where_buffers_overflow(changes, key, load):
    """Light loads never fill a queue: any sender will do. Beyond 2 % of losses there is no answer."""
    light = star(traffic__load_kbps=20.0, **changes)
    assert goodput(light) == pytest.approx(20.0, rel=1e-3)
    assert not bt.solve(light).attrs["warnings"]
    some = bt.solve(star(traffic__load_kbps=load, **changes))
    assert "delay_s" not in some
    assert any(key in text for text in some.attrs["warnings"])
    with pytest.raises(NoConvergence, match=key):
        by_model(star(traffic__source="greedy", **changes))


@in_float64
def bucket(rate: float, sizes: np.ndarray, depth: int, buffer: int) -> Bucket:
    law = levels(jnp.asarray(rate), jnp.asarray(sizes), jnp.asarray(0.0123), 64)
    return queue(law, jnp.asarray(float(depth)), jnp.asarray(float(buffer)))


@pytest.mark.parametrize("depth", [0, 9])
@pytest.mark.parametrize(("rate", "buffer"), [(8.0, 25), (20.0, 25), (20.0, 3), (60.0, 10)])
def test_missing_tokens_and_waiting_packets_are_a_finite_queue(rate, depth, buffer):
    """M^X/D/1/K, where a service is the time of one packet's tokens (Berger 1991)."""
    sizes = np.array([0.0, 0.4, 0.0, 0.0, 0.0, 0.6])
    ours = bucket(rate, sizes, depth, buffer)
    known = finite_queue(
        arrivals=PoissonBatches(rate * 0.0123, sizes),
        service=lattice.point(1),
        capacity=depth + buffer,
        slotted=False,
    )
    there = np.asarray(known.occupancy)
    assert ours.train_loss == pytest.approx(float(known.batch_loss), rel=1e-9, abs=1e-14)
    assert ours.packets == pytest.approx(float(there[depth:] @ np.arange(buffer + 1)), rel=1e-9)


@pytest.mark.parametrize("rate", [1e-3, 0.1, 2.0, 8.0])
def test_rare_losses_of_the_bucket_are_no_less_than_none(rate):
    found = bucket(rate, np.array([0.0, 0.5, 0.0, 0.0, 0.0, 0.5]), 9, 25)
    assert 0.0 <= found.train_loss < 1e-4 and found.packets >= 0.0


def test_what_never_gets_through_has_no_answer():
    with pytest.raises(NoConvergence, match="no segment gets through"):
        by_model(star(link__arq="none", radio__model="constant", radio__per=1.0))


@pytest.mark.parametrize("places", [None, 40])
def test_more_than_the_slots_carry_without_a_transport(places):
    datagrams = {"transport__protocol": "none", "network__flows": "downlink", "traffic__load_kbps": 2000.0}
    found = bt.solve(star(**datagrams, flow_control__central_buffer_packets=places))
    capacity = 11.68 / (2 * (DATA_SLOTS + PACKETS) * SLOT_S)
    carried = float(found["goodput_kbps"].mean()) / capacity
    assert "delay_s" not in found and "queue_packets" not in found
    if places is None:
        assert carried == pytest.approx(1.0, rel=2e-3)
        assert any("queues grow" in warning for warning in found.attrs["warnings"])
        assert "segment_loss" not in found  # nothing is lost: it waits, for ever longer
    else:  # of many messages a full queue takes a part, which is sent for nothing
        assert 0.0 < carried < 0.5
        balance = found["throughput_kbps"] * (1 - found["segment_loss"])
        assert np.allclose(found["goodput_kbps"], balance)


def test_variants_are_alike_where_nothing_is_lost():
    assert goodput(star(transport__variant="sack")) == goodput(star())


def test_processing_takes_its_mean_at_both_ends():
    # a small window would cut waits off, by the time beside them
    wide = star(transport__receive_window_segments=40)
    plain, slow = (
        float(bt.solve(wide.with_(run__jitter_s=jitter))["rtt_s"].mean()) for jitter in (0.0, 0.006)
    )
    assert slow - plain == pytest.approx(0.006, rel=1e-9)


LAYERS = {"transport__tcp_delay_s": 1e-3, "transport__ip_delay_s": 5e-4, "link__l2cap_delay_s": 2e-3}


def test_layers_hold_a_segment_at_both_ends():
    """An acknowledgement that comes at any time waits up to a cycle less than one that just missed it."""
    light = {"network__peripherals": 3, "traffic__load_kbps": 20.0}
    plain, slow = (bt.solve(star(**light, **more)) for more in ({}, LAYERS))
    held_s = 2 * sum(LAYERS.values())
    assert slow["delay_s"].values == pytest.approx(plain["delay_s"].values + held_s, rel=1e-9)
    longer_s = (slow["rtt_s"] - plain["rtt_s"]).values
    assert np.all((2 * held_s - 3 * 2 * SLOT_S < longer_s) & (longer_s < 2 * held_s))
    alike = [bt.solve(star(**light, **{key: 1e-3})) for key in LAYERS]
    assert np.ptp([one["rtt_s"].values for one in alike], axis=0) == pytest.approx(np.zeros(3), abs=1e-12)


def test_a_chain_of_one_hop_is_a_piconet():
    keys = {name: getattr(star(), name) for name in ("link", "flow_control", "traffic")}
    chain = thesis(network={"topology": "chain", "hops": 1}, **keys)
    assert model_of(chain) == "piconet"
    # jitter: not the model of one link
    down = star(network__peripherals=1, network__flows="downlink", run__jitter_s=1e-12)
    found, same = (bt.solve(one) for one in (chain, down))
    assert found["rtt_s"].values == pytest.approx(same["rtt_s"].values, rel=1e-6)


def test_visits_of_one_frame_end_without_an_empty_one():
    """By hand: a greedy flow sends in all cycles, the other station a packet or an empty frame in each."""
    own = [{"from": "c1", "to": "p1.1", "law": "greedy"}, {"from": "c1", "to": "p1.2"}]
    two = star(
        network__peripherals=2, network__flows=own, polling__discipline="1-limited", traffic__load_kbps=50.0,
        link__packets=["DH5"], transport__header_bytes=20, traffic__message_bytes=315,
    )  # fmt: skip
    greedy, light = bt.solve(two)["goodput_kbps"].values / (315 * 8 / 1000) * SLOT_S  # frames a slot
    assert greedy * (5 + 5) + light * (5 + 5) + 2 * (greedy - light) == pytest.approx(1.0, rel=1e-6)


@in_float64
def test_light_flows_expire_more_often_than_windows_that_are_full():
    """Windows are two after a loss: of the next five segments a lost one has fewer than three behind it."""
    p = 1e-4
    seldom = expiries_of_light_flows(jnp.asarray(1 - p), jnp.asarray(1.0), jnp.asarray(64.0))
    assert float(seldom) == pytest.approx((5 + 1) * p**2, rel=5e-3)  # or the repetition is lost
    small = expiries_of_light_flows(jnp.asarray(0.9), jnp.asarray(1.0), jnp.asarray(3.0))
    assert float(small) == pytest.approx(0.1 / 0.9 / 0.9)  # three segments never send three duplicates


def test_datagrams_that_the_radio_loses_take_no_more_slots():
    """Nothing repeats them: the air carries the same, whatever arrives."""
    common = {"transport__protocol": "none", "link__arq": "none", "traffic__load_kbps": 60.0}
    clear = bt.solve(star(**common))
    noisy = bt.solve(star(radio__model="constant", radio__per=0.2, **common))
    for name in ("slot_utilisation", "cycle_s", "delay_s"):
        assert noisy[name].values == pytest.approx(clear[name].values, rel=1e-6)
    assert noisy["goodput_kbps"].values == pytest.approx(0.8**PACKETS * clear["goodput_kbps"].values)
    assert noisy["segment_loss"].values == pytest.approx(1 - 0.8**PACKETS)
    assert "timeouts_per_s" not in noisy and "rtt_s" not in noisy


@in_float64
def test_a_packet_that_is_given_up_takes_its_segment_with_it():
    """Two packets, of which each is sent twice at most: all ends by hand."""
    e = np.array([0.3, 0.6])
    system = Plan(star(link__packets=["DH5"], traffic__message_bytes=500)).system({})
    data = system.structure.data
    rates = jnp.zeros(data.there.size).at[: e.size].set(e)
    size, most, limit = 16, jnp.asarray(2.0), jnp.asarray(5.0)
    every = transmissions(data, rates, most, limit, size)
    through = transmissions(data, rates, most, limit, size, delivered=True)
    once, twice, never = 1 - e, e * (1 - e), e**2
    delivered = np.array([once[0] * once[1], once[0] * twice[1] + twice[0] * once[1], twice[0] * twice[1]])
    assert through.law[2:5] == pytest.approx(delivered / delivered.sum(), rel=1e-12)
    lost = {2: never[0], 3: once[0] * never[1], 4: twice[0] * never[1]}
    assert every.law[2:5] == pytest.approx(delivered + np.array(list(lost.values())), rel=1e-12)
    assert float(every.success) == pytest.approx(delivered.sum(), rel=1e-12)


@pytest.mark.parametrize("stays", [(0.02, 0.005), (1e4, 1e3), (1e-7, 2e-7)])
@in_float64
def test_a_train_sent_once_meets_a_changing_radio(stays):
    """The product of the states' matrices, packet by packet."""
    frames = 6.0 * SLOT_S
    data = Plan(star(link__packets=["DH5"], traffic__message_bytes=1300)).system({}).structure.data
    rates = failure_rates(data, jnp.asarray([1e-5, 3e-4]))
    good_s, bad_s = map(jnp.asarray, stays)
    found = survival(data, rates, (good_s, bad_s), jnp.asarray(9.0), jnp.zeros(()))
    through, share = 1.0 - np.asarray(rates)[:, 0], np.array(stays) / sum(stays)
    kept = np.exp(-frames * (1 / stays[0] + 1 / stays[1]))
    step = kept * np.eye(2) + (1 - kept) * share
    state = share * through
    for _ in range(int(data.count) - 1):
        state = (state @ step) * through
    assert float(found) == pytest.approx(float(state.sum()), rel=1e-9)


def test_windows_that_are_still_growing_are_warned_of():
    """A window grows by a segment in its own time: from 64 to 128 by 18 segments a second, 340 s."""
    large = {
        "traffic__source": "greedy", "network__peripherals": 3, "flow_control__baseband_packets": 1000,
    }  # fmt: skip
    found = bt.solve(star(transport__receive_window_segments=128, run__warmup_s=50.0, **large))
    assert found["rtt_s"].values == pytest.approx(128 * 11.68 / found["goodput_kbps"].values, rel=1e-6)
    assert any("to grow" in text for text in found.attrs["warnings"])
    small = bt.solve(star(transport__receive_window_segments=64, run__warmup_s=50.0, **large))
    assert not small.attrs["warnings"]


def test_visits_of_more_than_a_segment_beside_a_full_window_are_warned_of():
    """Segments have seven packets; round trips of the light flows are 12 % off under a limit of eight."""
    flows = [{"from": "c1", "to": f"p1.{number}"} for number in (1, 2, 3)]
    mixed = star(
        network__flows=[flows[0] | {"law": "greedy"}, *flows[1:]], network__peripherals=3,
        link__packets=["DM5", "DM3"], traffic__load_kbps=40.0,
    )  # fmt: skip
    warned = {
        limit: any(
            "polling.limit" in text for text in bt.solve(mixed.with_(polling__limit=limit)).attrs["warnings"]
        )
        for limit in (7, 8)
    }
    assert warned == {7: False, 8: True}


def test_windows_beyond_the_tables_answer_where_losses_keep_them_small():
    lossy = star(
        link__arq="none", radio__model="constant", radio__ber=3e-5, transport__variant="sack",
        traffic__source="greedy",
    )  # fmt: skip
    small, large = (bt.solve(lossy.with_(transport__receive_window_segments=window)) for window in (10, 30))
    assert float(small["window_segments"].max()) < 0.65 * 10
    assert np.allclose(large["goodput_kbps"], small["goodput_kbps"], rtol=0.02)
    rare = lossy.with_(radio__ber=1e-7, transport__receive_window_segments=30)
    with pytest.raises(NoConvergence, match=r"windows of 10 segments"):
        by_model(rare)
