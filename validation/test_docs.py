"""The documentation keeps its word: examples run, generated pages are current, links lead somewhere."""

import doctest
import importlib
import inspect
import json
import re
import shlex
import shutil
from pathlib import Path

import generate_reference as generator
import pytest
from command_line import run

import btqueue
from btqueue.reproduction.figures.catalogue import catalogue
from btqueue.scenario import METRICS, Scenario
from btqueue.study import many_points

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if not {"_build", "paper"} & set(page.parts)),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A fenced block with its language."""
NAMED_TABLE = re.compile(r"`(\w+\.csv)`:\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""The name of a CSV file that ends a paragraph, and the block with its rows."""


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(language, text) for language, text in BLOCK.findall(page.read_text("utf-8"))]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_command(line: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "btqueue", line
    result = run(*arguments)
    assert result.stdout
    if "--json" in arguments:
        json.loads(result.stdout)


WITH_EXAMPLES = [page for page in PAGES if {"python", "console"} & {language for language, _ in blocks(page)}]


SHORT_RUN = {"run.duration_s": 20, "run.warmup_s": 5, "run.replications": 3}
"""What is simulated where an example does not say how long."""
FEWER_POINTS = {
    "5..40:5 --choose flow_control.token_rate_kbps=60..120:10": "35..40:5 --choose "
    "flow_control.token_rate_kbps=70..80:10",
    "buffer_packets=5..40:5": "buffer_packets=20..30:5",
    "polling.limit=5..25:5": "polling.limit=5..15:5",
    "token_rate_kbps=180..400:20": "token_rate_kbps=180..260:40",
    "segments=2..30": "segments=2..30:7",
    "--samples 64": "--samples 8",
    "goodput_kbps >= 56.9": "goodput_kbps >= 50",
}
"""Of the points of a study those beside its answer; fewer samples, too, and a bound that short runs meet."""
STUDIES = ("simulate", "compare", "sweep", "sensitivity", "dimension", "check")


def shortened(line: str) -> str:
    """Return a command with fewer points and shorter simulations than it has."""
    for all_points, few in FEWER_POINTS.items():
        line = line.replace(all_points, few)
    if line.split()[1] not in STUDIES or "--formula" in line:
        return line
    return line + "".join(f" --set {key}={value}" for key, value in SHORT_RUN.items() if key not in line)


DEAR = [page for page in WITH_EXAMPLES if any(words in page.read_text("utf-8") for words in FEWER_POINTS)]


@pytest.mark.parametrize(
    ("page", "as_printed"),
    [
        *(pytest.param(page, False, id=named(page)) for page in WITH_EXAMPLES),
        *(pytest.param(page, True, marks=pytest.mark.long, id=f"{named(page)} as printed") for page in DEAR),
    ],
)
def test_the_examples_of_a_page_run_in_order(page, as_printed, here, monkeypatch):
    if not as_printed:  # no processes for a few points
        monkeypatch.setattr(many_points, "available_cores", lambda: 1)
        monkeypatch.setattr(many_points, "ALONE_S", 1e6)
    for linked in re.findall(r"\]\(([^)\s]+/data/[^)\s]+)\)", page.read_text("utf-8")):
        shutil.copy(page.parent / linked, here)
    for file, rows in NAMED_TABLE.findall(page.read_text("utf-8")):
        (here / file).write_text(rows, "utf-8")
    namespace: dict = {}
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, named(page), "exec"), namespace)
        elif language == "console":
            for line in text.splitlines():
                run_command(line if as_printed else shortened(line))
        elif language == "toml":
            named_in_it = re.match(r"# (\S+\.toml)\n", text)
            file = named_in_it[1] if named_in_it else "example.toml"
            (here / file).write_text(text, "utf-8")
            sets = ["--set", "run.duration_s=5", "--set", "run.warmup_s=1", "--set", "run.replications=2"]
            run_command(shlex.join(["btqueue", "simulate", file, *sets]))


REFERENCE = "".join(
    (DOCS / "reference" / f"{name}.md").read_text("utf-8") for name in ("queueing", "transport")
)

SHOWING_ANSWERS = [page for page in PAGES if "pycon" in {language for language, _ in blocks(page)}]


@pytest.mark.parametrize("page", SHOWING_ANSWERS, ids=named)
def test_the_answers_that_a_page_shows_are_those_of_its_examples(page):
    tried = doctest.testfile(str(page), module_relative=False)
    assert tried.failed == 0 < tried.attempted


def test_the_pages_that_should_have_examples_have_them():
    # A change of the fences must not make the test above run nothing.
    names = {named(page) for page in WITH_EXAMPLES}
    assert {"README.md", "docs/tutorials/first-comparison.md"} <= names
    assert {named(page) for page in (DOCS / "how-to").glob("*.md") if page.stem != "index"} <= names
    theory = {f"docs/explanation/queueing-{part}.md" for part in ("vacations", "polling")}
    assert theory <= {named(page) for page in SHOWING_ANSWERS}


THEORY = [
    importlib.import_module(f"btqueue.{package}.{'.'.join(path.relative_to(folder).with_suffix('').parts)}")
    for package in ("queueing", "transport")
    for folder in [ROOT / "btqueue" / package]
    for path in sorted(folder.rglob("*.py"))
    if not path.name.startswith("_")
]
STEPS_OF_SOLVERS = {
    "btqueue.transport.recovery.ends_of",
    "btqueue.transport.recovery.recovery_of",
    "btqueue.transport.recovery.expired_flight",
    "btqueue.transport.recovery.late_chance",
    "btqueue.queueing.polling.stations.moves",
    "btqueue.queueing.polling.stations.covariances",
    "btqueue.queueing.polling.stations.cycle_from",
    "btqueue.queueing.polling.stations.memory",
    "btqueue.queueing.polling.limited.visits",
    "btqueue.queueing.polling.limited.vacation_queues",
    "btqueue.queueing.polling.limited.couple",
    "btqueue.queueing.polling.limited.levelled",
}
"""Functions that only make sense between others: the pages of theory show them at work."""


@pytest.mark.parametrize("module", THEORY, ids=lambda module: module.__name__)
def test_every_public_function_of_theory_has_an_example_that_runs(module):
    functions = {
        f"{module.__name__}.{name}": value
        for name, value in vars(module).items()
        if inspect.isroutine(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    without = {name for name, value in functions.items() if ">>>" not in (value.__doc__ or "")}
    assert without <= STEPS_OF_SOLVERS
    assert doctest.testmod(module).failed == 0
    assert f".. automodule:: {module.__name__}\n   :members:" in REFERENCE


SHORT = "--set run.duration_s=5 --set run.warmup_s=1 --set run.replications=2"


@pytest.mark.parametrize(
    "line",
    [
        f"compare venugopal-2006/piconet {SHORT}",
        "solve avancha-2002/cdpd-tcp",
        f"simulate chen-2004/adaptive-1 {SHORT}",
        f"simulate suliman-2005/round-trips {SHORT} --pcap run.pcap",
    ],
)
def test_json_results_keep_to_their_schema(line, here):
    printed = run(*shlex.split(line), "--json")
    found = generator.Results.model_validate_json(printed.stdout)
    sides = [side for side in (found.solve, found.simulate) if side is not None]
    assert sides or found.files
    assert all(len(side.metrics) > 0 and set(side.metrics) <= set(METRICS) for side in sides)


def test_the_generated_reference_is_up_to_date():
    for path, text in generator.pages().items():
        assert path.read_text("utf-8") == text, "run python docs/generate_reference.py"
    committed = (DOCS / "reference" / "scenario-keys.md").read_text("utf-8")
    keys = [key for table in Scenario().to_dict().values() if isinstance(table, dict) for key in table]
    assert len(keys) > 50
    assert all(f"`{name}`" in committed for name in [*keys, *METRICS])


@pytest.mark.long  # other processors may round the last digit of a mean otherwise
def test_the_sample_and_the_picture_of_readme_are_those_of_its_commands():
    remedy = "run python docs/generate_reference.py --readme"
    assert generator.README.read_text("utf-8") == generator.readme(), remedy
    assert generator.PICTURE.read_text("utf-8") == generator.readme_picture(), remedy


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_relative_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", linked.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}
            assert heading in anchors, target


def test_the_two_commands_of_the_readme_are_those_that_the_build_server_runs():
    commands = [
        line
        for language, text in blocks(ROOT / "README.md")
        if language == "sh"
        for line in text.split("\n")
        if line
    ]
    assert len(commands) == 2
    build = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert set(commands) <= set(build)


def test_the_paper_cites_what_is_listed_and_says_the_numbers_of_the_report():
    paper, listed = ((DOCS / "paper" / name).read_text("utf-8") for name in ("paper.md", "paper.bib"))
    cited = set(re.findall(r"@(\w+)[;\]]", paper))
    assert cited == set(re.findall(r"^@\w+{(\w+),", listed, re.MULTILINE))
    report = (DOCS / "explanation" / "reproduction.md").read_text("utf-8")
    counts = re.search(r"Of (\d+) claims, (\d+) can be checked without the testbed; (\d+) of them", report)
    assert counts is not None
    for number in counts.groups():
        assert re.search(rf"\b{number}\b", paper), number


def test_the_citation_names_this_version():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {btqueue.__version__}\n" in text and "\nlicense: Apache-2.0\n" in text


def test_the_gallery_shows_every_figure():
    gallery = "".join(page.read_text("utf-8") for page in (DOCS / "gallery").glob("*.md"))
    for entry in catalogue():
        assert f"figures/{entry.paper}/{entry.path.name}" in gallery, entry.name
    pictures = re.findall(r"pictures/\S+", gallery)
    stored = {str(path.relative_to(DOCS / "gallery")) for path in (DOCS / "gallery").rglob("*.webp")}
    assert set(pictures) == stored
