"""Results of OMNeT++: scalar files (.sca) and vector files (.vec), versions 2 and 3.

As text, or as `opp_scavetool export -F CSV-R` writes them.

A scalar file has lines `scalar MODULE NAME VALUE`, and blocks that open with `statistic MODULE NAME` and hold
`field mean 0.2`; `attr`, `config`, `param`, `itervar` and `bin` lines may stand between. A vector file
declares `vector ID MODULE NAME COLUMNS` (columns E event, T time, V value) and then has lines `ID TAB ...`.
Each `run` line begins another replication. For the grammar see the appendix "Result File Formats" of the
Simulation Manual.

Names are looked up with their module (`Net.host.app[0] rtt:mean`) and without it, first in the renamings of
`--map`, then in `USUAL`, then in our vocabulary; unknown names are left out. Of several modules with one name
the mean is taken. Queues are taken for uplinks only in scenarios without outside links: with these the
names do not tell whose queue it is, and `--map` must.
"""

import csv
import io
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from btqueue.scenario import METRICS, Scenario
from btqueue.study.check.results import (
    HELPERS,
    BadResults,
    ForeignResults,
    Quantity,
    finite,
    known_name,
    unmatched,
)
from btqueue.text_files import decoded, table_beside

USUAL: Final = MappingProxyType(
    {
        row["theirs"]: (row["ours"], row["conversion"])
        for row in table_beside("btqueue.study.check", "omnet_names.csv")
    }
)
"""Names of INET's statistics, our quantity for each, and how its unit is changed."""
UPLINK = "[uplink]"
LONGEST_VECTOR = 2**30
"""Characters of a vector in a CSV file."""
MOST_NAMES = 5
"""Names or runs that notes tell of."""


@dataclass
class Run:
    """One run of a file: values, and the values of vectors, by (module, name)."""

    name: str
    scalars: dict[tuple[str, str], float] = field(default_factory=dict)
    vectors: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    duration_s: float | None = None


def read_omnet(path: Path, scenario: Scenario, renamed: Mapping[str, str] | None = None) -> ForeignResults:
    """Read a scalar or vector file.

    Args:
        path: the file.
        scenario: gives the segment size, and the measured time where the file has no sim-time-limit.
        renamed: their names for our metrics.

    Raises:
        BadResults: it is no result file of OMNeT++, a line is damaged, or no name in it is known.
    """
    notes: list[str] = []
    with path.open("rb") as file:
        exported = file.read(4) == b"run,"
    runs = _runs_of_csv(path) if exported else _runs(path, notes)
    limits = {run.duration_s for run in runs if run.duration_s}
    duration_s = limits.pop() if len(limits) == 1 else None
    seconds = duration_s or scenario.run.duration_s
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    unknown: set[str] = set()
    outside = bool(scenario.network.outside_links)
    for run in runs:
        single = {place: [value] for place, value in run.scalars.items()}
        for place, values in chain(single.items(), run.vectors.items()):
            ours = _ours(place, renamed, outside=outside)
            if ours is None or not values:
                unknown.add(place[1])
                continue
            converted = np.array([_converted(value, ours[1], seconds, scenario) for value in values])
            last = ours[1] == "last count to rate"
            found[ours[0]][run.name].append(float(converted[-1] if last else converted.mean()))
    if not found:
        some = ", ".join(sorted(unknown)[:6]) or "nothing"
        raise BadResults(f'{path.name}: no known name in it (it has {some}); give --map "NAME=METRIC"')
    quantities = {}
    for name, of_run in found.items():
        means = tuple(float(np.mean(values)) for values in of_run.values())
        quantities[name] = Quantity(name, float(np.mean(means)), means if len(means) > 1 else ())
    places = {place for run in runs for place in (*run.scalars, *run.vectors)}
    for name in sorted(unknown)[:MOST_NAMES]:
        module = min(module for module, theirs in places if theirs == name)
        reason = "its name is unknown"
        if name in USUAL and outside and USUAL[name][0].endswith(UPLINK):
            told = f'give --map "{module} {name}={USUAL[name][0]}"'
            reason = f"with outside links it need not be the uplink's; {told}"
        notes.append(f"left out, for {reason}: {name}")
    notes += unmatched(
        renamed, (name for module, theirs in places for name in (theirs, f"{module} {theirs}"))
    )
    most = max(len(run.scalars) for run in runs)
    notes += [
        f"run {run.name} has {len(run.scalars)} scalars, and another one {most}: it may be cut off"
        for run in runs
        if len(run.scalars) < most
    ][:MOST_NAMES]
    if duration_s is None:
        notes.append(f"no sim-time-limit in the file: taken as run.duration_s = {seconds:g} s")
    return ForeignResults(path.name, "OMNeT++", quantities, duration_s, notes=tuple(notes))


def _runs_of_csv(path: Path) -> list[Run]:
    """Return the runs of a CSV file of opp_scavetool: a row for each scalar, statistic, vector, attribute."""
    runs: dict[str, Run] = {}
    before = csv.field_size_limit(LONGEST_VECTOR)
    try:
        reader = csv.DictReader(io.StringIO(decoded(path.read_bytes()), newline=""), strict=True, restval="")
        if missing := {"type", "module", "name", "attrname", "attrvalue", "value"} - set(
            reader.fieldnames or ()
        ):
            raise BadResults(f"{path.name}: the column {min(missing)} is missing; export it with -F CSV-R")
        for row in reader:
            where = f"{path.name}, line {reader.line_num}"
            run = runs.setdefault(row["run"], Run(row["run"]))
            place = row["module"], row["name"]
            if row["attrname"] == "sim-time-limit":
                run.duration_s = _limit(row["attrvalue"], where)
            elif row["type"] == "vector":
                texts = [row.get(column) or "" for column in ("vectime", "vecvalue")]
                times, values = ([finite(x, where, "vector") for x in text.split()] for text in texts)
                if len(times) != len(values):
                    raise BadResults(f"{where}: {len(times)} times for {len(values)} values of a vector")
                run.vectors[place] = values
            elif row["type"] in ("scalar", "statistic", "histogram"):
                text = row["value"] if row["type"] == "scalar" else row.get("mean", "")
                value = finite_or_none(text, where) if text else None
                if value is not None:
                    run.scalars[place] = value
    except csv.Error as error:
        raise BadResults(f"{path.name}: is no complete CSV file ({error})") from None
    finally:
        csv.field_size_limit(before)
    return list(runs.values())


def _limit(text: str, where: str) -> float:
    """Return a sim-time-limit (s), which may have a unit."""
    units = {"ms": 1e-3, "min": 60.0, "s": 1.0, "h": 3600.0}
    unit = next((unit for unit in units if text.endswith(unit)), "")
    found = finite(text.removesuffix(unit), where, "sim-time-limit") * units.get(unit, 1.0)
    if found <= 0:
        raise BadResults(f'{where}: sim-time-limit = "{text}": must be above 0')
    return found


def _runs(path: Path, notes: list[str]) -> list[Run]:
    runs: list[Run] = []
    declared: dict[str, tuple[tuple[str, str], str]] = {}
    statistic: tuple[str, str] | None = None
    for number, line in _lines(path, notes):
        where = f"{path.name}, line {number}"
        if line[0].isdigit():
            _vector_line(line, declared, runs, where)
            continue
        words = _words(line, where)
        kind = words[0]
        if kind == "run":
            runs.append(Run(words[1] if len(words) > 1 else str(len(runs))))
            declared, statistic = {}, None
            continue
        if kind not in LENGTHS:
            raise BadResults(f'{where}: "{kind[:30]}" begins no line of an OMNeT++ result file')
        if len(words) < LENGTHS[kind]:
            raise BadResults(f"{where}: is cut off after {kind}")
        if kind == "version":
            continue
        if not runs:
            runs.append(Run("0"))
        run = runs[-1]
        if kind == "statistic":
            statistic = words[1], words[2]
        elif kind == "scalar" or (kind == "field" and words[1] == "mean" and statistic is not None):
            place = (words[1], words[2]) if kind == "scalar" else statistic
            value = finite_or_none(words[LENGTHS[kind] - 1], where)
            if value is not None and place is not None:
                run.scalars[place] = value
        elif kind == "vector":
            place = words[2], words[3]
            columns = words[4] if len(words) > 4 else "TV"
            if columns not in COLUMNS:
                raise BadResults(
                    f'{where}: columns "{columns}": can be {", ".join(COLUMNS)} (E event, T time, V value)'
                )
            declared[words[1]] = place, columns
            run.vectors.setdefault(place, [])
        elif kind in ("config", "attr", "param") and words[1] == "sim-time-limit":
            if len(words) < 3:
                raise BadResults(f"{where}: sim-time-limit has no value")
            run.duration_s = _limit(words[2], where)
    return runs


COLUMNS = ("V", "TV", "EV", "ETV")
"""Columns that a vector can have."""
LENGTHS = {
    word: least
    for least, words in (
        (2, "version attr itervar"), (3, "config param statistic field bin"), (4, "par scalar vector"),
    )
    for word in words.split()
}  # fmt: skip
"""Words that begin a line, and how many words it has at least."""


def finite_or_none(text: str, where: str) -> float | None:
    """Return a number; None for the nan and inf that statistics without observations have."""
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return None
    return finite(text, where, "value")


def _lines(path: Path, notes: list[str]) -> Iterator[tuple[int, str]]:
    text = decoded(path.read_bytes())
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise BadResults(f"{path.name}: is empty")
    if not lines[0][1].startswith("version"):
        raise BadResults(f"{path.name}: is no OMNeT++ result file: the line version is missing")
    if not text.endswith(("\n", "\r")):
        notes.append(
            f"{path.name} ends in the middle of line {lines[-1][0]}, which was left out: it is cut off"
        )
        lines.pop()
    return iter(lines)


def _words(line: str, where: str) -> list[str]:
    if '"' not in line:
        return line.split()
    words = shlex.shlex(line, posix=True)
    words.whitespace_split, words.quotes, words.commenters = True, '"', ""
    try:
        return list(words)
    except ValueError:
        raise BadResults(f"{where}: a quotation mark is not closed") from None


def _vector_line(
    line: str, declared: dict[str, tuple[tuple[str, str], str]], runs: list[Run], where: str
) -> None:
    number, *numbers = line.split()
    if number not in declared:
        raise BadResults(f"{where}: vector {number} was not declared")
    place, columns = declared[number]
    if len(numbers) != len(columns):
        raise BadResults(f"{where}: {len(numbers)} values for the columns {columns} of vector {number}")
    if "T" in columns:
        finite(numbers[columns.index("T")], where, "time")
    runs[-1].vectors[place].append(finite(numbers[columns.index("V")], where, "value"))


def _ours(
    place: tuple[str, str], renamed: Mapping[str, str] | None, *, outside: bool
) -> tuple[str, str] | None:
    """Return our name of theirs and how to convert it, None if it is unknown.

    With queues *outside*, a queue is not known to be an uplink's.
    """
    module, name = place
    for theirs in (f"{module} {name}", name):
        if renamed and theirs in renamed:
            usual = USUAL.get(name)
            same = usual is not None and usual[0].partition("[")[0] == renamed[theirs].partition("[")[0]
            return known_name(renamed[theirs], f"--map {theirs}"), usual[1] if same and usual else "as it is"
    if name in USUAL:
        return None if outside and USUAL[name][0].endswith(UPLINK) else USUAL[name]
    base = name.partition("[")[0]
    return (name, "as it is") if base in METRICS or base in HELPERS else None


def _converted(value: float, how: str, seconds: float, scenario: Scenario) -> float:
    if how == "bytes to kbit/s":
        return value * 8 / 1000 / seconds
    if how == "bit/s to kbit/s":
        return value / 1000
    if how == "bytes to segments":
        return value / scenario.transport.mss_bytes
    return value / seconds if how.endswith("to rate") else value
