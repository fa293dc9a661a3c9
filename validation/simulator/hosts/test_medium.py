"""Outside links: turns of the ports, loss in blocks, interruptions.

Statistical checks have a fixed seed; the false-alarm rate stated is that of a fresh seed.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_tables import NEVER, pool, tables, zeros

SIZE, HEADER = 90, 10
POOL = 4096
ON_WIRE = 100_000
"""Time on the wire of a packet of SIZE + HEADER bytes at 8 Mbit/s (ns)."""


def new_medium(plain, ports=1, limit=1000, **fields):
    """A medium with these ports, each with a queue and a flow of its own, and no propagation delay."""
    records = plain.records
    of_ports = dict.fromkeys(["ports", "queues", "queue_statistics", "flow_statistics"], ports)
    sim = tables(records, clock=1, pools=3, timers=2, lines=1, **of_ports)
    sim.packets, sim.segments = (pool(records, name, POOL) for name in ("packets", "segments"))
    sim.heap, sim.streams = np.arange(2), plain.random_streams.make_streams(1, 0, 2)
    sim.media = zeros(records.medium_dtype, 1)
    sim.pools.left = POOL
    sim.timers.due, sim.timers.place = NEVER, np.arange(2)
    sim.queues.limit = limit
    sim.ports.kind, sim.ports.line, sim.media.serving = records.OUTSIDE, records.NOTHING, records.NOTHING
    sim.media.rate, sim.media.header, sim.media.ports, sim.media.stream = 8e6, HEADER, ports, 1
    for name, value in fields.items():
        sim.media[0][name] = value
    return sim


def send(plain, sim, port, now):
    """Let a packet of the port's flow enter."""
    index, packet = (
        plain.queues.take(sim.pools[1], sim.segments),
        plain.queues.take(sim.pools[0], sim.packets),
    )
    segment = sim.segments[index]
    segment.flow, segment.kind, segment.travelling, segment.damaged = port, plain.records.DATA, 1, False
    sim.packets[packet].segment, sim.packets[packet].bytes = index, SIZE
    plain.medium.enter(sim, port, packet, now)


def play(plain, sim, arrivals):
    """Let packets enter at `arrivals` (time, port); return (time, port, segment) of what came across."""
    crossed = []

    def on_segment_crossed(sim, index, now):
        crossed.append((int(now), int(sim.segments[index].flow), int(index)))
        plain.queues.give_back(sim.pools[1], sim.segments, index)

    arrivals = list(arrivals)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain.medium, "on_segment_crossed", on_segment_crossed)
        while arrivals or sim.timers[0].due < NEVER:
            if arrivals and arrivals[0][0] <= sim.timers[0].due:
                now, port = arrivals.pop(0)
                send(plain, sim, port, now)
            else:
                now = int(sim.timers[0].due)
                plain.timers.cancel(sim, 0)
                plain.medium.on_timer(sim, 0, now)
    return crossed


def test_the_time_on_the_wire_is_rounded_to_the_nearest_nanosecond(plain):
    # 800 bits at 3 Mbit/s and at 2.97 Mbit/s: 266,666.67 and 269,360.27 ns
    for rate, time in ((3e6, 266_667), (2.97e6, 269_360)):
        assert play(plain, new_medium(plain, rate=rate), [(0, 0)])[0][0] == time


@pytest.mark.parametrize(
    ("ports", "arrivals", "order"),
    [
        (1, [0] * 3, [0, 0, 0]),
        (2, [0] * 4 + [1] * 4, [0, 1] * 4),  # the directions of a half-duplex link
        (3, [0] * 3 + [2] * 2, [0, 2, 0, 2, 0]),  # a port with nothing to send is passed over
    ],
)
def test_ports_take_turns_and_one_packet_is_sent_at_a_time(plain, ports, arrivals, order):
    crossed = play(plain, new_medium(plain, ports=ports), [(0, port) for port in arrivals])
    assert [port for _, port, _ in crossed] == order
    assert [time for time, _, _ in crossed] == [k * ON_WIRE for k in range(1, len(order) + 1)]
    for port in range(ports):
        segments = [segment for _, sent_by, segment in crossed if sent_by == port]
        assert segments == sorted(segments), "in the order in which they came"


def test_the_packet_on_the_wire_takes_no_place_in_the_buffer(plain):
    sim = new_medium(plain, limit=2)
    crossed = play(plain, sim, [(0, 0)] * 5)
    assert len(crossed) == 3, "one on the wire and two that wait"
    assert sim.flow_statistics[0].refused_on_the_way == sim.queue_statistics[0].refused == 2


networks = st.integers(1, 3).flatmap(
    lambda ports: st.tuples(
        st.just(ports),
        st.lists(st.tuples(st.integers(0, 2 * ON_WIRE), st.integers(0, ports - 1)), max_size=60),
    )
)


@given(network=networks)
def test_the_wire_never_rests_while_a_packet_waits(plain, network):
    ports, gaps = network
    times = np.cumsum([gap for gap, _ in gaps]).tolist()
    crossed = play(plain, new_medium(plain, ports), zip(times, [port for _, port in gaps], strict=True))
    end, expected = 0, []
    for time in times:  # the ends of service of a single server do not depend on whose turn it is
        end = max(end, time) + ON_WIRE
        expected.append(end)
    assert [time for time, _, _ in crossed] == expected


@given(loss=st.floats(0.0, 1.0), block=st.integers(1, 60), size=st.integers(1, 1600))
def test_a_packet_survives_if_all_its_blocks_do(plain, loss, block, size):
    survives = 1.0
    for _ in range(0, size, block):
        survives *= 1.0 - loss
    assert plain.medium.loss_probability(loss, block, size) == pytest.approx(1.0 - survives, abs=1e-12)
    assert plain.medium.loss_probability(loss, 0, size) == loss


def test_a_transmission_in_progress_survives_an_interruption_and_the_next_waits(plain):
    sim = new_medium(plain, up_mean=1.0, down_mean=1e7)  # up for a moment, then down as good as for ever
    crossed = play(plain, sim, [(0, 0)] * 2)
    assert crossed[0][0] == ON_WIRE, "it is up at time 0"
    # the state after the transmission is the first draw of the medium's stream, the rest of the interruption
    # the second
    stream = new_medium(plain).streams[1]
    assert plain.random_streams.uniform(stream) > 1e-6, "it is down"
    comes_up = ON_WIRE + int(plain.random_streams.exponential(stream, 1e7))
    assert crossed[1][0] == comes_up + ON_WIRE


@pytest.mark.parametrize("every", [1e9, 1e6, 1e3])
def test_the_medium_is_up_for_its_share_of_looks_whether_stays_are_longer_or_shorter_than_the_time_between(
    plain, every
):
    up, down, looks = 3e6, 1e6, 6000
    sim = new_medium(plain, up_mean=up, down_mean=down)
    seen = sum(plain.medium.is_up(sim, sim.media[0], int(look * every)) for look in range(1, looks + 1))
    # Neighbouring looks are correlated by r = exp(-every (1/u + 1/d)), and the variance is (1 + r) / (1 - r)
    # times that of independent ones; as it is up at time 0, the mean is too high by less than 1 / (1 - r).
    share = up / (up + down)
    kept = np.exp(-every * (1 / up + 1 / down))
    deviation = (looks * share * (1 - share) * (1 + kept) / (1 - kept)) ** 0.5
    # 4.06 deviations: false-alarm rate below 5e-5
    assert abs(seen - looks * share) < 4.06 * deviation + 1 / (1 - kept)
