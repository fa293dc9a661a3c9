"""Locally coordinated scheduling (LCS): bridge and central agree on each meeting when the last one ends.

After G. Tan and J. Guttag, "A locally coordinated scatternet scheduling algorithm", LCN 2002. A meeting is
one visit of a central to a bridge. It ends when a POLL is answered by NULL, or at the time agreed upon. Then
both ends, and nobody else, agree on the next. They know the packets that wait at both ends, and `need`, the
part of the time that their exchange takes: the mean of the last estimate and of the part measured since the
last agreement.

- When: the least interval after the start of this meeting. If no packet was exchanged and no packet waits,
  not before the need would fill a long frame. So the interval doubles after each idle meeting, once the need
  is small, up to the largest interval.
- How long: the time for the waiting packets, at the rate of exchange of this meeting, and for the need until
  then; at most the least interval.
- Finally the meeting is moved to the first time from then on at which neither device has another meeting.

A central with other peripherals rests after each meeting, so that they get their share of its time; a bridge
that is a central is in its own piconet between its meetings. An agreement costs no air.

The paper names the terms of an agreement and their inputs; the formulas are ours.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.timers import schedule
from btqueue.simulator.records.conventions import NOTHING, SLOT, UNLIMITED
from btqueue.simulator.records.piconets import NO_STATION

SHORTEST_FRAME = 2 * SLOT
"""POLL and NULL."""
GUARD = 2 * SLOT
"""The end of a meeting, left for a bridge to align to the clock of another piconet (0 to 2 slots)."""
LONGEST_FRAME = 10 * SLOT
"""A packet of five slots each way."""
SHORTEST_MEETING = LONGEST_FRAME + SHORTEST_FRAME + GUARD
"""Room for one packet, and for the poll that asks for it."""


# ---------------------------------------------------------------------------------------- while they are kept


@compiled
def time_left(sim, link, now):
    """Return how long frames on the link may last from now on (ns); 0 if none may start."""
    meeting = sim.links[link]
    if meeting.bridge == NOTHING:
        return time_without_meeting(sim, meeting.piconet, now)
    if now < meeting.meeting_start:
        return 0
    return max(0, meeting.meeting_end - GUARD - now)


@outlined
def time_without_meeting(sim, p, now):
    """Return how long (ns) the central of piconet `p` has no meeting from now on; 0 in one."""
    b = sim.piconets[p].bridge
    free = UNLIMITED
    guard = 0
    if b != NOTHING:
        guard = GUARD
        if now < sim.bridges[b].present_from:
            return 0
    for place in range(places(sim, b, p)):
        link = link_of_device(sim, b, p, place)
        if link != NOTHING and now < sim.links[link].meeting_end:
            free = min(free, sim.links[link].meeting_start - guard - now)
    return max(0, free)


@outlined
def next_time(sim, link, now):
    """Return when the link may be polled, from now on."""
    meeting = sim.links[link]
    if meeting.bridge != NOTHING:
        return max(now, meeting.meeting_start)
    b = sim.piconets[meeting.piconet].bridge
    at = now if b == NOTHING else max(now, sim.bridges[b].present_from)
    for _ in range(places(sim, b, meeting.piconet)):
        if time_without_meeting(sim, meeting.piconet, at) >= SHORTEST_FRAME:
            break
        at = end_of_meeting(sim, b, meeting.piconet, at)
    return at


@compiled
def end_of_meeting(sim, b, p, now):
    """Return the end of the device's meeting that is on, or comes next; now if there is none."""
    earliest, end = UNLIMITED, now
    for place in range(places(sim, b, p)):
        link = link_of_device(sim, b, p, place)
        if link != NOTHING and now < sim.links[link].meeting_end and sim.links[link].meeting_start < earliest:
            earliest, end = sim.links[link].meeting_start, sim.links[link].meeting_end
    return end


@compiled
def places(sim, b, p):
    """Return how many links the device has that is bridge `b` and central of piconet `p` (or NOTHING)."""
    members = 0 if p == NOTHING else sim.piconets[p].links
    return members if b == NOTHING else members + sim.bridges[b].count


@compiled
def link_of_device(sim, b, p, place):
    """Return a link of the device; NOTHING in the place of a bridge's own piconet.

    The meeting of an ordinary peripheral's link is over for ever.
    """
    members = 0 if p == NOTHING else sim.piconets[p].links
    return sim.piconets[p].first_link + place if place < members else sim.bridges[b].links[place - members]


# --------------------------------------------------------------------------------------- when they are agreed


@outlined
def agree_on_first(sim, b):
    """Give each link of the bridge its first meeting, the shortest, as early as possible."""
    bridge = sim.bridges[b]
    for k in range(bridge.count):
        if bridge.links[k] != NOTHING:
            sim.links[bridge.links[k]].need = LONGEST_FRAME / bridge.window
            set_meeting(sim, bridge.links[k], 0, SHORTEST_MEETING)


@outlined
def agree_on_next(sim, link, ended_by_null, now):
    """The meeting is over: its two ends agree on the next one."""
    meeting = sim.links[link]
    central = sim.piconets[meeting.piconet]
    bridge = sim.bridges[meeting.bridge]
    waiting = max(sim.queues[meeting.up].length, sim.queues[meeting.down].length)
    frames = central.frame
    lasted = now - meeting.meeting_start
    used = lasted
    if ended_by_null:
        frames -= 1
        used -= SHORTEST_FRAME
    if frames == 0:
        used = 0
    if now > meeting.agreed_at:  # a meeting that ends as the run begins gives no estimate
        meeting.need = (meeting.need + used / (now - meeting.agreed_at)) / 2
    interval = bridge.window
    if frames == 0 and waiting == 0:
        interval = bridge.longest_interval
        if meeting.need * interval > LONGEST_FRAME:
            interval = max(bridge.window, int(LONGEST_FRAME / meeting.need))
    meeting.agreed_at = now
    a_frame = used / frames if frames > 0 else LONGEST_FRAME
    rest = central.rest if bridge.own == NOTHING else max(central.rest, sim.piconets[bridge.own].rest)
    length = min(waiting * a_frame + meeting.need * interval, bridge.window / (1 + rest))
    at = max(now + int(rest * lasted), meeting.meeting_start + interval)
    set_meeting(sim, link, at, max(int(length) + GUARD, SHORTEST_MEETING))
    bridge.present_from = now + GUARD
    if bridge.own != NOTHING and sim.piconets[bridge.own].phase == NO_STATION:
        schedule(sim, sim.piconets[bridge.own].timer, bridge.present_from)


@outlined
def set_meeting(sim, link, earliest, length):
    """Set the next meeting of the link: the first time at which both ends are free for `length` ns."""
    meeting = sim.links[link]
    length = whole_frames(length)
    start = whole_frames(earliest)
    before = NOTHING
    while start != before:
        before = start
        start = after_meetings(
            sim, sim.piconets[meeting.piconet].bridge, meeting.piconet, link, start, length
        )
        start = after_meetings(sim, meeting.bridge, sim.bridges[meeting.bridge].own, link, start, length)
    meeting.meeting_start = start
    meeting.meeting_end = start + length


@compiled
def after_meetings(sim, b, p, link, start, length):
    """Return the start, or a later one if a meeting of the device, or the rest after it, is in the way."""
    rest = 0.0 if p == NOTHING else sim.piconets[p].rest
    for place in range(places(sim, b, p)):
        other = link_of_device(sim, b, p, place)
        if other in (NOTHING, link):
            continue
        begin, end = sim.links[other].meeting_start, sim.links[other].meeting_end
        free_again = end + whole_frames(rest * (end - begin))
        if start < free_again and begin < start + length + whole_frames(rest * length):
            start = free_again
    return start


@compiled
def whole_frames(time):
    """Return the time (ns) rounded up to whole pairs of slots."""
    return int(-(-time // SHORTEST_FRAME)) * SHORTEST_FRAME
