"""The receiver of a bulk transfer as a deterministic machine: when it acknowledges, and what it reports.

Rules: RFC 5681, section 4.2 (delayed acknowledgements), RFC 2018 (blocks, the most recent first) and RFC
7323, section 4.3 (the time stamp that is echoed). These are parts of the compiled loop in
`bulk_transfer.steps`; a receiver is a `RECEIVER` record, and its blocks are rows of begin and end.
"""

from math import inf

from btqueue.transport.compilation import part


@part
def take(own, early, number, sent_at, now):
    """Take a segment; return whether an acknowledgement has to leave at once."""
    if number <= own.acknowledged and sent_at >= own.echo:
        own.echo = sent_at
    if number != own.expected:
        if number > own.expected:
            keep(own, early, number)
        return True
    gap = own.blocks > 0
    own.expected += 1
    join(own, early)
    own.waiting += 1
    if gap or own.waiting >= own.every:
        return True
    own.deadline = min(own.deadline, now + own.delay_s)
    return False


@part
def acknowledged(own):
    """Note that all that is there is acknowledged now."""
    own.waiting, own.deadline, own.acknowledged = 0, inf, own.expected


@part
def join(own, early):
    """Go on behind the block that begins with the number expected, if there is one."""
    for place in range(own.blocks):
        if early[place, 0] == own.expected:
            own.expected = early[place, 1]
            own.blocks -= 1
            for behind in range(place, own.blocks):
                early[behind, 0], early[behind, 1] = early[behind + 1, 0], early[behind + 1, 1]
            return


@part
def keep(own, early, number):
    """Enter a segment out of order; its block, joined with its neighbours, becomes the first."""
    start, end, others = number, number + 1, 0
    for place in range(own.blocks):
        first, behind = early[place, 0], early[place, 1]
        if first <= number < behind:
            start, end = first, behind
        elif behind == start:
            start = first
        elif first == end:
            end = behind
        else:
            early[others, 0], early[others, 1] = first, behind
            others += 1
    for place in range(others, 0, -1):
        early[place, 0], early[place, 1] = early[place - 1, 0], early[place - 1, 1]
    early[0, 0], early[0, 1] = start, end
    own.blocks = others + 1
