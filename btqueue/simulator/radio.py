"""The radio channel: one two-state process for each channel record, sampled when a packet has been received.

Between two looks the process needs no events: the state now follows from the state then by the exact
transition probability of the two-state Markov chain over the time between. Constant error rates are the case
of one state.
"""

import math

from btqueue.simulator.compilation import compiled
from btqueue.simulator.random_streams import uniform
from btqueue.simulator.records import SECOND


@compiled
def sample_state(channel, stream, now):
    """Move the channel to `now` and return whether it is in the good state."""
    elapsed = (now - channel.sampled_at) / SECOND
    memory = math.exp(-channel.relaxation_rate * elapsed)
    probability_good = channel.stationary_good * (1.0 - memory)
    if channel.good:
        probability_good += memory
    channel.good = uniform(stream) < probability_good
    channel.sampled_at = now
    return channel.good


@compiled
def is_corrupted(channel, packet_type, state_stream, error_stream, now):
    """Decide whether a packet of this type carries a bit error (sampled at the end of reception, now)."""
    if not channel.lossy:
        return False
    good = channel.stationary_good >= 1.0 or sample_state(channel, state_stream, now)
    error_rate = packet_type.per_good if good else packet_type.per_bad
    return uniform(error_stream) < error_rate
