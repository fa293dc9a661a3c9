"""Connections limited by radio errors: the lock-step chain of TCP with the channel's state riding along.

Between two timeouts a connection goes through a short slow start from a full bucket. The round-trip times of
that slow start, on the ring's own path, are what the chain is fed with; the chain's sending rate decides how
busy the air is and so, in a fixed point, the round-trip times.

Approximations, with their measured errors in the documentation's page on models: one constant round-trip
time; a timeout of max(minimum, mean + 4 mean deviations); segments that overflow a buffer in the slow start
are taken as independent losses; the two hops see their channels at the same instant.
"""

from dataclasses import dataclass, replace

import numpy as np

from btqueue.baseband import SLOT_S, PacketType
from btqueue.channel import TwoStateChannel, packet_error_rate
from btqueue.channel.packet_trains import train_success_matrix
from btqueue.network.ring_piconet.orbit import slow_start
from btqueue.network.ring_piconet.ring import Piece, Ring
from btqueue.network.ring_piconet.saturation import air_at, new_sender
from btqueue.network.ring_piconet.sender_path import Air
from btqueue.scenario import Scenario
from btqueue.transport import LockstepRates, LossProcess, NothingPasses, lockstep_rates
from btqueue.transport.loss_process import alike_in_series

LARGEST_WINDOW = 8
"""Largest receive window of the exact chain that is enumerated at once; larger ones take too long."""
SAMPLES = 100
"""Segments of a slow start that are followed; a geometric run is hardly ever longer."""
AFTER_TIMEOUT = 2.0
"""Slow-start threshold after a timeout with a small window (segments; RFC 5681, equation 4)."""
MOST_SEGMENTS = 200.0
TOLERANCE = 5e-3
"""Mismatch of the air's use, as a share of its capacity, that counts as solved."""
MOST_STEPS = 40
CHAIN_TOLERANCE = 1e-9
"""Residual of the chain while the fixed point is sought; the last solution is held to the chain's own."""
CORRECTIONS = 2
NOTHING_PASSES = 1e-9
"""Probability of an exchange below which the connection is taken as stalled for good."""
ALMOST_SATURATED = 0.999


@dataclass(frozen=True)
class RadioLimited:
    """Rates of a connection that only radio errors hold back, and the air that it lives in."""

    rates: LockstepRates
    rtt: float
    rto: float
    overflow: float
    residual: float
    iterations: int


class RadioFixedPointFailed(RuntimeError):
    """The rate of a radio-limited connection and its round-trip time were not found to agree."""


def loss_process(scenario: Scenario, ring: Ring) -> LossProcess:
    """Return the losses of a data segment and of its acknowledgement over both hops.

    The two links fade independently, or together with `radio.fading = "per-piconet"`: then one channel state
    decides both hops, taken as one train of twice the packets.
    """
    radio = scenario.radio
    data, ack = _types(ring.data), _types(ring.ack)
    if radio.model == "constant":
        return LossProcess.independent(
            *(1.0 - float(np.prod([(1.0 - _per(scenario, t)) ** 2 for t in types])) for types in (data, ack))
        )
    channel = TwoStateChannel(
        ber_good=radio.ber_good, ber_bad=radio.ber_bad, good_s=radio.good_s, bad_s=radio.bad_s
    )
    hops = 2 if radio.fading == "per-piconet" else 1
    losses = [
        1.0 - train_success_matrix(channel, types * hops, gap_s=SLOT_S, bits=radio.bits).sum(axis=1)
        for types in (data, ack)
    ]
    link = LossProcess(losses[0], losses[1], channel.transition)
    return link if hops == 2 else alike_in_series(link)


def packet_loss(scenario: Scenario, ring: Ring) -> float:
    """Return the mean share of packets that arrive damaged after both hops."""
    types = _types((*ring.data, *ring.ack))
    return float(np.mean([1.0 - (1.0 - _per(scenario, t)) ** 2 for t in types]))


def _types(pieces: tuple[Piece, ...]) -> list[PacketType]:
    return [piece.packet for piece in pieces]


def _per(scenario: Scenario, packet: PacketType) -> float:
    """Return the stationary error rate of a packet on one hop."""
    radio = scenario.radio
    if radio.model == "constant":
        return float(packet_error_rate(packet, radio.ber, bits=radio.bits))
    good, bad = (
        float(packet_error_rate(packet, b, bits=radio.bits)) for b in (radio.ber_good, radio.ber_bad)
    )
    return (good * radio.good_s + bad * radio.bad_s) / (radio.good_s + radio.bad_s)


@dataclass(frozen=True)
class SlowStart:
    """What a connection meets between two timeouts, averaged over its random length.

    Attributes:
        rtt, deviation: mean and mean deviation of the round-trip time (s).
        overflow: share of the segments of which a buffer refuses a part.
    """

    rtt: float
    deviation: float
    overflow: float


def between_timeouts(scenario: Scenario, ring: Ring, air: Air, segments: float) -> SlowStart:
    """Average the slow start from idle over a geometric number of segments with this mean."""
    sender = replace(new_sender(scenario), ssthresh=AFTER_TIMEOUT)
    rtts, losses = slow_start(ring, air, sender, SAMPLES)
    if not rtts:
        return SlowStart(rtt=np.nan, deviation=np.nan, overflow=1.0)
    survival = (1.0 - 1.0 / max(segments, 1.0 + 1e-9)) ** np.arange(SAMPLES)
    weights = survival[: len(rtts)] / survival[: len(rtts)].sum()
    rtt = float(weights @ rtts)
    return SlowStart(
        rtt=rtt,
        deviation=float(weights @ np.abs(np.array(rtts) - rtt)),
        overflow=float(survival[: len(losses)] @ losses / survival[: len(losses)].sum()),
    )


def with_overflow(loss: LossProcess, overflow: float) -> LossProcess:
    """Return the losses with an independent loss of data at the buffers added."""
    return LossProcess(1.0 - (1.0 - loss.data_loss) * (1.0 - overflow), loss.ack_loss, loss.transition)


def solve_radio_limited(scenario: Scenario, ring: Ring) -> RadioLimited:
    """Find the rates of greedy connections that are held back by radio errors alone.

    The fixed point: the rate at which the others use the air decides the round-trip time, and so the rate of
    the chain. That rate falls as the air gets busier, so the root is unique; the Illinois variant of false
    position finds it. If the chain would fill even a saturated air, radio errors are not what limits the
    rate, and the
    answer on that air is returned: an upper bound.

    Raises:
        RadioFixedPointFailed: no agreement within `MOST_STEPS`.
        NotConvergedError: the chain's stationary law was not found.
    """
    try:
        loss = loss_process(scenario, ring)
    except NothingPasses:
        return stalled(scenario)
    found = agreed_rates(scenario, ring, loss)
    if found.rates.goodput == 0.0:
        return found
    rates = chain_rates(scenario, loss, found.rtt, found.rto, found.overflow, windows=True)
    return replace(found, rates=rates)


def agreed_rates(scenario: Scenario, ring: Ring, loss: LossProcess) -> RadioLimited:
    """Solve the fixed point of `solve_radio_limited`; windows are left open, for speed."""
    capacity = ring.air_capacity
    segments = 6.0

    def answer(air_rate: float) -> tuple[RadioLimited, float]:
        nonlocal segments
        found = rates_on_air(scenario, ring, loss, air_at(ring, air_rate), segments)
        segments = segments_between_timeouts(found.rates)
        return found, (found.rates.sends - air_rate) / capacity

    low, high = 0.0, capacity * ALMOST_SATURATED
    found, at_high = answer(high)
    if at_high >= 0.0:
        return replace(found, residual=at_high, iterations=1)
    _, at_low = answer(low)
    for step in range(3, MOST_STEPS + 1):
        rate = low + (high - low) * at_low / (at_low - at_high)
        found, mismatch = answer(rate)
        if abs(mismatch) < TOLERANCE or (high - low) / capacity < TOLERANCE / 10:
            return replace(found, residual=abs(mismatch), iterations=step)
        if mismatch > 0.0:
            low, at_low, at_high = rate, mismatch, at_high / 2
        else:
            high, at_high, at_low = rate, mismatch, at_low / 2
    raise RadioFixedPointFailed(f"mismatch {mismatch:.2g} of the air's capacity after {MOST_STEPS} steps")


def rates_on_air(
    scenario: Scenario, ring: Ring, loss: LossProcess, air: Air, segments: float
) -> RadioLimited:
    """Solve the chain on a given air.

    The length of a run between timeouts starts as `segments` and is corrected; it hardly matters for the
    rates, so `CORRECTIONS` rounds are enough (1 % in the round-trip time).
    """
    transport = scenario.transport
    for _ in range(CORRECTIONS):
        met = between_timeouts(scenario, ring, air, segments)
        if np.max((1.0 - loss.data_loss) * (1.0 - loss.ack_loss)) * (1.0 - met.overflow) < NOTHING_PASSES:
            return stalled(scenario)
        rto = min(max(transport.min_rto_s, met.rtt + 4 * met.deviation), transport.max_rto_s)
        rates = chain_rates(scenario, loss, met.rtt, rto, met.overflow, windows=False)
        segments = (segments * segments_between_timeouts(rates)) ** 0.5
    return RadioLimited(rates, met.rtt, rto, met.overflow, 0.0, 0)


def chain_rates(
    scenario: Scenario, loss: LossProcess, rtt: float, rto: float, overflow: float, *, windows: bool
) -> LockstepRates:
    """Solve the chain for this round-trip time, timeout and share of overflow; in haste without windows."""
    transport = scenario.transport
    return lockstep_rates(
        window=min(transport.receive_window_segments, LARGEST_WINDOW),
        loss=with_overflow(loss, overflow),
        rtt=rtt,
        min_rto=rto,
        max_rto=transport.max_rto_s,
        rto_backoff=transport.rto_backoff,
        windows=windows,
        tolerance=1e-11 if windows else CHAIN_TOLERANCE,
    )


def stalled(scenario: Scenario) -> RadioLimited:
    """Return the answer for a path that lets nothing through: one segment for each expiry."""
    transport = scenario.transport
    rate = 1.0 / (transport.max_rto_s if transport.rto_backoff else transport.initial_rto_s)
    rates = LockstepRates(
        goodput=0.0,
        sends=rate,
        timeouts=rate,
        fast_retransmits=0.0,
        segment_loss=1.0,
        mean_cwnd=1.0,
        mean_window=1.0,
        mean_window_found=1.0,
        mean_window_at_round_ends=1.0,
        converged=True,
        residual=0.0,
        iterations=0,
        states=1,
    )
    return RadioLimited(rates, np.nan, 1.0 / rate, 0.0, 0.0, 0)


def segments_between_timeouts(rates: LockstepRates) -> float:
    """Return the mean number of segments sent from one timeout to the next, at most `MOST_SEGMENTS`."""
    return min(rates.sends / max(rates.timeouts, 1e-9), MOST_SEGMENTS)
