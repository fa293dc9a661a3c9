"""What selective acknowledgements say of the segments in flight, and what is sent because of it (RFC 6675).

Only numbers from `una` to `highest` can have been reported.
"""

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.stream import amount, has_to_wait, in_flight, next_length
from btqueue.network.followed.world import MOST_BLOCKS, NONE

DUPLICATES = 3
"""Duplicate acknowledgements, or segments reported above a hole, that make it lost (RFC 5681, RFC 6675)."""


@part
def is_reported(w, flow, number):
    """Return whether a number in flight was reported to have come."""
    return w.flows[flow].reports > 0 and in_flight(w, flow, number).reported == 1


@subroutine
def report(w, flow, item):
    """Take the blocks of an acknowledgement; return how much they report for the first time."""
    own, blocks, news = w.flows[flow], w.items[item].blocks, 0.0
    for place in range(blocks):
        begin = 2 * (item * MOST_BLOCKS + place)
        for number in range(max(w.reports[begin], own.una), w.reports[begin + 1]):
            sent = in_flight(w, flow, number)
            if sent.reported == 0:
                sent.reported = 1
                own.reports += 1
                news += amount(w, flow, number, number + 1)
    return news


@subroutine
def forget(w, flow, number):
    """Drop all reports of numbers below this one; return how much was reported."""
    own, known = w.flows[flow], 0.0
    for old in range(own.una, number):
        if own.reports == 0:
            break
        sent = in_flight(w, flow, old)
        if sent.reported == 1:
            known += amount(w, flow, old, old + 1)
        own.reports -= sent.reported
        sent.reported = 0
    return known


@subroutine
def lost_below(w, flow):
    """Return the number below which all that is not reported is lost: enough above it is reported (IsLost).

    More than two full segments, or three blocks with gaps between.
    """
    own = w.flows[flow]
    if own.reports == 0:
        return own.una
    number, arrived, blocks, before = own.highest, 0.0, 0, 0
    while number > own.una and arrived <= DUPLICATES - 1 and blocks < DUPLICATES:
        number -= 1
        here = in_flight(w, flow, number).reported
        if here:
            arrived += amount(w, flow, number, number + 1)
            blocks += 1 - before
        before = here
    return number


@subroutine
def pipe(w, flow):
    """Return the estimate of what is in the network, in full segments (SetPipe).

    Outside recovery none counts as lost.
    """
    own = w.flows[flow]
    if own.reports == 0 and own.recovering == 0:
        return amount(w, flow, own.una, own.nxt)
    lost = lost_below(w, flow) if own.recovering else own.una
    inside = 0.0
    for number in range(own.una, own.nxt):
        if not is_reported(w, flow, number):
            copies = int(number >= lost) + int(own.recovering == 1 and number <= own.repaired)
            inside += copies * amount(w, flow, number, number + 1)
    return inside


@subroutine
def next_in_recovery(w, flow):
    """Return the next segment in recovery, NextSeg: a lost hole, new data, any hole, and once a rescue."""
    own = w.flows[flow]
    hole = next_hole(w, flow)
    if hole == NONE or hole >= lost_below(w, flow):
        length = next_length(w, flow)
        fits = amount(w, flow, own.una, own.nxt) + length / own.unit <= own.window
        if length > 0 and fits and not has_to_wait(w, flow, length):
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
