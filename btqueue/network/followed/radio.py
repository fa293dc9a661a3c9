"""Whether a radio link damages a packet: at a constant rate, in two states that come and go, or in turn.

The state of a channel when it is looked at follows from that of the last look by the exact transition
probability of the two-state Markov chain.
"""

from math import exp

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.events import uniform
from btqueue.network.followed.world import KINDS

PERFECT, CONSTANT, TWO_STATES, ALTERNATING = range(4)
LONG_AGO = -1e12
"""When a channel was looked at before the first time (slots): what it was then is forgotten."""


@part
def is_hit(w, channel, kind, now):
    """Decide whether a channel damages a packet of this kind, whose reception ends now."""
    own = w.channels[channel]
    return own.model != PERFECT and is_damaged(w, own, kind, now)


@subroutine
def is_damaged(w, own, kind, now):
    """Decide so for a channel that may damage packets."""
    if own.model == TWO_STATES:
        memory = exp((own.looked - now) * own.relaxation)
        bad = own.bad_share * (1.0 - memory) + own.bad * memory
        own.bad = 1 if uniform(w) < bad else 0
        own.looked = now
    elif own.model == ALTERNATING:
        own.bad = int(now / own.relaxation) % 2
    rate = w.errors[(own.radio * w.sizes[KINDS] + kind) * 2 + own.bad]
    return rate > 0.0 and uniform(w) < rate
