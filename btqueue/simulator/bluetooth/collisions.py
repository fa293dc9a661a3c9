"""Collisions of piconets that share the air: packets that overlap in time on the same hop channel are lost.

Piconets hop independently, each packet on one of 79 channels (Bluetooth Core Specification, Baseband part).
So every packet of another piconet that overlaps ours at all is on its channel with probability 1/79
(El-Hoiydi, "Interference between Bluetooth networks: upper bound on the packet error rate", IEEE
Communications Letters 5, 2001). A packet is on the air from the start of its first slot for as long as its
symbols take.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.random_streams import uniform
from btqueue.simulator.records.piconets import AIR_HISTORY

HOP_CHANNELS = 79
SHORT = 126_000
"""Time on the air of POLL and NULL (ns): access code and header only."""


@compiled
def note_transmission(sim, piconet, start, end):
    """Remember that the piconet is on the air from `start` to `end` (ns); POLL and NULL count too."""
    central = sim.piconets[piconet]
    central.air_start[central.air_next] = start
    central.air_end[central.air_next] = end
    central.air_next = (central.air_next + 1) % AIR_HISTORY


@outlined
def collided(sim, piconet):
    """Decide whether the packet that the piconet noted last met another one on its channel.

    Called when its slots are over; everything that overlapped it has been noted by then.
    """
    central = sim.piconets[piconet]
    last = (central.air_next - 1) % AIR_HISTORY
    met = overlapping(sim, piconet, central.air_start[last], central.air_end[last])
    if met == 0:
        return False
    return uniform(sim.streams[central.stream]) >= (1.0 - 1.0 / HOP_CHANNELS) ** met


@compiled
def overlapping(sim, piconet, start, end):
    """Count the transmissions of all other piconets that overlap the time from `start` to `end` (ns)."""
    count = 0
    for other in range(len(sim.piconets)):
        if other != piconet:
            central = sim.piconets[other]
            for place in range(AIR_HISTORY):
                if central.air_start[place] < end and start < central.air_end[place]:
                    count += 1
    return count
