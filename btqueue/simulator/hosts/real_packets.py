"""Packets that a real program has sent: the network carries them, the transport protocols never see them."""

from btqueue.simulator.bluetooth.l2cap import new_segment
from btqueue.simulator.hosts.forwarding import leave_host
from btqueue.simulator.machinery.numba_cache import entry_point
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.packets import DATAGRAM


@entry_point
def hand_down(sim, flow, backward, layout, number):
    """Let an IP packet leave the flow's source, or `backward` its destination, now; return its segment.

    Call it between two calls of `advance`, one packet at a time, with a segment free. The segment belongs to
    no incarnation of the connection, so that its receiver only logs `number` and frees it.
    """
    index = new_segment(sim, flow, DATAGRAM, backward, layout, number)
    sim.segments[index].incarnation = NOTHING
    leave_host(sim, index, sim.clock[0].now)
    return index
