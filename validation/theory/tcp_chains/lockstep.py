"""Stationary rates of one TCP connection with a small window: the exact lock-step chain.

Exact for its assumptions: lock-step rounds of constant length, one retransmission timeout value, losses as in
`LossProcess`. What lock-step leaves out is the spreading of a burst over the round-trip time.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tcp_chains import MAX_BACKOFF
from tcp_chains.chain import ROUND_END, TransitionStructure, compile_chain
from tcp_chains.loss_process import LossProcess
from tcp_chains.lumping import lump, window_found
from tcp_chains.newreno_chain import Fate, Variant
from tcp_chains.round_map import RoundMap, stationary_law

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LockstepRates:
    """Long-run behaviour of one greedy connection; rates are per second, windows in segments.

    Attributes:
        goodput: segments delivered in order.
        sends: segments sent, retransmissions included.
        timeouts: expiries of the retransmission timer.
        fast_retransmits: fast retransmits.
        segment_loss: fraction of the segments sent that were lost.
        mean_window: the lesser of congestion and receive window, averaged over the arrivals of ACKs.
        mean_window_found: the same as ACKs and expiries find it, before they change it.
        mean_window_at_round_ends: its whole part, averaged over the ends of rounds (before any timeout).
        states: number of states of the lumped chain, hidden states included.
    """

    goodput: float
    sends: float
    timeouts: float
    fast_retransmits: float
    segment_loss: float
    mean_window: float
    mean_window_found: float
    mean_window_at_round_ends: float
    states: int


def lockstep_rates(
    *,
    window: int,
    loss: LossProcess,
    rtt: float,
    min_rto: float = 1.0,
    max_rto: float = 64.0,
    rto_backoff: bool = True,
    segment_spacing: float = 0.0,
    variant: Variant = Variant.NEWRENO,
    tolerance: float = 1e-11,
) -> LockstepRates:
    """Solve the exact chain of one greedy TCP connection.

    The initial slow-start threshold does not matter in the long run and is no argument.

    Args:
        window: receive window in segments, 1 to 10 (seconds to enumerate beyond 8).
        loss: losses of data segments and ACKs.
        rtt: round-trip time in seconds.
        min_rto: floor of the retransmission timeout in seconds; with a constant round-trip time the timeout
            is the larger of the two.
        max_rto: cap of the timeout after backoff, in seconds.
        rto_backoff: whether each expiry doubles the timeout; six times at most, so that with a floor below
            max_rto / 64 rates at heavy loss come out too high.
        segment_spacing: time between the segments of a burst in seconds. Only the loss process sees it:
            within a round it runs on by that much from segment to segment, and by a whole round-trip time
            after the last.
        variant: TCP variant.
        tolerance: largest residual accepted.

    Raises:
        NotConvergedError: the stationary law was not found.
    """
    ack_loss = bool(np.any(loss.ack_loss > 0.0))
    structure = lump(compile_chain(window, variant=variant, ack_loss=ack_loss))
    durations = round_durations(structure, rtt=rtt, min_rto=min_rto, max_rto=max_rto, rto_backoff=rto_backoff)
    round_map = RoundMap(
        structure=structure,
        fate_probability=fate_probabilities(loss)[: structure.fates],
        between_segments=loss.transition(segment_spacing),
        between_rounds=np.stack([loss.transition(duration) for duration in durations]),
    )
    visits = stationary_law(round_map, tolerance=tolerance).visits
    flow = visits @ round_map.fate_probability.T  # (N, F): every reward is a sum over transitions
    seconds = float((flow * durations[structure.ending]).sum())
    ends = np.where(structure.ending >= ROUND_END, flow, 0.0)
    acks, used = flow[:, Fate.ACKNOWLEDGED], np.minimum(structure.cwnd, structure.window)
    return LockstepRates(
        goodput=float((flow * structure.delivered).sum()) / seconds,
        sends=float(flow.sum()) / seconds,
        timeouts=float(flow[structure.ending > ROUND_END].sum()) / seconds,
        fast_retransmits=float(flow[structure.fast_retransmit].sum()) / seconds,
        segment_loss=float(flow[:, Fate.LOST].sum() / flow.sum()),
        mean_window=float(acks @ used[:, Fate.ACKNOWLEDGED] / acks.sum()),
        mean_window_found=_mean_window_found(structure, flow),
        mean_window_at_round_ends=float((ends * np.floor(used)).sum() / ends.sum()),
        states=visits.size,
    )


def fate_probabilities(loss: LossProcess) -> Array:
    """(3, m) probability of each `Fate` by hidden state."""
    through = 1.0 - loss.data_loss
    return np.stack([loss.data_loss, through * (1.0 - loss.ack_loss), through * loss.ack_loss])


def round_durations(
    structure: TransitionStructure, *, rtt: float, min_rto: float, max_rto: float, rto_backoff: bool
) -> Array:
    """Seconds from the start of a round to the start of the next, by ending (0 for WITHIN_ROUND).

    A timeout comes when the timer, started `age` rounds before the end of the round, runs out; at once if it
    would have run out while duplicate ACKs still kept the sender busy.
    """
    backoff, age = structure.timeout_kinds.T
    doubled = np.maximum(min_rto, rtt) * 2.0 ** (backoff if rto_backoff else 0 * backoff)
    wait = np.maximum(np.minimum(doubled, max(max_rto, rtt)) - age * rtt, 0.0)
    return np.concatenate([[0.0, rtt], rtt + wait])


def _mean_window_found(structure: TransitionStructure, flow: Array) -> float:
    """Mean of the window that ACKs and expiries of the timer find."""
    acks = (flow * structure.acks).sum(axis=1)
    expiries = np.where(structure.ending > ROUND_END, flow, 0.0)
    at_expiries = float((expiries * np.minimum(structure.cwnd, structure.window)).sum())
    return float(acks @ window_found(structure) + at_expiries) / float(acks.sum() + expiries.sum())


class SegmentCost(NamedTuple):
    """What TCP spends on a delivered segment, whatever the round trip and the timeout are.

    With a round-trip time R, a timeout RTO and a cap, a segment takes, exactly as long as no timer is older
    than itself (RTO >= age R),

        R rounds + sum_k stages[k] min(2^k RTO, cap) + delays * (delay of an ACK that is held back).

    Attributes:
        rounds: round trips, less the part of them in which a timer that expires has already run.
        stages: (MAX_BACKOFF + 1,) timeouts by the doublings before them; the last counts all later ones, too.
        fast_retransmits: fast retransmits.
        sends: transmissions.
        delays: waits for the timer of a delayed ACK.
        window: mean of the lesser of cwnd and receive window, as ACKs and expiries find it (segments).
    """

    rounds: float
    stages: Array
    fast_retransmits: float
    sends: float
    delays: float
    window: float


def segment_cost(
    structure: TransitionStructure,
    loss: LossProcess,
    between_segments: float = 0.0,
    between_rounds: float = 1.0,
    *,
    tolerance: float = 1e-12,
) -> SegmentCost:
    """Solve the exact chain free of times.

    A hidden channel is forgotten during a timeout: exact where that is long against the channel's memory.

    Args:
        structure: of the sender, lumped with its windows.
        loss: losses of data segments and ACKs.
        between_segments: what passes for a hidden channel from one segment of a round to the next, in the
            unit of `loss.transition`.
        between_rounds: the same, from the last segment of a round to the first of the next.
        tolerance: largest residual of the stationary law.

    Raises:
        NotConvergedError: the stationary law was not found.
    """
    states = loss.channel_states
    endings = ROUND_END + 1 + len(structure.timeout_kinds)
    forgotten = loss.transition(np.inf) if states > 1 else np.ones((1, 1))
    within, onwards = loss.transition(between_segments), loss.transition(between_rounds)
    to_rounds = np.stack([within, onwards, *[forgotten] * (endings - 2)])
    round_map = RoundMap(structure, fate_probabilities(loss)[: structure.fates], within, to_rounds)
    flow = stationary_law(round_map, tolerance=tolerance).visits @ round_map.fate_probability.T
    flow = flow / (flow * structure.delivered).sum()
    backoff, age = structure.timeout_kinds.T
    kinds = np.bincount(structure.ending.ravel(), flow.ravel(), minlength=endings)[ROUND_END + 1 :]
    return SegmentCost(
        rounds=float(flow[structure.ending >= ROUND_END].sum() - kinds @ age),
        stages=np.bincount(backoff, kinds, minlength=MAX_BACKOFF + 1).astype(float),
        fast_retransmits=float(flow[structure.fast_retransmit].sum()),
        sends=float(flow.sum()),
        delays=float(flow[structure.held_up].sum()),
        window=_mean_window_found(structure, flow),
    )
