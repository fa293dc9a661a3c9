"""The rounds of a window over several piconets (`chain.window`, `chain.sawtooth`), compiled.

A law over the states of the first queue moves by matrices that are zero away from the diagonal: a round takes
no more than `reach` units out of the queue, and gives it no more.
"""

from btqueue.transport.compilation import compiled, part

ROUNDS, MOVED, LOST = range(3)
"""Sums over the rounds: their shares weighted by the law, units that got through, and segments lost."""


@part
def moved_by(law, matrix, reach, result):
    """Write the law after a step into `result`; return its total."""
    count, total = len(law), 0.0
    for j in range(count):
        arriving = 0.0
        for i in range(max(0, j - reach), min(count, j + reach + 1)):
            arriving += law[i] * matrix[i, j]
        result[j] = arriving
        total += arriving
    return total


@part
def mixed(law, after, share):
    """Let a share of the law take the step."""
    for i in range(len(law)):
        law[i] = (1.0 - share) * law[i] + share * after[i]


@part
def product(law, values):
    """Return the mean of the values, times the total of the law."""
    total = 0.0
    for i in range(len(law)):
        total += law[i] * values[i]
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
def count(law, moved, share, sums):
    """Add a round, or a part of one, of those with this law."""
    for i in range(len(law)):
        sums[ROUNDS] += share * law[i]
    sums[MOVED] += share * product(law, moved)


@compiled()
def grow(law, at_loss, kept, lost, moved, reach, rounds, sums, work):
    """Move the law of those without a loss by so many rounds, the last of which may be a part of one.

    Args:
        law: of the states without a loss; changed.
        at_loss: what loses a segment is added here.
        kept: moves without a loss (see `chain.window`).
        lost: moves with one.
        moved: mean units that get through, by state.
        reach: most units by which the queue changes.
        rounds: their number.
        sums: are added to.
        work: two rows as long as the law.
    """
    while rounds > 0.0:
        share = min(1.0, rounds)
        rounds -= 1.0
        count(law, moved, share, sums)
        sums[LOST] += share * moved_by(law, lost, reach, work[0])
        for i in range(len(law)):
            at_loss[i] += share * work[0, i]
        moved_by(law, kept, reach, work[0])
        mixed(law, work[0], share)


@compiled()
def recover(law, unharmed, kept, lost, moved, reach, rounds, sums, work):
    """Move the law of those with a loss by so many rounds; `unharmed` is the part without a second loss."""
    while rounds > 0.0:
        share = min(1.0, rounds)
        rounds -= 1.0
        count(law, moved, share, sums)
        sums[LOST] += share * moved_by(unharmed, lost, reach, work[0])
        moved_by(unharmed, kept, reach, work[0])
        mixed(unharmed, work[0], share)
        moved_by(law, lost, reach, work[0])
        moved_by(law, kept, reach, work[1])
        for i in range(len(law)):
            work[0, i] += work[1, i]
        mixed(law, work[0], share)
