"""Shared by several figures of Suliman et al. (2005): the course of one transfer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from btqueue.reproduction.figures.event_panels import again, duplicate
from btqueue.reproduction.figures.runs import events
from btqueue.scenario import Scenario

HOST = "host"


@dataclass(frozen=True)
class Transfer:
    """The segments that the sender of a single transfer sends, and the acknowledgements that it receives.

    Attributes:
        sent_s: when segments left, shape (sent,).
        sent: their numbers.
        again: whether each had left before.
        heard_s: when acknowledgements came, shape (heard,).
        acknowledged: the next segment that each asks for.
        duplicate: whether each asks for nothing new.
    """

    sent_s: np.ndarray
    sent: np.ndarray
    again: np.ndarray
    heard_s: np.ndarray
    acknowledged: np.ndarray
    duplicate: np.ndarray

    def round_trips(self) -> tuple[np.ndarray, np.ndarray]:
        """Return when segments left, and how long until they were acknowledged (s), shape (samples,) each.

        Only segments that were sent once are measured (Karn's rule), and only while nothing was sent again:
        the acknowledgement that fills a hole says little about the segments behind it.
        """
        numbers, first, times = np.unique(self.sent, return_index=True, return_counts=True)
        new = ~self.duplicate
        place = np.searchsorted(self.acknowledged[new], numbers, side="right")
        known = (times == 1) & (place < np.count_nonzero(new))
        left, back = self.sent_s[first[known]], self.heard_s[new][place[known]]
        repeats = self.sent_s[self.again]
        clean = np.searchsorted(repeats, left) == np.searchsorted(repeats, back)
        return left[clean], (back - left)[clean]


def transfer(scenario: Scenario, replication: int = 0) -> Transfer:
    """Return the segments and acknowledgements at the sender of the only flow, in one replication."""
    log = events(scenario, replication, only=("segment sent", "segment received"))
    sent = log.of("segment sent", node=HOST)
    heard = log.of("segment received", node=HOST)
    return Transfer(
        sent.time_s,
        sent.segment,
        again(sent),
        heard.time_s,
        heard.acknowledged,
        duplicate(heard),
    )
