"""Slots that voice takes at fixed times: what they leave to the polling of data.

The voice links' slots lie side by side at the beginning of each period; a frame has to fit into the rest of
it in one piece. Parts of the compiled loop in `btqueue.network.ring_piconet.air`.
"""

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.network import EMPTY_FRAME_SLOTS
from btqueue.transport.compilation import part

ENDLESS = 1 << 62


@part
def wait(voice, now):
    """Return how many slots it takes from now (s) on until a frame can begin."""
    if voice.reserved == 0:
        return 0
    phase = phase_of(voice, now)
    if phase < voice.reserved:
        return voice.reserved - phase
    if phase + EMPTY_FRAME_SLOTS <= voice.period:
        return 0
    return voice.period - phase + voice.reserved


@part
def room(voice, now):
    """Return how many slots are free from now (s) on."""
    return voice.period - phase_of(voice, now) if voice.reserved > 0 else ENDLESS


@part
def phase_of(voice, now):
    """Return which slot of its period begins now."""
    return round(now / SLOT_S) % voice.period
