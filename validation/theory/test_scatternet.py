"""The scatternet's model: limits, invariants, and its parts against exact values."""

from itertools import pairwise

import numpy as np
import pytest

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.channel import TwoStateChannel
from btqueue.network.scatternet.losses import alike_links
from btqueue.network.scatternet.network import scatternet_of
from btqueue.network.scatternet.population import follow_level, idle_cycles, populations, without_limits
from btqueue.network.scatternet.sender import Start, messages_of
from btqueue.network.scatternet.server import Level, Population
from btqueue.scenario import NotBuiltYet
from btqueue.transport import LossProcess, in_series, lockstep_rates


def scenario(**changes):
    return bt.load("venugopal-2006/scatternet-1").with_(**changes)


@pytest.fixture(scope="module")
def net():
    return without_limits(scatternet_of(scenario()))


def test_a_server_of_constant_speed_is_an_m_m_1_queue():
    sizes = np.arange(1, 200)
    levels = tuple(Level(float(k), 10.0, 1.0, np.array([k / 10.0])) for k in sizes)
    server = Population(levels, idle_cycles=1.0, largest=199)
    assert server.inside(6.0).mean == pytest.approx(0.6 / 0.4)
    trips = server.round_trips(6.0)
    assert trips.mean == pytest.approx(1 / (10.0 - 6.0))
    # An exponential sojourn is replaced by its mean given k: only the mean is that of the M/M/1 queue.
    assert trips.quantile(0.9) == pytest.approx(np.log(10.0) / 4.0, rel=0.15)


def test_a_server_that_grows_with_its_segments_is_a_pure_delay():
    levels = tuple(Level(float(k), k / 0.5, 1.0, np.array([0.5])) for k in range(1, 60))
    assert Population(levels, 1.0, 59).round_trips(20.0).mean == pytest.approx(0.5)


def test_what_exceeds_the_windows_waits_outside():
    server = Population((Level(1.0, 10.0, 1.0, np.array([0.1])),), 1.0, 1)
    assert server.inside(9.0).law == pytest.approx([0.1, 0.9])
    assert server.inside(11.0).law == pytest.approx([0.0, 1.0])
    assert server.round_trips(11.0).mean == pytest.approx(0.1)


def test_alike_links_are_links_in_series():
    channel = TwoStateChannel(ber_good=0.0, ber_bad=0.0, good_s=0.4375, bad_s=0.0558)
    data, ack = np.array([0.09, 0.7]), np.array([0.01, 0.15])
    lumped = alike_links(data, ack, channel, 4)
    apart = in_series([LossProcess(data, ack, channel.transition)] * 4)
    assert (lumped.channel_states, apart.channel_states) == (5, 16)
    numbers = {"window": 3, "rtt": 0.12, "segment_spacing": 0.02}
    one, other = (lockstep_rates(loss=loss, **numbers) for loss in (lumped, apart))
    assert one.goodput == pytest.approx(other.goodput, rel=1e-8)
    assert one.timeouts == pytest.approx(other.timeouts, rel=1e-8)


def test_little_and_the_slots_bound_every_population(net):
    for size in (1, 4, 16):
        level = follow_level(net, size, 8)
        assert level.population <= size + 1e-9
        assert level.throughput <= net.flows * net.air_capacity
        assert level.population == pytest.approx(level.throughput * level.rtts.mean(), rel=1e-9)


def test_a_lone_segment_takes_at_least_its_slots(net):
    ring = net.ring
    pace = sum(piece.packet.slots + 1 for piece in ring.data)
    # the first hop packet by packet, then the last packet's three, then four hops of the acknowledgement
    least = (pace + 3 * ring.data[-1].packet.slots + 4 * ring.ack_slots) * SLOT_S
    assert follow_level(net, 1, 1).rtts.min() > least


def test_the_empty_network_polls_without_data(net):
    assert net.idle_cycle_s < 1.0 / idle_cycles(net, 8) < net.idle_period_s


def test_populations_grow_until_the_windows_are_full(net):
    found = populations(net, 8)
    assert list(found.sizes) == sorted(found.sizes)
    rates = np.array([1.0, 5.0, 15.0, 24.0])
    trips = [found.round_trips(rate) for rate in rates]
    assert all(one.mean < other.mean for one, other in pairwise(trips))
    assert all(trip.quantile(0.5) <= trip.quantile(0.9) for trip in trips)


@pytest.mark.parametrize("start", ["even", "irregular"])
def test_messages_come_at_their_mean_rate(start: Start):
    messages = messages_of(start, 0.1, connection=3, phase_s=0.0)
    assert messages.until(200.0) == pytest.approx(2000, rel=0.01)


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
    assert float(found.goodput_kbps.mean()) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"network__piconets": 3}, "network.piconets"),
        ({"network__bridge": "MS"}, "network.bridge"),
        ({"polling__bridge_schedule": "sniff"}, "polling.bridge_schedule"),
        ({"link__arq": "unlimited"}, "link.arq"),
        ({"polling__residence": "cycle"}, "polling.bridge_buffer_packets"),
        ({"polling__residence": "complete"}, "polling.residence"),
    ],
)
def test_what_the_model_does_not_cover_is_refused_by_name(change: dict, key: str):
    with pytest.raises(NotBuiltYet) as caught:
        bt.solve(scenario(**change))
    assert key in str(caught.value).replace("[", "").replace("] ", ".")


def test_a_longer_stay_costs_goodput():
    changes = {"polling__residence": "cycle", "polling__bridge_buffer_packets": 10}
    longer, usual = (float(bt.solve(scenario(**c)).goodput_kbps.mean()) for c in (changes, {}))
    assert longer < 0.9 * usual
