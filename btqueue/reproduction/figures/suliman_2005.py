"""Shared by two figures of Suliman et al. (2005): the round trips of one transfer."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.figures.event_panels import again, duplicate
from btqueue.reproduction.figures.runs import events
from btqueue.scenario import Scenario


def round_trips(scenario: Scenario, replication: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return when segments left, and how long until they were acknowledged (s), shape (samples,) each.

    Only segments that were sent once are measured (Karn's rule), and only while nothing was sent again: the
    acknowledgement that fills a hole says little about the segments behind it.
    """
    log = events(scenario, replication, only=("segment sent", "segment received")).of(node="host")
    sent, heard = log.of("segment sent"), log.of("segment received")
    heard = heard.where(~duplicate(heard))
    numbers, first, times = np.unique(sent.segment, return_index=True, return_counts=True)
    place = np.searchsorted(heard.acknowledged, numbers, side="right")
    known = (times == 1) & (place < len(heard.time_s))
    left, back = sent.time_s[first[known]], heard.time_s[place[known]]
    repeats = sent.time_s[again(sent)]
    clean = np.searchsorted(repeats, left) == np.searchsorted(repeats, back)
    return left[clean], (back - left)[clean]
