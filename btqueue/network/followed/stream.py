"""The stream of a connection, and the segments that it is cut into.

Segments are numbered, and a segment keeps the length that it has when it is sent first. A stream is counted
in segments (`unit` is 1) where all are full or windows count segments. Else it is counted in *grains*, the
largest number of bytes that messages and full segments are multiples of; a full segment has `unit` of them.
Amounts (windows, flight, what waits for an acknowledgement) are in full segments. An application that has
written no more than a part of a segment has it sent at once, or held back by Nagle's algorithm.
"""

from btqueue.network.compilation import part
from btqueue.network.followed.world import WIDTH

NO_NAGLE, NAGLE, MINSHALL = range(3)


@part
def in_flight(w, flow, number):
    """Return the record of a number in flight, or of the one behind the last."""
    width = w.sizes[WIDTH]
    return w.sent[flow * width + (number & (width - 1))]


@part
def position(w, flow, number):
    """Return where in the stream a segment begins: one not yet acknowledged, or the next new one."""
    return number if w.flows[flow].unit == 1 else in_flight(w, flow, number).start


@part
def amount(w, flow, first, end):
    """Return how much the segments from `first` up to `end` carry, in full segments."""
    if w.flows[flow].unit == 1:
        return float(end - first)
    return (position(w, flow, end) - position(w, flow, first)) / w.flows[flow].unit


@part
def room(w, flow):
    """Return up to where in the stream it matters what is written: what a full window may carry, at least.

    Whether the last segment in the window is a full one depends on what lies behind it.
    """
    own = w.flows[flow]
    beyond = own.window if own.unit == 1 else (own.window + 1) * own.unit
    return position(w, flow, own.una) + beyond


@part
def next_length(w, flow):
    """Return the length of the segment that is next in order; none, or less, if no more is written."""
    own = w.flows[flow]
    here = position(w, flow, own.nxt)
    if own.nxt < own.highest:
        return position(w, flow, own.nxt + 1) - here
    return min(own.unit, own.written - here)


@part
def has_to_wait(w, flow, length):
    """Whether a new segment is short and Nagle's algorithm holds it back (RFC 1122, 4.2.3.4).

    With Minshall's change only short segments that are outstanding hold it back (draft-minshall-nagle-00).
    """
    own = w.flows[flow]
    if own.nagle == NO_NAGLE or length >= own.unit or own.nxt < own.highest:
        return False
    return own.last_short >= own.una if own.nagle == MINSHALL else own.nxt > own.una


@part
def lay_out(w, flow):
    """Fix the length of the next new segment: the one behind it begins where it ends."""
    own = w.flows[flow]
    if own.unit > 1:
        here = position(w, flow, own.highest)
        length = min(own.unit, own.written - here)
        in_flight(w, flow, own.highest + 1).start = here + length
        if length < own.unit:
            own.last_short = own.highest


@part
def layout_of(w, flow, number):
    """Return the layout of a segment: by its place in a message, or by its length."""
    own = w.flows[flow]
    if own.unit == 1:
        return own.first_layout + number % own.layouts
    return own.first_layout + position(w, flow, number + 1) - position(w, flow, number) - 1


@part
def bytes_between(w, flow, first, end):
    """Return the user bytes of the segments from `first` up to `end`."""
    own = w.flows[flow]
    if own.unit > 1:
        return (position(w, flow, end) - position(w, flow, first)) * own.grain
    if own.layouts == 1:
        return (end - first) * w.layouts[own.first_layout].user
    total = 0
    for number in range(first, end):
        total += w.layouts[own.first_layout + number % own.layouts].user
    return total
