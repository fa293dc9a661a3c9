"""The layers of packages: imports, modules that nothing uses, words that must not stand in a file."""

import ast
import doctest
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from btqueue.reproduction.claims.record import PAPERS, claims_of
from btqueue.reproduction.figures.catalogue import KINDS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "btqueue"

GROUND = {"baseband", "caches", "captures", "channel", "files", "interrupts", "queueing"}
GROUND |= {"scenario", "search_path", "transport"}
MAY_IMPORT = {
    "files": set(),
    "text_files": set(),
    "text_table": set(),
    "progress_bars": set(),
    "baseband": set(),
    "caches": {"files"},
    "captures": set(),
    "interrupts": set(),
    "search_path": set(),
    "channel": {"baseband"},
    "queueing": set(),
    "transport": {"caches"},
    "scenario": {"baseband", "files", "text_files", "text_table"},
    "network": GROUND,
    "simulator": {"baseband", "caches", "captures", "channel", "scenario"},
    "emulation": {"captures", "scenario", "simulator"},
    "explorer": {"scenario", "study", "text_files"},
    "study": GROUND | {"network", "simulator", "text_files", "text_table"},
    "plotting": GROUND | {"network", "simulator", "study"},
    "plots": GROUND | {"network", "simulator", "study", "plotting"},
    "reproduction": GROUND | {"network", "simulator", "study", "plotting", "plots"},
    "cli": GROUND
    | {"emulation", "explorer", "network", "simulator", "study", "plotting", "plots"}
    | {"progress_bars", "reproduction", "text_table"},
    "__main__": {"cli", "search_path"},
}
"""For each part of the package the parts below it that it may use; a part may always use itself.

Simulator and analytic side (queueing, transport, network) are strangers, so that each can check the other.
"""

BLUETOOTH = re.compile(
    r"bluetooth|piconet|scatternet|baseband|l2cap|\bcentral\b|peripheral|\bmasters?\b|\bslaves?\b|\bD[HM][135]\b",
    re.IGNORECASE,
)
REGISTRY_OR_MACHINE = re.compile(
    r"pypi\.[a-z]|pythonhosted\.|anaconda\.(org|com)|npmjs\.|(?<![\w.])/(home|root|opt|work|Users)/\w"
)
"""Hosts of package registries, and paths that exist on one machine only."""

FOLDERS = ("btqueue", "docs", "figures", "models", "tools", "validation", ".ci")


def part_of(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]
"""Without the façade `btqueue/__init__.py`, which hands out names from every layer."""


def imported_modules(source: Path) -> Iterator[str]:
    """Yield the full name of all that is imported: at the top, inside functions, for type checkers."""
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = list(source.relative_to(ROOT).parts[: -node.level]) if node.level else []
            base = ".".join([*parent, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def imported_parts(source: Path) -> set[str]:
    """Return the parts of the package that *source* imports; `btqueue` alone stands for the façade."""
    names = [name.split(".") for name in imported_modules(source)]
    return {name[1] for name in names if name[0] == "btqueue" and len(name) > 1}


def test_the_parts_of_the_package_are_all_known():
    assert {part_of(source) for source in SOURCES} == set(MAY_IMPORT)


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_nothing_imports_upward(part):
    allowed = MAY_IMPORT[part] | {part, "__version__"}
    wrong = {
        str(source.relative_to(ROOT)): sorted(above)
        for source in SOURCES
        if part_of(source) == part and (above := imported_parts(source) - allowed)
    }
    assert wrong == {}


def test_the_facade_is_used_inside_for_its_version_only():
    for source in SOURCES:
        if "btqueue" in imported_modules(source):
            used = set(re.findall(r"(?<![\w.])btqueue\.(\w+)", source.read_text("utf-8")))
            assert used - set(MAY_IMPORT) == {"__version__"}, source


MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


def named_in(tree: ast.AST) -> set[str]:
    """The full names that a source imports or has as texts, as commands name functions that draw."""
    nodes = list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names |= {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    return names | {
        node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is str
    }


def reached_from(names: Iterable[str]) -> set[str]:
    """All modules that are imported on the way from these names."""
    found: set[str] = set()
    ahead = list(names)
    while ahead:
        name = ahead.pop()
        while name and name not in MODULES:
            name = name.rpartition(".")[0]
        if name and name not in found:
            found.add(name)
            ahead += [*named_in(ast.parse(MODULES[name].read_text("utf-8"))), name.rpartition(".")[0]]
    return found


def examples() -> Iterator[str]:
    """The Python that the documentation shows, all of which runs (test_docs)."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for language, text in re.findall(
            r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            if language == "python":
                yield text
            elif language == "pycon":
                yield "".join(example.source for example in doctest.DocTestParser().get_examples(text))


def test_every_module_is_reached_from_a_command_an_example_or_a_figure():
    # named by a publication or by the table of a figure, and imported by that name
    starts = {"btqueue.__main__", *KINDS.values()} | {
        f"btqueue.reproduction.claims.{paper.replace('-', '_')}.{claim['procedure']}"
        for paper in PAPERS
        for claim in claims_of(paper).values()
        if "procedure" in claim
    }
    sources = [path.read_text("utf-8") for path in (ROOT / "figures").rglob("*.py")]
    starts = starts.union(*(named_in(ast.parse(text)) for text in (*sources, *examples())))
    assert set(MODULES) - reached_from(starts) == set()


def words(pattern: re.Pattern, sources: list[Path]) -> list[str]:
    return [
        f"{source.relative_to(ROOT)}:{number}: {found.group()}"
        for source in sources
        for number, line in enumerate(source.read_text("utf-8").splitlines(), start=1)
        if (found := pattern.search(line))
    ]


def test_queueing_and_transport_know_no_bluetooth():
    sources = [source for source in SOURCES if part_of(source) in ("queueing", "transport")]
    assert len(sources) > 10
    assert words(BLUETOOTH, sources) == []


def test_no_file_names_a_package_registry_or_a_place_on_one_machine():
    top = [path for path in ROOT.iterdir() if path.suffix in (".md", ".toml", ".txt")]
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    skipped = {"_build", "__pycache__"}
    binary = {".png", ".webp", ".pdf", ".nc", ".npz", ".xz", ".gz"}
    texts = [path for path in [*top, *inside] if not skipped & set(path.parts) and path.suffix not in binary]
    assert len(texts) > 100
    assert words(REGISTRY_OR_MACHINE, texts) == []
