"""Diagrams from the implementation's own data: networks, blocks with arrows, state machines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from btqueue.plotting import PALETTE, house_style
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology

ROLES = {"central": ("black", "white"), "bridge": (PALETTE[6], "black"), "peripheral": ("white", "black"),
         "host": (PALETTE[5], "black")}  # fmt: skip
"""Fill and letters of a node, by role."""
INK = "#333333"


def blank(width: float, height: float, title: str = "") -> tuple[Figure, Axes]:
    """Return a figure (inches) with one panel without axes, whose unit is an inch in both directions."""
    with house_style():
        figure = Figure(figsize=(width, height + (0.3 if title else 0.0)))
        axes = figure.add_axes((0.0, 0.0, 1.0, height / (height + (0.3 if title else 0.0))))
        clear(axes, width, height)
        if title:
            figure.suptitle(title, y=0.985, fontsize=10)
    return figure, axes


def clear(axes: Axes, width: float, height: float) -> None:
    """Make a panel of width x height units without axes."""
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.axis("off")


def draw_network(
    axes: Axes,
    scenario: Scenario,
    places: Mapping[str, tuple[float, float]],
    *,
    flows: bool = True,
    size: float = 620,
) -> None:
    """Draw the network of a scenario: centrals black, peripherals white, bridges orange, flows as arrows.

    A central that is a bridge, too, has an orange ring.

    Args:
        axes: where to draw.
        scenario: whose network.
        places: of the nodes by name.
        flows: whether to draw the flows, as dashed arrows from source to target.
        size: of a node (points squared).
    """
    plan = topology(scenario)
    graph = plan.graph()
    for one, other, kind in graph.edges(data="kind"):
        style = (0, (1, 1.5)) if kind == "outside" else "-"
        axes.plot(*zip(places[one], places[other], strict=True), color=INK, linewidth=1.4, linestyle=style)
    for flow in plan.flows if flows else ():
        ends = places[plan.nodes[flow.source]], places[plan.nodes[flow.target]]
        arrow(axes, *ends, colour=PALETTE[0], bend=0.22, dashed=True, shrink=11)
    bridges = {plan.nodes[bridge.node] for bridge in plan.bridges}
    for node, (x, y) in places.items():
        fill, letters = ROLES[graph.nodes[node]["role"]]
        if node in bridges:
            axes.scatter(x, y, s=1.7 * size, facecolor=ROLES["bridge"][0], edgecolor="none", zorder=3)
        axes.scatter(x, y, s=size, facecolor=fill, edgecolor="black", linewidth=1.1, zorder=4)
        axes.text(x, y, node, color=letters, ha="center", va="center", fontsize=7, zorder=5)
    axes.margins(0.12)
    axes.axis("off")


def network_key(
    roles: Sequence[str] = ("central", "peripheral", "bridge"), *, flows: bool = True
) -> list[Any]:
    """Return legend entries of `draw_network`."""
    handles: list[Any] = [
        Line2D([], [], marker="o", linestyle="", markersize=10, markeredgecolor="black",
               markerfacecolor=ROLES[role][0], label=role)
        for role in roles
    ]  # fmt: skip
    if flows:
        handles.append(Line2D([], [], color=PALETTE[0], linestyle="--", label="TCP connection"))
    return handles


def box(
    axes: Axes, centre: tuple[float, float], text: str, *, width: float = 1.5, height: float = 0.5,
    fill: str = "white", size: float = 8.0,
) -> tuple[float, float]:  # fmt: skip
    """Draw a box with a text; return its centre."""
    x, y = centre
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=fill, edgecolor=INK, linewidth=1.1, zorder=3,
        )
    )  # fmt: skip
    axes.text(x, y, text, ha="center", va="center", fontsize=size, zorder=4, linespacing=1.25)
    return centre


def queue(
    axes: Axes, centre: tuple[float, float], text: str = "", *, width: float = 0.9, height: float = 0.34,
    leftward: bool = False, below: bool = True,
) -> tuple[float, float]:  # fmt: skip
    """Draw a queue, a box that is open where packets enter, with a few that wait; return its centre.

    Packets move to the right, or to the left if *leftward*; the text stands below, or above.
    """
    x, y = centre
    sign = -1.0 if leftward else 1.0
    tail, head = x - sign * width / 2, x + sign * width / 2
    bottom, top = y - height / 2, y + height / 2
    axes.plot([tail, head, head, tail], [top, top, bottom, bottom], color=INK, linewidth=1.2, zorder=3)
    for place in range(3):
        near = head - sign * width * (0.05 + 0.15 * place)
        left = min(near, near - sign * 0.11 * width)
        packet = Rectangle((left, bottom + 0.1 * height), 0.11 * width, 0.8 * height)
        packet.set(facecolor="#c9d7e3", edgecolor=INK, linewidth=0.7, zorder=3)
        axes.add_patch(packet)
    if text:
        at, side = (bottom - 0.05, "top") if below else (top + 0.04, "bottom")
        axes.text(x, at, text, ha="center", va=side, fontsize=7, linespacing=1.2)
    return centre


def arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], text: str = "", *,
    colour: str = INK, bend: float = 0.0, dashed: bool = False, shrink: float = 1.0, size: float = 7.0,
    aside: float = 0.1,
) -> None:  # fmt: skip
    """Draw an arrow with a text at its middle.

    Args:
        axes: where to draw.
        start: of the arrow.
        end: its head.
        text: on its side.
        colour: of line and text.
        bend: of the arc, as a share of its length; positive to the right of its direction.
        dashed: whether the line is.
        shrink: gap at both ends (points).
        size: of the text (points).
        aside: distance of the text from the line (data units).
    """
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=9, color=colour, linewidth=1.1,
            linestyle=(0, (4, 2.5)) if dashed else "-", connectionstyle=f"arc3,rad={bend}",
            shrinkA=shrink, shrinkB=shrink, zorder=2,
        )
    )  # fmt: skip
    if text:
        (x0, y0), (x1, y1) = start, end
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        away = bend * length / 2 + math.copysign(aside, bend if bend else 1.0)
        # arc3 puts the middle of the arc to the right of the direction for a positive bend
        middle = ((x0 + x1) / 2 + away * (y1 - y0) / length, (y0 + y1) / 2 - away * (x1 - x0) / length)
        words = axes.text(
            *middle, text, ha="center", va="center", fontsize=size, color=colour, linespacing=1.2
        )
        words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.9})


@dataclass(frozen=True)
class Transition:
    """An arrow of a state machine: from one state to another (or itself), with its cause."""

    source: str
    target: str
    label: str = ""


def state_machine(
    axes: Axes,
    transitions: Sequence[Transition],
    positions: Mapping[str, tuple[float, float]],
    *,
    radius: float = 0.42,
    bend: float = 0.2,
    shaded: Sequence[str] = (),
) -> None:
    """Draw a state machine: circles for states, arcs for transitions.

    Args:
        axes: where to draw.
        transitions: all arrows; those between the same two states in one direction share an arc.
        positions: centres of the states by name.
        radius: of a state (data units).
        bend: of the arcs.
        shaded: states that are filled.
    """
    labels: dict[tuple[str, str], list[str]] = {}
    for one in transitions:
        labels.setdefault((one.source, one.target), []).append(one.label)
    centre = np.mean(list(positions.values()), axis=0)
    for (source, target), texts in labels.items():
        text = "\n".join(text for text in texts if text)
        if source == target:
            _loop(axes, np.array(positions[source]), centre, radius, text)
            continue
        start, end = np.array(positions[source]), np.array(positions[target])
        unit = (end - start) / np.linalg.norm(end - start)
        arrow(axes, tuple(start + radius * unit), tuple(end - radius * unit), text, bend=bend, aside=0.14)
    for name, (x, y) in positions.items():
        fill = "#cfdbe6" if name in shaded else "white"
        circle = Circle((x, y), radius, facecolor=fill, edgecolor=INK, linewidth=1.2, zorder=3)
        axes.add_patch(circle)
        axes.text(x, y, name, ha="center", va="center", fontsize=8, zorder=4)
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.margins(0.15)
    axes.axis("off")


def _loop(axes: Axes, place: np.ndarray, centre: np.ndarray, radius: float, text: str) -> None:
    """Draw the arrow of a state to itself, away from the middle of the machine."""
    away = place - centre
    away = away / np.linalg.norm(away) if np.linalg.norm(away) > 1e-9 else np.array([0.0, 1.0])
    side = np.array([-away[1], away[0]])
    start, end = place + radius * (0.8 * away + 0.6 * side), place + radius * (0.8 * away - 0.6 * side)
    arrow(axes, tuple(start), tuple(end), bend=-1.6, shrink=0)
    if text:
        at = place + away * (radius * 2.1)
        axes.text(float(at[0]), float(at[1]), text, ha="center", va="center", fontsize=7, linespacing=1.2)
