"""The parts of the bulk transfers' orbit: its ends, its events, and the compiled loop beside plain Python."""

from inspect import unwrap

import numpy as np
import pytest

import btqueue as bt
from btqueue.network.bulk_transfer import receiver, sender
from btqueue.network.bulk_transfer.events import ARRIVAL, drop_first, first_time, schedule
from btqueue.network.bulk_transfer.orbit import Orbit
from btqueue.network.bulk_transfer.path import paths_of
from btqueue.network.bulk_transfer.records import NO_END, RECEIVER, SENDER, SENT, State, at_rest, records
from btqueue.network.bulk_transfer.rules import SACK
from btqueue.network.bulk_transfer.steps import play
from btqueue.transport.compilation import interpreted
from btqueue.transport.newreno_sender import NO_SEGMENT

CONNECTIONS = "suliman-2005/connections"
SESSIONS = "avancha-2002/wlan-chargen"


def orbit_of(name: str, **changes) -> Orbit:
    scenario = bt.load(name).with_(**changes)
    return Orbit(paths_of(scenario), scenario.transport)


def everything(state: State) -> list[bytes]:
    """Return all that a state holds, as bytes: not a number is equal to itself."""
    return [array.tobytes() for array in state]


def the_windows_let_out(own, flight, now: float) -> list[int]:
    numbers = []
    while (number := sender.next_number(own, flight)) != NO_SEGMENT:
        sender.note_sent(own, flight, number, now)
        numbers.append(number)
    return numbers


def test_selective_recovery_repairs_two_holes_without_going_back():
    own, flight = records(1, SENDER)[0], records(128, SENT)
    own.variant, own.receive_window, own.written, own.timestamps = SACK, 100, NO_END, True
    own.cwnd, own.ssthresh, own.rto, own.min_rto, own.max_rto = 10.0, 5.0, 3.0, 1.0, 64.0
    own.smoothed, own.deadline, own.recover, own.repaired, own.rescued = np.nan, np.inf, -1, -1, -1
    assert the_windows_let_out(own, flight, 0.0) == list(range(10))
    peer, early = records(1, RECEIVER)[0], np.zeros((128, 2), np.int64)
    peer.every, peer.delay_s, peer.deadline = 1, 0.2, np.inf
    sent: list[int] = []
    for number in (n for n in range(10) if n not in (0, 1)):
        assert receiver.take(peer, early, number, 0.0, 0.1)
        blocks = early[: min(peer.blocks, 3)]
        resend, _ = sender.acknowledge(own, flight, peer.expected, peer.echo, blocks, 0.1)
        if resend != NO_SEGMENT:
            sender.note_sent(own, flight, resend, 0.1)
            sent.append(resend)
        sent += the_windows_let_out(own, flight, 0.1)
    assert sent[:2] == [0, 1]
    assert own.ssthresh == 5.0
    assert set(sent[2:]) == set(range(10, 10 + len(sent) - 2))


def test_receiver_reports_the_most_recent_block_first_and_joins_neighbours():
    own, early = records(1, RECEIVER)[0], np.zeros((16, 2), np.int64)
    own.every, own.deadline = 2, np.inf
    for number, blocks in (
        (1, [[1, 2]]),
        (3, [[3, 4], [1, 2]]),
        (5, [[5, 6], [3, 4], [1, 2]]),
        (2, [[1, 4], [5, 6]]),
    ):
        assert receiver.take(own, early, number, 0.0, 0.0), "out of order: acknowledged at once"
        assert early[: own.blocks].tolist() == blocks
    assert receiver.take(own, early, 0, 0.0, 0.0), "a gap is filled"
    assert (own.expected, early[: own.blocks].tolist()) == (4, [[5, 6]])
    receiver.acknowledged(own)
    assert receiver.take(own, early, 4, 0.0, 0.0)
    assert (own.expected, own.blocks) == (6, 0)
    receiver.acknowledged(own)
    assert not receiver.take(own, early, 6, 0.0, 1.0), "the first of two in order waits"
    assert receiver.take(own, early, 7, 0.0, 1.0)


def test_events_come_in_order_of_time_and_of_entry():
    state = orbit_of(CONNECTIONS).state
    while first_time(state) < np.inf:
        drop_first(state)
    times = np.random.default_rng(1).integers(0, 8, 60)
    for number, time in enumerate(times):
        schedule(state, float(time), ARRIVAL, number)
    found = []
    while first_time(state) < np.inf:
        found.append((int(state.events[0].time), int(state.events[0].argument)))
        drop_first(state)
    assert found == sorted((int(time), number) for number, time in enumerate(times))


@pytest.mark.skipif(interpreted(), reason="compilation is switched off")
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (CONNECTIONS, {"radio__model": "constant", "radio__per": 0.1, "polling__discipline": "fep"}),
        (CONNECTIONS, {"link__node_buffer_bytes": 20_000, "transport__variant": "reno"}),
        (SESSIONS, {}),
    ],
)
def test_the_compiled_loop_does_what_plain_python_does(name: str, changes: dict):
    compiled, plain = orbit_of(name, **changes), orbit_of(name, **changes)
    play(compiled.state, compiled.rules, 120, 1e3, -1)
    unwrap(play)(plain.state, plain.rules, 120, 1e3, -1)
    assert compiled.ended >= 120
    assert everything(compiled.state) == everything(plain.state)


def test_an_orbit_goes_on_unchanged_where_arrays_have_to_grow():
    usual, cramped = orbit_of(CONNECTIONS), orbit_of(CONNECTIONS)
    cramped.state = at_rest(cramped.rules, bt.load(CONNECTIONS).transport, cramped.rules.burst, 16)
    for orbit in (usual, cramped):
        orbit.play(1500, 1e3)
    assert usual.state.senders["lost"].sum() > 0
    assert len(cramped.state.items) > cramped.rules.burst
    assert cramped.state.samples.shape[2] > 16
    for name in ("clock", "piconet", "senders", "receivers", "queues", "nodes", "counts"):
        assert getattr(usual.state, name).tobytes() == getattr(cramped.state, name).tobytes(), name
