"""One greedy connection: TCP's exact chain with the channels and the token bucket as hidden states.

The hidden state is that of the channels and the level of the bucket at the beginning of the round. The
channels run on by the time between the segments, and change with what happens to them; the bucket fills by
the time from one round to the next.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from btqueue.network.coupled.bucket import Bucket
from btqueue.network.coupled.counted import CountedRounds
from btqueue.network.coupled.passage import Moves, Visits, stationary_visits
from btqueue.network.coupled.radio import Crossing
from btqueue.network.coupled.rounds import Rounds
from btqueue.network.coupled.smooth import longer, positive
from btqueue.transport.newreno_chain import Fate

Array = NDArray[np.float64]

SOFT = 0.1
"""Width of the join of tokens and air as what keeps packets apart, as a share of the latter."""


@dataclass(frozen=True, eq=False)
class Connection:
    """Long-run behaviour of one connection; rates per second, times in seconds, windows in segments.

    Attributes:
        goodput: segments delivered in order.
        sends: segments sent.
        on_air: data segments that the bucket lets through; parts count as such.
        received: data segments received.
        timeouts, fast_retransmits: events.
        trips, weights: round-trip times, and the share of each.
        backlog: mean wait of a packet that comes to the token buffer at a random time.
        full: share of the time that the token buffer has no place.
        waiting: mean packets in the token buffer.
        window: as acknowledgements and expiries find it; nan if the chain does not know it.
        law: stationary law of the chain at its cut, from which a later search may start.
        passes: of the solver through the chain.
    """

    goodput: float
    sends: float
    on_air: float
    received: float
    timeouts: float
    fast_retransmits: float
    trips: Array
    weights: Array
    backlog: float
    full: float
    waiting: float
    window: float
    law: Array
    passes: int

    @property
    def rtt(self) -> float:
        """Mean round-trip time."""
        return float(self.weights @ self.trips)

    @property
    def deviation(self) -> float:
        """Mean deviation of the round-trip time."""
        return float(self.weights @ np.abs(self.trips - self.rtt))


def moves_of(
    counted: CountedRounds, bucket: Bucket, crossing: Crossing, rounds: Rounds, ack_refused: float
) -> tuple[Moves, Array]:
    """Return the moves of the hidden state, and (G, F + 1, K, C) the probability of each fate."""
    waits = bucket.packet_waits(rounds.level)  # (packets, G, K)
    steps = crossing.steps_s[:, None, None]
    later = positive(np.diff(waits, axis=0) - steps, SOFT * steps)
    fates = np.moveaxis(crossing.fates(later, ack_refused), 0, 1)  # (G, F, K, C, C)
    refused = bucket.refuses(rounds.level)[:, None, :, None, None]
    end = waits[0] + crossing.train_s + later.sum(axis=0)
    following = rounds.gap + bucket.wait(
        rounds.level + bucket.price - bucket.rate * rounds.gap + bucket.prices[0]
    )
    following = longer(following, waits[0] + rounds.apart, SOFT * rounds.apart)
    on = crossing.transition(np.maximum(following - end, 0.0))[:, None]
    passing = crossing.transition(rounds.gap)[:, None]
    still = np.broadcast_to(np.eye(crossing.states), passing.shape)
    first, shares = bucket.share(bucket.levels - bucket.lost_tokens(rounds.level))
    drained, drained_share = bucket.share(rounds.next_level)
    closing = np.concatenate([fates * (1.0 - refused), still * refused], axis=1)
    inside = np.concatenate([(fates @ on) * (1.0 - refused), passing * refused], axis=1)
    moves = Moves(
        place=counted.place,
        segment=np.ascontiguousarray(np.swapaxes(np.stack([inside, closing]), 2, 3)),
        refused=first,
        refused_share=shares,
        pause=crossing.transition(np.maximum(rounds.rest - crossing.train_s, 0.0)),
        drained=drained,
        drained_share=drained_share,
    )
    return moves, closing.sum(axis=4)


def solve_connection(
    counted: CountedRounds,
    bucket: Bucket,
    crossing: Crossing,
    rounds: Rounds,
    ack_refused: float,
    *,
    near: Array | None = None,
    tolerance: float = 1e-11,
) -> Connection:
    """Solve the chain of a connection for a given state of the network.

    Args:
        counted: TCP's chain.
        bucket: the sender's.
        crossing: what the radio does to a segment.
        rounds: how long they last.
        ack_refused: probability that a token buffer refuses the acknowledgement.
        near: `law` of a similar connection.
        tolerance: largest residual of the stationary law.

    Raises:
        NotConvergedError: the stationary law was not found.
    """
    moves, fate = moves_of(counted, bucket, crossing, rounds, ack_refused)
    visits = stationary_visits(counted.structure, moves, near, tolerance=tolerance)
    return _rates(counted, bucket, rounds, visits, fate)


def _rates(counted: CountedRounds, bucket: Bucket, rounds: Rounds, visits: Visits, fate: Array) -> Connection:
    """Divide what is earned from one visit to the cut to the next by the time that it takes."""
    structure = counted.structure
    by_fate = np.empty((structure.states, fate.shape[1]))
    at_place = np.empty(fate.shape[:3])  # (G, F + 1, K)
    samples = np.empty(rounds.trip.shape)
    news = structure.delivered[:, Fate.ACKNOWLEDGED] > 0
    for place, members in enumerate(counted.members):
        here = visits.states[members]
        by_fate[members] = here.reshape(members.size, -1) @ fate[place].reshape(fate.shape[1], -1).T
        at_place[place] = (here.sum(axis=0) * fate[place]).sum(axis=2)
        samples[place] = (here[news[members]].sum(axis=0) * fate[place, Fate.ACKNOWLEDGED]).sum(axis=1)
    by_fate[:, Fate.LOST] += by_fate[:, -1]
    by_fate = by_fate[:, :-1]
    ends = visits.exits.sum(axis=2)  # (X, K)
    seconds = float((ends * rounds.elapsed[visits.ending]).sum())
    taken = at_place[:, :-1].sum(axis=1)
    taken_of_refused = at_place[:, -1] * (1.0 - bucket.lost_tokens(rounds.level) / bucket.price)
    wait = bucket.wait(rounds.level + bucket.price)
    own = np.minimum(wait, bucket.price / bucket.rate)  # for so long its own tokens are what all wait for
    no_place = bucket.wait(rounds.level + bucket.price + bucket.packet - bucket.top)
    backlog = float((taken * own * (wait - own / 2)).sum()) / seconds
    expiring = np.flatnonzero(counted.endings[:, 3] >= 0)
    timeouts = float(ends[np.isin(visits.ending, expiring)].sum())
    acks = by_fate[:, Fate.ACKNOWLEDGED]
    used = np.minimum(structure.cwnd, structure.window)
    at_expiries = float((by_fate * used)[np.isin(structure.ending, expiring)].sum())
    return Connection(
        goodput=float((by_fate * structure.delivered).sum()) / seconds,
        sends=float(by_fate.sum()) / seconds,
        on_air=float((taken + taken_of_refused).sum()) / seconds,
        received=float(at_place[:, Fate.ACKNOWLEDGED : structure.fates].sum()) / seconds,
        timeouts=timeouts / seconds,
        fast_retransmits=float(by_fate[structure.fast_retransmit].sum()) / seconds,
        trips=rounds.trip.ravel(),
        weights=(samples / samples.sum()).ravel(),
        backlog=backlog,
        full=float((taken * np.minimum(no_place, own)).sum()) / seconds,
        waiting=backlog * bucket.rate / bucket.packet,
        window=(float(acks @ counted.found) + at_expiries) / (float(acks.sum()) + timeouts),
        law=visits.law,
        passes=visits.iterations,
    )
