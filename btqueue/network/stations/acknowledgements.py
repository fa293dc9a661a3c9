"""Acknowledgements: for which segments a receiver sends one, and how long it waits for it."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp, inf
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, pdtrc

from btqueue.network.stations.network import Flow

TICKS = (np.arange(16) + 0.5) / 16.0
"""Parts of the period of a clock that are left when a wait begins."""
PAIR = 2
"""Segments of an acknowledgement for which the law of the wait is known."""
NEARLY = 0.995
"""Highest utilisation in formulas of waits: the rate over the rate that losses allow."""
LEAST_COUNT = 1e-6
"""Messages in a timer below which the limit of rare messages is taken."""


class Answers(NamedTuple):
    """How a receiver acknowledges.

    Attributes:
        wait_s: mean wait of the first segment of an acknowledgement, whose round trip is measured (s).
        alone: acknowledgements of a segment that travel alone.
        carried: share of the acknowledgements that segments of the receiver carry.
        kept: share of the receiver's backlog that an acknowledgement waits for: where segments carry
            acknowledgements, the receiver has written no segment since the wait began.
    """

    wait_s: float
    alone: float
    carried: float = 0.0
    kept: float = 1.0


def has_law(flow: Flow) -> bool:
    """Return whether the wait of delayed acknowledgements has a law: messages of a segment, at random."""
    single = flow.batch <= 1.0 and not flow.short and flow.load < inf and flow.window >= PAIR
    return single and flow.transport.ack_every_segments == PAIR and flow.source in ("poisson", "ibp")


def by_clock_s(flow: Flow) -> float:
    """Return the mean wait of an acknowledgement until the receiver's clock sends it (s)."""
    transport = flow.transport
    if not transport.delayed_ack or transport.ack_every_segments <= 1:
        return 0.0
    return transport.ack_delay_s / (2.0 if transport.ack_clock == "tick" else 1.0) + flow.late_s


def answers_of(flow: Flow, queue: Queue, against: Queue, window: float, *, carried: bool) -> Answers:
    """Return how the receiver of a flow acknowledges.

    Args:
        flow: whose segments are acknowledged.
        queue: queue of its segments.
        against: queue of the segments of the receiver that could carry acknowledgements.
        window: window of the receiver, in the other direction.
        carried: whether the goodput is the offered load.
    """
    transport, at_once = flow.transport, Answers(0.0, flow.acks)
    if flow.protocol != "tcp" or not transport.delayed_ack:
        return at_once
    every, delay = transport.ack_every_segments, transport.ack_delay_s
    by_timer = by_clock_s(flow)
    if every <= 1 or delay == 0.0:
        return at_once
    if flow.window < every:
        return Answers(by_timer, flow.acks)
    if flow.load == inf or not carried:
        # with data both ways, each arriving segment releases one that carries its acknowledgement
        return Answers(0.0, 0.0, 1.0) if against.rate > 0.0 and flow.window > every else at_once
    if flow.cut:
        return Answers(flow.cut.wait_s, flow.acks)
    count = max(round(flow.batch), 1)
    rate = queue.rate
    bursts = rate * (1.0 - flow.more) / count
    if has_law(flow) and rate > 0.0 and against.rate > 0.0:
        return _carried(flow, queue, against, window)
    if not count % every:
        return at_once
    # the segments left over wait for as many bursts as complete them, or for the timer
    missing = ceil((every - count % every) / count)
    if flow.source == "periodic":
        wait = min(missing / bursts, by_timer) if bursts > 0.0 else by_timer
    else:
        come = pdtrc(np.arange(missing), bursts * by_timer)  # chances of 1, 2, ... bursts in this time
        wait = float(come.sum()) / bursts if bursts * by_timer > 0.0 else by_timer
    # the first segment of a burst goes with the segment left over, if it comes in time; of a burst by an
    # interrupted Bernoulli process, with a geometric number of messages, the chance of an odd number is
    # higher than that of an even one by `odd`
    in_time, odd = 1.0 - exp(-bursts * by_timer), (1.0 - flow.more) / (1.0 + flow.more)
    left = (1.0 + odd) / 2.0 / (1.0 + in_time * odd)
    answers = count // every + left
    if every == PAIR:
        answers = (count / (1.0 - flow.more) + left * (1.0 - in_time)) / PAIR
    return Answers(wait * left / answers, flow.acks)


def _carried(flow: Flow, queue: Queue, against: Queue, window: float) -> Answers:
    """Return the acknowledgements of pairs that segments of the receiver may carry, written at random.

    The first segment of a pair waits for the second, which is a service behind it if one is left on the link,
    for a segment of the receiver, or for the clock. A receiver whose window holds segments back sends one of
    them with the acknowledgement of each segment (Johansson et al. 2000, section 4.1).
    """
    reverse, forward = (one.rate * (1.0 - flow.more) for one in (against, queue))
    behind, clock_s = queue.followed(flow.more), flow.transport.ack_delay_s
    clock_s = clock_s * TICKS if flow.transport.ack_clock == "tick" else np.array([clock_s])
    gap_s = np.minimum(queue.service_s, clock_s)
    none = float(np.exp(-reverse * gap_s).mean())
    later_s = np.exp(-reverse * gap_s) * -np.expm1(-(reverse + forward) * (clock_s - gap_s))
    later_s = float(later_s.mean()) / (reverse + forward)
    wait_s = (1.0 - none) / reverse + (1.0 - behind) * later_s
    free = (1.0 - against.beyond(window)) / (1.0 + behind * none + (1.0 - behind) * forward * later_s)
    carries = against.beyond(window) / (against.beyond(window) + free)
    work_s = max(against.work_s(window), 1e-12)  # of the receiver, at a random time
    ahead_s = max(window - PAIR, 0.0) / 2.0 * against.service_s  # half of the others are on their way back
    kept = carries * min(ahead_s / work_s, 1.0)
    kept += (1.0 - carries) / (1.0 + wait_s * against.use / work_s)
    alone = 1.0 - reverse * wait_s
    return Answers(wait_s * (1.0 - carries), free * alone, 1.0 - (1.0 - carries) * alone, kept)


class Received(NamedTuple):
    """The acknowledgements that a receiver sends for segments.

    Attributes:
        share: acknowledgements for each segment.
        wait_s: mean time that the first segment of an acknowledgement waits for it.
        clocked: share of acknowledgements that the clock sends, not a segment.
        behind: mean segments of one message that are ahead of it, or that it waits for, beyond the segments
            that are ahead of any segment of a message.
    """

    share: float
    wait_s: float
    clocked: float
    behind: float


def received(flow: Flow, rate: float, *, carried: bool) -> Received:
    """Return the acknowledgements that the receiver sends for the segments of a flow.

    A receiver that delays acknowledges every k segments, or earlier the segments held when its timer expires,
    which the first of them starts. That is exact for messages that arrive by a Poisson process, each with all
    segments at once. A free-running tick is taken as a timer of half its period.

    Args:
        flow: flow of the segments.
        rate: rate of the segments (1/s).
        carried: whether the source, and not the window, decides on the rate.
    """
    if not flow.delays_received or flow.messages:
        return Received(flow.acks, 0.0, 0.0, 0.0)
    every, delay = flow.transport.ack_every_segments, by_clock_s(flow)
    if flow.window < every or flow.short:  # a short segment waits for the acknowledgement before (Nagle)
        return Received(flow.acks, delay, float(flow.window < every), 0.0)
    if flow.load == inf or not carried or rate <= 0.0:
        return Received(flow.acks, 0.0, 0.0, 0.0)
    segments = max(round(flow.batch), 1)
    if flow.source == "periodic":
        rest = segments % every
        if not rest or segments / rate < delay * rest:
            gap = segments / rate if rest else 0.0
            return Received(flow.acks, gap / every if segments < every else 0.0, 0.0, 0.0)
        whole = segments // every
        return Received((whole + 1.0) / segments, delay / (whole + 1.0), 1.0 / (whole + 1.0), 0.0)
    rate = float(f"{rate:.9e}")  # so that equal flows are solved once
    messages = max(rate / segments * delay, LEAST_COUNT)
    return _until_timer(messages, segments, every, delay)


def _message(held: float, segments: int, every: int) -> tuple[float, float, float]:
    """Return the acknowledgements of a message that finds `held` segments not acknowledged, less than k.

    Returns:
        Acknowledgements that its segments send; segments that are not answered then; its segments that the
        first ones of acknowledgements wait for, and the segments ahead of them in it.
    """
    answered, left = divmod(held + segments, every)
    first = every - held if held > 0.0 else 0.0  # ahead of the first that begins an acknowledgement
    number = answered - (held > 0.0)  # acknowledgements of segments of this message alone
    behind = first + number * (first + every - 1.0 + every * (number - 1.0) / 2.0)
    begins = segments - left if left > 0.0 else 0.0
    return answered, left, behind + begins if answered else 0.0


@lru_cache(maxsize=4096)
def _until_timer(count: float, segments: int, every: int, delay_s: float) -> Received:
    """Return the acknowledgements of a receiver whose timer starts at the first unacknowledged segment.

    If no segment is held, a message is acknowledged at once except for its number of segments modulo k. These
    segments wait for the next messages, or the timer. Some segments of the message that completes an
    acknowledgement may be held again.

    Args:
        count: messages in the time of the timer, on average.
        segments: segments of a message.
        every: k.
        delay_s: delay of the timer.
    """
    sent, held, behind = _message(0.0, segments, every)
    chance, messages, waited_s, timed = 1.0, 1.0, 0.0, 0.0
    while held > 0.0 and chance > 1e-9:
        wanted = ceil((every - held) / segments)  # messages that fill an acknowledgement
        filled = float(gammainc(wanted, count))
        meanwhile = wanted * float(gammainc(wanted + 1.0, count)) + count * (1.0 - filled)
        answered, left, more = _message(held + (wanted - 1.0) * segments, segments, every)
        messages += chance * meanwhile
        sent += chance * (filled * answered + 1.0 - filled)
        waited_s += chance * meanwhile / count * delay_s
        timed += chance * (1.0 - filled)
        behind += chance * filled * more
        held, chance = left, chance * filled
    behind = behind / sent - (segments - 1.0) / 2.0
    return Received(sent / (messages * segments), waited_s / sent, timed / sent, behind)


class Queue(NamedTuple):
    """Segments of a flow at its slowest station: at least n of them with chance ``use decay^(n - 1)``.

    This is the law of geometric batches with exponential services (Burke 1975); for other services only its
    mean is right.
    """

    rate: float
    service_s: float
    wait_s: float

    @property
    def use(self) -> float:
        """Chance of a segment in service."""
        return min(self.rate * self.service_s, NEARLY)

    def followed(self, more: float) -> float:
        """Return the chance that a segment leaves another behind; `more`: chance that its burst goes on."""
        return 1.0 - (1.0 - self.use) * (1.0 - more)

    @property
    def decay(self) -> float:
        """Chance of one more segment."""
        waiting = self.rate * self.wait_s
        return waiting / (waiting + self.use) if waiting > 0.0 else 0.0

    def beyond(self, most: float) -> float:
        """Return the chance of more than `most` segments that wait."""
        return self.use * self.decay ** (1.0 + max(most, 0.0))

    def work_s(self, window: float) -> float:
        """Return the work at the station at a random time, if no more than a window is there (s)."""
        count = (1.0 - self.decay**window) / (1.0 - self.decay) if self.decay < 1.0 else window
        return self.use * self.service_s * (count - 0.5)

    def beyond_s(self, most: float) -> float:
        """Return the part of the mean wait that is beyond the first `most` waiting segments (s)."""
        return self.wait_s * self.decay ** max(most, 0.0)
