"""First-in-first-out queues in fixed arrays, for compiled code and plain Python alike.

A queue is an array whose length is a power of two and a pair of `marks`: the place of its oldest entry and
the number of entries. Its owner sees to it that it never overflows.
"""

from btqueue.transport.compilation import part

SMALLEST = 64
"""Places that a queue begins with."""


@part
def place(queue, marks, index):
    """Return where the entry `index` after the oldest stands."""
    return (marks[0] + index) & (len(queue) - 1)


@part
def drop_oldest(queue, marks):
    """Remove the oldest entry."""
    marks[0] = (marks[0] + 1) & (len(queue) - 1)
    marks[1] -= 1


@part
def append(queue, marks, value):
    """Add a number behind the newest."""
    queue[place(queue, marks, marks[1])] = value
    marks[1] += 1


@part
def drop_until(queue, marks, time):
    """Remove all entries, sorted times, that are not later than `time`."""
    while marks[1] > 0 and queue[marks[0]] <= time:
        drop_oldest(queue, marks)
