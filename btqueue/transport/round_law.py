"""Stationary law of NewReno's rounds (`round_structure`) on a channel with C hidden states, in JAX.

The fates of the segments come by state and place, each as a C x C matrix that also moves the channel on: so
segments may meet a channel that changes in between, and a token bucket that is emptier at each of them. How
long each round lasts comes by state. A segment that is sent again although it has arrived is counted as
delivered: its loss costs a timeout with the same chance as that of any other, which is what a delivered
segment is worth.
"""

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from btqueue.transport.round_structure import DUPLICATE_THRESHOLD, RoundStructure

LOST, ACKNOWLEDGED, ACK_LOST = range(3)
FORGOTTEN = 1e9
"""Seconds after which a channel has forgotten its state."""


class Channel(NamedTuple):
    """What the segments of rounds meet, by S states and W places, on C channel states.

    Attributes:
        inside: (3, S, W, C, C) probability of each fate, and move to the beginning of the next segment.
        closing: (3, S, W, C, C) the same to the end of the segment, the last of its round.
        behind, closing_behind: the same behind a loss.
        late: (3, S, W, C, C) the same for the segments of the next round, if this one has a loss.
        again: (3, S, C, C) the same for a retransmission after duplicate ACKs.
        move: (...) times (s) -> (..., C, C) transition matrices.
    """

    inside: jax.Array
    closing: jax.Array
    behind: jax.Array
    closing_behind: jax.Array
    late: jax.Array
    again: jax.Array
    move: Callable[[jax.Array], jax.Array]


class Times(NamedTuple):
    """How long rounds last (s).

    Attributes:
        gap: (S,) from a segment of a round to the next one.
        trip: (S, W) round trip by place.
        late_trip: (S,) round trip of a segment that is sent again after a fast retransmit.
        sent: (S,) from the first segment of a round to the end of its last one.
        timeout, longest: timeout without doublings, and its cap.
        backoff: factor of each expiry.
    """

    gap: jax.Array
    trip: jax.Array
    late_trip: jax.Array
    sent: jax.Array
    timeout: jax.Array
    longest: jax.Array
    backoff: jax.Array | float = 2.0


class Lengths(NamedTuple):
    """How long outcomes take from the start of a round (s).

    Attributes:
        period: (S,) of a round whose segments all got through.
        silent: (S,) until the timer of a round expires none of whose acknowledgements came.
        expired: (E,) until a timeout for want of duplicates.
        caught: (R,) until a fast retransmit.
        lap: (R,) from one filled hole to the next.
        timeout: of a retransmission that fails.
        elapsed: (M,) of each transition.
    """

    period: jax.Array
    silent: jax.Array
    expired: jax.Array
    caught: jax.Array
    lap: jax.Array
    timeout: jax.Array
    elapsed: jax.Array


class Moves(NamedTuple):
    """Transitions from round to round, beside those of `RoundStructure.moves`, columns of M rows.

    Attributes:
        flow: how often each comes about, in a round.
        late: segments sent of the next round.
    """

    flow: jax.Array
    late: jax.Array


class RoundLaw(NamedTuple):
    """Long-run behaviour of one greedy connection; rates a second.

    Attributes:
        goodput, timeouts, fast_retransmits: segments delivered, expiries, fast retransmits.
        window: lesser of congestion and receive window as ACKs and expiries find it (segments).
        sent: (S, W) segments by state and place.
        lost: (S, W) those of them that are lost.
        late, again: (S,) late segments, and fast retransmits with the holes filled after them.
        samples: (S, W) new ACKs.
        law: (S, C) stationary law of the starts of rounds.
        moves: see there.
        defect: largest difference of the sum of a state's probabilities from 1.
    """

    goodput: jax.Array
    timeouts: jax.Array
    fast_retransmits: jax.Array
    window: jax.Array
    sent: jax.Array
    lost: jax.Array
    late: jax.Array
    again: jax.Array
    samples: jax.Array
    law: jax.Array
    moves: Moves
    defect: jax.Array


def lengths(structure: RoundStructure, times: Times) -> Lengths:
    """Return how long outcomes take."""
    own, losses, found = structure, structure.losses, structure.recoveries
    source, at = losses.source, losses.first
    of = source[found.event]
    period, spread = times.trip[:, 0], times.gap * (own.size - 1)
    expiry = jnp.minimum(times.timeout * times.backoff ** np.maximum(own.timeouts, 0), times.longest)
    heard = np.maximum(at - 1, 0)
    started = jnp.where(at > 0, heard * times.gap[source] + times.trip[source, heard], spread[source])
    silent, expired = spread + expiry, started + expiry[source]
    caught, lap = (1.0 + found.next_round) * period[of], times.late_trip[of]
    failed = caught + times.timeout
    elapsed = [period, period, silent, expired, failed, failed, caught + (found.holes - 1) * lap]
    return Lengths(period, silent, expired, caught, lap, times.timeout, jnp.concatenate(elapsed))


def round_law(structure: RoundStructure, channel: Channel, times: Times) -> RoundLaw:
    """Solve the rounds of a connection."""
    own, losses, found = structure, structure.losses, structure.recoveries
    size, state = own.size, np.arange(own.states)
    places = channel.inside.shape[2]
    place = np.arange(places)
    here = jnp.asarray(place[None, :] < size[:, None])[..., None, None]
    last = jnp.asarray(place[None, :] == size[:, None] - 1)[..., None, None]
    identity = jnp.eye(channel.inside.shape[-1])
    fates = jnp.where(last, channel.closing, channel.inside)
    through = fates[ACKNOWLEDGED] + fates[ACK_LOST]
    likely = channel.move(jnp.asarray(FORGOTTEN))[0]
    arrived, quiet = (likely @ fate[0, 0].sum(axis=1) for fate in (through, fates[ACK_LOST]))
    unheard = quiet / arrived  # of segments that got through; by the first one after a timeout
    # what fills a hole has got through
    filled = jnp.asarray(own.filled[:, None] & (place == 0)[None, :])[..., None, None]
    moved = fates.sum(axis=0)
    fates = jnp.where(filled, jnp.stack([0 * moved, (1 - unheard) * moved, unheard * moved]), fates)
    lost, acked, silent = fates
    through = acked + silent
    through_here = jnp.where(here, through, identity)
    before = _running(through_here)  # (S, W + 1, C, C): all before a place got through

    period, silence, lasted, rounds, lap, _, _ = took = lengths(structure, times)
    waited = channel.move(jnp.maximum(period - times.sent, 0.0))
    all_heard = before[state, size - 1] @ acked[state, size - 1]
    none_heard = _running(jnp.where(here, silent, identity))[:, -1]
    last_silent = (before[state, size - 1] @ silent[state, size - 1]) - none_heard

    # loss events: (E, H, C, C) by the number of segments lost behind the first one
    source, at = losses.source, losses.first
    most = int((losses.early + losses.late).max(initial=0))
    begun = before[source, at] @ lost[source, at]
    late_through = channel.late[ACKNOWLEDGED] + channel.late[ACK_LOST]
    late_through, late_lost = late_through * (1 - unheard), channel.late[LOST] + late_through * unheard
    further = jnp.where(last, channel.closing_behind, channel.behind)
    in_round = jnp.stack([further[ACKNOWLEDGED] + further[ACK_LOST], further[LOST]])
    in_next = jnp.stack([late_through, late_lost])
    entering = waited[None, :, None] @ in_next
    neither = jnp.stack([identity, 0.0 * identity])[:, None]
    row = np.arange(most)[:, None]
    early_place = np.minimum(at + 1 + row, places - 1)
    late_place = np.clip(row - losses.early, 0, places - 1)

    def behind_loss(patterns: jax.Array, where: tuple) -> tuple[jax.Array, None]:
        step, early_place, late_place = where
        good, bad = (
            jnp.where(
                (step < losses.early)[:, None, None],
                in_round[:, source, early_place],
                jnp.where(
                    (step == losses.early)[:, None, None],
                    entering[:, source, late_place],
                    in_next[:, source, late_place],
                ),
            )
            * (step < losses.early + losses.late)[:, None, None]
            + neither * (step >= losses.early + losses.late)[:, None, None]
        )
        one_more = patterns @ bad[:, None]
        one_more = jnp.concatenate([jnp.zeros_like(one_more[:, :1]), one_more[:, :-1]], axis=1)
        return (patterns @ good[:, None]) + one_more, None

    patterns = jnp.zeros((begun.shape[0], most + 1, *begun.shape[1:])).at[:, 0].set(begun)
    patterns, _ = jax.lax.scan(behind_loss, patterns, (np.arange(most), early_place, late_place))
    behind = losses.early + losses.late
    arrived = np.maximum(behind[:, None] - np.arange(most + 1)[None, :], 0)
    total = patterns.sum(axis=1)
    by_pattern = patterns.sum(axis=3)  # (E, H, C)
    delivered = at[:, None] * total.sum(axis=2) + (arrived[..., None] * by_pattern).sum(axis=1)
    heard = np.maximum(at - 1, 0)
    spent = jnp.where(losses.late > 0, period[source], 0.0)
    on = channel.move(jnp.maximum(lasted - spent - times.sent[source], 0.0))
    # a segment before the loss whose ACK was lost is sent again for nothing
    after = _running(jnp.where(here, further[LOST], identity)[:, ::-1].swapaxes(-1, -2)).swapaxes(-1, -2)[
        :, ::-1
    ]
    quiet = before[source, heard] @ silent[source, heard]
    quiet = jnp.where((at > own.filled[source])[:, None, None], quiet, identity)
    none_behind = (quiet @ lost[source, at] @ after[source, at + 1]) * losses.unheard[:, None, None]

    # recoveries
    event, holes = found.event, found.holes
    of = source[event] if event.size else event
    enough = three_of(int(behind.max(initial=0)), unheard)[found.duplicates]
    caught = patterns[event, holes - 1] * enough[:, None, None]
    expired = total - _added(jnp.zeros_like(total), event, caught)
    repeat = channel.again
    again_through = repeat[ACKNOWLEDGED] + repeat[ACK_LOST]
    current = caught @ waited[of]
    sent_again = jnp.zeros(current.shape[:2])
    later_failed = jnp.zeros_like(current)
    first_failed = current @ repeat[LOST][of]
    recovered = jnp.zeros_like(current)
    lap_rounds, released, let_out = (jnp.zeros(current.shape[:2]) for _ in range(3))
    chance = (again_through.sum(axis=2) @ likely)[of]
    for hole in range(int(holes.max(initial=0))):
        going, ends = (holes > hole)[:, None, None], (holes == hole + 1)[:, None, None]
        sent_again = sent_again + jnp.where(going[..., 0], current.sum(axis=2), 0.0)
        if hole > 0:
            later_failed = later_failed + jnp.where(going, (current @ repeat[LOST][of]), 0.0)
        current = current @ again_through[of]
        recovered = jnp.where(ends, current, recovered)
        later_failed = later_failed + jnp.where(going & ~ends, unheard * current, 0.0)
        current = (1 - unheard) * current
        goes_on = jnp.where((going & ~ends)[..., 0], current.sum(axis=2), 0.0)
        lap_rounds = lap_rounds + goes_on
        released = released + goes_on * (1.0 + (found.refill + hole) * chance)[:, None]
        let_out = let_out + goes_on * (found.refill + hole)[:, None]
        current = current @ channel.move(lap)

    on_timer = channel.move(jnp.broadcast_to(times.timeout, lap.shape))
    first_failed, later_failed = (first_failed @ on_timer), (later_failed @ on_timer)
    moves = own.moves
    chances = jnp.concatenate([
        all_heard @ waited, last_silent @ waited,
        none_heard @ channel.move(jnp.maximum(silence - times.sent, 0.0)),
        expired @ on, first_failed, later_failed, recovered,
    ])  # fmt: skip
    law, defect = _stationary(own.states, moves.source, moves.target, chances)
    flow = jnp.einsum("mi,mij->m", law[moves.source], chances)

    def each(values: jax.Array, rows: np.ndarray) -> jax.Array:
        """(M, C) -> by row."""
        return (law[rows] * values).sum(axis=1)

    heard_flow = flow[: 2 * own.states]
    in_recovery = each(lap_rounds, of)
    seconds = flow[: 3 * own.states] @ took.elapsed[: 3 * own.states]
    seconds = seconds + each(expired.sum(axis=2), source) @ lasted + each(caught.sum(axis=2), of) @ rounds
    seconds = seconds + in_recovery @ lap
    failed = each(first_failed.sum(axis=2) + later_failed.sum(axis=2), of).sum()
    seconds = seconds + failed * times.timeout
    segments = heard_flow @ np.tile(size, 2) + flow[2 * own.states : 3 * own.states] @ (size - 1)
    segments = segments + each(delivered, source).sum() + each(released, of).sum()
    segments = segments - each(none_behind.sum(axis=2), source).sum()
    timeouts = flow[2 * own.states : 3 * own.states].sum() + each(expired.sum(axis=2), source).sum() + failed
    fast = each(caught.sum(axis=2), of).sum()
    number = each(total.sum(axis=2), source)
    late_sent = _added(jnp.zeros(own.states), source, number * losses.late * (1 - unheard))
    late_sent = _added(late_sent, of, each(let_out, of))
    again = _added(jnp.zeros(own.states), of, each(sent_again, of))
    at_place, lost_at, samples = _places(law, own, fates, before, acked)
    expiries = _added(jnp.zeros(own.states), state, flow[2 * own.states : 3 * own.states])
    expiries = _added(expiries, source, each(expired.sum(axis=2), source))
    weight = samples.sum(axis=1) + expiries
    return RoundLaw(
        goodput=segments / seconds,
        timeouts=timeouts / seconds,
        fast_retransmits=fast / seconds,
        window=weight @ own.found / weight.sum(),
        sent=at_place / seconds,
        lost=lost_at / seconds,
        late=late_sent / seconds,
        again=again / seconds,
        samples=samples / seconds,
        law=law,
        moves=Moves(flow, (1 - unheard) * moves.late),
        defect=defect,
    )


def _running(steps: jax.Array) -> jax.Array:
    """(S, W, C, C) matrices -> (S, W + 1, C, C) products of the first ones, beginning with none."""
    begin = jnp.broadcast_to(jnp.eye(steps.shape[-1]), steps[:, 0].shape)

    def multiply(so_far: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        return (found := (so_far @ step)), found

    _, rest = jax.lax.scan(multiply, begin, steps.swapaxes(0, 1))
    return jnp.concatenate([begin[:, None], rest.swapaxes(0, 1)], axis=1)


def _added(to: jax.Array, rows: np.ndarray, values: jax.Array) -> jax.Array:
    return to.at[rows].add(values)


def _places(
    law: jax.Array, own: RoundStructure, fates: jax.Array, before: jax.Array, acked: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return how often a segment is sent, lost and newly acknowledged, (S, W) each, in a round."""
    places = fates.shape[2]
    moved, current, sent, lost = fates.sum(axis=0), law, [], []
    for k in range(places):
        present = jnp.asarray((k < own.size) & ~(own.filled & (k == 0)))
        sent.append(jnp.where(present, current.sum(axis=1), 0.0))
        gone = jnp.einsum("si,sij->s", current, fates[LOST, :, k])
        lost.append(jnp.where(present, gone, 0.0))
        current = jnp.einsum("si,sij->sj", current, moved[:, k])
    new = (before[:, :places] @ acked).sum(axis=3)
    samples = jnp.einsum("si,swi->sw", law, new) * (np.arange(places)[None, :] < own.size[:, None])
    return jnp.stack(sent, axis=1), jnp.stack(lost, axis=1), samples


def three_of(most: int, ack_loss: jax.Array) -> jax.Array:
    """(most + 1,) chance that at least three of k duplicate ACKs arrive.

    Example:
        >>> from btqueue.transport.round_law import three_of
        >>> import jax.numpy as jnp
        >>> [round(float(chance), 4) for chance in three_of(4, jnp.array(0.1))]
        [0.0, 0.0, 0.0, 0.729, 0.9477]
    """
    k = np.arange(most + 1)
    missed = sum(
        np.array([comb(int(n), r) for n in k]) * (1.0 - ack_loss) ** r * ack_loss ** np.maximum(k - r, 0)
        for r in range(DUPLICATE_THRESHOLD)
    )
    return jnp.where(k >= DUPLICATE_THRESHOLD, 1.0 - missed, 0.0)


def _stationary(
    states: int, sources: np.ndarray, targets: np.ndarray, chances: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the stationary law (S, C) of the chain of these blocks, and its defect."""
    channel = chances.shape[-1]
    chain = jnp.zeros((states, states, channel, channel)).at[sources, targets].add(chances)
    chain = chain.transpose(0, 2, 1, 3).reshape(states * channel, states * channel)
    unknowns = states * channel
    system = (jnp.eye(unknowns) - chain.T).at[-1].set(1.0)
    law = jnp.linalg.solve(system, jnp.zeros(unknowns).at[-1].set(1.0))
    return law.reshape(states, channel), jnp.abs(chain.sum(axis=1) - 1.0).max()
