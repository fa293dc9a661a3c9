"""The rounds of a window over several piconets (`chain.window`, `chain.sawtooth`), compiled.

A law over the states of the first queue moves by matrices that are zero away from the diagonal: a round takes
no more than `reach` units out of the queue, and gives it no more.
"""

from btqueue.transport.compilation import compiled, part

ROUNDS, MOVED, LOST = range(3)
"""Sums over the rounds: their shares weighted by the law, units that got through, and segments lost."""
WINDOWS, SEGMENTS, TIMED = range(3)
"""Sums by window: rounds, segments delivered, and round trips that end."""
LOSSES, SAFE, LARGEST = range(3)
"""Totals: segments lost; of the law that comes to the largest window what never loses any, and all."""


@part
def moved_by(law, count, matrix, reach, result):
    """Write the law over so many states after a step into `result`; return its total."""
    for j in range(count):
        result[j] = 0.0
    for i in range(count):
        if law[i] != 0.0:
            for j in range(max(0, i - reach), min(count, i + reach + 1)):
                result[j] += law[i] * matrix[i, j]
    total = 0.0
    for j in range(count):
        total += result[j]
    return total


@part
def mixed(law, count, after, share):
    """Let a share of the law take the step."""
    for i in range(count):
        law[i] = (1.0 - share) * law[i] + share * after[i]


@part
def product(law, count, values):
    """Return the mean of the values, times the total of the law."""
    total = 0.0
    for i in range(count):
        total += law[i] * values[i]
    return total


@part
def total_of(law, count):
    """Return the sum of so many states."""
    total = 0.0
    for i in range(count):
        total += law[i]
    return total


@compiled()
def tabulate(kept, lost, moved, taken, returned, overflow, two_queues):
    """Add up the moves of a round by what is taken out of the first queue, and what the others give back.

    Args:
        kept: moves without the loss of a segment, filled (see `chain.window.Step`).
        lost: moves with it, filled.
        moved: mean units that get through, by state, filled.
        taken: law of what leaves the first queue, by its length.
        returned: law of what the others give back, by what they hold.
        overflow: probability that a queue of this length exceeds its node.
        two_queues: the others are a single one, which overflows too.
    """
    total, frames = len(moved) - 1, taken.shape[1] - 1
    for first in range(total + 1):
        for out in range(frames + 1):
            rest = total - first + out
            for back in range(frames + 1):
                share = taken[first, out] * returned[rest, back]
                after = first - out + back
                # A lumped station may be said to give back more than the others hold: it gives what there is.
                place = min(max(after, 0), total)
                full = overflow[max(after, 0)]
                if two_queues:
                    full = max(full, overflow[rest])
                kept[first, place] += share * (1.0 - full)
                lost[first, place] += share * full
                moved[first] += share * back


@part
def add_shifted(law, count, shift, result, size):
    """Add a law to another one of this size, moved; what would leave it stays at its rim."""
    for i in range(count):
        result[min(max(i + shift, 0), size - 1)] += law[i]


@part
def count_round(law, count, moved, share, sums):
    """Add a round, or a part of one, of those with this law."""
    sums[ROUNDS] += share * total_of(law, count)
    sums[MOVED] += share * product(law, count, moved)


@part
def rounds_of(law, count, moved, units):
    """Return the rounds of one round trip of so many units."""
    mass, through = total_of(law, count), product(law, count, moved)
    return units * mass / through if through > 0.0 else 1.0


@part
def grow(law, count, at_loss, kept, lost, moved, reach, rounds, sums, work):
    """Move the law of those without a loss by so many rounds, the last of which may be a part of one.

    Args:
        law: of the states without a loss; changed.
        count: of the states.
        at_loss: what loses a segment is added here.
        kept: moves without a loss (see `chain.window`).
        lost: moves with one.
        moved: mean units that get through, by state.
        reach: most units by which the queue changes.
        rounds: their number.
        sums: are added to.
        work: as long as the law.
    """
    while rounds > 0.0:
        share = min(1.0, rounds)
        rounds -= 1.0
        count_round(law, count, moved, share, sums)
        sums[LOST] += share * moved_by(law, count, lost, reach, work)
        for i in range(count):
            at_loss[i] += share * work[i]
        moved_by(law, count, kept, reach, work)
        mixed(law, count, work, share)


@part
def recover(law, count, unharmed, kept, lost, both, moved, reach, rounds, sums, work):
    """Move the law of those with a loss by so many rounds; `unharmed` is the part without a second loss."""
    while rounds > 0.0:
        share = min(1.0, rounds)
        rounds -= 1.0
        count_round(law, count, moved, share, sums)
        sums[LOST] += share * moved_by(unharmed, count, lost, reach, work)
        moved_by(unharmed, count, kept, reach, work)
        mixed(unharmed, count, work, share)
        moved_by(law, count, both, reach, work)
        mixed(law, count, work, share)


@compiled()
def follow(
    sizes, kept, lost, both, moved, visits, safe, first, pieces, reach, begin, after, by_window, totals, work
):
    """Follow the law from the windows after a loss to those after the next one.

    Each window lasts a round trip, the largest one until something is lost. A loss is noticed a round trip
    later, in which the network holds a segment less, the window grows once more and may lose another one; it
    is repaired in a further one, which shows duplicates instead of round trips. Then the window is halved.

    Args:
        sizes: states of each window.
        kept: their moves without a loss, `lost` with one, `both` of them, and `moved`, as in `window.Step`;
            shorter rows are filled up.
        lost: see `kept`.
        both: see `kept`.
        moved: see `kept`.
        visits: at the largest window, mean visits to each state until something is lost.
        safe: there, the probability by state that nothing is ever lost.
        first: the smallest window.
        pieces: units of a segment.
        reach: most units by which the queue changes.
        begin: law by window and state.
        after: that at the end; filled.
        by_window: sums by window, filled.
        totals: over the period; filled.
        work: six rows as long as those of `kept`.
    """
    law, at_loss, unharmed, held = work[0], work[1], work[2], work[3]
    sums = work[5]
    last = len(sizes) - 1
    for i in range(len(law)):
        law[i] = 0.0
    before = 0
    for level in range(last + 1):
        size, window = sizes[level], first + level
        for i in range(size):
            held[i] = begin[level, i]
            at_loss[i] = unharmed[i] = 0.0
        if level > 0:
            add_shifted(law, before, size - before, held, size)
        for i in range(size):
            law[i] = held[i]
        sums[ROUNDS] = sums[MOVED] = sums[LOST] = 0.0
        if level < last:
            rounds = rounds_of(law, size, moved[level], window * pieces)
            grow(law, size, at_loss, kept[level], lost[level], moved[level], reach, rounds, sums, work[4])
        else:
            totals[SAFE], totals[LARGEST] = product(law, size, safe), total_of(law, size)
            for i in range(size):
                held[i] = 0.0
                for j in range(size):
                    held[i] += law[j] * visits[j, i]
            count_round(held, size, moved[level], 1.0, sums)
            sums[LOST] = moved_by(held, size, lost[level], reach, at_loss)
        by_window[WINDOWS, level] += sums[ROUNDS]
        by_window[SEGMENTS, level] += sums[MOVED] / pieces
        by_window[TIMED, level] += sums[MOVED] / pieces
        totals[LOSSES] += sums[LOST]
        sums[ROUNDS] = sums[MOVED] = sums[LOST] = 0.0
        add_shifted(at_loss, size, -pieces, unharmed, size)
        rounds = rounds_of(at_loss, size, moved[level], window * pieces)
        moves = kept[level], lost[level], both[level], moved[level]
        recover(at_loss, size, unharmed, *moves, reach, rounds, sums, work[4])
        by_window[WINDOWS, level] += 2.0 * sums[ROUNDS]
        by_window[SEGMENTS, level] += 2.0 * sums[MOVED] / pieces
        by_window[TIMED, max(level - 1, 0)] += sums[MOVED] / pieces
        totals[LOSSES] += sums[LOST]
        halved = max(window // 2 - first, 0)
        add_shifted(at_loss, size, sizes[halved] - size, after[halved], sizes[halved])
        before = size
