"""The outbox: segments leave TCP after a random processing delay, in the order in which TCP sent them."""

import pytest

from btqueue.scenario import Scenario

MS = 1_000_000


@pytest.fixture
def sim(plain):
    # Silent sources: what is in the outbox was put there by the test.
    return plain.state.new_state(Scenario().with_(run__jitter_s=0.01, traffic__load_kbps=1e-3), 0)


def emit(plain, sim, number, now):
    plain.host.emit(sim, 0, 0, plain.records.DATA, number, now, now)


def released(plain, sim):
    """Let the outbox of peripheral 0 run empty; return (time, segment number) of what left it."""
    timer, left = plain.host.outbox_timer(0), []
    while (now := int(sim.timers[timer].due)) != plain.records.NEVER:
        left.append((now, int(sim.segments[sim.peripherals[0].outbox_head].number)))
        plain.timers.cancel(sim, timer)
        plain.host.on_outbox(sim, 0, now)
    return left


def test_segments_keep_their_order(plain, sim):
    for number in range(20):
        emit(plain, sim, number, now=5 * MS)
    left = released(plain, sim)
    assert [number for _, number in left] == list(range(20))
    times = [time for time, _ in left]
    assert times == sorted(times), "nobody overtakes, and time does not run back"
    assert times[0] >= 5 * MS
    assert times[-1] < 15 * MS, "each delay is below the largest"
    assert len(set(times)) > 1, "the delays are random"


def test_a_segment_into_an_empty_outbox_waits_for_its_own_delay_only(plain, sim):
    waits = []
    for number in range(50):
        now = (100 + 20 * number) * MS
        emit(plain, sim, number, now)
        ((time, _),) = released(plain, sim)
        waits.append(time - now)
    assert 0 <= min(waits) < max(waits) < 10 * MS
    # uniform on 0 to 10 ms: 4.06 deviations of the mean of 50, a false-alarm rate of 5e-5
    assert abs(sum(waits) / 50 - 5 * MS) < 4.06 * 10 * MS / 12**0.5 / 50**0.5


def test_without_jitter_there_is_no_outbox(plain):
    sim = plain.state.new_state(Scenario().with_(traffic__load_kbps=1e-3), 0)
    emit(plain, sim, 0, now=0)
    assert sim.peripherals[0].outbox_head == plain.records.NOTHING
    assert sim.flow_statistics[0].packets_sent == 5
