"""Recordings that a scenario names: the trace of a radio, and the arrivals of a source.

The scenario may come from a stranger, and the recording may be any file on the reader's machine. So a message
names the faulty line and the expected content, and quotes nothing from the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
    name = radio.trace_file or ""
    ber = radio.trace_quantity == "ber"
    most, meant = (0.5, "a bit error rate from 0 to 0.5") if ber else (255.0, "a link quality from 0 to 255")
    values = []
    for number, text in _lines(name, "trace", "radio.trace_file"):
        value = _number(text)
        if not 0 <= value <= most:
            raise _refused(name, "trace", "radio.trace_file", f"line {number}: must be {meant}")
        values.append(value)
    return np.array(values)


def read_arrivals(name: str) -> tuple[list[float], list[int]]:
    """Read a file of arrivals: a line holds a time (s) and a size (bytes), separated by blanks or a comma.

    Raises:
        ScenarioError: naming file and line, if the file cannot be read, a line is not of this form, times
            decrease, or there is no line at all.
    """
    what = "arrival", "traffic.arrival_file"
    times, sizes = [], []
    for number, line in _lines(name, *what):
        found = [_number(text) for text in line.replace(",", " ").split()]
        if len(found) != 2 or not 0 <= found[0] < 1e6 or not 1 <= found[1] <= 1e9 or found[1] % 1:
            form = f"line {number}: must be a time (s, at least 0) and a size (bytes)"
            raise _refused(name, *what, form)
        times.append(found[0])
        sizes.append(int(found[1]))
    if any(later < earlier for earlier, later in pairwise(times)):
        raise _refused(name, *what, "the times must not decrease")
    return times, sizes


def _lines(name: str, what: str, key: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of a file that hold something beside comments."""
    try:
        lines = decoded(read_bytes(Path(name))).splitlines()
    except (UnusableFile, BadText) as error:
        raise _refused(name, what, key, str(error)) from None
    found = [(number, line.partition("#")[0].strip()) for number, line in enumerate(lines, start=1)]
    if not any(text for _, text in found):
        raise _refused(name, what, key, f"holds no {'value' if what == 'trace' else what}")
    return ((number, text) for number, text in found if text)


def _number(text: str) -> float:
    """Return a number, NaN if it is none; Python would read 1_0 as 10."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _refused(name: str, what: str, key: str, why: str) -> ScenarioError:
    return ScenarioError(Problem(f"{what} file {name} {why}", key=key, value=name, allowed=f"a {what} file"))
