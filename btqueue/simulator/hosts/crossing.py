"""A whole segment has crossed one hop: it goes up at its last node, or on to the next port."""

from btqueue.simulator.hosts import delay_line
from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.conventions import NOTHING


@compiled
def on_segment_crossed(sim, index, now):
    """Hand the segment to the layers of its last node, or let it enter the next port."""
    segment = sim.segments[index]
    segment.hop += 1
    if sim.routes[segment.hop] != NOTHING:
        sim.clock[0].entering = index
        return
    conn = sim.connections[segment.flow]
    inbox = sim.nodes[conn.source if segment.backward else conn.destination].inbox
    if inbox == NOTHING:
        sim.clock[0].arrived = index
    else:
        delay_line.enter(sim, inbox, index, now)
