"""The radio channel: at which level of bit error rate it is now, and whether a packet is received intact.

A channel is constant, or has two states (Gilbert-Elliott), or changes its level at fixed times: between two,
or along a trace. It needs no events: its level is looked up when a packet has been received. The state of a
two-state channel then follows from the state at the last look by the exact transition probability of the
two-state Markov chain over the time between.
"""

import math

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.machinery.random_streams import uniform
from btqueue.simulator.records.conventions import NOTHING, SECOND
from btqueue.simulator.records.nodes import ALTERNATING, TRACE, TWO_STATE


@compiled
def level(sim, channel_index, now):
    """Return the level of the channel at `now` (ns), counted from the channel's first level."""
    channel = sim.channels[channel_index]
    if channel.model == TWO_STATE:
        if channel.stationary_good < 1.0:
            sample_state(channel, sim.streams[channel.state_stream], now)
    elif channel.model == ALTERNATING:
        channel.level = (now // channel.step) % 2
    elif channel.model == TRACE:
        place = (now // channel.step) % channel.trace_length
        channel.level = sim.trace_levels[channel.trace_first + place]
    return channel.level


@compiled
def sample_state(channel, stream, now):
    """Move a two-state channel to `now` (ns): level 0 is the good state, level 1 the bad one."""
    elapsed = (now - channel.sampled_at) / SECOND
    memory = math.exp(-channel.relaxation_rate * elapsed)
    probability_good = channel.stationary_good * (1.0 - memory)
    if channel.level == 0:
        probability_good += memory
    channel.level = 0 if uniform(stream) < probability_good else 1
    channel.sampled_at = now


@compiled
def is_hit(sim, port_index, packet_type, now):
    """Decide whether the channel spoils a packet that the port has just sent (end of reception: now).

    `packet_type` is NOTHING for POLL and NULL.
    """
    channel_index = sim.ports[port_index].channel
    channel = sim.channels[channel_index]
    if not channel.lossy:
        return False
    row = channel.first_level + level(sim, channel_index, now)
    return uniform(sim.streams[channel.error_stream]) < sim.error_rates[row, 1 + packet_type]


@compiled
def reception_fails(sim, port_index, packet_type, now):
    """Decide, once for each packet, whether the channel spoils it; remember it in `hit`."""
    hit = is_hit(sim, port_index, packet_type, now)
    sim.piconets[sim.ports[port_index].piconet].hit = hit
    return hit


@compiled
def feedback_is_hit(sim, port_index, now):
    """Decide whether the acknowledgement bit in the packet just received from this port is lost.

    With a lost data packet the bit is lost; its reception has been drawn before (`reception_fails`). POLL and
    NULL are drawn here.
    """
    central = sim.piconets[sim.ports[port_index].piconet]
    if central.packet == NOTHING:
        return reception_fails(sim, port_index, NOTHING, now)
    return central.hit
