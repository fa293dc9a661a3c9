"""Connections limited by radio errors: the exact lock-step chain of TCP with the channel's state riding along.

Between two timeouts a connection goes through a short slow start from a full bucket. The round-trip times of that
slow start, on the ring's own path, are what the chain is fed with; the chain's sending rate decides how busy the air
is and so, in a fixed point, the round-trip times.

Approximations, with their measured errors in the documentation's page on models: one constant round-trip time; a
timeout of max(minimum, mean + 4 mean deviations); a buffer that cannot take a whole slow start caps the window at
the largest that fits; hops of different links see their channels at the same instant.
"""

from dataclasses import dataclass
from statistics import fmean

import numpy as np

from btqueue.baseband import SLOT_S, PacketType
from btqueue.channel import TwoStateChannel, packet_error_rate
from btqueue.channel.packet_trains import train_success_matrix
from btqueue.network.orbit import first_round_trips
from btqueue.network.ring import Piece, Ring
from btqueue.network.saturation import air_at, new_sender
from btqueue.network.sender_path import Air, SenderPath
from btqueue.scenario import Scenario
from btqueue.transport import LockstepRates, LossProcess, in_series, lockstep_rates

LARGEST_WINDOW = 8
"""Largest receive window of the exact chain that is enumerated at once; larger ones take too long."""
TOLERANCE = 1e-3
MOST_STEPS = 40
DAMPING = 0.6


@dataclass(frozen=True)
class RadioLimited:
    """Rates of a connection that only radio errors hold back, and the air that it lives in."""

    rates: LockstepRates
    rtt: float
    rto: float
    air_rate: float
    window_cap: int
    residual: float
    iterations: int


class RadioFixedPointFailed(RuntimeError):
    """The rate of a radio-limited connection and its round-trip time were not found to agree."""


def loss_process(scenario: Scenario, ring: Ring) -> LossProcess:
    """Return the losses of a data segment and of its acknowledgement over both hops.

    The two links fade independently, or together with `radio.fading = "per-piconet"`: then one channel state decides
    both hops, taken as one train of twice the packets.
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
    return link if hops == 2 else in_series([link, link])


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
    good, bad = (float(packet_error_rate(packet, b, bits=radio.bits)) for b in (radio.ber_good, radio.ber_bad))
    return (good * radio.good_s + bad * radio.bad_s) / (radio.good_s + radio.bad_s)


def largest_window_that_fits(ring: Ring, air: Air, receive_window: int) -> int:
    """Return the largest window whose segments, sent at once from idle, all pass both buffers; at least 1."""
    path = SenderPath(ring, air)
    for window in range(1, receive_window + 1):
        if path.send(ring.data, 0.0) == float("inf"):
            return max(1, window - 1)
    return receive_window


def solve_radio_limited(scenario: Scenario, ring: Ring) -> RadioLimited:
    """Find the rates of greedy connections that are held back by radio errors alone.

    Raises:
        RadioFixedPointFailed: no agreement within `MOST_STEPS`.
        NotConvergedError: the chain's stationary law was not found.
    """
    loss = loss_process(scenario, ring)
    transport = scenario.transport
    window = min(transport.receive_window_segments, LARGEST_WINDOW)
    air_rate, between_timeouts = ring.air_capacity / 4, 6.0
    for step in range(1, MOST_STEPS + 1):
        air = air_at(ring, air_rate)
        cap = largest_window_that_fits(ring, air, window)
        samples = first_round_trips(ring, air, new_sender(scenario), max(2, round(between_timeouts)))
        rtt = fmean(samples)
        deviation = fmean(abs(sample - rtt) for sample in samples)
        rto = min(max(transport.min_rto_s, rtt + 4 * deviation), transport.max_rto_s)
        rates = lockstep_rates(
            window=cap,
            loss=loss,
            rtt=rtt,
            min_rto=rto,
            max_rto=transport.max_rto_s,
            rto_backoff=transport.rto_backoff,
        )
        used = min(rates.sends, ring.air_capacity * (1 - 1e-6))
        residual = abs(used - air_rate) / ring.air_capacity
        wanted = min(rates.sends / max(rates.timeouts, 1e-9), 200.0)
        settled = abs(wanted - between_timeouts) < 1.0
        if residual < TOLERANCE and settled:
            return RadioLimited(rates, rtt, rto, air_rate, cap, residual, step)
        air_rate += DAMPING * (used - air_rate)
        between_timeouts += DAMPING * (wanted - between_timeouts)
    raise RadioFixedPointFailed(f"mismatch {residual:.2g} of the air's capacity after {MOST_STEPS} steps")
