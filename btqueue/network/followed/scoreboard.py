"""What selective acknowledgements say of the segments in flight, and what is sent because of it (RFC 6675).

Only numbers from `una` to `highest` can have been reported.
"""

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.world import MOST_BLOCKS, NONE, WIDTH

DUPLICATES = 3
"""Duplicate acknowledgements, or segments reported above a hole, that make it lost (RFC 5681, RFC 6675)."""


@part
def in_flight(w, flow, number):
    """Return the record of a number in flight."""
    width = w.sizes[WIDTH]
    return w.sent[flow * width + (number & (width - 1))]


@part
def is_reported(w, flow, number):
    """Return whether a number in flight was reported to have come."""
    return w.flows[flow].reports > 0 and in_flight(w, flow, number).reported == 1


@subroutine
def report(w, flow, item):
    """Take the blocks of an acknowledgement; return whether they have news."""
    own, blocks = w.flows[flow], w.items[item].blocks
    before = own.reports
    for place in range(blocks):
        begin = 2 * (item * MOST_BLOCKS + place)
        for number in range(max(w.reports[begin], own.una), w.reports[begin + 1]):
            sent = in_flight(w, flow, number)
            if sent.reported == 0:
                sent.reported = 1
                own.reports += 1
    return own.reports > before


@subroutine
def forget(w, flow, number):
    """Drop all reports of numbers below this one."""
    own = w.flows[flow]
    for old in range(own.una, number):
        if own.reports == 0:
            return
        sent = in_flight(w, flow, old)
        own.reports -= sent.reported
        sent.reported = 0


@subroutine
def lost_below(w, flow):
    """Return the number below which all that is not reported is lost: the third highest reported."""
    own = w.flows[flow]
    if own.reports < DUPLICATES:
        return own.una
    number, seen = own.highest, 0
    while seen < DUPLICATES:
        number -= 1
        seen += in_flight(w, flow, number).reported
    return number


@subroutine
def pipe(w, flow):
    """Return the segments estimated to be in the network (SetPipe); outside recovery none counts as lost.

    In recovery all that was ever sent is in flight or reported, of which three are above what is lost.
    """
    own = w.flows[flow]
    if own.reports == 0 and own.recovering == 0:
        return own.nxt - own.una
    if own.recovering == 0:
        return own.nxt - own.una - reported_below(w, flow, own.nxt)
    count, lost = own.nxt - own.una - own.reports, lost_below(w, flow)
    if lost > own.una:
        count = own.nxt - lost - DUPLICATES
    return count + max(own.repaired + 1 - own.una, 0) - reported_below(w, flow, own.repaired + 1)


@part
def reported_below(w, flow, number):
    """Return how many below this number, from the oldest outstanding one on, are reported."""
    count = 0
    if w.flows[flow].reports > 0:
        for old in range(w.flows[flow].una, number):
            count += in_flight(w, flow, old).reported
    return count


@subroutine
def next_in_recovery(w, flow):
    """Return the next segment in recovery, NextSeg: a lost hole, new data, any hole, and once a rescue."""
    own = w.flows[flow]
    hole = next_hole(w, flow)
    if hole == NONE or hole >= lost_below(w, flow):
        if own.nxt - own.una < own.window and own.nxt < own.written:
            return own.nxt
        if hole == NONE:
            return rescue(w, flow)
    own.repaired = hole
    return hole


@part
def next_hole(w, flow):
    """Return the first number that is not reported and not sent again, below one that is reported."""
    own = w.flows[flow]
    if own.reports == 0:
        return NONE
    top = own.highest - 1
    while not is_reported(w, flow, top):
        top -= 1
    for number in range(max(own.repaired + 1, own.una), top):
        if not is_reported(w, flow, number):
            return number
    return NONE


@part
def rescue(w, flow):
    """Return the highest number that is not reported, once in a recovery (RescueRxt)."""
    own = w.flows[flow]
    if own.una <= own.rescued:
        return NONE
    own.rescued = own.recover
    number = own.nxt - 1
    while number >= own.una and is_reported(w, flow, number):
        number -= 1
    return number if number >= own.una else NONE
