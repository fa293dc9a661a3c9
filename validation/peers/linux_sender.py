"""The rules of Linux's sender, as far as the records show them: an executable list of what `transport` lacks.

`follow` gives the sender the acknowledgements of a record at their times, with the selective blocks that the
receiver must have had to report, and returns what it sends. Written from RFC 6298, 6937, 8985 and 5682 and
from the records; one congestion control, Reno. A segment is known by its number.
"""

import math
from typing import Any

from linux_replay import HEADERS, Story

OPEN, DISORDER, REDUCING, RECOVERY, LOSS = range(5)
TICK = 0.004
"""The kernel's timers fire at whole ticks (s)."""
LEAST_TIMEOUT = 0.2
LONGEST_TIMEOUT = 120.0
DUPLICATES = 3
HANDSHAKE_BYTES = 60
LATE_S = 0.0004
NEVER = math.inf


class Sender:
    """A connection with `segments` to send and a first round-trip time (s), that of the handshake."""

    def __init__(self, segments: int, sack: bool, probes: bool, round_trip: float) -> None:
        self.segments, self.sack, self.with_probes = segments, sack, probes
        self.sent: list[tuple[float, int]] = []
        self.recoveries = self.timeouts = self.probes = 0
        self.snd_una = self.snd_nxt = 0
        self.cwnd, self.ssthresh, self.count = 10, 1 << 30, 0
        self.sent_at = [0.0] * segments
        self.sacked, self.lost, self.resent = ([False] * segments for _ in range(3))
        self.ever_resent = [False] * segments
        self.dup_acks = 0
        self.state, self.high_seq, self.marked = OPEN, 0, 0
        self.prior_cwnd = self.prior_ssthresh = self.delivered_in_recovery = self.sent_in_recovery = 0
        self.frto, self.expiries = False, 0
        self.limited, self.most_out, self.usage_end = True, 0, 0
        self.newest, self.newest_rtt, self.advanced = (0.0, -1), 0.0, False
        self.timeout_at = self.probe_at = self.reorder_at = NEVER
        self.probe_end: int | None = None
        self.probe_resent = False
        self.srtt = self.least_rtt = round_trip
        self.mdev, self.mdev_most = round_trip / 2, LEAST_TIMEOUT
        self.rttvar, self.rtt_end = max(round_trip / 2, LEAST_TIMEOUT), 0
        self.rto = self.srtt + self.rttvar
        self.send_new(0.0)

    # ---------------------------------------------------------------------------------- what is in flight

    def outstanding(self) -> range:
        return range(self.snd_una, self.snd_nxt)

    def arrived(self) -> int:
        return sum(self.sacked[self.snd_una : self.snd_nxt]) if self.sack else self.dup_acks

    def count_lost(self) -> int:
        return sum(self.lost[self.snd_una : self.snd_nxt])

    def count_resent(self) -> int:
        return sum(self.resent[self.snd_una : self.snd_nxt])

    def in_flight(self) -> int:
        return self.snd_nxt - self.snd_una - self.arrived() - self.count_lost() + self.count_resent()

    # ---------------------------------------------------------------------------------- timeout

    def measure(self, sample: float) -> None:
        """RFC 6298, but the variation is the largest of a round trip, at least 200 ms, and falls slowly."""
        error = sample - self.srtt
        self.srtt += error / 8
        change = abs(error) - self.mdev
        if error < 0 < change:
            change /= 8
        self.mdev += change / 4
        if self.mdev > self.mdev_most:
            self.mdev_most = self.mdev
            self.rttvar = max(self.rttvar, self.mdev_most)
        if self.snd_una > self.rtt_end:
            if self.mdev_most < self.rttvar:
                self.rttvar -= (self.rttvar - self.mdev_most) / 4
            self.rtt_end, self.mdev_most = self.snd_nxt, LEAST_TIMEOUT
        self.rto = self.srtt + self.rttvar

    def restart_timer(self, now: float) -> None:
        due = now + self.rto
        if min(self.probe_at, self.reorder_at) < NEVER:
            due = max(self.sent_at[self.snd_una] + self.rto, now + TICK) if self.outstanding() else NEVER
        self.probe_at = self.reorder_at = NEVER
        self.timeout_at = due if self.outstanding() else NEVER

    def arm_probe(self, now: float) -> bool:
        """RFC 8985, 7.2: two round trips; a delayed acknowledgement more if one segment is out."""
        if not self.with_probes or not self.outstanding() or self.state not in (OPEN, REDUCING):
            return False
        alone = self.snd_nxt - self.snd_una == 1
        wait = 2 * self.srtt + (LEAST_TIMEOUT if alone else 2 * TICK)
        self.probe_at = min(now + wait, now + self.rto)
        self.timeout_at = self.reorder_at = NEVER
        return True

    # ---------------------------------------------------------------------------------- sending

    def transmit(self, number: int, now: float) -> None:
        self.sent.append((now, number))
        self.sent_at[number] = now

    def send_new(self, now: float) -> None:
        count = 0
        while self.snd_nxt < self.segments and self.in_flight() < self.cwnd:
            first = not self.outstanding()
            self.transmit(self.snd_nxt, now)
            self.snd_nxt += 1
            count += 1
            if first or self.probe_at < NEVER:
                self.restart_timer(now)
        limited = self.in_flight() >= self.cwnd
        if count or limited:
            if self.state in (REDUCING, RECOVERY):
                self.sent_in_recovery += count
            out = len(self.outstanding())
            if self.snd_una >= self.usage_end or limited or (not self.limited and out > self.most_out):
                self.limited, self.most_out, self.usage_end = limited, out, self.snd_nxt
        if count:
            self.arm_probe(now)

    def resend(self, number: int, now: float) -> None:
        self.resent[number] = self.ever_resent[number] = True
        self.transmit(number, now)

    def send_lost(self, now: float) -> None:
        """What is lost goes first, the oldest first, as cwnd allows."""
        for number in self.outstanding():
            if self.count_resent() >= self.count_lost() or self.in_flight() >= self.cwnd:
                return
            if self.lost[number] and not self.sacked[number] and not self.resent[number]:
                self.resend(number, now)
                if self.state in (REDUCING, RECOVERY):
                    self.sent_in_recovery += 1
                if number == self.snd_una:
                    self.timeout_at, self.probe_at = now + self.rto, NEVER

    # ---------------------------------------------------------------------------------- losses

    def mark_lost(self, number: int) -> None:
        self.marked += not self.lost[number] or self.resent[number]
        self.lost[number], self.resent[number] = True, False

    def deliver(self, number: int, now: float) -> None:
        """RACK: the round trip is that of the last one seen, the time that of the one sent last."""
        rtt = now - self.sent_at[number]
        if self.ever_resent[number] and rtt < self.least_rtt:
            return  # the first transmission has arrived
        self.newest_rtt, self.advanced = rtt, True
        self.newest = max(self.newest, (self.sent_at[number], number))

    def reordering_window(self) -> float:
        if self.state >= RECOVERY or self.arrived() >= DUPLICATES:
            return 0.0
        return min(self.least_rtt / 4, self.srtt)

    def find_late(self, now: float) -> None:
        """Mark what was sent a round trip and the window before one that has arrived; wait for the others."""
        window, wait = self.reordering_window(), 0.0
        for number in self.outstanding():
            if self.sacked[number] or (self.lost[number] and not self.resent[number]):
                continue
            if (self.sent_at[number], number) >= self.newest:
                continue
            left = self.newest_rtt + window - (now - self.sent_at[number])
            if left <= 0:
                self.mark_lost(number)
            else:
                wait = max(wait, left)
        if wait > 0:
            self.reorder_at, self.timeout_at, self.probe_at = at_tick(now + wait + 2 * TICK), NEVER, NEVER

    def identify(self, now: float, advanced: bool) -> None:
        if not self.outstanding():
            return
        if self.sack:
            if self.advanced:
                self.advanced = False
                self.find_late(now)
            return
        lost = self.dup_acks >= DUPLICATES if self.state < RECOVERY else self.state == RECOVERY and advanced
        if lost and not self.lost[self.snd_una]:
            self.mark_lost(self.snd_una)

    def begin_reduction(self) -> None:
        self.high_seq, self.probe_end, self.count = self.snd_nxt, None, 0
        self.prior_cwnd, self.delivered_in_recovery, self.sent_in_recovery = self.cwnd, 0, 0
        self.ssthresh = max(self.cwnd // 2, 2)

    def enter_recovery(self) -> None:
        self.recoveries += 1
        if self.state != REDUCING:
            self.begin_reduction()
        self.state = RECOVERY

    def reduce(self, delivered: int, newly_lost: int, advanced: bool) -> None:
        """PRR (RFC 6937), with SACK or without."""
        if delivered <= 0:
            return
        room = self.ssthresh - self.in_flight()
        self.delivered_in_recovery += delivered
        if room < 0:
            quota = -(-self.ssthresh * self.delivered_in_recovery // self.prior_cwnd) - self.sent_in_recovery
        else:
            quota = max(self.delivered_in_recovery - self.sent_in_recovery, delivered)
            quota = min(room, quota + (advanced and not newly_lost))
        self.cwnd = self.in_flight() + max(quota, 0 if self.sent_in_recovery else 1)

    def grow(self, delivered: int) -> None:
        slow_start = self.cwnd < self.ssthresh
        if not (self.limited or (slow_start and self.cwnd < 2 * self.most_out)):
            return
        if slow_start:
            before = self.cwnd
            self.cwnd = min(self.cwnd + delivered, self.ssthresh)
            delivered -= self.cwnd - before
            if not delivered:
                return
        window = self.cwnd
        if self.count >= window:
            self.count = 0
            self.cwnd += 1
        self.count += delivered
        self.cwnd += self.count // window
        self.count %= window

    # ---------------------------------------------------------------------------------- acknowledgements

    def on_ack(self, now: float, ack: int, blocks: list[int], again: bool, echo: float | None) -> None:
        """Take an acknowledgement: of all below `ack`, and of `blocks`.

        `again` reports a segment that came twice; `echo` is the round trip by the timestamp (s).
        """
        advanced, marked, was_out = ack > self.snd_una, self.marked, bool(self.outstanding())
        delivered, original, sample, news = 0, False, None, []
        for number in sorted(blocks if self.sack else []):
            if ack <= number < self.snd_nxt and not self.sacked[number]:
                if not self.ever_resent[number]:
                    news.append(self.sent_at[number])
                    original = original or number < self.high_seq
                self.sacked[number] = True
                self.deliver(number, now)
                self.lost[number] = self.resent[number] = False
                delivered += 1
        restart = advanced
        newly_sacked = delivered > 0
        if advanced:
            covered = range(self.snd_una, ack)
            first = [self.sent_at[n] for n in covered if not self.sacked[n] and not self.ever_resent[n]]
            if first and not any(self.ever_resent[n] for n in covered):
                sample = now - first[0]
                self.least_rtt = min(self.least_rtt, now - self.sent_at[ack - 1])
            for number in covered:
                if not self.sacked[number]:
                    delivered += self.sack
                    self.deliver(number, now)
                    original = original or (not self.ever_resent[number] and number < self.high_seq)
                self.lost[number] = self.resent[number] = False
            self.snd_una, self.expiries = ack, 0
            if not self.sack:
                delivered += max(len(covered) - self.dup_acks, 1)
                self.dup_acks = max(self.dup_acks - len(covered) + 1, 0)
        if sample is None and news:
            sample = now - min(news)
            self.least_rtt = min(self.least_rtt, now - max(news))
        elif sample is None and advanced:
            sample = echo
        if news and not advanced and min(news) < self.sent_at[self.snd_una]:
            restart = True
        if sample is not None:
            self.measure(sample)
        self.end_probe(ack, again, news=advanced or newly_sacked)
        if restart and not self.arm_probe(now):
            self.restart_timer(now)
        send: str | None = None
        duplicate = was_out and not advanced
        if duplicate or newly_sacked or again or self.state != OPEN:
            more, send = self.decide(now, advanced, duplicate, newly_sacked, original)
            delivered += more
        if self.state in (REDUCING, RECOVERY):
            self.reduce(delivered, self.marked - marked, advanced)
        elif advanced:
            self.grow(delivered)
        if send == "new":
            self.send_new(now)
            self.frto = self.frto and self.snd_nxt > self.high_seq
        if send == "lost" or (send == "new" and not self.frto):
            self.send_lost(now)
        self.send_new(now)

    def end_probe(self, ack: int, again: bool, *, news: bool) -> None:
        """RFC 8985, 7.4: a probe that was needed shows a loss."""
        if self.probe_end is None or ack < self.probe_end:
            return
        if not self.probe_resent or again or (ack == self.probe_end and not news):
            self.probe_end = None
        elif ack > self.probe_end:
            self.begin_reduction()
            self.cwnd = self.ssthresh
            self.settle()

    def settle(self) -> None:
        """Outside recovery: anything missing is a disorder."""
        state = DISORDER if self.arrived() + self.count_lost() + self.count_resent() else OPEN
        if state != self.state:
            self.state, self.high_seq = state, self.snd_nxt

    def count_duplicate(self) -> int:
        before = self.dup_acks
        holes = max(1, self.count_lost())
        self.dup_acks = min(self.dup_acks + 1, len(self.outstanding()) - holes)
        return max(self.dup_acks - before, 0)

    def decide(
        self, now: float, advanced: bool, duplicate: bool, newly_sacked: bool, original: bool
    ) -> tuple[int, str | None]:
        """Return how many more have been delivered without SACK, and what may be sent first."""
        recovered = self.snd_una >= self.high_seq
        # Without SACK something above must be acknowledged: duplicates of the end would look like a loss.
        waits = not self.sack and self.snd_una == self.high_seq
        if self.state == RECOVERY and recovered:
            if not self.sack:
                self.dup_acks = 0
            if waits:
                return 0, None
            self.state, self.cwnd = OPEN, self.ssthresh
        if self.state == LOSS:
            return self.after_timeout(now, advanced, duplicate, newly_sacked, original)
        more = 0
        if not self.sack:
            if advanced and self.state != RECOVERY:
                self.dup_acks = 0
            if duplicate:
                more = self.count_duplicate()
        self.identify(now, advanced)
        if self.state != RECOVERY:
            if not self.count_lost():
                self.settle()
                return more, None
            self.enter_recovery()
        return more, "lost"

    def after_timeout(
        self, now: float, advanced: bool, duplicate: bool, newly_sacked: bool, original: bool
    ) -> tuple[int, str | None]:
        """F-RTO (RFC 5682): new data first; what was sent before the timeout and arrives shows it wrong."""
        recovered = self.snd_una >= self.high_seq
        if self.frto:
            if original:
                self.cwnd, self.ssthresh = max(self.cwnd, self.prior_cwnd), self.prior_ssthresh
                self.state, self.frto = OPEN, False
                self.lost = [False] * self.segments
                return 0, "lost"
            if self.snd_nxt > self.high_seq:
                self.frto = not (newly_sacked or duplicate)
            elif advanced and not recovered:
                self.high_seq = self.snd_nxt
                if self.snd_nxt < self.segments:
                    return 0, "new"
                self.frto = False
        more = 0
        if recovered:
            if not self.sack:
                self.dup_acks = 0
            if self.sack or self.snd_una > self.high_seq:
                self.state = OPEN
            return 0, None
        if not self.sack:
            if self.snd_nxt > self.high_seq and duplicate:
                more = self.count_duplicate()
            elif advanced:
                self.dup_acks = 0
        self.identify(now, advanced)
        return more, "lost"

    # ---------------------------------------------------------------------------------- timers

    def next_timer(self) -> float:
        return min(at_tick(self.timeout_at), at_tick(self.probe_at), self.reorder_at)

    def on_timer(self, now: float) -> None:
        if self.reorder_at <= now:
            self.reorder_at = NEVER
            self.find_late(now)
            if self.count_lost() > self.count_resent():
                if self.state < RECOVERY:
                    self.enter_recovery()
                    self.reduce(1, 0, False)
                self.send_lost(now)
            if self.reorder_at == self.timeout_at == NEVER:
                self.timeout_at = max(self.sent_at[self.snd_una] + self.rto, now + TICK)
        elif at_tick(self.probe_at) <= now:
            self.probe(now)
        else:
            self.expire(now)

    def probe(self, now: float) -> None:
        self.probe_at = NEVER
        if self.probe_end is not None:
            self.timeout_at = max(self.sent_at[self.snd_una] + self.rto, now + TICK)
            return
        self.probes += 1
        self.probe_resent = self.snd_nxt == self.segments
        if self.probe_resent:
            self.resend(self.snd_nxt - 1, now)
        else:
            self.transmit(self.snd_nxt, now)
            self.snd_nxt += 1
        self.probe_end, self.timeout_at = self.snd_nxt, now + self.rto

    def expire(self, now: float) -> None:
        """All that is older than a round trip is lost; one segment more than what is left may be sent."""
        self.timeouts += 1
        first = self.state < RECOVERY
        if not self.sack:
            self.dup_acks = 0
        window = self.reordering_window() if self.sack else 0.0
        for number in self.outstanding():
            late = self.newest_rtt + window - (now - self.sent_at[number]) <= 0
            if not self.sacked[number] and (number == self.snd_una or late):
                self.mark_lost(number)
        if first or self.snd_una >= self.high_seq or not self.expiries:
            self.prior_cwnd, self.prior_ssthresh = self.cwnd, self.ssthresh
            self.ssthresh = max(self.cwnd // 2, 2)
        self.cwnd, self.count = self.in_flight() + 1, 0
        self.state, self.high_seq, self.frto = LOSS, self.snd_nxt, first or self.expiries > 0
        self.expiries += 1
        self.resend(self.snd_una, now)
        self.rto = min(2 * self.rto, LONGEST_TIMEOUT)
        self.timeout_at, self.probe_at, self.reorder_at = now + self.rto, NEVER, NEVER


def at_tick(time: float) -> float:
    return time if time == NEVER else math.ceil(time / TICK - 1e-6) * TICK


def follow(record: dict[str, Any]) -> Story:
    """Return what the rules send on the record's acknowledgements, the kernel's own packets being known."""
    mss, delay, byte_s = record["mss"], record["delay_ms"] / 1000, 8 / (record["rate_kbps"] * 1000)
    sender = Sender(
        record["segments"],
        bool(record["sack"]),
        bool(record["sack"] and record["rack"]),
        HANDSHAKE_BYTES * byte_s + 2 * delay + LATE_S,
    )
    on_the_way, busy = [], 0.0
    for time_us, offset, size, fate in record["data"]:
        if fate == "sent":
            busy = max(busy, time_us / 1e6) + (size + HEADERS) * byte_s
            on_the_way.append((busy + delay, offset // mss, time_us / 1e6))
    on_the_way.reverse()
    arrived: dict[int, float] = {}
    for time_us, offset, *_ in record["acks"]:
        now, again = time_us / 1e6, False
        while on_the_way and on_the_way[-1][0] <= now - delay:
            _, number, sent_at = on_the_way.pop()
            again = again or number in arrived
            arrived[number] = sent_at
        while sender.next_timer() <= now:
            sender.on_timer(sender.next_timer())
        ack = offset // mss
        echoed = arrived.get(sender.snd_una)
        echo = None if echoed is None else now - echoed
        sender.on_ack(now, ack, [number for number in arrived if number >= ack], again, echo)
    end = record["data"][-1][0] / 1e6 + 0.01
    while sender.next_timer() <= end:
        sender.on_timer(sender.next_timer())
    ranges = [(number * mss, mss) for _, number in sender.sent]
    times = [time for time, _ in sender.sent]
    return Story(ranges, times, sender.recoveries, sender.timeouts, sender.probes)
