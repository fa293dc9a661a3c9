"""The ring's model: its compiled recursion against a plain one, limits, and invariants."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import pytest

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.opening import new_sender
from btqueue.network.ring_piconet import orbit, population
from btqueue.network.ring_piconet.ends import PERIOD, gap
from btqueue.network.ring_piconet.model import answer
from btqueue.network.ring_piconet.network import RingNetwork, network_of
from btqueue.network.ring_piconet.radio import first_beyond, slow_start
from btqueue.network.scatternet.peripheral import Flow, Packet, Peripheral
from btqueue.network.scatternet.sender import Messages, PacedSender, TcpEnd
from btqueue.transport import LossProcess, lockstep_rates
from btqueue.transport.newreno_chain import UNLIMITED


def scenario(**changes):
    return bt.load("venugopal-2006/piconet").with_(run__jitter_s=0.005, **changes)


def solve(**changes) -> dict:
    return answer(scenario(**changes))[0]


@dataclass
class PlainRing:
    """The same ring in plain Python, from the peripherals of the scatternet's model."""

    net: RingNetwork
    peripherals: list[Peripheral]
    ends: list[TcpEnd]
    now: float = 0.0

    def cycle(self) -> None:
        for peripheral in self.peripherals:
            self.visit(peripheral)

    def visit(self, own: Peripheral) -> None:
        for _ in range(self.net.ring.limit):
            own.catch_up(self.now)
            polled = not own.downlink
            self.now += (1 if polled else own.downlink[0].slots) * SLOT_S
            if not polled:
                own.arrive(self.now)
            own.catch_up(self.now)
            empty = not own.uplink
            self.now += (1 if empty else own.uplink[0].slots) * SLOT_S
            if not empty:
                packet = own.depart(self.now)
                segment = packet.segment
                target = (segment.flow.pair + segment.is_data) % len(self.peripherals)
                relayed = Packet(packet.slots, segment, self.now)
                self.peripherals[target].downlink.append(relayed)
            elif polled:
                return


def plain_ring(asked, phase_s: float) -> PlainRing:
    net, sender = network_of(asked), new_sender(asked)
    known = {item.name: getattr(sender, item.name) for item in fields(sender)}
    flows = [Flow(k) for k in range(net.flows)]
    ends, places = [], []
    for k in range(net.flows):
        paced = PacedSender(**known, messages=Messages("burst", 0.0, k * phase_s))
        end = TcpEnd(paced, flows[k], flows[k - 1], len(net.ring.data), len(net.ring.ack))
        ends.append(end)
        places.append(Peripheral(net.ring, end))
    return PlainRing(net, places, ends)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"flow_control__buffer_packets": 5},
        {"flow_control__drop": "segment", "flow_control__buffer_packets": 12},
        {"network__peripherals": 5, "flow_control__token_rate_kbps": 90, "flow_control__baseband_packets": 6},
        {"network__peripherals": 1, "polling__limit": 1},
    ],
)
def test_the_compiled_recursion_is_the_plain_one(changes: dict, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(orbit, "SETTLING_SEGMENTS", 0)
    monkeypatch.setattr(orbit, "HORIZON_SEGMENTS", 150)
    asked = scenario(**changes)
    net = network_of(asked)
    found = orbit.run(net, new_sender(asked), 8, 0.0, 0)
    plain = plain_ring(asked, orbit.PHASES_S[0])
    while plain.now < found.elapsed - 1e-9:
        plain.cycle()
    ends = plain.ends
    assert plain.now == pytest.approx(found.elapsed)
    assert sum(end.counters()[0] for end in ends) == found.delivered
    assert sum(end.counters()[1] for end in ends) == found.sums["timeouts"]
    assert sum(end.flow.sent for end in ends) == found.sums["sent"]
    assert (
        sum(place.tally.refused_at_buffer for place in plain.peripherals) == found.sums["refused_at_buffer"]
    )
    rtts = np.concatenate([end.rtts for end in ends])
    assert np.sort(rtts) == pytest.approx(np.sort(found.rtts))


def test_gaps_are_exponential_quantiles_in_an_irregular_order():
    for sequence in (1, 2, 14):
        gaps = np.array([gap(sequence, count) for count in range(PERIOD)])
        assert gaps.mean() == pytest.approx(1.0, abs=2e-3)
        assert gaps.var() == pytest.approx(1.0, abs=0.02)
        assert len(set(np.round(gaps, 12))) == PERIOD
        for lag in (1, 2, 3):
            assert abs(np.corrcoef(gaps[:-lag], gaps[lag:])[0, 1]) < 0.06
        # counts in intervals vary as those of a Poisson process do
        counts = np.histogram(np.cumsum(gaps), np.arange(0.0, 3200.0, 8.0))[0]
        assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.2)


def test_queues_that_are_too_small_grow(monkeypatch: pytest.MonkeyPatch):
    asked = scenario()
    before = orbit.run(network_of(asked), new_sender(asked), 8, 0.0, 0)
    monkeypatch.setattr(orbit, "PLACES", 4)
    assert orbit.run(network_of(asked), new_sender(asked), 8, 0.0, 0).elapsed == before.elapsed
    monkeypatch.setattr(population, "PLACES", 4)
    level = population.follow_level(network_of(asked), 32, 32, 1)
    assert level.population == pytest.approx(32.0, rel=0.05)


def test_little_and_the_slots_bound_every_population():
    net = network_of(scenario())
    levels = population.populations(net, 8).levels
    throughputs = [level.throughput for level in levels]
    assert throughputs[0] < throughputs[-1] <= net.flows * net.air_capacity * 1.01
    for level in levels:
        assert level.population == pytest.approx(level.throughput * level.rtts.mean(), rel=1e-9)


def test_a_window_of_one_is_its_round_trip():
    greedy: Callable[..., dict] = partial(solve, traffic__source="greedy", flow_control__enabled=False)
    one = greedy(transport__receive_window_segments=1)
    assert one["goodput_kbps"] / 11.68 * one["rtt_s"] == pytest.approx(1.0, rel=0.01)
    assert one["segment_loss"] == one["timeouts_per_s"] == 0.0
    assert one["goodput_kbps"] < network_of(scenario()).air_capacity * 11.68


def test_a_light_load_is_carried_at_the_round_trip_of_a_lone_segment():
    light = solve(traffic__load_kbps=1.0)
    assert light["goodput_kbps"] == pytest.approx(1.0)
    assert light["throughput_kbps"] == pytest.approx(1.0, rel=1e-3)
    alone = population.follow_level(network_of(scenario()), 1, 1, 1)
    assert light["rtt_s"] == pytest.approx(alone.rtts.mean(), rel=0.02)


def test_round_trips_grow_with_the_load():
    found = [solve(traffic__load_kbps=load)["rtt_s"] for load in (20, 60, 100, 140)]
    assert found == sorted(found)


def test_a_radio_without_errors_is_a_perfect_one():
    assert solve(radio__model="constant", radio__ber=0.0)["rtt_s"] == solve()["rtt_s"]
    rare = solve(radio__model="constant", radio__ber=1e-9)
    assert rare["goodput_kbps"] == pytest.approx(solve()["goodput_kbps"], rel=1e-3)


def test_goodput_falls_with_the_bit_error_rate():
    rates = [1e-6, 3e-6, 1e-5, 3e-5, 1e-4]
    found = [solve(radio__model="constant", radio__ber=rate)["goodput_kbps"] for rate in rates]
    assert found == sorted(found, reverse=True)
    assert found[0] > 100.0 > 1.0 > found[-1]


def test_a_radio_that_lets_nothing_through_stalls():
    assert solve(radio__model="constant", radio__ber=1e-2)["goodput_kbps"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("name", ["piconet", "piconet-errors"])
def test_a_larger_token_buffer_is_no_worse(name: str):
    def goodput(places: int) -> float:
        asked = bt.load(f"venugopal-2006/{name}").with_(
            network__peripherals=6,
            flow_control__token_rate_kbps=80,
            traffic__load_kbps=80,
            flow_control__buffer_packets=places,
            run__jitter_s=0.005,
        )
        return answer(asked)[0]["goodput_kbps"]

    found = [goodput(places) for places in (5, 10, 20)]
    assert found == sorted(found)


def test_the_first_refused_segment_of_a_slow_start():
    assert [first_beyond(room) for room in (1, 2, 3)] == [3, 7, 11]
    roomy = slow_start(
        scenario(flow_control__enabled=False), network_of(scenario(flow_control__enabled=False))
    )
    assert roomy.room == UNLIMITED
    tight = scenario(flow_control__buffer_packets=5)
    assert slow_start(tight, network_of(tight)).room <= 3


def test_room_on_the_path_limits_the_chain():
    loss = LossProcess.independent(0.05, 0.01)
    solve_with = partial(lockstep_rates, window=6, loss=loss, rtt=0.1)
    free = solve_with()
    found = [solve_with(room=room) for room in (1, 2, 3, 4, 5, 6)]
    assert found[-1].goodput == pytest.approx(free.goodput)
    goodputs = [rates.goodput for rates in found]
    assert goodputs == sorted(goodputs)
    assert all(rates.segment_loss >= free.segment_loss - 1e-12 for rates in found)
    # Without radio errors and with room for one: one arrives, of the next two the second is refused.
    alone = lockstep_rates(window=4, loss=LossProcess.independent(1e-12), rtt=0.1, room=1)
    assert alone.timeouts > 0.0
    assert alone.goodput < 10.0


def test_buffers_too_small_for_any_segment_stall_the_connection():
    found = solve(
        flow_control__enabled=False,
        flow_control__baseband_packets=1,
        radio__model="constant",
        radio__ber=1e-5,
    )
    assert found["goodput_kbps"] == 0.0
    assert np.isnan(found["rtt_s"])
