"""The end of the warm-up: MSER-5 (White, Simulation 69, 1997; White, Cobb and Spratt, WSC 2000).

Dropping the start of a run removes the bias of the empty network and widens the interval for the mean. The
marginal standard error rule drops the start that makes this interval, computed from the remaining values,
narrowest. It uses means of five observations, so that a single odd value does not stop it.
"""

import numpy as np

BATCH = 5
FEWEST_BATCHES = 10
LAST_BATCHES = 5
"""The last cuts are not tried: a few nearly equal values would always have the least variance."""


def find_warm_up(series: np.ndarray, step_s: float) -> float | None:
    """Return when the warm-up of a series ends (s from its start); None if it has no stationary part.

    No stationary part is found if the best cut lies in the second half: the series is then too short, or has
    no steady state (White, Cobb and Spratt, 2000).

    Args:
        series: observations from the start of a run, shape (n,): goodput in each step, a queue's length.
        step_s: the distance of two of them (s).

    Raises:
        ValueError: fewer than 50 observations, another shape, or values that are not numbers.
    """
    series = np.asarray(series, float)
    if series.ndim != 1 or len(series) < BATCH * FEWEST_BATCHES:
        raise ValueError(f"a series of at least {BATCH * FEWEST_BATCHES} observations is needed")
    if not np.all(np.isfinite(series)):
        raise ValueError("some observations are not numbers")
    errors = marginal_standard_errors(series)
    cut = int(np.argmin(errors))
    return None if cut > (len(series) // BATCH) // 2 else cut * BATCH * step_s


def marginal_standard_errors(series: np.ndarray) -> np.ndarray:
    """Return the squared standard error of the mean after dropping 0, 1, 2, ... means of five observations.

    It is sum (y_i - mean)^2 / (number left)^2 over the means y_i that are left (White 1997, equation 4).
    """
    count = len(series) // BATCH
    batches = series[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    # differences from the overall mean keep the sums of squares from cancelling
    centred = batches - batches.mean()
    left = np.arange(count, 0, -1)
    sums = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum((centred**2)[::-1])[::-1]
    scatter = np.maximum(squares - sums**2 / left, 0.0)
    return (scatter / left**2)[: count - LAST_BATCHES]
