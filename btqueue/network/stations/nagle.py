r"""The segments into which Nagle's algorithm cuts a stream of messages (RFC 896; RFC 1122, section 4.2.3.4).

A full segment leaves as soon as it is written. The rest of the stream, less than a full one, leaves when
nothing is unacknowledged: a round trip R after the last segment. So the stream is a renewal process, which
begins anew with every short segment. Between two of them the rest after j full segments (or groups of full
segments of one message) is known, and so is the number k of messages that fill the next one: it comes with
the chance that the source writes k messages in R. If it does not come, the short segment has the rest and
what has been written meanwhile; or nothing is left, and the next message leaves at once.

Messages are written by a Poisson process, of single ones or of bursts of a geometric number, or at equal
distances.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MOST_STEPS = 400
"""Full segments between two short ones that are followed one by one."""
MOST_SIZES = 6
"""Sizes of short segments that are told apart."""


class Source(NamedTuple):
    """Messages of `bytes` each: how many are written a second, and the chance that one follows at once."""

    bytes: int
    rate: float
    more: float
    periodic: bool


class Cut(NamedTuple):
    """Segments of a stream.

    Attributes:
        sizes: bytes of a segment, and how many of them there are for a message.
        ahead: mean number of segments of its own that are sent at the same time, before a segment.
        queued: part of the wait behind own segments that a segment has, beside that of segments at random.
        released: share of the segments that leave as an acknowledgement comes.
    """

    sizes: tuple[tuple[float, float], ...]
    ahead: float
    queued: float
    released: float

    @property
    def bytes(self) -> float:
        """Mean bytes of a segment."""
        return sum(size * count for size, count in self.sizes) / sum(count for _, count in self.sizes)


def written(source: Source, seconds: float, most: int, *, within: bool) -> Vector:
    """Return the chances of 0, 1, ... `most` - 1 messages in a time.

    Args:
        source: of the messages.
        seconds: the time.
        most: number of chances.
        within: whether the time begins within a burst, of which at least one more message follows.
    """
    found = np.zeros(most)
    if source.periodic:
        count = source.rate * seconds
        low = int(count)
        for number, chance in ((low, 1.0 - count % 1.0), (low + 1, count % 1.0)):
            if number < most:
                found[number] += chance
        return found
    more = source.more
    mean = source.rate * (1.0 - more) * seconds
    found[0] = exp(-mean)
    if not more:
        for number in range(1, most):
            found[number] = found[number - 1] * mean / number
        return found
    # a Poisson number of geometric bursts (H. Panjer, ASTIN Bulletin 12, 1981)
    weights = (1.0 - more) * more ** np.arange(most)
    for number in range(1, most):
        sizes = np.arange(1, number + 1)
        found[number] = mean / number * float(sizes * weights[:number] @ found[number - sizes])
    if within:
        found = np.concatenate([[0.0], np.convolve(weights, found)[: most - 1]])
    return found


def cut(source: Source, full: int, trip_s: Callable[[float], float]) -> Cut:
    """Return the segments of a stream.

    Args:
        source: of the messages.
        full: bytes of a full segment.
        trip_s: round trip of a segment by its bytes (s).
    """
    size = source.bytes
    first = size // full  # full segments of a message that finds nothing before it
    short_s, full_s = trip_s(min(size % full or full, full)), trip_s(full)
    for _ in range(4):
        sent, lengths, ahead, released = _cycle(source, full, first, short_s, full_s)
        total = lengths.sum()
        mean = float(lengths @ np.arange(full + 1)) / total if total > 0.0 else float(full)
        before, short_s = short_s, trip_s(mean)
        if abs(short_s - before) < 0.01 * short_s:
            break
    volume = sent * full + float(lengths @ np.arange(full + 1))
    messages = volume / size
    parts = _grouped(lengths)
    sizes = [(float(b), n / messages) for b, n in parts]
    if sent > 0.0:
        sizes.append((float(full), sent / messages))
    share = sent / (sent + total)
    return Cut(
        tuple(sizes), ahead / (sent + total), share * min(size / full, 1.0), released / (sent + total)
    )


def _cycle(
    source: Source, full: int, first: int, short_s: float, full_s: float
) -> tuple[float, Vector, float, float]:
    """Return full segments, short ones by bytes, segments ahead, and released ones, of a number of rounds."""
    more = source.more
    # what follows a short segment, within a burst or not, and a message that finds nothing
    ends = [_until_short(source, full, 0, within, short_s, full_s) for within in (False, True)]
    if first:
        begun = _until_short(source, full, 1, True, short_s, full_s)
        # after a short segment: idle or another short one
        idle = ends[0].idle
        leaves = idle / max(1.0 - begun.idle, 1e-12)  # messages that find nothing, for each start by a short
        lengths = ends[0].lengths + leaves * begun.lengths
        return (
            ends[0].sent + leaves * begun.sent,
            lengths,
            ends[0].ahead + leaves * begun.ahead,
            float(lengths.sum()),
        )
    # of the short ones some are messages that find nothing; a further one follows them with chance `more`
    quiet, burst = ends
    lone = (1.0 - more) * quiet.idle + more * burst.idle
    after, again = quiet.idle, 1.0 - lone
    share = after / max(after + again, 1e-12)  # of short segments that find nothing
    weights = np.array([1.0 - share * more, share * more])
    lengths = weights[0] * quiet.lengths + weights[1] * burst.lengths
    idles = weights[0] * quiet.idle + weights[1] * burst.idle
    released = float(lengths.sum())
    lengths[source.bytes] += idles
    return (
        float(weights @ [quiet.sent, burst.sent]),
        lengths,
        float(weights @ [quiet.ahead, burst.ahead]),
        released,
    )


class Ends(NamedTuple):
    """Until nothing is unacknowledged: full segments, short ones by bytes, chance of none, segments ahead."""

    sent: float
    lengths: Vector
    idle: float
    ahead: float


def _until_short(
    source: Source, full: int, begins: int, within: bool, short_s: float, full_s: float
) -> Ends:
    """Follow the stream from a short segment (`begins` = 0), or from a message that finds nothing (1)."""
    size, more = source.bytes, source.more
    lengths, chance, rest, sent, ahead, last = np.zeros(full + 1), 1.0, 0, 0.0, 0.0, 0.0
    if begins:
        group, rest = divmod(size, full)
        sent, ahead, last = float(group), group * (group - 1.0) / 2.0, float(group - 1)
    inside = more if begins else float(within)
    for step in range(begins, MOST_STEPS):
        needs = ceil((full - rest) / size)
        seconds = full_s if step else short_s
        found = (1.0 - inside) * written(source, seconds, needs, within=False)
        if inside:
            found = found + inside * written(source, seconds, needs, within=True)
        fills = max(1.0 - float(found.sum()), 0.0)
        np.add.at(lengths, rest + size * np.arange(needs), chance * found)
        joined = inside * more ** (needs - 1) / fills if fills > 0.0 else 0.0
        chance *= fills
        group, rest = divmod(rest + size * needs, full)
        last = min(joined, 1.0) * (last + 1.0)
        sent += chance * group
        ahead += chance * (group * last + group * (group - 1.0) / 2.0)
        last += group - 1.0
        inside = more
        if chance < 1e-6:
            break
    idle, lengths[0] = float(lengths[0]), 0.0
    return Ends(sent, lengths, idle, ahead)


def _grouped(lengths: Vector) -> list[tuple[float, float]]:
    """Return a few sizes of short segments, and how many there are of each."""
    at = np.flatnonzero(lengths > 0.0)
    if len(at) == 0:
        return []
    groups = [[b] for b in at] if len(at) <= MOST_SIZES else []
    if not groups:
        below = np.cumsum(lengths[at]) / lengths[at].sum()
        place = np.minimum((below * MOST_SIZES - 1e-9).astype(int), MOST_SIZES - 1)
        groups = [at[place == n] for n in range(MOST_SIZES) if (place == n).any()]
    return [
        (float(lengths[group] @ np.array(group) / lengths[group].sum()), float(lengths[group].sum()))
        for group in groups
    ]
