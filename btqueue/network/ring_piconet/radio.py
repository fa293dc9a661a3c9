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
    """Decide whether the link of peripheral k damages a packet that has been received now.

    What comes as a surprise is added up, by what it may cost: the timer of the packet's sender (s). So
    its mean is 0.
    """
    if not radio.lossy:
        return False
    clock, link = state.clock[0], state.links[0 if radio.shared else k]
    at_stake = state.peripherals[packet.stream >> 1].rto
    if link.until <= now:
        bad = chance_of_bad(link, radio, now)
        begin_stay(link, radio, now, bad)
        contrast = radio.chances[1, 0, 0] - radio.chances[0, 0, 0]
        clock.bad_surprise += (link.level - bad) * contrast * at_stake
    kind, piece = packet.stream & 1, packet.piece
    link.left -= radio.hazards[link.level, kind, piece]
    hit = link.left <= 0.0
    if hit:
        link.errors += 1
        link.left = gap(link.sequence, ERRORS, link.errors)
    if packet.damaged == 0:
        clock.hit_surprise += ((1.0 if hit else 0.0) - radio.chances[link.level, kind, piece]) * at_stake
    return hit


@part
def level(link, radio, now):
    """Return the state of a link now: 0 is good, 1 bad."""
    if link.until <= now:
        begin_stay(link, radio, now, chance_of_bad(link, radio, now))
    return link.level


@part
def chance_of_bad(link, radio, now):
    """Return how likely a link is bad so long after the end of its stay."""
    memory = exp((link.until - now) * radio.relaxation_rate)
    return radio.bad_share * (1.0 - memory) + (0.0 if link.level == 1 else memory)


@part
def begin_stay(link, radio, now, bad):
    """Let a stay begin now, in the bad state with this probability."""
    link.stays += 1
    link.level = 1 if quantile(link.sequence, STATES, link.stays) < bad else 0
    link.until = now + radio.stays_s[link.level] * gap(link.sequence, STAYS, link.stays)
