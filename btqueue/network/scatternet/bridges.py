"""Where walk-in bridges are, and when they go on. Parts of the compiled loop in `scatternet.air`.

A bridge waits to be polled, answers the first POLL by NULL, exchanges packets and goes on by the rule of its
stay. A bridge that is the central of a piconet goes on at the end of a cycle there; its piconet is silent
until it comes back.
"""

from math import inf

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.sequences import DELAYS, quantile
from btqueue.network.scatternet.records import CYCLE, NONE, VISIT
from btqueue.transport.compilation import part


@part
def known_until(state, paths, b, p):
    """Return up to which slot it is known whether bridge `b` is in piconet `p`."""
    bridge = state.bridges[b]
    where = paths.piconets[b, bridge.current]
    if where == p:
        return inf
    return max(state.piconets[where].slot, bridge.since)


@part
def is_present(state, paths, b, p):
    """Return whether bridge `b` answers a POLL of piconet `p` that starts now.

    Slots of piconets begin at the same times. Of what happens at the same time in several piconets, the
    first one's comes first: a bridge that leaves a later piconet just now is too late.
    """
    bridge, slot = state.bridges[b], state.piconets[p].slot
    if paths.piconets[b, bridge.current] != p:
        return False
    return bridge.since < slot or (bridge.since == slot and bridge.origin <= p)


@part
def is_back(state, paths, p):
    """Return whether the central of a silent piconet is back.

    Else the piconet is silent for at least as long as what is known of where the central is.
    """
    piconet, b = state.piconets[p], paths.central_bridge[p]
    bridge = state.bridges[b]
    where = paths.piconets[b, bridge.current]
    piconet.away = where != p
    piconet.slot = max(piconet.slot, state.piconets[where].slot if piconet.away else bridge.since)
    piconet.now = piconet.slot * SLOT_S
    return not piconet.away


@part
def leave_after_exchange(state, paths, b, nothing_left, p):
    """An exchange in piconet `p` is over: the bridge goes on if its stay is over.

    A stay of so many whole cycles is enclosed by one exchange more.
    """
    bridge = state.bridges[b]
    bridge.exchanges += 1
    if paths.stay == VISIT:
        over = True
    elif paths.stay == CYCLE:
        over = bridge.exchanges > paths.stay_cycles
    else:
        over = nothing_left
    if over:
        go_on(state, paths, b, p)


@part
def leave_after_cycle(state, paths, p):
    """A cycle is over: the central goes on if it is a bridge and its stay is over."""
    piconet, b = state.piconets[p], paths.central_bridge[p]
    idle = piconet.data_slots == piconet.slots_before
    piconet.slots_before = piconet.data_slots
    if b == NONE:
        return
    bridge = state.bridges[b]
    bridge.exchanges += 1
    if paths.stay == VISIT:
        over = True
    elif paths.stay == CYCLE:
        over = bridge.exchanges >= paths.stay_cycles
    else:
        over = idle
    if over:
        piconet.away = True
        go_on(state, paths, b, p)


@part
def go_on(state, paths, b, p):
    """Send the bridge from piconet `p` to the next one; its switches last as a fixed sequence says."""
    bridge = state.bridges[b]
    bridge.current += 1
    if bridge.current == paths.piconets.shape[1] or paths.piconets[b, bridge.current] == NONE:
        bridge.current = 0
    bridge.exchanges = 0
    bridge.switches += 1
    bridge.origin = p
    bridge.since = state.piconets[p].slot
    if paths.switch_slots > 0.0:
        bridge.since += paths.switch_slots * quantile(b, DELAYS, bridge.switches)
