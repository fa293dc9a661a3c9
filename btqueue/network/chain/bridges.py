"""Walk-in bridges in a chain: how often each goes round, and what it carries a round.

A bridge is in its two piconets in turn. An exchange has `frames` frames at most, one way data, the other way
acknowledgements, and then the bridge leaves for the other piconet, where it waits for its poll. Meanwhile the
central serves the neighbour on its other side:

* an end of the chain until nothing is left, the segments and acknowledgements of the bridge's last exchange;
  this *tour* may outlast the bridge's absence, and then the bridge waits;
* another bridge for one exchange;
* nobody, if the chain ends at the central.

After the tour the central polls in vain, every `grid` slots, until the bridge is there. With wait `w`, tour
`V` and exchange `A` in piconet 1 and the same in piconet 2,

    w1 = first poll of V1, V1 + grid, ... after D1 = w2 + A2, less D1;       w2 likewise from w1 + A1,

whose laws are iterated on a lattice (`waits`). With data always waiting, a round carries ``frames / (frames
with data of a segment)`` segments in the time ``A1 + A2 + E[w1] + E[w2]``.

Approximations: the segments of successive exchanges are independent, and bridges of one piconet take turns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.chain.link import HopService, Piece

Law = NDArray[np.float64]
Transform = NDArray[np.complex128]

LATTICE = 2048
"""Points of the lattice of times; its step is one slot or, for slow links, a power of two."""
MISSED_POLL = 2
"""Slots of POLL and NULL: a poll in vain, and the visit to a neighbour that has nothing."""
WAITING_TOLERANCE = 1e-4
MOST_ITERATIONS = 200


class Side(NamedTuple):
    """A piconet as its bridge sees it.

    Attributes:
        tour: law of the tour in lattice steps.
        grid: slots between polls after the tour.
        polls_first: whether a poll at the very slot of the bridge's arrival misses it. All piconets keep to
            one grid of slot pairs, so this is frequent; the central of the lower number polls first.
    """

    tour: Law
    grid: int
    polls_first: bool


class BridgeRound(NamedTuple):
    """A bridge's round with data always waiting: its mean slots, and how the laws of the waits were found."""

    slots: float
    iterations: int
    residual: float


def completed_law(hop: HopService, frames: int) -> Law:
    """Law of the segments that an exchange of so many frames completes, in stationarity.

    The state is the piece that is next; a segment of ``n`` pieces is in each for 1/s frames.
    """
    pieces = len(hop.data)
    state = np.zeros((frames // pieces + 2, pieces))
    state[0] = [1.0 / piece.success / hop.data_frames for piece in hop.data]
    for _ in range(frames):
        after = np.zeros_like(state)
        for index, piece in enumerate(hop.data):
            after[:, index] += (1.0 - piece.success) * state[:, index]
            if index + 1 < pieces:
                after[:, index + 1] += piece.success * state[:, index]
            else:
                after[1:, 0] += piece.success * state[:-1, index]
        state = after
    return state.sum(axis=1)


def exchange_slots(hop: HopService, frames: int) -> float:
    """Mean slots of an exchange that finds data: the bridge's first poll, and frames as on any hop."""
    return MISSED_POLL + frames * hop.segment_slots / hop.data_frames


class Lattice(NamedTuple):
    """Transforms on a lattice of times: laws are products, and a step has `step` slots."""

    step: int

    def delay(self, slots: float) -> Transform:
        """Transform of so many slots; between two points it is split so that the mean is right."""
        turn = np.exp(-2j * np.pi * np.fft.rfftfreq(LATTICE))
        steps, rest = divmod(slots / self.step, 1.0)
        return np.asarray(turn**steps * (1.0 - rest + rest * turn), complex)

    def law(self, transform: Transform) -> Law:
        """The law with this transform."""
        law = np.maximum(np.fft.irfft(transform, LATTICE), 0.0)
        return law / law.sum()


def lattice_for(longest: float) -> Lattice:
    """A lattice that holds some times the longest mean (slots)."""
    step = 1
    while longest * 6.0 > step * LATTICE:
        step *= 2
    return Lattice(step)


def _repeated(piece: Piece, slots: float, lattice: Lattice) -> Transform:
    """Transform of the slots of a piece that takes `slots` at each attempt."""
    attempt = lattice.delay(slots)
    return piece.success * attempt / (1.0 - (1.0 - piece.success) * attempt)


def end_tour(hop: HopService, completed: Law, lattice: Lattice) -> Law:
    """Law of the visit to an end of the chain, which exchanges what the bridge's exchange has completed."""
    segment = np.ones(LATTICE // 2 + 1, complex)
    last = lattice.delay(MISSED_POLL)
    for piece in hop.data:
        segment = segment * _repeated(piece, piece.slots + 1, lattice)
    for piece in hop.ack:
        segment = segment * _repeated(piece, piece.slots - 1, lattice)
        last = last * _repeated(piece, MISSED_POLL, lattice)
    visits = [lattice.delay(MISSED_POLL), *(segment**count * last for count in range(1, len(completed)))]
    return lattice.law(np.tensordot(completed, np.array(visits), 1))


def exchange_law(hop: HopService, frames: int, lattice: Lattice) -> Law:
    """Law of an exchange that finds data: each frame carries an acknowledgement by the share of frames."""

    def attempt(pieces: tuple[Piece, ...], count: float) -> Transform:
        shares = [1.0 / piece.success / count for piece in pieces]
        return np.tensordot(shares, np.array([lattice.delay(piece.slots) for piece in pieces]), 1)

    answered = min(1.0, hop.ack_frames / hop.data_frames)
    answer = (1.0 - answered) * lattice.delay(1) + answered * attempt(hop.ack, hop.ack_frames)
    frame = attempt(hop.data, hop.data_frames) * answer
    return lattice.law(lattice.delay(MISSED_POLL) * frame**frames)


def _wait(side: Side, absence: Law, step: int) -> Law:
    """Law of the wait for a poll: the tour's excess over the absence, or what is left of the polls' grid."""
    transform = np.fft.rfft(side.tour, 2 * LATTICE) * np.conj(np.fft.rfft(absence, 2 * LATTICE))
    difference = np.maximum(np.fft.irfft(transform, 2 * LATTICE), 0.0)
    # the tour is over 0, 1, 2, ... steps before the bridge comes
    early = np.concatenate([difference[:1], difference[:LATTICE:-1]])
    wait = difference[:LATTICE].copy()
    wait[0] = 0.0
    if step == 1:
        left = -np.arange(len(early)) % side.grid
        left[left == 0] = side.grid if side.polls_first else 0
        np.add.at(wait, left, early)
    else:
        mean = (side.grid / 2.0 + (1.0 if side.polls_first else -1.0)) / step
        wait[0] += early.sum() * (1.0 - mean)
        wait[1] += early.sum() * mean
    return wait / wait.sum()


def waits(
    sides: tuple[Side, Side], exchanges: tuple[Law, Law], step: int
) -> tuple[tuple[float, float], int, float]:
    """Mean waits of a bridge for its poll on each side (slots), and the iterations and residual."""
    laws = [np.eye(1, LATTICE)[0], np.eye(1, LATTICE)[0]]
    times = np.arange(LATTICE) * step
    means = [0.0, 0.0]
    residual = np.inf
    for iteration in range(1, MOST_ITERATIONS + 1):
        before = list(means)
        for here, there in ((0, 1), (1, 0)):
            both = np.fft.irfft(
                np.fft.rfft(laws[there], 2 * LATTICE) * np.fft.rfft(exchanges[there], 2 * LATTICE)
            )
            absence = np.maximum(both[:LATTICE], 0.0)
            laws[here] = _wait(sides[here], absence / absence.sum(), step)
            means[here] = float(laws[here] @ times)
        residual = max(abs(a - b) for a, b in zip(means, before, strict=True)) / (1.0 + max(means))
        if residual < WAITING_TOLERANCE:
            return (means[0], means[1]), iteration, residual
    return (means[0], means[1]), MOST_ITERATIONS, residual


def _side(tour: tuple[Law, int], *, polls_first: bool) -> Side:
    return Side(tour[0], tour[1], polls_first)


def bridge_round(hop: HopService, frames: int, neighbours: tuple[str, str]) -> BridgeRound:
    """The round of a bridge.

    Args:
        hop: service of every hop.
        frames: most frames of an exchange.
        neighbours: who else each of its two piconets has, ``"end"``, ``"bridge"`` or ``"none"``; the
            piconet of the lower number comes first.
    """
    completed = completed_law(hop, frames)
    longest = hop.segment_slots * (len(completed) - 1) + 2.0 * exchange_slots(hop, frames)
    lattice = lattice_for(longest)
    exchange = exchange_law(hop, frames, lattice)
    tours = {
        "end": (end_tour(hop, completed, lattice), 2 * MISSED_POLL),
        "bridge": (exchange, 2 * MISSED_POLL),
        "none": (np.eye(1, LATTICE)[0], MISSED_POLL),
    }
    sides = (_side(tours[neighbours[0]], polls_first=True), _side(tours[neighbours[1]], polls_first=False))
    found, iterations, residual = waits(sides, (exchange, exchange), lattice.step)
    return BridgeRound(2.0 * exchange_slots(hop, frames) + sum(found), iterations, residual)
