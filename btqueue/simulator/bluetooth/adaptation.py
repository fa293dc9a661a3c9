"""Adaptive packet types: the type is chosen anew before each transmission, and the segment cut to fit.

A sender knows the true bit error rate now, or the link quality, a whole number (Chen,
Kapoor, Sanadidi and Gerla, "Enhancing Bluetooth TCP throughput via link layer packet adaptation", ICC 2004,
section IV). The tables from level or quality to type are made in `construction`.
"""

from btqueue.simulator.bluetooth.radio import level
from btqueue.simulator.machinery.numba_cache import compiled, outlined


@outlined
def choose_type(sim, port_index, packet_index, room, now):
    """Return the type in which the port's head packet goes on the air now, for at most `room` ns.

    The type from the tables is replaced by the longest of its family that fits into the room, and by the
    shortest of its family that holds the rest of the segment. If none fits, the type from the tables is
    returned, and the caller has to wait. A part that the far side already has is repeated unchanged.
    """
    packet = sim.packets[packet_index]
    if sim.ports[port_index].received:
        return packet.type
    wanted = wanted_type(sim, sim.ports[port_index].channel, now)
    return shortest_holding(sim, longest_within(sim, wanted, room), packet.bytes - packet.sent_bytes)


@compiled
def wanted_type(sim, channel_index, now):
    """Return the type for the channel as its sender sees it."""
    row = sim.channels[channel_index].first_level + level(sim, channel_index, now)
    if sim.settings[0].adapts_to_quality:
        return sim.type_for_quality[int(sim.level_quality[row] + 0.5)]
    return sim.type_for_level[row]


@compiled
def longest_within(sim, wanted, room):
    """Return the type of the family of `wanted`, no longer than it, that lasts longest within `room` (ns)."""
    kind = sim.packet_types[wanted]
    if kind.duration <= room:
        return wanted
    best = wanted
    payload = 0
    for other in range(len(sim.packet_types)):
        candidate = sim.packet_types[other]
        fits = candidate.family == kind.family and candidate.duration <= room
        if fits and candidate.payload > payload:
            best = other
            payload = candidate.payload
    return best


@compiled
def shortest_holding(sim, wanted, size):
    """Return the smallest type of the family of `wanted`, no larger than it, that holds `size` bytes."""
    best = wanted
    for other in range(len(sim.packet_types)):
        candidate = sim.packet_types[other]
        holds = candidate.family == sim.packet_types[wanted].family and candidate.payload >= size
        if holds and candidate.payload < sim.packet_types[best].payload:
            best = other
    return best
