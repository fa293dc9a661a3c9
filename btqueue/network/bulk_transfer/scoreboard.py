"""What selective acknowledgements say of the segments in flight, and what is sent because of it (RFC 6675).

Parts of the compiled loop in `bulk_transfer.steps`, with the sender and its numbers in flight as in
`bulk_transfer.sender`. Only numbers from `una` to `highest` can have been reported.
"""

from btqueue.transport.compilation import part
from btqueue.transport.newreno_sender import NO_SEGMENT

DUPLICATES = 3
"""Duplicate acknowledgements, or segments reported above a hole, that make it lost (RFC 5681, RFC 6675)."""


@part
def is_reported(own, flight, number):
    """Return whether a number in flight was reported to have come."""
    return own.reports > 0 and flight[number & (len(flight) - 1)].reported


@part
def report(own, flight, blocks):
    """Take the blocks of an acknowledgement, [block, begin and end]; return whether they have news."""
    before = own.reports
    for place in range(len(blocks)):
        for number in range(max(blocks[place, 0], own.una), blocks[place, 1]):
            sent = flight[number & (len(flight) - 1)]
            if not sent.reported:
                sent.reported = True
                own.reports += 1
    return own.reports > before


@part
def forget(own, flight, number):
    """Drop all reports of numbers below this one."""
    for old in range(own.una, number):
        if own.reports == 0:
            return
        sent = flight[old & (len(flight) - 1)]
        if sent.reported:
            sent.reported = False
            own.reports -= 1


@part
def lost_below(own, flight):
    """Return the number below which all that is not reported is lost: the third highest reported."""
    if own.reports < DUPLICATES:
        return own.una
    number, seen = own.highest, 0
    while seen < DUPLICATES:
        number -= 1
        seen += flight[number & (len(flight) - 1)].reported
    return number


@part
def pipe(own, flight):
    """Return the segments estimated to be in the network (SetPipe); outside recovery none counts as lost."""
    in_flight, lost = own.nxt - own.una, own.una
    if own.reports == 0 and not own.recovering:
        return in_flight
    if own.recovering:
        lost = lost_below(own, flight)
    count = 0
    for number in range(own.una, own.nxt):
        if not is_reported(own, flight, number):
            count += int(number >= lost) + int(own.recovering and number <= own.repaired)
    return count


@part
def next_in_recovery(own, flight):
    """Return the next segment in recovery, NextSeg: a lost hole, new data, any hole, and once a rescue."""
    hole = next_hole(own, flight)
    if hole == NO_SEGMENT or hole >= lost_below(own, flight):
        if own.nxt - own.una < own.receive_window and own.nxt < own.written:
            return own.nxt
        if hole == NO_SEGMENT:
            return rescue(own, flight)
    own.repaired = hole
    return hole


@part
def next_hole(own, flight):
    """Return the first number that is not reported and not sent again, below one that is reported."""
    if own.reports == 0:
        return NO_SEGMENT
    top = own.highest - 1
    while not is_reported(own, flight, top):
        top -= 1
    for number in range(max(own.repaired + 1, own.una), top):
        if not is_reported(own, flight, number):
            return number
    return NO_SEGMENT


@part
def rescue(own, flight):
    """Return the highest number that is not reported, once in a recovery (RescueRxt)."""
    if own.una <= own.rescued:
        return NO_SEGMENT
    own.rescued = own.recover
    number = own.nxt - 1
    while number >= own.una and is_reported(own, flight, number):
        number -= 1
    return number
