"""A TCP sender and its receiver in lock-step rounds, as a finite state machine.

All segments of a *round* leave together; they arrive in order and their ACKs are back one round-trip time
later, when the segments that those ACKs released leave as the next round. One *micro-step* decides the fate
of one segment: lost, delivered and acknowledged, or delivered with its ACK lost. The rules below are those of

* RFC 5681 (slow start, congestion avoidance, fast retransmit and fast recovery),
* RFC 6582 (NewReno's partial ACKs and its `recover` guard, with "cwnd = ssthresh" at a full ACK),
* RFC 6675 (`Variant.SACK`, in `sack_recovery`),
* RFC 6298 (one retransmission timer, restarted by every new ACK, doubled by every expiry),

with half the flight rounded down to whole segments for a threshold (with half segments goodput is up to 2 %
and fast retransmits up to 4 % higher, measured), a greedy source, and the retransmission timer firing at the
end of a round in which nothing is left in flight. With timestamps the first new ACK after a timeout ends the
backoff; without, the first that covers no segment sent twice (Karn's algorithm, RFC 6298 section 3).

A receiver may hold back the ACK of every other segment in order (RFC 5681, section 4.2) until the next
segment comes, or its timer. A timer longer than a round sees the next round first and matters only where
nothing else is in flight; a shorter one ends before the next round. The fate of an ACK that waits is drawn
with its segment: an ACK that leaves later, with another segment, has the fate drawn with that one.

Sequence numbers are counted in segments and kept relative to `snd_una`, so that the reachable states are
finite.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from btqueue.transport.newreno_sender import DUPLICATE_THRESHOLD
from btqueue.transport.tcp_law import Receiver
from tcp_chains import MAX_BACKOFF, sack_recovery

TIMER_RESTARTED = -1  # `age` of a timer restarted in the round under way: 0 at the round's end
ALREADY_ACKNOWLEDGED = -1  # a retransmission still on its way of a segment below snd_una


class Variant(StrEnum):
    """What a third duplicate ACK does, and which ACK ends fast recovery."""

    TAHOE = "tahoe"
    RENO = "reno"
    NEWRENO = "newreno"
    SACK = "sack"


class Fate(IntEnum):
    """What happens to one segment and its ACK."""

    LOST = 0
    ACKNOWLEDGED = 1
    ACK_LOST = 2


@dataclass(frozen=True)
class WindowLattice:
    """The values that cwnd can take; cwnd is held as an index into `value`.

    Index n is the whole number n; the further entries are the values that congestion avoidance visits from
    there. They are finitely many, because congestion avoidance always starts from a whole number and stops
    at the receive window.

    Attributes:
        value: the window at each index, in segments.
        segments: its integer part, the number of segments it allows in flight.
        successor: the index after one more ACK in congestion avoidance.
    """

    value: tuple[float, ...]
    segments: tuple[int, ...]
    successor: tuple[int, ...]


def window_lattice(window: int) -> WindowLattice:
    """Tabulate cwnd for a receive window of `window` segments.

    Fast recovery may inflate cwnd above the receive window, by one for every duplicate ACK; those whole
    numbers are included, and congestion avoidance takes them back to the receive window.
    """
    value = [float(n) for n in range(4 * window + 1)]
    successor = [min(n, window) for n in range(4 * window + 1)]
    for start in range(1, window):
        index, current = start, start + 1.0 / start
        while current < window:
            successor[index] = index = len(value)
            value.append(current)
            successor.append(index)
            current += 1.0 / current
        successor[index] = window
    return WindowLattice(tuple(value), tuple(int(v) for v in value), tuple(successor))


State = tuple

NOTHING_WAITS, ACK_WAITS, LOST_ACK_WAITS = range(3)  # `waiting`: the ACK held back, by its fate once sent


@dataclass(slots=True)
class Connection:
    """Sender, receiver and the segments under way; every sequence number is an offset from snd_una.

    Attributes:
        received: bit k is set when the receiver holds segment k.
        snd_nxt: next segment to send (below snd_max after a timeout: go-back-N).
        snd_max: one past the highest segment ever sent.
        cwnd: congestion window, an index into the `WindowLattice`.
        ssthresh: slow-start threshold, in segments.
        duplicates: duplicate ACKs in a row, up to the threshold; 0 in recovery, where they only inflate cwnd.
        in_recovery: fast recovery under way.
        recover: one past the highest segment sent when loss was last detected (0 once acknowledged).
        backoff: doublings of the retransmission timer.
        age: whole rounds since the timer was (re)started, or TIMER_RESTARTED.
        sacked: bit k is set when an ACK has reported segment k (0 but for SACK, as the next).
        high_rxt: one past the highest segment sent again in this recovery.
        rescued: RescueRxt of RFC 6675: no rescue retransmission until it is acknowledged.
        waiting: the ACK that the receiver holds back.
        burst: segments of this round whose fate is still open, in order.
        released: segments that leave in the next round.
    """

    received: int
    snd_nxt: int
    snd_max: int
    cwnd: int
    ssthresh: int
    duplicates: int
    in_recovery: bool
    recover: int
    backoff: int
    age: int
    sacked: int
    high_rxt: int
    rescued: int
    waiting: int
    burst: tuple[int, ...]
    released: tuple[int, ...]

    def freeze(self) -> State:
        """Return the state as a hashable tuple."""
        return (
            self.received, self.snd_nxt, self.snd_max, self.cwnd, self.ssthresh, self.duplicates,
            self.in_recovery, self.recover, self.backoff, self.age, self.sacked, self.high_rxt, self.rescued,
            self.waiting, self.burst, self.released,
        )  # fmt: skip


def first_state(window: int) -> State:
    """Return a recurrent state: the retransmission after a full window was lost.

    It can be reached from every other: without loss the window fills up, and then all of it may be lost.
    """
    return Connection(
        received=0, snd_nxt=1, snd_max=window, cwnd=1, ssthresh=max(window // 2, 2), duplicates=0,
        in_recovery=False, recover=window, backoff=1, age=0, sacked=0, high_rxt=0,
        rescued=sack_recovery.RESCUE_ALLOWED, waiting=NOTHING_WAITS, burst=(0,), released=(),
    ).freeze()  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One micro-step: where it leads and what it earns.

    Attributes:
        state: the state after it.
        delivered: segments that the receiver handed to its application, in order.
        fast_retransmit: the third duplicate ACK arrived.
        acks: ACKs that reached the sender.
        window: cwnd in segments once the fate of the segment, but no timeout, was acted on.
        round_ended: it was the last segment of its round; one round-trip time passes.
        held_up: nothing but the delayed ACK that arrived released the next round: its delay passes, too.
        timeout: None, or (backoff, age) of the timer that then expired.
    """

    state: State
    delivered: int
    fast_retransmit: bool
    acks: int
    window: float
    round_ended: bool
    held_up: bool
    timeout: tuple[int, int] | None


@dataclass(frozen=True)
class SenderRules:
    """The protocol: a pure function from a state and a fate to an outcome.

    Attributes:
        window: receive window in segments.
        variant: TCP variant.
        lattice: the values of cwnd.
        timestamps: whether every new ACK ends a backoff.
        receiver: when it acknowledges.
    """

    window: int
    variant: Variant
    lattice: WindowLattice
    timestamps: bool = True
    receiver: Receiver = Receiver.AT_ONCE

    def step(self, state: State, fate: Fate) -> Outcome:
        """Decide the fate of the first segment of the burst under way."""
        conn = Connection(*state)
        segment, conn.burst = conn.burst[0], conn.burst[1:]
        delivered, acks, fast_retransmit = 0, 0, False
        if fate is not Fate.LOST:
            waits = self._may_wait(conn, segment)
            delivered = _receive(conn, segment)
            if waits:
                conn.waiting = ACK_WAITS if fate is Fate.ACKNOWLEDGED else LOST_ACK_WAITS
            else:
                conn.waiting = NOTHING_WAITS
                if fate is Fate.ACKNOWLEDGED:
                    acks, fast_retransmit = 1, self._on_ack(conn)
        round_ended, held_up, timeout = not conn.burst, False, None
        if round_ended and (not conn.released or self.receiver is Receiver.SHORT_TIMER):
            waiting, conn.waiting = conn.waiting, NOTHING_WAITS
            if waiting == ACK_WAITS:
                held_up, acks = not conn.released, acks + 1
                self._on_ack(conn)
        window = self.lattice.value[conn.cwnd]
        if round_ended:
            conn.age += 1
            if not conn.released:
                timeout = (conn.backoff, conn.age)
                self._on_timeout(conn)
            conn.burst, conn.released = conn.released, ()
        return Outcome(conn.freeze(), delivered, fast_retransmit, acks, window, round_ended, held_up, timeout)

    def _may_wait(self, conn: Connection, segment: int) -> bool:
        """Tell whether the ACK of this segment waits: it comes in order, behind no gap and no other such."""
        if self.receiver is Receiver.AT_ONCE or conn.waiting != NOTHING_WAITS or segment < 0:
            return False
        return conn.received == (1 << segment) - 1

    def _on_ack(self, conn: Connection) -> bool:
        """Take a cumulative ACK; tell whether it started a fast retransmit."""
        acknowledged = _next_expected(conn.received)
        sack = self.variant is Variant.SACK
        tells_more = conn.received & ~conn.sacked != 0
        if sack:
            conn.sacked = conn.received
        if acknowledged > 0:
            self._on_new_ack(conn, acknowledged)
            return False
        if conn.snd_max == 0:  # nothing outstanding: not a duplicate by RFC 5681 section 2
            return False
        if sack and not tells_more:  # nor is this one by RFC 6675 section 2
            return False
        return self._on_duplicate_ack(conn)

    def _on_new_ack(self, conn: Connection, acknowledged: int) -> None:
        full_ack = acknowledged >= conn.recover
        # what is outstanding below `recover`, or first in recovery, is acknowledged after it was sent again
        if self.timestamps or not (conn.recover > 0 or conn.in_recovery):
            conn.backoff = 0
        _advance(conn, acknowledged)
        conn.duplicates, conn.age = 0, TIMER_RESTARTED
        if not conn.in_recovery:
            self._open_window(conn)
        elif self.variant is Variant.SACK:
            if full_ack:
                sack_recovery.end(conn)
        elif full_ack or self.variant is Variant.RENO:
            conn.in_recovery, conn.cwnd = False, conn.ssthresh
        else:  # partial ACK, RFC 6582 section 3.2 step 3
            conn.released += (0,)
            conn.cwnd = max(conn.cwnd - acknowledged + 1, 1)
        self._send(conn)

    def _open_window(self, conn: Connection) -> None:
        if self.lattice.value[conn.cwnd] < conn.ssthresh:
            conn.cwnd = min(conn.cwnd + 1, self.window)
        else:
            conn.cwnd = self.lattice.successor[conn.cwnd]

    def _on_duplicate_ack(self, conn: Connection) -> bool:
        if conn.in_recovery:
            conn.cwnd += self.variant is not Variant.SACK
            self._send(conn)
            return False
        if conn.duplicates == DUPLICATE_THRESHOLD:
            return False
        conn.duplicates += 1
        # RFC 6582 section 3.2 step 1: no second fast retransmit for one window of data
        if not self._is_lost(conn) or conn.recover > 0:
            return False
        self._reduce_threshold(conn)
        conn.age = TIMER_RESTARTED
        if (
            self.variant is not Variant.RENO
        ):  # Reno may halve its window again and again for one window of data
            conn.recover = conn.snd_max
        if self.variant is Variant.TAHOE:
            conn.cwnd, conn.snd_nxt = 1, 0
        elif self.variant is Variant.SACK:
            conn.cwnd, conn.duplicates = conn.ssthresh, 0
            sack_recovery.begin(conn)
        else:
            conn.in_recovery, conn.duplicates = True, 0
            conn.cwnd = conn.ssthresh + DUPLICATE_THRESHOLD
            conn.released += (0,)
        self._send(conn)
        return True

    def _is_lost(self, conn: Connection) -> bool:
        """Tell whether duplicate ACKs, or what they report, say that the first segment is lost."""
        if self.variant is Variant.SACK and sack_recovery.lost_below(conn) > 0:
            return True
        return conn.duplicates == DUPLICATE_THRESHOLD

    def _on_timeout(self, conn: Connection) -> None:
        """Go back N: RFC 5681 section 3.1, RFC 6298 rules 5.4 to 5.6, RFC 6582 section 3.2 step 4."""
        self._reduce_threshold(conn)
        conn.cwnd, conn.snd_nxt, conn.duplicates, conn.in_recovery = 1, 0, 0, False
        conn.recover = conn.snd_max
        conn.backoff, conn.age = min(conn.backoff + 1, MAX_BACKOFF), 0
        sack_recovery.forget(conn)
        self._send(conn)

    def _reduce_threshold(self, conn: Connection) -> None:
        conn.ssthresh = max(conn.snd_nxt // 2, 2)  # RFC 5681 equation 4; snd_nxt - snd_una are in flight

    def _send(self, conn: Connection) -> None:
        """Release what the window allows."""
        allowed = min(self.lattice.segments[conn.cwnd], self.window)
        if self.variant is Variant.SACK:
            sack_recovery.send(conn, allowed, self.window)
            return
        if conn.snd_nxt < allowed:
            conn.released += tuple(range(conn.snd_nxt, allowed))
            conn.snd_nxt = allowed
            conn.snd_max = max(conn.snd_max, allowed)


def _next_expected(received: int) -> int:
    """Return the first segment that the receiver lacks: the number of trailing ones."""
    return (~received & (received + 1)).bit_length() - 1


def _receive(conn: Connection, segment: int) -> int:
    """Put a segment into the receiver; return how many become deliverable in order."""
    if segment == ALREADY_ACKNOWLEDGED:
        return 0
    before = _next_expected(conn.received)
    conn.received |= 1 << segment
    return _next_expected(conn.received) - before


def _advance(conn: Connection, acknowledged: int) -> None:
    """Move snd_una up; what was sent below it is acknowledged."""
    conn.received >>= acknowledged
    conn.snd_nxt = max(conn.snd_nxt - acknowledged, 0)
    conn.snd_max -= acknowledged
    conn.recover = max(conn.recover - acknowledged, 0)
    sack_recovery.advance(conn, acknowledged)
    conn.burst = _renumbered(conn.burst, acknowledged)
    conn.released = _renumbered(conn.released, acknowledged)


def _renumbered(segments: tuple[int, ...], acknowledged: int) -> tuple[int, ...]:
    return tuple(max(k - acknowledged, ALREADY_ACKNOWLEDGED) for k in segments)
