"""The baseband queue of a port: packets enter, wake a sleeping piconet, and leave for the air.

Bytes of all packets that wait at a node, for tokens or for the air, are held against the node's buffer where
it has one.
"""

from btqueue.simulator.bluetooth.sleep import wake
from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.machinery.queues import offer, serve
from btqueue.simulator.traces.trace import PACKET_ENQUEUED, PACKET_REFUSED, packet_event


@compiled
def enter_queue(sim, port_index, packet, now):
    """Append the packet to the port's queue; return False, with nothing changed, when the queue is full."""
    port = sim.ports[port_index]
    if not offer(sim, port_index, packet, now):
        packet_event(sim, PACKET_REFUSED, port_index, packet, now)
        return False
    packet_event(sim, PACKET_ENQUEUED, port_index, packet, now)
    sim.packets[packet].ready_at = now + port.baseband_delay
    central = sim.piconets[port.piconet]
    central.waiting += 1
    if central.asleep:
        wake(sim, port.piconet, now)
    return True


@compiled
def take_from_port(sim, port_index, now):
    """Take the head packet off the port's queue, and its bytes out of the node's buffer; return its index."""
    port = sim.ports[port_index]
    packet = serve(sim, port_index, now)
    sim.piconets[port.piconet].waiting -= 1
    free_node_buffer(sim, port_index, sim.packets[packet].bytes)
    return packet


@compiled
def enter_node_buffer(sim, port_index, size):
    """Take `size` bytes of the buffer of the port's node; return False if they are not free."""
    if not sim.settings[0].node_buffers:
        return True
    node = sim.nodes[sim.ports[port_index].node]
    if node.buffer_used + size > node.buffer_limit:
        return False
    node.buffer_used += size
    return True


@compiled
def free_node_buffer(sim, port_index, size):
    """Give `size` bytes back to the buffer of the port's node."""
    if sim.settings[0].node_buffers:
        sim.nodes[sim.ports[port_index].node].buffer_used -= size
