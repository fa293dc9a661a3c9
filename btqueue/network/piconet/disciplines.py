"""What a polling discipline makes of a piconet with one busy station, in slots.

In an idle piconet every discipline visits the stations in cyclic order. They differ in the order once one has
data: how soon it is visited, how often the idle ones are polled meanwhile, and when a visit ends. One rule
makes most of the differences: when a visit ends with a packet from a station, its acknowledgement comes too
late for the next frame.

* *limited, exhaustive*: cyclic order for ever.
* *gated*: a visit ends with the last packet that it found. A packet that comes during its poll goes alone.
* *lwrr*: an idle station is visited in one of `max_weight` cycles.
* *prc-lwrr*: an idle station is left out for as many idle cycles, unless all are. So a shorter train is sent
  without a pause, and a visit that its last packet ends is repeated at once, too early for the answer.
* *fep*: only stations with data, or not yet found without, are visited, a frame at a time.
* *slq*: the longest queue of both ways, *ldq*: the longest queue of the way down; ties go in cyclic order.
"""

from typing import cast

import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from btqueue.network.piconet.lone import EMPTY_FRAME, Visits
from btqueue.scenario.polling import Polling

ENDLESS = 1000
"""Frames of a visit that stand for no limit."""


def numbers(values: ArrayLike) -> Array:
    """Return an array of numpy in double precision: JAX would round one of its own outside of its scope."""
    return cast(Array, np.asarray(values, np.float64))


def visits_of(polling: Polling, stations: int, flows: int, train: float) -> Visits:
    """Return the numbers of a discipline.

    Args:
        polling: the discipline and its parameters.
        stations: of the piconet.
        flows: of the piconet.
        train: slots of the frames of a segment.
    """
    n, name = float(stations), polling.discipline
    away, cycle = EMPTY_FRAME * (n - 1.0), EMPTY_FRAME * n
    cyclic = Visits(
        first=numbers([n, n]),
        polls=numbers([1.0, 1.0]),
        closes=numbers(0.0),
        missed_up=numbers(cycle),
        missed_down=numbers([cycle, away if stations > 1 else EMPTY_FRAME]),
        passed=numbers([0.5, 1.0, 1.0]),
        interleaved=numbers(0.0),
        plain=numbers(1.0),
    )
    if stations == 1 or name in CYCLIC:
        return cyclic
    cyclic = cyclic._replace(plain=numbers(0.0))
    if name == "gated":
        return cyclic._replace(first=numbers([n, n + (n - 1.0) / n]), closes=numbers(1.0))
    if name == "fep":
        # idle rounds begin behind the station that was busy last; the rest of one is polled too
        rest = n * (1.0 - 1.0 / flows)
        soon = 1.0 + (n - 1.0) * (2.0 * n - 1.0) / (3.0 * n)
        return cyclic._replace(
            first=numbers([soon, n + rest]), missed_up=numbers(EMPTY_FRAME),
            missed_down=numbers([EMPTY_FRAME, EMPTY_FRAME]), interleaved=numbers(1.0),
        )  # fmt: skip
    if name in ("slq", "ldq"):
        longest = name == "slq"
        return cyclic._replace(
            first=numbers([1.0, 2.0 if longest else n]),
            polls=numbers([0.0, 0.0 if longest else 1.0]),
            missed_up=numbers(EMPTY_FRAME if longest else cycle),
            missed_down=numbers([EMPTY_FRAME, EMPTY_FRAME]),
            passed=numbers([ENDLESS] * 3) if longest else numbers([0.5, ENDLESS, 0.5]),
        )
    polls = 1.0 / polling.max_weight
    repeated = (1.0 - polls) ** (n - 1.0) * EMPTY_FRAME + polls * away
    if name == "prc-lwrr":  # the idle ones were polled one after the other before the train
        since = train + EMPTY_FRAME * np.arange(1, stations)
        polls = float(np.mean(since >= cycle * (polling.max_weight - 1)))
        sooner = float(np.sum(since > cycle * (polling.max_weight - 2)))
        repeated = (1.0 - polls) * EMPTY_FRAME * (1.0 + sooner) + polls * away
    later = EMPTY_FRAME + polls * away
    missed = {"missed_up": numbers(later), "missed_down": numbers([later, repeated])}
    return cyclic._replace(polls=numbers([polls, polls]), **missed)


def limit_of(polling: Polling) -> int:
    """Return the most frames of a visit."""
    if polling.discipline in ("1-limited", "round-robin"):
        return 1
    return ENDLESS if polling.discipline in UNLIMITED else min(polling.limit, ENDLESS)


CYCLIC = ("e-limited", "1-limited", "round-robin", "exhaustive")
UNLIMITED = ("exhaustive", "gated", "fep")
