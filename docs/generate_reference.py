"""Write the pages of the reference that follow from the definitions themselves.

python docs/generate_reference.py            writes its pages of docs/reference
python docs/generate_reference.py --check    exits with 1 if a page is not up to date
"""

import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo
from typer.testing import CliRunner

from btqueue.cli import app
from btqueue.network.answers import NoConvergence
from btqueue.network.measured_errors import IN_DOUBT, THEORY, Kind, measured_errors
from btqueue.network.solve import solve
from btqueue.network.stations.doubts import IN_RECOVERY, UNREAD
from btqueue.scenario import METRICS, Scenario
from btqueue.scenario.fields import declared
from btqueue.scenario.polling import DISCIPLINES, Polling
from btqueue.scenario.problems import all_keys, allowed_values, entry_table, field_at
from btqueue.simulator.scope import require_simulated

FOLDER = Path(__file__).parent / "reference"
README = Path(__file__).parents[1] / "README.md"
PICTURE = Path(__file__).parent / "printer.svg"

INTRODUCTION = """\
<!-- Written by docs/generate_reference.py: change the definitions in btqueue/scenario, not this page. -->

# Scenario keys and metrics

Every key of every table of a scenario file. Units stand in the names: `_s` seconds, `_kbps` kilobits (1,000
bits) a second, `_bytes` bytes; windows are in segments of `transport.mss_bytes`, buffers in packets. A dash
as default means that the key is not set. The last column names the values that theory (`solve`) has laws for,
if it has none for the others: with another value an answer is in doubt. The simulator runs all values; it
refuses only a device in more than 8 piconets. The same definitions as JSON Schema: `btqueue models --schema`.

Above all tables stands `title`, one line that describes the scenario.
"""


def pages() -> dict[Path, str]:
    """Return the generated pages as Markdown."""
    return {
        FOLDER / "scenario-keys.md": keys(),
        FOLDER / "coverage.md": coverage(),
        FOLDER / "results.md": results(),
    }


def keys() -> str:
    """Return the page of all keys and metrics."""
    parts = [INTRODUCTION]
    for name, field in Scenario.model_fields.items():
        table = field.annotation
        if isinstance(table, type) and issubclass(table, BaseModel):
            parts.append(section(f"## `[{name}]`", name, table, with_limits=True))
    parts.append("## Entries of lists\n")
    for key in all_keys(Scenario):
        field = field_at(Scenario, key)
        entry = None if field is None else entry_table(field)
        if entry is not None:
            parts.append(
                section(f"### An entry of `{key}`", key.rpartition(".")[2], entry, with_limits=False)
            )
    parts.append(metrics())
    return "\n".join(parts)


def section(heading: str, table_name: str, table: type[BaseModel], *, with_limits: bool) -> str:
    """Return heading, first sentence and key table of one scenario table."""
    columns = ["key", "allowed", "default", "meaning", *(["solve"] if with_limits else [])]
    rows = []
    for name, field in table.model_fields.items():
        key = f"{table_name}.{name}"
        named = f"`{field.serialization_alias or name}`"
        cells = [named, allowed(field), default(field), field.description or ""]
        if with_limits:
            cells.append(today(key))
        rows.append(cells)
    summary = (table.__doc__ or "").strip().split("\n")[0].replace("``", "`")
    names = ", ".join(row[0] for row in rows)
    parts = [heading, "", summary, "", *folded(names, markdown_table(columns, rows))]
    return "\n".join([*parts, *(disciplines() if table is Polling else [])])


def folded(title: str, lines: list[str]) -> list[str]:
    """Return lines as a block that opens at its title."""
    return [f":::{{dropdown}} {title}", *lines, ":::", ""]


def disciplines() -> list[str]:
    """Return the table of the polling disciplines."""
    rows = [[f"`{name}`", rule.plain, rule.meaning, rule.author] for name, rule in DISCIPLINES.items()]
    return [
        "### Polling disciplines",
        "",
        *markdown_table(["name", "in words", "meaning", "author"], rows),
        "",
    ]


def allowed(field: FieldInfo) -> str:
    """Return in words the values that a key accepts, with fixed words as code."""
    text = allowed_values(field.annotation, field.metadata)
    return " ".join(
        f"`{word.rstrip(',')}`{',' * word.endswith(',')}" if '"' in word else word for word in text.split()
    )


def default(field: FieldInfo) -> str:
    """Return the default of a key."""
    if field.is_required():
        return "required"
    return declared(field, "default_in_words") or as_toml(field.default)


def as_toml(value: Any) -> str:
    """Return a value as it is written in a scenario file; a dash for none."""
    return "–" if value is None else f"`{json.dumps(value)}`"


def today(key: str) -> str:
    """Return for which values of a key the laws of theory are made, where these are not all."""
    if key in UNREAD:
        return f"only {values_in_words(UNREAD[key])}"
    if key in IN_RECOVERY:
        return f"where segments are lost, only {values_in_words(IN_RECOVERY[key])}"
    return ""


def metrics() -> str:
    """Return the section on metrics."""
    rows = [[f"`{name}`", m.long_name, m.unit, m.description] for name, m in METRICS.items()]
    text = (
        "Names, units and meanings are the same from both engines, in files and in tables. "
        "Units 1 are shares. A metric that one side cannot give is absent, never zero."
    )
    table = markdown_table(["name", "heading", "unit", "meaning"], rows)
    return "\n".join(["## Metrics", "", text, "", *folded(f"{len(rows)} metrics", table)])


def markdown_table(columns: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


NETWORKS: dict[str, dict[str, Any]] = {
    "piconet, ring": {},
    "piconet, downlink": {"network": {"flows": "downlink"}},
    "piconet, uplink": {"network": {"flows": "uplink"}},
    "two piconets, SS bridge": {"network": {"topology": "scatternet", "bridge": "SS"}},
    "two piconets, MS bridge": {"network": {"topology": "scatternet", "bridge": "MS"}},
    "chain of two hops": {"network": {"topology": "chain", "hops": 2}},
    "gateway, outside link": {
        "network": {
            "topology": "custom",
            "piconet_list": [{"name": "p", "central": "gateway", "peripherals": ["a", "b"]}],
            "outside_links": [{"name": "lan", "from": "host", "to": "gateway", "kind": "wired"}],
            "flows": [{"from": "host", "to": "a"}, {"from": "host", "to": "b"}],
        }
    },
}
"""Small networks, one of each kind."""

LAWS: dict[str, dict[str, Any]] = {
    "Poisson, NewReno": {},
    "bursts, NewReno": {"traffic": {"source": "ibp"}},
    "greedy, Reno": {"traffic": {"source": "greedy"}, "transport": {"variant": "reno"}},
    "greedy, NewReno": {"traffic": {"source": "greedy"}},
    "greedy, SACK": {"traffic": {"source": "greedy"}, "transport": {"variant": "sack"}},
    "greedy, Vegas": {"traffic": {"source": "greedy"}, "transport": {"variant": "vegas"}},
    "greedy, CUBIC": {"traffic": {"source": "greedy"}, "transport": {"variant": "cubic"}},
    "datagrams": {"transport": {"protocol": "none"}},
    "request-reply": {"traffic": {"source": "request-reply"}},
}
"""Sources and transports."""

RADIOS: dict[str, dict[str, Any]] = {
    "perfect radio": {},
    "bit errors, repetition": {"radio": {"model": "constant", "ber": 1e-4}, "link": {"arq": "unlimited"}},
    "bit errors, no repetition": {"radio": {"model": "constant", "ber": 1e-4}},
}
"""Radios, each with the repetition of its link."""

OPEN_LINK: dict[str, Any] = {"flow_control": {"enabled": False, "baseband_packets": 50}}
"""No token bucket, so that links of all kinds may be asked about."""

COVERAGE = """\
<!-- Written by docs/generate_reference.py: change the definitions and the measured errors, not this page. -->

# Coverage

Where the answers of theory stand, and their measured errors against the simulator. Theory answers nearly
every network; for any scenario, `btqueue solve` says whether its answer stands, and why not.

## Networks, sources and transports

Each cell is one small scenario without a token bucket, and with default keys otherwise: whether the answer of
theory stands, or is in doubt. That depends on the load, too
([how](../explanation/how-solve-works.md#whether-an-answer-stands)). The simulator runs every cell.
"""


def coverage() -> str:
    """Return the page of where theory stands, with measured errors.

    Raises:
        ScenarioError: a scenario of the tables is none, or the simulator refuses it.
    """
    parts = [COVERAGE]
    for radio, keys_of_radio in RADIOS.items():
        rows = [
            [f"**{name}**", *(who_answers(network, law, keys_of_radio) for law in LAWS.values())]
            for name, network in NETWORKS.items()
        ]
        parts += [f"### {radio[0].upper()}{radio[1:]}", "", *markdown_table(["", *LAWS], rows), ""]
    parts += errors_by_metric()
    return "\n".join(parts)


def who_answers(*changes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return whether theory's answer to a scenario of these tables stands; the simulator has to run it."""
    tables: dict[str, dict[str, Any]] = {}
    for change in (OPEN_LINK, *changes):
        for name, entries in change.items():
            tables.setdefault(name, {}).update(entries)
    scenario = Scenario.from_dict(tables)
    require_simulated(scenario)
    try:
        return "stands" if solve(scenario).attrs["stands"] else "in doubt"
    except NoConvergence:
        return "–"


def values_in_words(values: tuple[object, ...]) -> str:
    """Return the values of a key that the laws know."""
    return ", ".join("not set" if value in (None, ()) else as_toml(value) for value in values)


def errors_by_metric() -> list[str]:
    """Return the section of measured errors, by metric, kind of network and whether answers stand."""
    systems = ("one piconet", "several piconets", "outside links", "sessions")
    parts = [
        "## Errors, metric by metric",
        "",
        "Relative error of theory against simulation over all measured points of a kind of network: median "
        "and 95th percentile; of answers that stand, and of answers in doubt (`solve` names the doubt). "
        "A dash means: never measured, or not given by theory. The simulator gives all. "
        "[By regime and point](../explanation/model-against-simulation.md).",
        "",
    ]
    columns = {"stands": THEORY, "in doubt": IN_DOUBT}
    known = {
        (system, mark): measured_errors(answers, Kind(system, ""))
        for system in systems
        for mark, answers in columns.items()
    }
    rows = []
    for name, metric in METRICS.items():
        cells = [
            f"{errors[name].median:.1%}, {errors[name].high:.0%}" if name in errors else "–"
            for errors in known.values()
        ]
        if set(cells) != {"–"}:
            rows.append([f"{metric.long_name} (`{name}`)", *cells])
    return [*parts, *markdown_table(["metric", *(f"{system}: {mark}" for system, mark in known)], rows), ""]


class Part(BaseModel):
    """A part of the JSON object of results: no other keys."""

    model_config = ConfigDict(extra="forbid")


class QueueMetric(Part):
    """A metric at one queue, or of one group of flows."""

    mean: float | None
    ci95: float | None = Field(None, description="half-width of the 95 % interval; from the simulation only")


class ResultMetric(Part):
    """One metric; `null` stands for a value that does not exist."""

    mean: float | None = Field(description="over flows, or over links or queues")
    ci95: float | None = Field(None, description="half-width of the 95 % interval; from the simulation only")
    per_flow: list[float | None] | None = Field(None, description="one value for each flow")
    per_link: list[float | None] | None = Field(None, description="one value for each link")
    per_queue: dict[str, QueueMetric] | None = Field(None, description="one entry for each queue")
    per_group: dict[str, QueueMetric] | None = Field(
        None, description="one entry for each group of flows, where flows differ"
    )


class NextLimit(Part):
    """A limit beside or behind the limit of a flow."""

    kind: str
    kbps: float | None = Field(description="goodput that it allows beside the other flows as they are")
    name: str = Field(description="of the piconet or outside link, or the place of losses")
    key: str = Field(description="that sets the limit; empty if none does")
    value: Any = Field(description="of the key")


class Limit(NextLimit):
    """The limit of a flow."""

    also: list[NextLimit] = Field(description="limits that hold the flow together with it")
    next: NextLimit | None = Field(description="the next limit behind it, where it is known")
    line: str = Field(description="all of it in words")


class NoLimit(Part):
    """Nothing, where the limit of a flow is not known."""


class ReachedPrecision(Part):
    """How well a quantity is known."""

    of: str = Field(description="run.precision_of")
    mean: float | None
    ci95: float | None = Field(description="half-width of its interval, at least what run.precision asks for")
    relative: float | None = Field(description="the half-width over the mean")


class CheckedMetric(Part):
    """A metric of theory beside the simulation of a check."""

    difference: float | None = Field(description="(theory - simulation) / simulation; null if that is 0")
    half_width: float = Field(description="of the 95 % interval of the difference")
    verdict: str = Field(description="confirmed, not confirmed or undecided")


class Check(Part):
    """The verdict of a short simulation on the answer of theory."""

    verdict: str = Field(description="confirmed, not confirmed, undecided or not checked")
    line: str = Field(description="the same in words, with the reason")
    metrics: dict[str, CheckedMetric]


class Solution(Part):
    """The answer of theory."""

    converged: bool
    residual: float | None = Field(description="relative, of the last step")
    iterations: int | None = Field(None, description="steps, where they were counted")
    method: str = Field(description="how the answer was found, in words")
    warnings: list[str]
    answered_by: str = Field(description="theory")
    stands: bool = Field(description="whether no law doubts the answer")
    why: list[str] = Field(description="the doubts, each a sentence; empty if the answer stands")
    system: str = Field(description="kind of network for which errors were measured")
    regime: str = Field(description="kind of radio and load for which errors were measured")
    measured_errors: str = Field(description="measured errors of answers to similar scenarios, in words")
    check: Check | None = Field(None, description="of solve")
    flows: list[str] | None = Field(None, description="names of the flows, in the order of per_flow")
    limited_by: list[Limit | NoLimit] | None = Field(None, description="the limit of each flow")
    groups: list[str] | None = Field(None, description="group of each flow, where flows differ")
    metrics: dict[str, ResultMetric]


class Simulation(Part):
    """The answer of the simulator."""

    complete: bool = Field(description="false after Ctrl-C")
    interrupted: str | None = Field(None, description="how much was simulated, if not all")
    replications: int
    events: int
    warmup_s: float | None
    precision: ReachedPrecision | None = Field(None, description="how well run.precision_of is known")
    warnings: list[str]
    flows: list[str] | None = Field(None, description="names of the flows, in the order of per_flow")
    limited_by: list[Limit | NoLimit] | None = Field(None, description="the limit of each flow")
    groups: list[str] | None = Field(None, description="group of each flow, where flows differ")
    links: list[str] | None = Field(None, description="names of the links, in the order of per_link")
    metrics: dict[str, ResultMetric]


class Hint(Part):
    """A key that is likely to give an answer that nobody wants."""

    key: str
    message: str = Field(description="a sentence with the key, its value and the reason")


class Results(Part):
    """The JSON object of solve, simulate and compare."""

    form: int = Field(alias="schema", description="grows when a key changes its meaning or goes")
    scenario: dict[str, Any] = Field(description="every key, defaults filled in")
    hints: list[Hint] = Field(description="at keys of the scenario, found before anything was run")
    solve: Solution | None = None
    simulate: Simulation | None = None
    files: dict[str, Any] | None = Field(None, description="recordings that were written, by kind")
    provenance: dict[str, str | int] = Field(description="versions, platform, seed, date")


RESULTS = """\
<!-- Written by docs/generate_reference.py: change the classes in it, not this page. -->

# Results as JSON

`btqueue solve`, `simulate` and `compare` print one JSON object with `--json`, and nothing else on standard
output. It holds only the parts that were run. Names of metrics are as in the
[scenario reference](scenario-keys.md#metrics). A test checks the output of the commands against this schema.

Files (`--out result.nc`) hold every replication instead of means: see
[use your results elsewhere](../how-to/use-results.md).
"""


def results() -> str:
    """Return the page of the JSON object that commands print."""
    parts = [RESULTS]
    for heading, part in {
        "The object": Results,
        "`solve`": Solution,
        "`simulate`": Simulation,
        "`precision`": ReachedPrecision,
        "A metric": ResultMetric,
    }.items():
        rows = []
        for name, field in part.model_fields.items():
            there = "always" if field.is_required() else "where there is one"
            rows.append([f"`{field.alias or name}`", there, field.description or ""])
        summary = (part.__doc__ or "").replace("\n", " ")
        parts += [f"## {heading}", "", summary, "", *markdown_table(["key", "there", "meaning"], rows), ""]
    schema = json.dumps(Results.model_json_schema(by_alias=True), indent=2).split("\n")
    return "\n".join([*parts, "## JSON Schema", "", *folded("The schema", ["```json", *schema, "```"])])


def readme() -> str:
    """Return README with the sample of its first command as the command prints it today.

    Where nothing but the times differs, they stay as they are.
    """
    text = README.read_text("utf-8")
    before, _, rest = text.partition("```text\n")
    sample, _, after = rest.partition("```")
    command = before.partition("btqueue compare")[2].split()[0]
    printed = CliRunner().invoke(app, ["compare", command, "--quiet"], catch_exceptions=False).stdout
    now = "\n".join(line.rstrip() for line in printed.strip().splitlines()) + "\n"
    times = re.compile(r"in [\d.]+ m?s")
    same = times.sub("", now) == times.sub("", sample)
    return text if same else f"{before}```text\n{now}```{after}"


def readme_picture() -> str:
    """Return the picture of README, as its command draws it from the file that README shows."""
    text = README.read_text("utf-8")
    words = shlex.split(text.partition("```console\nbtqueue sweep ")[2].splitlines()[0])
    with TemporaryDirectory() as folder:
        scenario, drawn = Path(folder) / words[0], Path(folder) / PICTURE.name
        scenario.write_text(text.partition("```toml\n")[2].partition("```")[0], "utf-8")
        words[0], words[words.index("--plot") + 1] = str(scenario), str(drawn)
        CliRunner().invoke(app, ["sweep", *words, "--quiet"], catch_exceptions=False)
        return drawn.read_text("utf-8")


def main() -> int:
    """Write the pages, or with `--check` compare them, or README and its picture; return the exit code."""
    if "--readme" in sys.argv[1:]:
        README.write_text(readme(), "utf-8")
        PICTURE.write_text(readme_picture(), "utf-8")
        return 0
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" not in sys.argv[1:]:
        for path in stale:
            path.write_text(pages()[path], "utf-8")
    elif stale:
        names = ", ".join(map(str, stale))
        print(f"{names}: not up to date, run python docs/generate_reference.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
