"""Walk-in bridges in a chain: how long a round of a bridge takes, with data always waiting.

A bridge is in its two piconets in turn. An exchange has `frames` frames at most, one way data, the other way
acknowledgements, and then the bridge leaves for the other piconet, where it waits for its poll. Meanwhile the
central serves the neighbour on its other side:

* an end of the chain until nothing is left, the segments and acknowledgements of the bridge's last exchange,
  with a poll of the bridge after each visit of limited length; this *tour* may outlast the bridge's absence,
  and then the bridge waits;
* another bridge for one exchange;
* nobody, if the chain ends at the central.

After the tour the central polls in vain, every `grid` slots, until the bridge is there. With wait `w`, tour
`V` and exchange `A` in piconet 1 and the same in piconet 2,

    w1 = first poll of V1, V1 + grid, ... after D1 = w2 + A2, less D1;       w2 likewise from w1 + A1,

whose laws are iterated on a lattice. Approximations: the segments of successive exchanges are independent,
and bridges of one piconet take turns.
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.answers import NoConvergence
from btqueue.network.chain.link import Hop
from btqueue.network.repetition import Train

Law = NDArray[np.float64]
Transform = NDArray[np.complex128]

LATTICE = 1024
"""Points of the lattice of times; its step is one slot or, for slow links, a power of two."""
SPREAD = 6.0
"""The longest mean time that fits into the lattice so many times."""
POLL = 2
"""Slots of POLL and NULL: a poll in vain, and the visit to a neighbour that has nothing."""
TOLERANCE = 5e-4
"""Relative change of the waits up to which they have settled."""
MOST_ITERATIONS = 200
"""After so many the last waits are taken, with a warning."""


class Round(NamedTuple):
    """A bridge's round with data always waiting: its mean slots, and how the laws of the waits were found."""

    slots: float
    iterations: int
    residual: float


class Side(NamedTuple):
    """A piconet as its bridge sees it.

    Attributes:
        tour: law of the tour in lattice steps.
        grid: slots between polls after the tour.
        visit: steps of a whole visit to an end, and the poll of the bridge after it; 0 without a limit.
        polls_first: whether a poll at the very slot of the bridge's arrival misses it. All piconets keep to
            one grid of slot pairs, so this is frequent; the central of the lower number polls first.
    """

    tour: Law
    grid: int
    visit: int
    polls_first: bool


def exchange_slots(hop: Hop, frames: int) -> float:
    """Mean slots of an exchange that finds data: the bridge's first poll, and frames as on any hop."""
    return POLL + frames * hop.time / hop.data.frames


def completed_law(data: Train, frames: int) -> Law:
    """Law of the segments that an exchange of so many frames completes, in stationarity.

    The state is the packet that is next; a segment is at each for 1/s of its frames, with success s.
    """
    success = [1.0 - error for _, error in data.packets]
    state = np.zeros((frames // len(success) + 2, len(success)))
    state[0] = [1.0 / s / data.frames for s in success]
    for _ in range(frames):
        through = state * success
        state = state - through
        state[:, 1:] += through[:, :-1]
        state[1:, 0] += through[:-1, -1]
    return state.sum(axis=1)


def bridge_round(hop: Hop, frames: int, neighbours: tuple[str, str], visit: float = inf) -> Round:
    """Return the round of a bridge.

    Args:
        hop: service of every hop.
        frames: most frames of an exchange.
        neighbours: who else each of its two piconets has, ``"end"``, ``"bridge"`` or ``"none"``; the
            piconet of the lower number comes first.
        visit: most frames of a visit to an end.

    Raises:
        NoConvergence: the waits did not settle.
    """
    completed = completed_law(hop.data, frames)
    longest = hop.time * (len(completed) - 1) + 2.0 * exchange_slots(hop, frames)
    lattice = _lattice_for(longest)
    exchange = _exchange(hop, frames, lattice)
    whole = round((visit * hop.time / hop.data.frames + POLL) / lattice.step) if visit < inf else 0
    tours = {
        "end": (_tour(hop, completed, lattice, visit), 2 * POLL, whole),
        "bridge": (exchange, 2 * POLL, 0),
        "none": (np.eye(1, LATTICE)[0], POLL, 0),
    }
    sides = (Side(*tours[neighbours[0]], polls_first=True), Side(*tours[neighbours[1]], polls_first=False))
    waits, iterations, residual = _waits(sides, exchange, lattice.step)
    if residual > TOLERANCE:
        raise NoConvergence(
            f"the waits of a bridge did not settle in {iterations} iterations, residual {residual:.1e}"
        )
    return Round(2.0 * exchange_slots(hop, frames) + waits, iterations, residual)


class _Lattice(NamedTuple):
    """Transforms on a lattice of times: laws are products, and a step has `step` slots."""

    step: int

    def delay(self, slots: float) -> Transform:
        """Transform of so many slots; between two points it is split so that the mean is right."""
        turn = np.exp(-2j * np.pi * np.fft.rfftfreq(LATTICE))
        steps, rest = divmod(slots / self.step, 1.0)
        return np.asarray(turn**steps * (1.0 - rest + rest * turn), complex)

    def repeated(self, error: float, slots: float) -> Transform:
        """Transform of the slots of a packet that takes so many at each attempt."""
        attempt = self.delay(slots)
        return (1.0 - error) * attempt / (1.0 - error * attempt)

    def law(self, transform: Transform) -> Law:
        """The law with this transform."""
        law = np.maximum(np.fft.irfft(transform, LATTICE), 0.0)
        return law / law.sum()


def _lattice_for(longest: float) -> _Lattice:
    step = 1
    while longest * SPREAD > step * LATTICE:
        step *= 2
    return _Lattice(step)


def _tour(hop: Hop, completed: Law, lattice: _Lattice, visit: float) -> Law:
    """Law of the visit to an end of the chain, which exchanges what the bridge's exchange has completed."""
    segment, last = np.ones(LATTICE // 2 + 1, complex), lattice.delay(POLL)
    for slots, error in hop.data.packets:
        segment = segment * lattice.repeated(error, slots + 1)
    for slots, error in hop.ack.packets:
        segment = segment * lattice.repeated(error, slots - 1)
        last = last * lattice.repeated(error, POLL)
    visits = [lattice.delay(POLL)]
    for count in range(1, len(completed)):
        polls = lattice.delay(POLL * _interruptions(hop, count, visit))
        visits.append(segment**count * last * polls)
    return lattice.law(np.tensordot(completed, np.array(visits), 1))


def _interruptions(hop: Hop, segments: int, visit: float) -> float:
    """Mean number of visits that a tour of so many segments fills, and after which the bridge is polled.

    What is left for the last visit is what is left where frames are certain, and anything where they vary.
    """
    frames = segments * hop.data.frames + hop.ack.frames
    varies = min(1.0, (segments * hop.data.spread + hop.ack.spread) * 12.0 / visit**2)
    anything = max(frames / visit - (visit - 1.0) / (2.0 * visit), 0.0) if visit < inf else 0.0
    return (1.0 - varies) * (frames // visit) + varies * anything


def _exchange(hop: Hop, frames: int, lattice: _Lattice) -> Law:
    """Law of an exchange that finds data: each frame carries an acknowledgement by the share of frames."""

    def attempt(train: Train) -> Transform:
        shares = [1.0 / (1.0 - error) / train.frames for _, error in train.packets]
        return np.tensordot(shares, np.array([lattice.delay(slots) for slots, _ in train.packets]), 1)

    answered = min(1.0, hop.ack.frames / hop.data.frames)
    frame = attempt(hop.data) * ((1.0 - answered) * lattice.delay(1) + answered * attempt(hop.ack))
    return lattice.law(lattice.delay(POLL) * frame**frames)


def _waits(sides: tuple[Side, Side], exchange: Law, step: int) -> tuple[float, int, float]:
    """Mean of both waits of a bridge for its poll (slots), and the iterations and residual."""
    laws, means, residual = [np.eye(1, LATTICE)[0]] * 2, [0.0, 0.0], np.inf
    times, length = np.arange(LATTICE) * step, 2 * LATTICE
    exchanging = np.fft.rfft(exchange, length)
    tours = [np.fft.rfft(side.tour, length) for side in sides]
    iteration = 0
    while residual > TOLERANCE and iteration < MOST_ITERATIONS:
        iteration += 1
        before = list(means)
        for here, there in ((0, 1), (1, 0)):
            absence = np.fft.irfft(np.fft.rfft(laws[there], length) * exchanging)[:LATTICE]
            absence = np.maximum(absence, 0.0)
            found = _wait(sides[here], tours[here], absence / absence.sum(), step)
            # where nothing is random the waits would go to and fro
            laws[here] = 0.5 * (laws[here] + found) if iteration > 1 else found
            means[here] = float(laws[here] @ times)
        residual = max(abs(a - b) for a, b in zip(means, before, strict=True)) / (1.0 + max(means))
    return sum(means), iteration, residual


def _wait(side: Side, tour: Transform, absence: Law, step: int) -> Law:
    """Law of the wait for a poll: the tour's excess over the absence, or what is left of the polls' grid."""
    length = 2 * LATTICE
    difference = np.maximum(np.fft.irfft(tour * np.conj(np.fft.rfft(absence, length)), length), 0.0)
    # the tour is over 0, 1, 2, ... steps before the bridge comes
    early = np.concatenate([difference[:1], difference[:LATTICE:-1]])
    wait = difference[:LATTICE].copy()
    wait[0] = 0.0
    if side.visit:  # the bridge is polled before the rest of the tour
        left = np.arange(LATTICE)
        left[side.visit + 1 :] = left[side.visit + 1 :] % side.visit
        wait = np.bincount(left, wait, LATTICE)
    if step == 1:
        left = -np.arange(len(early)) % side.grid
        left[left == 0] = side.grid if side.polls_first else 0
        wait[: side.grid + 1] += np.bincount(left, early, side.grid + 1)
    else:
        mean = (side.grid / 2.0 + (1.0 if side.polls_first else -1.0)) / step
        wait[0] += early.sum() * (1.0 - mean)
        wait[1] += early.sum() * mean
    return wait / wait.sum()
