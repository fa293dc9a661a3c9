"""Results as CSV: `metric, value`, and more columns where there is more to say.

| column | meaning |
|---|---|
| `metric`, `value` | name in our vocabulary, of a flow as `goodput_kbps[download]`; and its value |
| `ci95` | half-width of the 95 % interval; or `low` and `high`, its ends |
| `replications` | how many runs are behind the interval |
| `replication` | number of the run: one row a run, from which intervals are computed here |
| `flow`, `link`, `queue` | flows and links are averaged, queues stay apart |
| `t` (or `time`) | time (s): the rows of a metric are then a series |

`btqueue simulate --out FILE.csv` writes this format, too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from btqueue.scenario.problems import closest
from btqueue.study.check.results import BadResults, ForeignResults, Quantity, Series, finite, known_name
from btqueue.text_files import BadText, decoded, read_table

COLUMNS = ("metric", "value", "ci95", "low", "high", "replications", "replication", "flow", "link", "queue")
TIMES = ("t", "time", "time_s", "t_s")
IGNORED = ("unit", "interrupted", "flow_name", "group")

Row = dict[str, str]


def read_csv(path: Path, renamed: Mapping[str, str] | None = None) -> ForeignResults:
    """Read a CSV file.

    Args:
        path: the file; comma, semicolon or tab between columns, in UTF-8, or with a byte order mark.
        renamed: their names for our metrics.

    Raises:
        BadResults: it has no rows, a column is missing, a name is unknown or a value is no number.
    """
    rows = _rows(path)
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    given: dict[str, tuple[float, int | None]] = {}
    time = next((name for name in TIMES if name in rows[0][1]), None)
    for where, row in rows:
        name = _name(row, where, renamed)
        if row["value"] == "":  # a value that does not exist
            continue
        value = finite(row["value"], where, "value")
        if time and row[time]:
            points[name, row.get("replication", "")].append((finite(row[time], where, time), value))
            continue
        values[name][row.get("replication", "")].append(value)
        if (width := _half_width(row, value, where)) is not None:
            given[name] = width
    if not values and not points:
        raise BadResults(f"{path.name}: no row has a value")
    series = tuple(_series(name, run, found, path.name) for (name, run), found in points.items())
    for one in series:
        if one.name not in given:
            values[one.name][one.replication].append(float(one.values.mean()))
    quantities = {name: _quantity(name, runs, given.get(name)) for name, runs in values.items()}
    return ForeignResults(path.name, "CSV", quantities, series)


def _rows(path: Path) -> list[tuple[str, Row]]:
    """Return the place of each row, for messages, and its values by column."""
    try:
        header, table = read_table(decoded(path.read_bytes()), ",;\t")
    except BadText as error:
        raise BadResults(f"{path.name}: {error}") from None
    if not header:
        raise BadResults(f"{path.name}: is empty; a CSV file needs the columns metric and value")
    names = [name.lower() for name in header]
    for wanted in ("metric", "value"):
        if wanted not in names:
            guess = closest(wanted, names)
            hint = f'; did you mean the column "{guess}"?' if guess else f"; it has {', '.join(names)[:80]}"
            raise BadResults(f'{path.name}: the column "{wanted}" is missing{hint}')
    for name in names:
        if name not in (*COLUMNS, *TIMES, *IGNORED):
            guess = closest(name, [*COLUMNS, "t"])
            hint = f'; did you mean "{guess}"?' if guess else f"; allowed are {', '.join(COLUMNS)}, t"
            raise BadResults(f'{path.name}: unknown column "{name[:80]}"{hint}')
    if len(set(names)) < len(names):
        raise BadResults(f"{path.name}: two columns differ only in capital letters: {', '.join(header)[:80]}")
    if not table:
        raise BadResults(f"{path.name}: has a header and no rows")
    least = max(names.index("metric"), names.index("value"))
    found = []
    for line, cells in table:
        if len(cells) <= least:
            raise BadResults(f"{path.name}, line {line}: has no field of the column {names[least]}")
        missing = [""] * (len(names) - len(cells))
        found.append((f"{path.name}, line {line}", dict(zip(names, [*cells, *missing], strict=True))))
    return found


def _name(row: Row, where: str, renamed: Mapping[str, str] | None) -> str:
    queue = row.get("queue", "")
    return known_name(f"{row['metric']}[{queue}]" if queue else row["metric"], where, renamed)


def _half_width(row: Row, value: float, where: str) -> tuple[float, int | None] | None:
    """Return the half-width of a row's interval and the replications behind it, None without interval."""
    count = None
    if row.get("replications"):
        given = finite(row["replications"], where, "replications")
        count = int(given)
        if count != given:
            raise BadResults(f"{where}: replications = {given:g}: must be a whole number")
        if count < 2:
            raise BadResults(f"{where}: replications = {count}: an interval needs at least 2")
    if row.get("ci95"):
        width = finite(row["ci95"], where, "ci95")
        if width < 0:
            raise BadResults(f"{where}: ci95 = {width:g}: a half-width cannot be negative")
        return width, count
    if row.get("low") and row.get("high"):
        low, high = finite(row["low"], where, "low"), finite(row["high"], where, "high")
        if not low <= value <= high:
            raise BadResults(f"{where}: the value {value:g} is not between low = {low:g} and high = {high:g}")
        return (high - low) / 2, count
    return None


def _series(name: str, run: str, points: list[tuple[float, float]], source: str) -> Series:
    """Return a series; values of one time (flows) are averaged."""
    at: dict[float, list[float]] = defaultdict(list)
    for time, value in points:
        at[time].append(value)
    times = np.array(sorted(at))
    if len(times) < 2:
        raise BadResults(f"{source}: {name}: a series needs at least two times")
    return Series(name, times, np.array([float(np.mean(at[time])) for time in times]), run)


def _quantity(name: str, runs: dict[str, list[float]], given: tuple[float, int | None] | None) -> Quantity:
    """Return mean over flows, then over replications."""
    means = tuple(float(np.mean(values)) for run, values in runs.items() if run)
    if means:
        return Quantity(name, float(np.mean(means)), means)
    value = float(np.mean([value for values in runs.values() for value in values]))
    width, count = given or (math.nan, None)
    return Quantity(name, value, half_width=width, replications=count)
