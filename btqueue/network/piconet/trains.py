"""How often the packets of a train are sent, under repetition on the link.

Each transmission takes a frame of its own. So to a queue a packet that is repeated is a row of packets, and
a train is one batch of as many as there are transmissions: the convolution of the laws of its packets.
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.piconet.ports import Train

NEGLIGIBLE = 1e-9
MOST = 100
"""Transmissions of a packet that are followed."""
SLOTS = 6
"""Numbers of slots that a packet may have, and 0."""


class Transmissions(NamedTuple):
    """The transmissions of a train on one hop.

    Attributes:
        law: of their number, on 0, 1, ...
        slots: law of the slots of one of them, on 0, 1, ...
        success: probability that every packet gets through in the end.
    """

    law: np.ndarray
    slots: np.ndarray
    success: float

    @property
    def mean(self) -> float:
        """Mean number."""
        return float(self.law @ np.arange(self.law.size))

    @property
    def variance(self) -> float:
        """Variance of their number."""
        return float(self.law @ (np.arange(self.law.size) - self.mean) ** 2)

    @property
    def mean_slots(self) -> float:
        """Mean slots of one."""
        return float(self.slots @ np.arange(self.slots.size))

    def visits(self, limit: int) -> float:
        """Mean visits of at most *limit* frames that a lone train takes."""
        return float(self.law @ np.ceil(np.arange(self.law.size) / limit))

    def full_visits(self, limit: int) -> float:
        """Mean visits that a lone train fills."""
        return float(self.law @ (np.arange(self.law.size) // limit))

    def fills_last_visit(self, limit: int) -> float:
        """Probability that a lone train fills the last of its visits."""
        number = np.arange(self.law.size)
        return float(self.law @ ((number > 0) & (number % limit == 0)))


NONE = Transmissions(np.ones(1), np.eye(SLOTS)[1], 1.0)


def transmissions(train: Train | None, most: float) -> Transmissions:
    """Return the transmissions of a train of which a packet gets at most so many."""
    if train is None:
        return NONE
    law, slots, success = np.ones(1), np.zeros(SLOTS), 1.0
    for packet, error_rate in zip(train.packets, train.error_rates.tolist(), strict=True):
        own = attempts(error_rate, most)
        law = np.convolve(law, own)
        slots[packet.slots] += own @ np.arange(own.size)
        success *= 1.0 - error_rate**most
    kept = law[: np.searchsorted(np.cumsum(law), 1.0 - NEGLIGIBLE) + 1]
    return Transmissions(kept / kept.sum(), slots / slots.sum(), success)


def attempts(error_rate: float, most: float) -> np.ndarray:
    """Return the law of a packet's transmissions: geometric, cut at the last one allowed."""
    if error_rate <= 0.0 or most == 1:
        return np.array([0.0, 1.0])
    needed = MOST if error_rate >= 1.0 else int(np.ceil(np.log(NEGLIGIBLE) / np.log(error_rate)))
    last = int(min(most, MOST, max(needed, 1)))
    law = np.append(0.0, (1.0 - error_rate) * error_rate ** np.arange(last))
    law[-1] = error_rate ** (last - 1)
    return law
