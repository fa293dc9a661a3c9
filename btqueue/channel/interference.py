"""Fully loaded piconets nearby, that hop over the same channels without regard to ours.

Each sends one packet of type DH1 in every slot, on an independent hop channel, at a phase to ours that is
uniform and independent from packet to packet. A packet of our piconet that is on the air for L meets m =
floor(x) of them or, with probability f = x - m, m + 1, where x = (L + 366 us) / 625 us; it survives one
neighbour with probability (1 - f) q^m + f q^(m+1), q = 1 - 1/79. Were packets as long as their slots,
one-slot packets would always meet two: the upper bound of El-Hoiydi (IEEE Communications Letters 5, 2001).
Lin and Tseng (the same, 7, 2003) have longer packets.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from btqueue.baseband import PACKET_TYPES, SLOT_S

HOP_CHANNELS = 79
"""Channels of 1 MHz that a BR/EDR radio hops over (Core Specification, volume 2, part B, section 2)."""
SLOT_US = SLOT_S * 1e6
"""A slot (µs)."""


def spared_by_neighbour(air_time_us: ArrayLike) -> NDArray[np.float64]:
    """Probability that one neighbour does not spoil a packet of this air time (us)."""
    other_channel = 1.0 - 1.0 / HOP_CHANNELS
    least, part = np.divmod(np.asarray(air_time_us, float) + PACKET_TYPES["DH1"].air_time_us, SLOT_US)
    return other_channel**least * (1.0 - part / SLOT_US / HOP_CHANNELS)
