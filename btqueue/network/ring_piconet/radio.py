"""Radio errors of a ring's links: the state of a channel, and whether a packet is damaged.

A link stays good or bad for an exponential time. When a packet has been received after the end of a stay, the
state that the channel is in by then follows by the exact transition probability, and a new stay begins, since
the exponential law has no memory. A packet is damaged when the sum of the hazards -log(1 - packet error rate)
passes the next point of a Poisson process of rate 1. The quantiles of all laws come from fixed sequences.

Parts of the compiled loop in `btqueue.network.ring_piconet.air`.
"""

from math import exp

from btqueue.network.ring_piconet.sequences import ERRORS, STATES, STAYS, gap, quantile
from btqueue.transport.compilation import part


@part
def is_hit(state, radio, k, packet, now):
    """Decide whether the link of peripheral k damages a packet that has been received now."""
    if not radio.lossy:
        return False
    link = state.links[0 if radio.shared else k]
    link.left -= radio.hazards[level(link, radio, now), packet.stream & 1, packet.piece]
    if link.left > 0.0:
        return False
    link.errors += 1
    link.left = gap(link.sequence, ERRORS, link.errors)
    return True


@part
def level(link, radio, now):
    """Return the state of a link now: 0 is good, 1 bad."""
    if link.until <= now:
        memory = exp((link.until - now) * radio.relaxation_rate)
        bad = radio.bad_share * (1.0 - memory) + (0.0 if link.level == 1 else memory)
        link.stays += 1
        link.level = 1 if quantile(link.sequence, STATES, link.stays) < bad else 0
        link.until = now + radio.stays_s[link.level] * gap(link.sequence, STAYS, link.stays)
    return link.level
