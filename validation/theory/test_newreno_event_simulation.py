"""An outside truth for the lock-step chain: one NewReno or SACK sender over a pipe, event by event.

Written from the RFCs alone, sharing no code with the library: absolute sequence numbers, a real clock, a
real timer, a heap of events. The pipe delays by half the round-trip time each way and loses segments and
ACKs independently.
"""

import heapq
import itertools
import random

import numpy as np
import pytest
from scipy import stats
from tcp_chains.lockstep import lockstep_rates
from tcp_chains.loss_process import LossProcess
from tcp_chains.newreno_chain import Variant

DATA, ACK, TIMER = range(3)


class NewRenoPipe:
    """Greedy NewReno over a lossy pipe; counts deliveries, timeouts and fast retransmits."""

    def __init__(self, *, window, rtt, rto, data_loss, ack_loss, max_rto=64.0, seed=0):
        """Start the connection at time zero."""
        self.window, self.one_way, self.base_rto, self.max_rto = window, rtt / 2, rto, max_rto
        self.data_loss, self.ack_loss = data_loss, ack_loss
        self.random, self.order, self.events = random.Random(seed), itertools.count(), []
        self.now, self.next_expected, self.held = 0.0, 0, set()
        self.una = self.nxt = self.highest = self.recover = 0
        self.cwnd, self.ssthresh, self.dupacks = 1.0, float("inf"), 0
        self.recovering, self.rto, self.deadline = False, rto, None
        self.timeouts = self.fast_retransmits = 0
        self.fill_window()

    def schedule(self, delay, kind, value):
        heapq.heappush(self.events, (self.now + delay, next(self.order), kind, value))

    def start_timer(self):
        self.deadline = self.now + self.rto
        self.schedule(self.rto, TIMER, self.deadline)

    def transmit(self, segment):
        if self.deadline is None:
            self.start_timer()
        if self.random.random() >= self.data_loss:
            self.schedule(self.one_way, DATA, segment)

    def fill_window(self):
        while self.nxt - self.una < min(int(self.cwnd), self.window):
            self.transmit(self.nxt)
            self.nxt += 1
            self.highest = max(self.highest, self.nxt)

    def halve(self):
        self.ssthresh = max((self.nxt - self.una) // 2, 2)

    def on_data(self, segment):
        if segment >= self.next_expected:
            self.held.add(segment)
        while self.next_expected in self.held:
            self.held.remove(self.next_expected)
            self.next_expected += 1
        if self.random.random() >= self.ack_loss:
            self.schedule(self.one_way, ACK, self.next_expected)

    def on_ack(self, ack):
        if ack > self.una:
            self.on_new_ack(ack)
        elif ack == self.una and self.highest > self.una:
            self.on_duplicate()
        self.fill_window()

    def on_new_ack(self, ack):
        newly = ack - self.una
        self.una, self.nxt, self.dupacks, self.rto = ack, max(self.nxt, ack), 0, self.base_rto
        self.start_timer()
        if self.recovering and ack >= self.recover:
            self.recovering, self.cwnd = False, float(self.ssthresh)
        elif self.recovering:
            self.transmit(self.una)
            self.cwnd = max(self.cwnd - newly + 1, 1.0)
        elif self.cwnd < self.ssthresh:
            self.cwnd = min(self.cwnd + 1, self.window)
        else:
            self.cwnd = min(self.cwnd + 1 / self.cwnd, self.window)

    def on_duplicate(self):
        if self.recovering:
            self.cwnd += 1
            return
        self.dupacks += 1
        if self.dupacks == 3 and self.una >= self.recover:
            self.fast_retransmits += 1
            self.halve()
            self.recovering, self.recover, self.cwnd = True, self.highest, self.ssthresh + 3.0
            self.transmit(self.una)
            self.start_timer()

    def on_timer(self, deadline):
        if deadline != self.deadline:  # an older timer, since restarted
            return
        self.timeouts += 1
        self.halve()
        self.recover, self.recovering, self.dupacks = self.highest, False, 0
        self.cwnd, self.nxt, self.rto = 1.0, self.una, min(2 * self.rto, 64 * self.base_rto, self.max_rto)
        self.start_timer()
        self.fill_window()

    def advance(self, until):
        handlers = {DATA: self.on_data, ACK: self.on_ack, TIMER: self.on_timer}
        while self.events[0][0] <= until:
            self.now, _, kind, value = heapq.heappop(self.events)
            handlers[kind](value)
        self.now = until


class SackPipe(NewRenoPipe):
    """The same with the scoreboard of RFC 6675; an ACK tells all that the receiver holds."""

    sacked: frozenset = frozenset()
    high_rxt, rescue_rxt = -1, -1

    def schedule(self, delay, kind, value):
        super().schedule(delay, kind, (value, frozenset(self.held)) if kind == ACK else value)

    def on_ack(self, ack):
        ack, held = ack
        news, self.sacked = held - self.sacked, frozenset(k for k in held | self.sacked if k >= ack)
        if ack > self.una:
            self.on_new_ack(ack)
            self.fill_window()
        elif self.highest > self.una and ack == self.una and news:
            self.on_duplicate()

    def on_new_ack(self, ack):
        if not self.recovering:
            super().on_new_ack(ack)
            return
        self.una, self.nxt, self.dupacks, self.rto = ack, max(self.nxt, ack), 0, self.base_rto
        self.start_timer()
        self.recovering = ack < self.recover

    def on_duplicate(self):
        if not self.recovering:
            self.dupacks += 1
            if (self.dupacks < 3 and len(self.sacked) < 3) or self.una < self.recover:
                return
            self.fast_retransmits += 1
            self.halve()
            self.recovering, self.recover, self.cwnd = True, self.highest, float(self.ssthresh)
            self.high_rxt = self.rescue_rxt = self.una
            self.transmit(self.una)
            self.start_timer()
        self.fill_window()

    def on_timer(self, deadline):
        if deadline == self.deadline:
            self.sacked = frozenset()
        super().on_timer(deadline)

    def is_lost(self, segment):
        return self.recovering and sum(k > segment for k in self.sacked) >= 3

    def fill_window(self):
        unknown = [k for k in range(self.una, self.nxt) if k not in self.sacked]
        pipe = sum(not self.is_lost(k) for k in unknown)
        pipe += sum(k <= self.high_rxt for k in unknown) if self.recovering else 0
        while pipe < min(int(self.cwnd), self.window) and (segment := self.next_segment()) is not None:
            self.transmit(segment)
            pipe += 1

    def next_segment(self):
        """NextSeg, rules 1 to 4; after a timeout, what has been reported since is passed over."""
        while self.nxt in self.sacked:
            self.nxt += 1
        holes = [k for k in range(self.una, max(self.sacked, default=0)) if k not in self.sacked]
        holes = [k for k in holes if k > self.high_rxt] if self.recovering else []
        if not (holes and self.is_lost(holes[0])) and self.nxt < self.una + self.window:
            self.nxt += 1
            self.highest = max(self.highest, self.nxt)
            return self.nxt - 1
        if holes:
            self.high_rxt = holes[0]
            return holes[0]
        if self.recovering and self.una > self.rescue_rxt:
            self.rescue_rxt = self.recover
            return max(k for k in range(self.una, self.nxt) if k not in self.sacked)
        return None


def simulated_rates(
    *, batches=40, batch_seconds=400.0, warmup=100.0, confidence=0.999, sender=NewRenoPipe, **pipe
):
    """Batch means: {rate name: (mean, half width of its confidence interval)}, per second."""
    run = sender(**pipe)
    counts = []
    for k in range(batches + 1):
        run.advance(warmup + k * batch_seconds)
        counts.append((run.next_expected, run.timeouts, run.fast_retransmits))
    rates = np.diff(np.array(counts, dtype=float), axis=0) / batch_seconds
    quantile = stats.t.ppf(0.5 + confidence / 2, batches - 1)
    half = quantile * rates.std(axis=0, ddof=1) / np.sqrt(batches)
    names = ("goodput", "timeouts", "fast_retransmits")
    return {name: (float(m), float(h)) for name, m, h in zip(names, rates.mean(axis=0), half, strict=True)}


@pytest.mark.parametrize(
    ("window", "data_loss", "batch_seconds"), [(8, 0.01, 250.0), (8, 0.1, 2000.0), (6, 0.2, 6000.0)]
)
def test_selective_acknowledgements_agree_with_event_simulation(window, data_loss, batch_seconds):
    """Three rates inside the 99.9 % intervals of 40 batch means."""
    simulated = simulated_rates(
        window=window, rtt=0.1, rto=1.0, data_loss=data_loss, ack_loss=0.0, seed=6675,
        batch_seconds=batch_seconds, sender=SackPipe,
    )  # fmt: skip
    result = lockstep_rates(
        window=window, rtt=0.1, loss=LossProcess.independent(data_loss), variant=Variant.SACK
    )
    for name, (mean, half_width) in simulated.items():
        assert abs(getattr(result, name) - mean) <= half_width, name
    assert simulated["goodput"][1] < 0.03 * simulated["goodput"][0]


@pytest.mark.parametrize(
    ("window", "data_loss", "ack_loss", "batch_seconds"),
    [
        (8, 0.01, 0.0, 250.0),
        (8, 0.05, 0.0, 700.0),
        (8, 0.1, 0.1, 3000.0),
        (5, 0.2, 0.05, 6000.0),
    ],
)
def test_agrees_with_event_simulation(window, data_loss, ack_loss, batch_seconds):
    """Three rates inside the 99.9 % intervals of 40 batch means; the goodput's interval is within 3 %."""
    simulated = simulated_rates(
        window=window, rtt=0.1, rto=1.0, data_loss=data_loss, ack_loss=ack_loss, seed=2006,
        batch_seconds=batch_seconds,
    )  # fmt: skip
    result = lockstep_rates(window=window, rtt=0.1, loss=LossProcess.independent(data_loss, ack_loss))
    for name, (mean, half_width) in simulated.items():
        assert abs(getattr(result, name) - mean) <= half_width, name
    assert simulated["goodput"][1] < 0.03 * simulated["goodput"][0]
