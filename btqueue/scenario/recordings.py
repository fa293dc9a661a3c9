"""Recordings that a scenario names: the trace of a radio, and the arrivals of a source.

The scenario may come from a stranger, and the recording may be any file on the reader's machine. So a message
names the faulty line and the expected content, and quotes nothing from the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from btqueue.files import UnusableFile, read_bytes
from btqueue.scenario.errors import Problem, ScenarioError
from btqueue.scenario.radio import Radio
from btqueue.text_files import BadText, decoded


def read_trace(radio: Radio) -> np.ndarray:
    """Return the values of the trace file: one a line, `#` starts a comment, empty lines do not count.

    Raises:
        ScenarioError: the file cannot be read, is empty, or a line holds no value (the line is named).
    """
    most, form = 255.0, "a link quality from 0 to 255"
    if radio.trace_quantity == "ber":
        most, form = 0.5, "a bit error rate from 0 to 0.5"
    what = radio.trace_file or "", "trace", "radio.trace_file"
    return np.array(_rows(*what, form, lambda row: len(row) == 1 and 0 <= row[0] <= most)).ravel()


def read_arrivals(name: str) -> tuple[list[float], list[int]]:
    """Read a file of arrivals: a line holds a time (s) and a size (bytes), separated by blanks or a comma.

    Raises:
        ScenarioError: naming file and line, if the file cannot be read, a line is not of this form, times
            decrease, or there is no line at all.
    """

    def fits(row: list[float]) -> bool:
        return len(row) == 2 and 0 <= row[0] < 1e6 and 1 <= row[1] <= 1e9 and row[1] % 1 == 0

    what = name, "arrival", "traffic.arrival_file"
    rows = _rows(*what, "a time (s, at least 0) and a size (bytes)", fits)
    times, sizes = [time for time, _ in rows], [int(size) for _, size in rows]
    if any(later < earlier for earlier, later in pairwise(times)):
        raise _refused(*what, "the times must not decrease")
    return times, sizes


def _rows(
    name: str, what: str, key: str, form: str, fits: Callable[[list[float]], bool]
) -> list[list[float]]:
    """Return the numbers in the lines of a file that hold something beside comments."""
    try:
        lines = decoded(read_bytes(Path(name))).splitlines()
    except (UnusableFile, BadText) as error:
        raise _refused(name, what, key, str(error)) from None
    rows = []
    for number, line in enumerate(lines, start=1):
        if text := line.partition("#")[0].strip():
            rows.append([_number(part) for part in text.replace(",", " ").split()])
            if not fits(rows[-1]):
                raise _refused(name, what, key, f"line {number}: must be {form}")
    if not rows:
        raise _refused(name, what, key, f"holds no {'value' if what == 'trace' else what}")
    return rows


def _number(text: str) -> float:
    """Return a number, NaN if it is none; Python would read 1_0 as 10."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _refused(name: str, what: str, key: str, why: str) -> ScenarioError:
    return ScenarioError(Problem(f"{what} file {name} {why}", key=key, value=name))
