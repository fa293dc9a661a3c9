"""Where bridges are, and when they go on.

A walk-in bridge waits to be polled, answers the first POLL by NULL, exchanges packets and goes on by the rule
of its stay. One that is the central of a piconet goes on at the end of a cycle there; its piconet is silent
until it comes back. A bridge with windows is in one piconet for a window of time, and then in another: in
turn (sniff), or as random numbers say that both ends know (PCSS).
"""

from math import floor

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.events import TURN, schedule, uniform
from btqueue.network.followed.world import MOST_PICONETS, NONE

WALK_IN, SNIFF, PSEUDO_RANDOM = range(3)
VISIT, CYCLE, COMPLETE = range(3)
FOR_EVER = 1e15
GUARD = 2.0
"""Slots at the end of a window, left to the bridge to align its clock to the next piconet."""
SHORTEST = 2.0
"""POLL and NULL (slots)."""
LOOK_AHEAD = 64
"""Windows that are searched for a meeting."""
SWITCH = 2.0
"""Slots that a switch takes at most, where it takes any."""


@part
def place_of(w, b, place):
    """Return which piconet a bridge visits at this place in its turn."""
    return w.places[2 * (b * MOST_PICONETS + place)]


@part
def is_present(w, b, p, now):
    """Return whether bridge `b` answers a POLL that starts now in piconet `p`."""
    bridge = w.bridges[b]
    if bridge.schedule == WALK_IN:
        return place_of(w, b, bridge.current) == p and bridge.since <= now
    return time_left(w, b, p, now) >= SHORTEST


@subroutine
def time_left(w, b, p, now):
    """Return how long bridge `b` still listens in piconet `p` (slots); 0 if it is elsewhere."""
    bridge = w.bridges[b]
    if bridge.schedule == WALK_IN:
        return FOR_EVER
    window = floor(now / bridge.window)
    if place_of(w, b, turn_of(w, bridge, window)) != p:
        return 0.0
    return max(0.0, (window + 1) * bridge.window - now - GUARD)


@part
def turn_of(w, bridge, window):
    """Return the place that a bridge is at in this window."""
    if bridge.schedule == SNIFF:
        return int(window) % bridge.count
    number = w.random[(int(window) * 40503 + bridge.offset) & (len(w.random) - 1)]
    return min(int(number * bridge.count), bridge.count - 1)


@part
def may_poll(w, p, link, now):
    """Return whether a visit to a link can begin now, as far as the windows of bridges say."""
    return keeps(w, w.links[link].bridge, p, now) and keeps(w, w.piconets[p].bridge, p, now)


@part
def keeps(w, b, p, now):
    """Return whether nothing is known that keeps device `b` (NONE: no bridge) from being in piconet `p`."""
    return b == NONE or w.bridges[b].schedule == WALK_IN or time_left(w, b, p, now) >= SHORTEST


@part
def room_for(w, p, link, now):
    """Return how long frames on a link may last from now on, for the windows of bridges (slots)."""
    free, b = FOR_EVER, w.links[link].bridge
    if b != NONE:
        free = time_left(w, b, p, now)
    if w.piconets[p].bridge != NONE:
        free = min(free, time_left(w, w.piconets[p].bridge, p, now))
    return free


@subroutine
def next_meeting(w, p, now):
    """Return from when on piconet `p` may poll some link; or up to when that was looked for."""
    own, earliest = w.piconets[p], FOR_EVER
    for link in range(own.first_link, own.first_link + own.links):
        at = now
        for _ in range(LOOK_AHEAD):
            if may_poll(w, p, link, at):
                break
            at = max(next_window(w, w.links[link].bridge, p, at), next_window(w, own.bridge, p, at))
        earliest = min(earliest, at)
    return earliest


@part
def next_window(w, b, p, now):
    """Return when device `b` is next in piconet `p`; now if it is there, or is no bridge."""
    if keeps(w, b, p, now):
        return now
    window = floor(now / w.bridges[b].window) + 1
    for _ in range(LOOK_AHEAD):
        if place_of(w, b, turn_of(w, w.bridges[b], window)) == p:
            break
        window += 1
    return window * w.bridges[b].window


@subroutine
def leave_after_exchange(w, b, nothing_left, now):
    """An exchange is over: the bridge goes on if its stay is over; whole cycles enclose one exchange more."""
    bridge = w.bridges[b]
    bridge.exchanges += 1
    if bridge.schedule != WALK_IN:
        return
    if bridge.stay == VISIT:
        over = True
    elif bridge.stay == CYCLE:
        over = bridge.exchanges > bridge.stay_cycles
    else:
        over = nothing_left
    if over:
        go_on(w, b, now)


@subroutine
def central_leaves(w, p, now):
    """A cycle of piconet `p` is over: return whether its central goes on, a bridge whose stay is over."""
    own = w.piconets[p]
    idle = own.cycle_carried == 0
    own.cycle_carried = 0
    bridge = w.bridges[own.bridge]
    if bridge.schedule != WALK_IN:
        return False
    bridge.exchanges += 1
    if bridge.stay == VISIT:
        over = True
    elif bridge.stay == CYCLE:
        over = bridge.exchanges >= bridge.stay_cycles
    else:
        over = idle
    if over:
        own.away = 1
        go_on(w, own.bridge, now)
    return over


@subroutine
def go_on(w, b, now):
    """Send a bridge to the next of its piconets; one that it is the central of begins when it is there."""
    bridge = w.bridges[b]
    bridge.current = (bridge.current + 1) % bridge.count
    bridge.exchanges = 0
    bridge.since = now
    if bridge.switches:
        bridge.since += int(uniform(w) * 1e6 * SWITCH) / 1e6
    if w.places[2 * (b * MOST_PICONETS + bridge.current) + 1] == NONE:
        p = place_of(w, b, bridge.current)
        w.piconets[p].away = 0
        w.piconets[p].time = bridge.since
        schedule(w, bridge.since, TURN, p)
