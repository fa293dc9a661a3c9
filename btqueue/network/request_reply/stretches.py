"""Segments of a TCP sender through one bottleneck while nothing is lost: windows, round trips, estimates.

A *stretch* is what a sender sends from a moment on at which nothing is under way, up to its first loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

AFTER_EXPIRY, AT_FIRST, AFTER_RECOVERY = range(3)
"""How a window opens: from one segment, from the initial window, from the threshold."""


@dataclass(frozen=True)
class Course:
    """What a sender sends and how it fares; times in seconds.

    Attributes:
        messages: segments of each message, sent one after the other, again and again.
        loss: of a full segment, `last_loss` of the last one of each message; `ack_loss` of acknowledgements.
        gaps_s: from the arrival of each message until the next one is written.
        round_trip_s: of a full segment alone, `back_s` of that the way back.
        answer_s: by how much later the last acknowledgement of each message comes, behind what answers it.
        spacing_s: between full segments in a row; `last_spacing_s` before the last one of each message.
        room: segments that the bottleneck holds, the one in service included.
        windows: receive window, initial window and initial threshold (segments).
        timer_s: initial, least and largest timeout.
        backoff, timestamps: as the keys of [transport] say.
        ack_every, ack_delay_s: delayed acknowledgements.
        fresh: the connection is a new one at the first message.
        leaves: the connection ends before the last acknowledgement of the last message is there.
        handshake: round trip (s) that opened it and is its first sample, and share of those with a lost SYN,
            which are none (Karn); None where nothing is measured.
    """

    messages: tuple[int, ...]
    loss: float
    last_loss: tuple[float, ...]
    ack_loss: float
    gaps_s: tuple[float, ...]
    round_trip_s: float
    spacing_s: float
    last_spacing_s: tuple[float, ...]
    answer_s: tuple[float, ...]
    back_s: float
    room: int
    windows: tuple[int, float, float]
    timer_s: tuple[float, float, float]
    backoff: bool = True
    timestamps: bool = True
    ack_every: int = 1
    ack_delay_s: float = 0.0
    fresh: bool = False
    leaves: bool = False
    handshake: tuple[float, float] | None = None


@lru_cache(maxsize=64)
def windows_table(most: int, initial: float) -> np.ndarray:
    """Return windows after so many acknowledgements, [opening, twice the threshold, acknowledgements].

    Slow start below the threshold, congestion avoidance from there on (RFC 5681, section 3.1), up to `most`.
    """
    doubled = np.arange(2 * most + 3)
    thresholds = np.maximum(doubled / 2.0, 2.0)
    opened = [np.ones(len(doubled)), np.full(len(doubled), initial), thresholds]
    window = np.minimum(np.stack(opened), float(most))
    found = [window]
    while (window < most).any():
        window = np.minimum(window + np.where(window < thresholds, 1.0, 1.0 / window), float(most))
        found.append(window)
    return np.stack(found, axis=-1)


class Stretches(NamedTuple):
    """Stretches from their states, [state] or [state, k] for the k-th segment still missing, from 0 on.

    Attributes:
        sent: when it is sent (s after the beginning).
        acknowledged: when its acknowledgement comes, if it is not lost.
        flight: segments under way when it is the oldest.
        full: whether it finds the buffer full; `full_behind` how many under way behind it do.
    """

    sent: np.ndarray
    acknowledged: np.ndarray
    flight: np.ndarray
    full: np.ndarray
    full_behind: np.ndarray


def lay_out(course: Course, message: np.ndarray, missing: np.ndarray, window: np.ndarray) -> Stretches:
    """Return when segments pass the bottleneck while nothing is lost, by recursion over segments.

    A segment leaves with the acknowledgement that makes room for it in the window, and is served behind the
    one in front of it (Lindley); it finds the buffer full if the one so many places ahead is not served yet.

    Args:
        course: the sender.
        message: to which each stretch belongs, [state].
        missing: its segments, [state].
        window: in force before the k-th acknowledgement, [state, k].
    """
    states, most = window.shape
    every, whole = course.ack_every, np.minimum(window.astype(int), course.windows[0])
    sent, acknowledged, done = (np.zeros((states, most)) for _ in range(3))
    full = np.zeros((states, most), bool)
    places, rows = np.arange(most), np.arange(states)
    last_spacing = np.array(course.last_spacing_s)[message]
    reach = whole + places  # the first segment that does not fit before the k-th acknowledgement
    released = np.zeros(states, int)
    ahead = np.full((states, course.room), -np.inf) if course.room < most else None
    last = np.full(states, -np.inf)
    answer = np.array(course.answer_s)[message]
    for k in range(most):
        while (late := (released < k) & (reach[rows, released] <= k)).any():
            released = released + late
        sent[:, k] = np.where(released > 0, acknowledged[rows, released - 1], 0.0)
        start = np.maximum(sent[:, k], last)
        if ahead is not None:
            full[:, k] = ahead[:, 0] > sent[:, k] + 1e-12
        service = np.where(missing == k + 1, last_spacing, course.spacing_s)
        last = np.where(full[:, k], last, start + service)
        if ahead is not None:
            pushed = np.concatenate([ahead[:, 1:], last[:, None]], axis=1)
            ahead = np.where(full[:, k, None], ahead, pushed)
        done[:, k] = last + course.round_trip_s - course.spacing_s + np.where(missing == k + 1, answer, 0.0)
        alone = (k + 1) % every > 0
        acknowledged[:, k] = done[:, k] + alone * course.ack_delay_s
        if k % every:  # the segment behind it lets the acknowledgement out that it shares
            sooner = np.where(missing > k, acknowledged[:, k], np.inf)
            acknowledged[:, k - 1] = np.minimum(acknowledged[:, k - 1], sooner)
    flight = np.clip(np.minimum(whole, missing[:, None] - places), 1, None)
    counted = np.concatenate([np.zeros((states, 1), int), np.cumsum(full, axis=1)], axis=1)
    behind = np.minimum(places + flight, most)
    full_behind = counted[rows[:, None], behind] - counted[:, 1:]
    return Stretches(sent, acknowledged, flight, full, np.maximum(full_behind, 0))


def follow_estimates(round_trips: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return smoothed round trip and mean deviation after 0, 1, ... samples (RFC 6298, 2.2 and 2.3).

    Args:
        round_trips: ``(rows, samples)``; NaN where nothing is measured.
        known: ``(rows, 2)``, before.
    """
    found = [known]
    for sample in round_trips.T:
        smoothed, deviation = found[-1].T
        deviation = deviation + 0.25 * (abs(smoothed - sample) - deviation)
        new = np.stack([smoothed + 0.125 * (sample - smoothed), deviation], axis=1)
        found.append(np.where(np.isnan(sample)[:, None], found[-1], new))
    return np.stack(found, axis=1)
