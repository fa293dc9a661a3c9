"""Bursts, windows, delayed acknowledgements, data both ways, chains: exact values, limits, invariants."""

from collections import deque
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from beside import mean, near_simulation
from scipy.stats import poisson
from wires import wire

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.stations.acknowledgements import Queue, _carried
from btqueue.network.stations.air import slowed
from btqueue.network.stations.description import network_of
from btqueue.network.stations.transport import held_back, resting_window, saw
from btqueue.scenario.traits import in_tables


@pytest.mark.parametrize("gap", [0.0, 0.06])
@pytest.mark.parametrize(("clock", "tolerance"), [("timer", 0.0), ("tick", 0.05)])  # phases of ticks are even
def test_waits_against_a_walk_through_time(gap, clock, tolerance):
    """Segments follow after a gap and perhaps a random time; the receiver writes, or the clock comes."""
    forward, reverse, period = 4.0, 2.0, 0.5
    followed = forward * gap
    rng = np.random.default_rng(1)
    waits, carried, now, first = [], 0, 0.0, True
    while len(waits) < 100_000:
        comes = now + gap + (rng.exponential(1.0 / forward) if rng.random() >= followed else 0.0)
        if first:
            writes = now + rng.exponential(1.0 / reverse)
            clocked = now + period if clock == "timer" else (now // period + 1.0) * period
            ends = min(comes, writes, clocked)
            waits.append(ends - now)
            carried += ends == writes
        # one that ended the wait is acknowledged with the first; any other is the first of the next
        first = not (first and ends == comes)
        now = comes
    receiver = SimpleNamespace(ack_delay_s=period, ack_clock=clock, delayed_ack=True, ack_every_segments=2)
    flow: Any = SimpleNamespace(more=0.0, transport=receiver)
    found = _carried(flow, Queue(forward, gap, 0.0), Queue(reverse, 0.0, 0.0), 100.0)
    error = float(np.std(waits)) / len(waits) ** 0.5
    mean = float(np.mean(waits))
    assert found.wait_s == pytest.approx(mean, abs=4 * error + tolerance * mean)
    assert found.carried == pytest.approx(carried / len(waits), abs=0.005 + tolerance * carried / len(waits))


def _paper(name="asymmetric", **changes):
    return bt.load(f"johansson-2000/{name}").with_(**changes)


@pytest.mark.parametrize(("per", "kbps"), [(0.0, 630.4), (0.1, 567.4), (0.3, 441.3), (0.5, 315.2)])
def test_goodput_of_segments_of_46_slots(per, kbps):
    """28 slots and the ten thirds of a frame more that an acknowledgement of two segments takes, per = 0."""
    assert mean(_paper(radio__per=per), "goodput_kbps") == pytest.approx(kbps, rel=0.005)


@pytest.mark.parametrize("per", [0.0, 0.3])
def test_both_ways_all_slots_carry_packets(per):
    """46 slots of data for a segment each way, whatever the window is, if it is above two."""
    kbps = 1429 * 8e-3 * (1.0 - per) / (46 * 625e-6)
    roomy = {"flow_control__baseband_packets": 200, "link__node_buffer_bytes": None}
    found = bt.solve(_paper("symmetric", radio__per=per, transport__variant="newreno", **roomy))
    assert found["goodput_kbps"].to_numpy() == pytest.approx([kbps, kbps], rel=0.005)


@pytest.mark.parametrize("load", [0.1, 0.3, 0.4])
@pytest.mark.parametrize("together", [0.5, 0.61, 0.8, 1.0])
def test_coupled_processors_against_the_chain_of_both(load, together):
    """Two queues alike with memoryless arrivals and services: the mean number of jobs is exact."""
    service = float(slowed(np.array(1.0), np.array(together), np.array(load / together)))
    law = _both(load, together, most=70)
    jobs = float(law.sum(axis=1) @ np.arange(len(law)))
    assert load * service / (1.0 - load * service) == pytest.approx(jobs, rel=1e-4)


def _both(load, together, most):
    """Law of the jobs at both sides: arrivals and services memoryless, up to ``most`` jobs each."""
    law = np.zeros((most + 1, most + 1))
    law[0, 0] = 1.0
    here, there = np.indices(law.shape)
    speed = np.where((here > 0) & (there > 0), together, 1.0)
    out_here, out_there = speed * (here > 0), speed * (there > 0)
    step = 1.0 / (2.0 * load + 2.0)
    for _ in range(40_000):
        moved = law * (1.0 - step * (load * (here < most) + load * (there < most) + out_here + out_there))
        moved[1:] += step * load * law[:-1]
        moved[:, 1:] += step * load * law[:, :-1]
        moved[:-1] += step * (out_here * law)[1:]
        moved[:, :-1] += step * (out_there * law)[:, 1:]
        if np.abs(moved - law).max() < 1e-13:
            break
        law = moved
    return law / law.sum()


@pytest.mark.parametrize("batch", [1.0, 2.0, 25.0])
@pytest.mark.parametrize("window", [1, 3, 12])
def test_segments_of_bursts_that_a_window_lets_in(batch, window):
    """Geometric batches, exponential services of a second: law of the number, and its mean up to a window."""
    load = 0.5
    wait = load / (1.0 - load) * batch + batch - 1.0  # of batches, and of those ahead in the own batch
    queue = Queue(load, 1.0, wait)
    law = _batches(load / batch, batch, most=2000)
    assert queue.use == pytest.approx(1.0 - law[0], abs=1e-6)
    assert queue.beyond(4) == pytest.approx(law[6:].sum(), abs=1e-6)
    most = np.minimum(np.arange(len(law)), window)
    in_network = load * (1.0 + held_back(queue, window, 1.0, 1))
    assert in_network == pytest.approx(float(law @ most), rel=1e-4)
    assert queue.work_s(window) == pytest.approx(float(law @ most) - 0.5 * load, rel=1e-4)


def _batches(rate, batch, most):
    """Law of the number of jobs, by the balance across each number: services of a second, memoryless."""
    law, stays = np.zeros(most + 1), 1.0 - 1.0 / batch
    law[0] = 1.0
    beyond = 0.0  # rate at which batches begin from below and lead to more than so many jobs
    for count in range(most):
        beyond = beyond * stays + rate * law[count]
        law[count + 1] = beyond
    return law / law.sum()


def test_windows_of_three_and_four_show_the_same_round_trip():
    """Two segments share an acknowledgement: the first of an odd window goes with the second of the next."""
    plain = {"transport__variant": "newreno", "transport__ack_clock": "timer"}
    paper = _paper(radio__per=0.0, **plain)
    three, four = (mean(paper.with_(transport__receive_window_segments=w), "rtt_s") for w in (3, 4))
    assert three == pytest.approx(four, rel=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.85, 1.1])
def test_no_more_is_delivered_than_offered_or_carried(share: float):
    full = mean(_paper("symmetric", radio__per=0.1), "goodput_kbps")
    loaded = bt.solve(_paper("smooth", radio__per=0.1, traffic__load_kbps=share * full))
    assert float(loaded["goodput_kbps"][0]) == pytest.approx(min(share, 1.0) * full, rel=0.01)
    assert any("overload" in warning for warning in loaded.attrs["warnings"]) is (share > 1.0)


def test_acknowledgements_that_data_carry_wait_less():
    smooth = (_paper("smooth", transport__piggyback=carries) for carries in (False, True))
    apart, carried = (mean(scenario, "rtt_s") for scenario in smooth)
    assert carried < 0.9 * apart


@pytest.mark.parametrize(("window", "tick"), [(8, 7.3), (8, 8.0), (9, 7.3), (4, 13.7), (3, 13.7)])
def test_a_free_running_clock_shifts_the_pairs_that_are_acknowledged_unless_it_keeps_in_step(window, tick):
    """A full window before a station that serves a segment a second."""
    queue, held, trips, clock = deque([0.0] * window), [], [], tick

    def acknowledge(now):
        if held:
            trips.append(now - held[0])
            queue.extend([now] * len(held))
            held.clear()

    for now in range(1, 20_001):
        while clock < now:
            acknowledge(clock)
            clock += tick
        held.append(queue.popleft())
        if len(held) == 2:
            acknowledge(float(now))
    keys = {"transport.ack_clock": "tick", "transport.ack_delay_s": tick, "traffic.source": "greedy"}
    keys |= {"transport.receive_window_segments": window, "transport.delayed_ack": True}
    (flow,) = network_of(bt.Scenario().changed({"network.peripherals": 1} | keys)).flows
    # as near as a round trip has to be; without the shift it is 6 % short
    assert resting_window(flow, 1.0, 1.0).shown == pytest.approx(np.mean(trips[1000:]), rel=0.05)


@pytest.mark.parametrize(
    ("changes", "rate", "rests"),
    [
        ({"transport.initial_window_segments": 21}, 40.0, 42.0),  # between the bounds, where it stays
        ({"traffic.source": "poisson", "traffic.load_kbps": 100.0}, 40.0, 41.5),
        ({"transport.receive_window_segments": 20}, 40.0, 20.0),
        ({"transport.alpha": 0.95, "radio.per": 0.1}, 40.0, 4.0),  # the part of 4.997 is above alpha
    ],
)
def test_alpha_to_beta_segments_of_vegas_wait(changes, rate, rests):
    """A path holds 40 segments, of which one to three more may wait."""
    keys = {"traffic.source": "greedy", "transport.variant": "vegas", "network.peripherals": 1}
    keys |= {"transport.receive_window_segments": 200, "transport.initial_window_segments": 2}
    keys |= {"transport.alpha": 1.0, "transport.beta": 3.0, "transport.delayed_ack": False}
    keys |= {"link.arq": "none", "radio.model": "constant"}
    (flow,) = network_of(bt.Scenario().changed(keys | changes)).flows
    assert resting_window(flow, rate, 1.0).window == pytest.approx(rests)


# ------------------------------------------------------------------------ one connection over a chain of hops


def chain(name: str, **changes):
    return bt.load(f"chen-2004/{name}").with_(**changes)


def connection(window: int):
    """Return a connection that always has data, with this window."""
    scenario = chain("regular-4", transport__receive_window_segments=window)
    return network_of(in_tables(scenario)).flows[0]


def test_goodput_of_one_hop_is_the_rate_of_the_air():
    """ACK and first DH5 share a frame of 10 slots, POLL and the second one take 6; half of them are lost."""
    goodput = [mean(chain("regular-1", radio__ber=0.0, radio__per=per), "goodput_kbps") for per in (0.0, 0.5)]
    assert goodput[0] == pytest.approx(4000 / (16 * SLOT_S) / 1000, rel=1e-3)
    assert goodput[1] == pytest.approx(goodput[0] / 2.0, rel=0.01)


def followed_period(room: int) -> int:
    """Follow congestion avoidance by acknowledgements; return the segments delivered from loss to loss."""
    window, delivered = Fraction(room + 1, 2), 1  # the acknowledgement that ends the recovery
    while window < room + 1:
        window += 1 / window
        window = window.limit_denominator(10**6)
        delivered += 1
    return delivered + 2 * room  # the window before the lost one, and the duplicates after it


@pytest.mark.parametrize("room", [4, 6, 11, 16, 25])
def test_period_of_a_saw(room: int):
    found = saw(connection(64), 0.5, 1.0, room, 0.0, 0.0, batch=False)
    in_vain = saw(connection(64), 0.5, 1.0, room, 0.5, 0.0, batch=False)
    assert 1.0 / in_vain.fast_retransmits - 1.0 / found.fast_retransmits == pytest.approx(0.5)
    assert found.goodput / found.fast_retransmits == pytest.approx(followed_period(room), abs=1)
    assert found.losses == pytest.approx(1.0 / (followed_period(room) + 1.0), rel=0.02)
    assert room / 2 < found.rtt_s < found.window < room + 2


def test_a_window_that_fits_loses_nothing():
    for hops in (1, 2, 4):
        fits = chain("regular-4", network__hops=hops, radio__ber=1e-4)
        assert mean(fits.with_(transport__receive_window_segments=12), "segment_loss") == 0.0


@pytest.mark.parametrize("hops", [1, 2, 4])
@pytest.mark.parametrize("window", [3, 8, 14])
def test_little_where_nothing_is_lost(hops: int, window: int):
    found = bt.solve(chain("regular-1", network__hops=hops, transport__receive_window_segments=window))
    assert float(found.goodput_kbps.item() / 4 * found.rtt_s.item()) == pytest.approx(window, rel=1e-3)


def test_a_radio_that_never_changes_is_a_constant_one():
    constant = chain("regular-2", radio__ber=2e-4)
    alternating = chain("alternating-regular", network__hops=2, radio__ber_good=2e-4, radio__ber_bad=2e-4)
    for metric in ("goodput_kbps", "rtt_s"):
        assert mean(alternating, metric) == pytest.approx(mean(constant, metric), rel=1e-6)


def test_states_of_a_radio_share_the_time():
    """A segment of one hop goes by in the time of each state: rates are averaged over time."""
    rates = [mean(chain("regular-1", radio__ber=ber), "goodput_kbps") for ber in (1e-5, 5e-4)]
    alternating = chain("alternating-regular", radio__ber_good=1e-5, radio__ber_bad=5e-4)
    assert mean(alternating, "goodput_kbps") == pytest.approx(np.mean(rates), rel=2e-3)


@pytest.mark.parametrize("loss", [0.01, 0.2])
def test_lost_segments_use_no_station_behind_the_loss(loss: float):
    """Segments meet the lossy wire first, acknowledgements last; the share is by hand."""
    gateway = bt.load("suliman-2005/round-trips").changed({"network.outside_links[1].loss": loss})
    flow = network_of(in_tables(gateway)).flows[0]
    assert [visit.kind for visit in flow.forth] == ["wire", "port"]
    assert flow.arriving("segment") == ([1.0, 1.0 - loss], [1.0, 1.0])
    # behind one hop of packets that are lost independently, the others of a segment go on, or none
    lossy = chain("regular-2", radio__ber=0.0, radio__per=loss, link__arq="none")
    hops = network_of(in_tables(lossy)).flows[0]
    assert hops.arriving("packet")[0][1] == pytest.approx(1.0 - loss)
    assert hops.arriving("segment")[0][1] == pytest.approx((1.0 - loss) ** hops.forth[0].train.packets)


def test_losses_before_the_slowest_station_leave_it_its_capacity():
    """0.3 % of goodput, chosen after the result; it was 0.6 % too low."""
    lossy = bt.load("suliman-2005/round-trips").changed({"network.outside_links[1].loss": 0.005})
    near_simulation(lossy.changed({"run.duration_s": 6000.0, "run.warmup_s": 60.0}), goodput_kbps=0.003)


def test_a_segment_of_more_packets_than_the_queue_never_gets_through():
    """A full bucket lets all 22 packets out at once, as after a timeout: a queue of 20 loses two of them."""
    keys = {"network.peripherals": 2, "network.flows": "uplink", "link.packets": ["DH1"]}
    keys |= {"transport.mss_bytes": 536, "flow_control.enabled": True, "flow_control.bucket_bytes": 1500}
    keys |= {"flow_control.token_rate_kbps": 100.0, "traffic.source": "greedy"}
    lost, kept = ({"flow_control.baseband_packets": places} for places in (20, 22))
    answer = bt.solve(bt.Scenario().changed(keys | lost))
    assert not answer["goodput_kbps"].values.any()
    run = {"run.duration_s": 60.0, "run.replications": 1}
    assert not bt.simulate(bt.Scenario().changed(keys | lost | run))["goodput_kbps"].values.any()
    assert (bt.solve(bt.Scenario().changed(keys | kept))["goodput_kbps"].values > 0.0).all()
    slow = keys | lost | {"flow_control.bucket_bytes": 300}  # tokens divide the segment
    assert (bt.solve(bt.Scenario().changed(slow))["goodput_kbps"].values > 0.0).all()


LONE = {"network.peripherals": 1, "network.flows": "downlink"}
EDR = {"link.packets": ["2-DH5", "2-DH3", "2-DH1"]}
BURSTS = LONE | EDR | {"traffic.source": "ibp", "traffic.scv": 4.0, "traffic.load_kbps": 140.0}
MESSAGES = {"network.flows": "downlink", "traffic.load_kbps": 20.0, "traffic.message_bytes": 4380}
AHEAD = [
    # the last message of an odd number waits for the next burst: 94 % too long if all were single ones
    BURSTS,
    BURSTS | {"traffic.scv": 2.0, "traffic.load_kbps": 60.0, "traffic.message_bytes": 2920}
    | {"transport.delayed_ack": False},
    # a segment of five frames and its end of two share an acknowledgement: 24 % too long with two of five
    LONE | MESSAGES | {"traffic.message_bytes": 1800, "transport.windows": "segments"},
    # a third segment waits for the timer, and not in the window: 15 % too short
    MESSAGES | {"transport.receive_window_segments": 6},
    # 80 ms at hosts hold no segments of a message back
    MESSAGES | EDR | {"network.peripherals": 4, "traffic.load_kbps": 48.0, "traffic.message_bytes": 2920}
    | {"transport.receive_window_segments": 5, "transport.delayed_ack": False}
    | {"link.packets": ["2-DH3", "2-DH1"], "link.baseband_delay_s": 0.02},
    # two bridges and a central between them hold each packet for 50 ms, each way: 42 % too short
    {"network.topology": "chain", "network.hops": 3, "network.flows": "end-to-end"}
    | {"traffic.load_kbps": 1.0, "transport.delayed_ack": False, "link.baseband_delay_s": 0.05},
    # 17 segments of nine packets, with room for 149: an acknowledgement of two lets all of them out
    LONE | {"network.flows": "uplink", "link.packets": ["DH3"], "traffic.source": "greedy"}
    | {"transport.receive_window_segments": 17, "flow_control.baseband_packets": 149},
]  # fmt: skip


@pytest.mark.parametrize("changes", AHEAD)
def test_segments_ahead_and_behind_in_messages_bursts_and_windows(changes):
    """Errors are at most 2.5 %. The tolerance, chosen after they were seen, is below the aim of 5 %."""
    runs = {"run.duration_s": 480.0, "run.warmup_s": 60.0, "run.replications": 20}
    near_simulation(bt.Scenario().changed(changes | runs), rtt_s=0.04)


@pytest.mark.parametrize(
    ("changes", "slots"),
    [
        # five frames of DH5 with data, whose answer is a NULL or once an acknowledgement of five slots
        (LONE | {"link.packets": ["DH5"], "traffic.load_kbps": 700.0, "traffic.message_bytes": 1000}, 34.0),
        # only the link with data is polled: two frames of 3-DH5, and acknowledgements of five slots
        (
            {"network.peripherals": 4, "network.flows": [{"from": "c1", "to": "p1.1"}]}
            | {"link.packets": ["3-DH5"], "traffic.source": "greedy", "polling.discipline": "ldq"},
            16.0,
        ),
    ],
)
def test_slots_of_full_segments(changes, slots):
    asked = bt.Scenario().changed(changes | {"transport.delayed_ack": False})
    assert mean(asked, "goodput_kbps") == pytest.approx(1460 * 8e-3 / (slots * SLOT_S), rel=0.001)


@pytest.mark.parametrize("source", ["poisson", "periodic"])
def test_an_acknowledgement_of_four_segments_waits_for_three_or_its_timer(source):
    """From the law of the segments in a timer."""
    often, timer = 9.0, 0.2
    load = {"traffic__source": source, "traffic__load_kbps": often * 11.68, "transport__ack_delay_s": timer}
    at_once, delayed = (
        float(bt.solve(wire(**load, transport__delayed_ack=True, transport__ack_every_segments=n)).rtt_s[0])
        for n in (1, 4)
    )
    exact = poisson.sf(np.arange(3), often * timer).sum() / often if source == "poisson" else timer
    assert delayed - at_once == pytest.approx(exact, rel=1e-3)


def test_over_wires_alone_only_senders_have_a_baseband():
    plain, slow = (
        float(bt.solve(wire(link__baseband_delay_s=s, traffic__source="poisson")).rtt_s[0])
        for s in (0.0, 0.01)
    )
    assert slow - plain == pytest.approx(0.02, abs=1e-9)


def test_without_nagle_short_segments_share_an_acknowledgement_of_two_full_ones() -> None:
    """Four messages of 500 bytes, as the receiver waits for 2,000: round trips were 59 % too short."""
    keys = {
        "network.peripherals": 1, "network.flows": "uplink", "traffic.source": "poisson",
        "traffic.load_kbps": 100.0, "traffic.message_bytes": 500, "transport.mss_bytes": 1000,
        "transport.nagle": False, "run.duration_s": 200.0, "run.warmup_s": 10.0,
    }  # fmt: skip
    scenario = bt.Scenario().changed(keys)
    simulated = float(bt.simulate(scenario)["rtt_s"].mean())
    assert float(bt.solve(scenario)["rtt_s"].mean()) == pytest.approx(simulated, rel=0.1)
