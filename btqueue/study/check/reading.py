"""Read a results file of any known format, told by its suffix or its first bytes; here also: results as CSV.

A CSV file has the columns `metric, value`, and more where there is more to say.

| column | meaning |
|---|---|
| `metric`, `value` | name in our vocabulary, of a flow as `goodput_kbps[download]`; and its value |
| `ci95` | half-width of the 95 % interval, also called `half_width`; or `low` and `high`, its ends |
| `replications` | how many runs are behind the interval |
| `replication` | number of the run: one row a run, from which intervals are computed here |
| `flow` | number or name of the scenario's flow; a file of one flow is about that one |
| `group` | group of flows, where no flow is named; groups that differ are compared one by one |
| `link`, `queue` | links are averaged, queues stay apart |
| `warmup_s` | time before the measurement that was left out (s), the same in all rows |
| `t` (or `time`) | time (s): the value of a metric is then the mean of its rows |

`btqueue simulate --out FILE.csv` writes this format, too.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from btqueue.captures.files import PCAP_ORDERS, SECTION, SNOOP, BadCapture
from btqueue.files import UnusableFile, require_regular
from btqueue.scenario import Scenario
from btqueue.scenario.metrics import METRICS, NOT_OF_FLOWS
from btqueue.scenario.problems import closest
from btqueue.scenario.topology import topology
from btqueue.study.check.flow_monitor import read_flow_monitor
from btqueue.study.check.omnet import read_omnet
from btqueue.study.check.packet_capture import read_capture
from btqueue.study.check.results import BadResults, ForeignResults, Quantity, finite, known_name, unmatched
from btqueue.study.comparison import metric_name
from btqueue.text_files import BadText, decoded, read_table

COLUMNS = ("metric", "value", "ci95", "low", "high", "replications", "replication", "flow", "link", "queue")
COLUMNS += ("warmup_s",)
ALIASES = {"half_width": "ci95", "half-width": "ci95"}
TIMES = ("t", "time", "time_s", "t_s")
DECIMALS = re.compile(r"^([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)$")
"""A number with a comma before its decimals."""
IGNORED = ("unit", "interrupted", "flow_name", "group")
SUBJECT = ("metric", "flow", "flow_name", "group", "link", "queue", "replication")
"""Columns that name the run and the part of the network: no two rows agree in all of them."""
Row = dict[str, str]


def read_csv(
    path: Path, scenario: Scenario, renamed: Mapping[str, str] | None = None, flow: int | None = None
) -> ForeignResults:
    """Read a CSV file.

    Args:
        path: the file; comma, semicolon or tab between columns, in UTF-8, or with a byte order mark. With
            semicolons or tabs, numbers may have a comma before their decimals.
        scenario: whose flows the file may name.
        renamed: their names for our metrics.
        flow: number of the only flow to read, if the file names its flows.

    Raises:
        BadResults: it has no rows, a column is missing, a name is unknown or a value is no number.
    """
    rows = _rows(path)
    if flow is not None:
        label = topology(scenario).flow_names[flow - 1]
        there = dict.fromkeys(row["flow"] for _, row in rows if row.get("flow"))
        if there and not {str(flow), label} & set(there):
            about = f"no row is about {flow} or {label}; the file has {', '.join(there)[:80]}"
            raise BadResults(f"{path.name}: --flow {flow}: {about}")
        rows = [(where, row) for where, row in rows if row.get("flow", "") in ("", str(flow), label)]
    group_of, only = _groups(rows, scenario, renamed or {})
    partly = _partly_given(rows, scenario, renamed or {}, group_of)
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    points: dict[tuple[str, str], list[float]] = defaultdict(list)
    given: dict[str, list[tuple[float, int | None]]] = defaultdict(list)
    time = next((name for name in TIMES if name in rows[0][1]), None)
    seen: dict[tuple[str, ...], str] = {}
    empty: list[str] = []
    for where, row in rows:
        queue = row.get("queue", "")
        name = known_name(f"{row['metric']}[{queue}]" if queue else row["metric"], where, renamed)
        if row["value"] == "":  # a value that does not exist
            empty.append(f"{name} ({where.rpartition(', ')[2]})")
            continue
        value = finite(row["value"], where, "value")
        group, own_names = group_of.get(where), [name]
        if group:
            own_names = [f"{name}[{group}]"] if name in partly else [name, f"{name}[{group}]"]
        if time and row[time]:
            finite(row[time], where, time)
            for own in own_names:
                points[own, row.get("replication", "")].append(value)
            continue
        subject = tuple(row.get(column, "") for column in SUBJECT)
        if (first := seen.setdefault(subject, where)) != where:
            raise BadResults(
                f'{where}: "{name}" stands in {first.rpartition(", ")[2]} already; tell rows '
                "apart by the column flow, queue, link or replication"
            )
        width = _half_width(row, value, where)
        for own in own_names:
            values[own][row.get("replication", "")].append(value)
            given[own] += [] if width is None else [width]
    if not values and not points:
        raise BadResults(f"{path.name}: no row has a value")
    for (name, run), found in points.items():
        if not given[name]:
            values[name][run].append(float(np.mean(found)))
    quantities = {name: _quantity(name, runs, given.get(name)) for name, runs in values.items()}
    left_out = {finite(row["warmup_s"], where, "warmup_s") for where, row in rows if row.get("warmup_s")}
    if len(left_out) > 1 or min(left_out, default=0.0) < 0:
        said = " and ".join(f"{value:g}" for value in sorted(left_out))
        raise BadResults(f"{path.name}: warmup_s = {said}: must be one time for all rows, of at least 0")
    warmup_s = left_out.pop() if left_out else None
    notes = unmatched(renamed, (row["metric"] for _, row in rows))
    if empty:
        more = ", ..." if len(empty) > 3 else ""
        notes.append(f"without a value in {len(empty)} rows, left out: {', '.join(empty[:3])}{more}")
    if stopped := {row["interrupted"] for _, row in rows if row.get("interrupted")}:
        notes.append(f"the simulation in the file was interrupted: {', '.join(sorted(stopped))}")
    return ForeignResults(
        path.name,
        "CSV",
        quantities,
        measured_from_start=warmup_s == 0,
        flow=only,
        groups=tuple(dict.fromkeys(group_of.values())),
        warmup_s=warmup_s,
        notes=tuple(notes),
    )


def _groups(
    rows: list[tuple[str, Row]], scenario: Scenario, renamed: Mapping[str, str]
) -> tuple[dict[str, str], int | None]:
    """Return the group of each row by its place, and the only flow that the file is about, if it is one.

    There are no groups where flows do not differ, or the file is about one.
    """
    plan = topology(scenario)
    labels = plan.flow_names
    numbers = {str(number): number for number in range(1, len(labels) + 1)}
    flows: set[int | None] = set()
    groups = {}
    for where, row in rows:
        name, metric = row.get("flow", ""), renamed.get(row["metric"], row["metric"])
        if name and name not in numbers and name not in labels:
            place = "; a group stands in a column group" if name in plan.kinds else ""
            raise BadResults(
                f'{where}: flow = "{name[:40]}": the scenario has flows 1 to {len(labels)}, named '
                f"{', '.join(labels)[:80]}{place}"
            )
        if metric_name(metric) in NOT_OF_FLOWS:
            continue
        number = numbers.get(name) or (labels.index(name) + 1 if name else None)
        flows.add(number)
        group = row.get("group", "") if number is None else plan.kinds[number - 1]
        if group and metric in METRICS:
            groups[where] = group
    only = flows.pop() if len(flows) == 1 else None
    return ({} if only or len(set(plan.kinds)) == 1 else groups), only


def _partly_given(
    rows: list[tuple[str, Row]], scenario: Scenario, renamed: Mapping[str, str], group_of: Mapping[str, str]
) -> set[str]:
    """Return the metrics of groups whose mean over all flows the rows of groups do not give.

    They give it only if each flow of the scenario has rows of its own, and no row is of all flows.
    """
    plan = topology(scenario)
    found, flows = dict[str, set[str]](), range(1, len(plan.flows) + 1)
    label_of = {str(number): name for number, name in zip(flows, plan.flow_names, strict=True)}
    for where, row in rows:
        metric = renamed.get(row["metric"], row["metric"])
        flow = row.get("flow", "") if where in group_of else "all"
        found.setdefault(metric, set()).add(label_of.get(flow, flow))
    return {metric for metric, its in found.items() if its != set(plan.flow_names)}


def _rows(path: Path) -> list[tuple[str, Row]]:
    """Return the place of each row, for messages, and its values by column."""
    text = decoded(path.read_bytes())
    header, table = read_table(text, ",;\t")
    if not header:
        raise BadResults(f"{path.name}: is empty; a CSV file needs the columns metric and value")
    names = [ALIASES.get(name.lower(), name.lower()) for name in header]
    for wanted in sorted({"metric", "value"} - set(names)):
        guess = closest(wanted, names)
        hint = f'; did you mean the column "{guess}"?' if guess else f"; it has {', '.join(names)[:80]}"
        hint = "; write a row metric,value for each metric" if set(names) & set(METRICS) else hint
        hint = "; export results of OMNeT++ with -F CSV-R" if {"module", "name"} <= set(names) else hint
        raise BadResults(f'{path.name}: the column "{wanted}" is missing{hint}')
    for name in (name for name in names if name not in (*COLUMNS, *TIMES, *IGNORED)):
        guess = closest(name, [*COLUMNS, *ALIASES, "t"])
        hint = (
            f'; did you mean "{guess}"?' if guess else f"; allowed are {', '.join((*COLUMNS, *ALIASES))}, t"
        )
        raise BadResults(f'{path.name}: unknown column "{name[:80]}"{hint}')
    if len(set(names)) < len(names):
        same = ", ".join(header)[:80]
        raise BadResults(f"{path.name}: two columns differ only in capital letters, or mean the same: {same}")
    if not table:
        raise BadResults(f"{path.name}: has a header and no rows")
    heading = next(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if heading.count(",") < max(map(heading.count, ";\t")):
        table = [(line, [DECIMALS.sub(r"\1.\2", cell) for cell in cells]) for line, cells in table]
    least = max(names.index("metric"), names.index("value"))
    found = []
    for line, cells in table:
        if len(cells) <= least:
            raise BadResults(f"{path.name}, line {line}: has no field of the column {names[least]}")
        missing = [""] * (len(names) - len(cells))
        found.append((f"{path.name}, line {line}", dict(zip(names, [*cells, *missing], strict=True))))
    return found


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
            raise BadResults(f"{where}: half-width {width:g}: cannot be negative")
        return width, count
    if not row.get("low") and not row.get("high"):
        return None
    if not row.get("low") or not row.get("high"):
        raise BadResults(f"{where}: low and high must both be given, or neither")
    low, high = finite(row["low"], where, "low"), finite(row["high"], where, "high")
    if not low <= value <= high:
        raise BadResults(f"{where}: the value {value:g} is not between low = {low:g} and high = {high:g}")
    return (high - low) / 2, count


def _quantity(
    name: str, runs: dict[str, list[float]], given: list[tuple[float, int | None]] | None
) -> Quantity:
    """Return mean over flows, then over replications.

    The half-width of a mean over flows is at most the mean of theirs, which it is if they vary together.
    """
    means = tuple(float(np.mean(values)) for run, values in runs.items() if run)
    if means:
        return Quantity(name, float(np.mean(means)), means)
    value = float(np.mean([value for values in runs.values() for value in values]))
    if not given:
        return Quantity(name, value)
    width = float(np.mean([width for width, _ in given]))
    return Quantity(name, value, half_width=width, replications=given[-1][1])


LARGEST_BYTES = 1_000_000_000
"""Of a file of results; captures of long runs are large."""
Format = Literal["csv", "pcap", "flowmonitor", "omnet"]
SUFFIXES: Mapping[str, Format] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".pcap", ".pcapng", ".cap"), "pcap"),
    **dict.fromkeys((".xml", ".flowmon"), "flowmonitor"),
    **dict.fromkeys((".sca", ".vec"), "omnet"),
}
FIRST_BYTES: Mapping[bytes, Format] = {
    **dict.fromkeys((*PCAP_ORDERS, SECTION.to_bytes(4, "big"), SNOOP), "pcap"),
    b"<": "flowmonitor",
    b"version": "omnet",
    b"run,type,module": "omnet",
    b"metric": "csv",
}
REFUSED: Mapping[bytes, str] = {
    b"\x89HDF": "is netCDF, which is not read here; write CSV with --out FILE.csv",
    b"SQLite format 3": "is SQLite, which is not read here; write CSV with opp_scavetool export -F CSV-R",
}
"""Files of other formats, by their first bytes, and how to have them in one that is read."""


def read_results(
    path: str | Path, scenario: Scenario, *, renamed: Mapping[str, str] | None = None, flow: int | None = None
) -> ForeignResults:
    """Read a results file of another simulator.

    Args:
        path: the file.
        scenario: the simulated scenario; gives header sizes, warm-up and delays where the format needs them.
        renamed: their names for our metrics.
        flow: the flow of the scenario, from 1, that the file is about; by default the mean over all, or of a
            capture of one flow the first.

    Raises:
        BadResults: the file is missing, empty, damaged, or of an unknown format.
    """
    path = Path(path)
    flows = len(topology(scenario).flows)
    if flow is not None and not 1 <= flow <= flows:
        raise BadResults(f"--flow {flow}: the scenario has flows 1 to {flows}")
    try:
        require_regular(path, LARGEST_BYTES)
        with path.open("rb") as file:
            head = file.read(16)
        if not head:
            raise BadResults(f"{path.name}: is empty")
        found = _read(path, scenario, _format_of(path, head), renamed, flow)
    except BadCapture as error:
        raise BadResults(str(error)) from None
    except BadText as error:
        raise BadResults(f"{path.name}: {error}") from None
    except UnusableFile as error:
        raise BadResults(f"{path}: {error}") from None
    except OSError as error:
        raise BadResults(f"{path}: cannot be read ({error.strerror or error})") from None
    return found if flow is None and flows > 1 else replace(found, flow=flow, flow_assumed=False)


def _read(
    path: Path, scenario: Scenario, format: Format, renamed: Mapping[str, str] | None, flow: int | None
) -> ForeignResults:
    if format == "omnet":
        return read_omnet(path, scenario, renamed)
    if format == "csv":
        return read_csv(path, scenario, renamed, flow)
    if format == "pcap":
        found = read_capture(path, scenario, flow=flow)
    else:
        transport = scenario.transport
        found = read_flow_monitor(path, transport.header_bytes, repeats=transport.protocol != "none")
    return replace(found, notes=(*found.notes, *unmatched(renamed, ())))


def _format_of(path: Path, head: bytes) -> Format:
    for beginning, why in REFUSED.items():
        if head.startswith(beginning):
            raise BadResults(f"{path.name}: {why}")
    for beginning, format in FIRST_BYTES.items():
        if head.startswith(beginning):
            return format
    if path.suffix.lower() in SUFFIXES:
        return SUFFIXES[path.suffix.lower()]
    raise BadResults(
        f"{path.name}: its format is unknown; it must end in {', '.join(SUFFIXES)}, or be btsnoop"
    )
