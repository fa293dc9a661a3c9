"""The receiver of a flow: when it acknowledges, and what it reports.

Rules: RFC 5681, section 4.2 (delayed acknowledgements), also by a free-running clock, RFC 2018 (blocks, the
most recent first) and RFC 7323, section 4.3 (the time stamp that is echoed).
"""

from math import floor

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.stream import position
from btqueue.network.followed.world import NEVER, WIDTH


@part
def take(w, flow, number, stamp, now):
    """Take a segment; return whether an acknowledgement has to leave at once."""
    own = w.flows[flow]
    if number <= own.acknowledged and stamp >= own.echo:
        own.echo = stamp
    if number != own.expected:
        if number > own.expected:
            keep(w, flow, number)
        return True
    gap = own.blocks > 0
    own.expected += 1
    if gap:
        join(w, flow)
    own.waiting += position(w, flow, number + 1) - position(w, flow, number)
    if gap or own.waiting >= own.every * own.unit:
        return True
    if own.ack_deadline >= NEVER:
        own.ack_deadline = now + own.ack_delay
        if own.tick:
            ticks = floor((now - own.tick_phase) / own.ack_delay) + 1
            own.ack_deadline = own.tick_phase + ticks * own.ack_delay
    return False


@subroutine
def join(w, flow):
    """Go on behind the block that begins with the number expected, if there is one."""
    own, early = w.flows[flow], w.early
    base = 2 * flow * w.sizes[WIDTH]
    for place in range(own.blocks):
        if early[base + 2 * place] == own.expected:
            own.expected = early[base + 2 * place + 1]
            own.blocks -= 1
            for spot in range(base + 2 * place, base + 2 * own.blocks):
                early[spot] = early[spot + 2]
            return


@subroutine
def keep(w, flow, number):
    """Enter a segment out of order; its block, joined with its neighbours, becomes the first."""
    own, early = w.flows[flow], w.early
    base = 2 * flow * w.sizes[WIDTH]
    start, end, others = number, number + 1, 0
    for place in range(own.blocks):
        first, behind = early[base + 2 * place], early[base + 2 * place + 1]
        if first <= number < behind:
            start, end = first, behind
        elif behind == start:
            start = first
        elif first == end:
            end = behind
        else:
            early[base + 2 * others], early[base + 2 * others + 1] = first, behind
            others += 1
    for place in range(others, 0, -1):
        early[base + 2 * place] = early[base + 2 * place - 2]
        early[base + 2 * place + 1] = early[base + 2 * place - 1]
    early[base], early[base + 1] = start, end
    own.blocks = others + 1
