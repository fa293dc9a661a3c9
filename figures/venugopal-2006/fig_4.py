"""Figures 4.1 to 4.15: the simulator.

The thesis prints fifteen pages of its Petri net. In their place: what each page models, and the module that
does so here, with the first line of its documentation; and which of these modules uses which, directly or
through others. Both are made from the source code.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import networkx as nx
from matplotlib.figure import Figure

import btqueue
from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.diagrams import arrow, blank, box

SIMULATOR = Path(btqueue.__file__).parent / "simulator"
PAGES = {
    "scatternet, piconet": "construction/network", "fading channel": "bluetooth/radio",
    "master: polling": "bluetooth/polling", "master: disciplines": "bluetooth/disciplines",
    "downlink and uplink queues": "bluetooth/baseband_queue", "application": "applications/application",
    "TCP: windows and ACKs": "tcp/sender", "TCP: retransmission": "tcp/retransmission_timer",
    "TCP: receiver": "tcp/receiver", "slave: segmentation, reassembly": "bluetooth/l2cap",
    "slave: flow control": "bluetooth/token_bucket", "bridge and its radio": "bluetooth/bridges",
    "from hop to hop": "hosts/forwarding",
}  # fmt: skip
"""What the pages of the Petri net model, and the module in its place."""


def draw(work: Work) -> Iterator[Picture]:
    """Yield the table of modules and the graph of their imports."""
    yield Picture(modules(work.citation), "modules", "What each page models, and the module in its place.")
    yield Picture(uses(work.citation), "uses", "Which of these modules uses which.")


def modules(citation: str) -> Figure:
    """Return the table of modules with the first lines of their documentation."""
    figure, axes = blank(9.2, 0.46 * len(PAGES) + 0.2, f"{citation}: pages of the Petri net, and modules")
    for row, (page, module) in enumerate(PAGES.items()):
        y = 0.46 * (len(PAGES) - row) - 0.1
        box(axes, (1.25, y), page, width=2.2, height=0.36, fill="#e8eef3", size=7.5)
        arrow(axes, (2.36, y), (2.7, y), shrink=0)
        box(axes, (3.8, y), module, width=2.2, height=0.36, size=7.5)
        axes.text(5.0, y, fill(first_line(SIMULATOR / f"{module}.py"), 68), va="center", fontsize=7)
    return figure


def uses(citation: str) -> Figure:
    """Return who uses whom, layer by layer; what follows from other arrows is left out."""
    graph = nx.transitive_reduction(imports().subgraph(["engine", *PAGES.values()]))
    layers = list(nx.topological_generations(graph))
    figure, axes = blank(10.0, 0.85 * len(layers) + 0.2, f"{citation}: which module uses which")
    places = {}
    for depth, layer in enumerate(layers):
        for place, module in enumerate(sorted(layer)):
            places[module] = (10.0 * (place + 0.5) / len(layer), 0.85 * (len(layers) - depth) - 0.35)
            box(axes, places[module], module, width=1.85, height=0.36, size=7.5)
    for user, used in graph.edges:
        (x, y), (below_x, below_y) = places[user], places[used]
        arrow(axes, (x, y - 0.18), (below_x, below_y + 0.18), shrink=0)
    return figure


def imports() -> nx.DiGraph:
    """Return which module of the simulator uses which, directly or through others."""
    modules = {path.relative_to(SIMULATOR).with_suffix("").as_posix() for path in SIMULATOR.rglob("*.py")}
    direct = nx.DiGraph()
    for user in modules:
        for node in ast.walk(ast.parse((SIMULATOR / f"{user}.py").read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("btqueue.simulator"):
                package = str(node.module).removeprefix("btqueue.simulator").strip(".").replace(".", "/")
                named = {package, *(f"{package}/{alias.name}".strip("/") for alias in node.names)}
                direct.add_edges_from((user, used) for used in named & modules)
    return nx.DiGraph((user, used) for user in direct for used in nx.descendants(direct, user))


def first_line(path: Path) -> str:
    """Return the first sentence of a module's documentation."""
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]


if __name__ == "__main__":
    run_script(__file__)
