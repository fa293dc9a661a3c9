"""Events of single runs over time, as the table of a figure describes them.

A figure has entries of `picture`, each with entries of `panel`, and entries of `layer`. Keys of a panel may
stand in its picture or the figure, too: the innermost key holds, and tables `set` are merged.

Keys of a panel:

* `scenario` and `set`; `fading`, the arguments of `with_fading`, for a radio whose states were
  drawn beforehand, and `state`, a node whose good and bad states are drawn at 1 and 0
* `windows`, times from and to, a panel each (by default the whole run); or `around`, the name of a layer at
  whose first event a window lies; or `busiest`, how many of the spells of `spell_s` seconds with most events
* `title`, `ylabel`, `axes` and marks as in `curve_tables`

Keys of a layer:

* `event` at a `node`, of a `flow`, with a `packet_type`; `only` the "first" or "again" sent segments, or
  "duplicate" acknowledgements
* `y`: "segment", "acknowledged", or a number that has the name `level` on the axis
* `marker` ("step" for a line), `colour` (number of the palette), `size` (points), `hollow = true`
* `label` in the legend; a title may count the events of a layer with a `name`, as "{name}", and tell the time
  of its first event, as "{name_s:.2f}"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from btqueue.plotting import PALETTE
from btqueue.reproduction.figures.curve_panels import Panel, curves
from btqueue.reproduction.figures.curve_tables import GREY, Table, faded, marks, within
from btqueue.reproduction.figures.runs import Events, again, duplicate, events
from btqueue.reproduction.figures.work import Picture, Work

BEFORE_S, AFTER_S = 0.4, 1.2
"""Begin and end of a window around an event."""


ONLY = {"first": lambda sent: ~again(sent), "again": again, "duplicate": duplicate}


def draw(work: Work, table: Table) -> Iterator[Picture]:
    """Yield the pictures of a figure."""
    for picture in table["picture"]:
        common = within(table, picture)
        panels, words = [], {"citation": work.citation}
        for panel in picture["panel"]:
            wanted = within(common, panel) | {"title": panel.get("title", "")}
            panels += _panels(work, wanted, common["layer"], words)
        look = {key: common[key] for key in ("columns", "size") if key in common}
        title, note = (picture.get(key, "").format(**words) for key in ("title", "note"))
        yield Picture(curves(panels, title=title, note=note, zero=False, **look), picture.get("part", ""))


def _panels(work: Work, wanted: Table, layers: Sequence[Table], words: dict[str, Any]) -> list[Panel]:
    """Return the panels of one run, a panel for each window; note counts and times of layers in *words*."""
    scenario, states = faded(work, wanted)
    log = events(scenario, only=sorted({layer["event"] for layer in layers}))
    chosen = [_chosen(log, layer) for layer in layers]
    for layer, found in zip(layers, chosen, strict=True):
        if "name" in layer:
            words[layer["name"]] = len(found.time_s)
            words[f"{layer['name']}_s"] = found.time_s[0] if len(found.time_s) else np.nan
    windows = wanted.get("windows", [[0.0, scenario.run.duration_s]])
    if "around" in wanted:
        at = words[f"{wanted['around']}_s"]
        windows = [[at - BEFORE_S, at + AFTER_S]]
    if "busiest" in wanted:
        spell_s = wanted["spell_s"]
        times = np.concatenate([found.time_s for found in chosen])
        counts = np.bincount((times // spell_s).astype(int))
        places = np.sort(np.argsort(-counts, kind="stable")[: wanted["busiest"]])
        windows = [[spell_s * place, spell_s * (place + 1)] for place in places]
    title, xlabel = wanted["title"].format(**words), wanted.get("xlabel", "time (s)")
    drawn = partial(
        _draw, work=work, wanted=wanted, layers=list(zip(layers, chosen, strict=True)), states=states
    )
    return [
        Panel([], wanted.get("ylabel", ""), title, xlabel, partial(drawn, window=window))
        for window in windows
    ]


def _chosen(log: Events, layer: Table) -> Events:
    """Return the events of a layer."""
    found = log.of(layer["event"], node=layer.get("node"), flow=layer.get("flow"))
    if "packet_type" in layer:
        found = found.where(found.packet_type == layer["packet_type"])
    return found.where(ONLY[layer["only"]](found)) if "only" in layer else found


def _draw(
    axes: Axes,
    *,
    work: Work,
    wanted: Table,
    layers: Sequence[tuple[Table, Events]],
    states: Mapping[str, np.ndarray],
    window: Sequence[float],
) -> None:
    """Draw the events of a window, and its marks."""
    begin, end = window
    levels: dict[float, str] = {}
    if "state" in wanted:
        good = ~states[wanted["state"]]
        times = np.arange(len(good)) * wanted["fading"]["step_s"]
        axes.step(times, good, where="post", color=GREY, linewidth=1.0)
        levels = {0.0: "bad", 1.0: "good"}
    for layer, whole in layers:
        found = whole.where((whole.time_s >= begin) & (whole.time_s <= end))
        y = layer["y"]
        if isinstance(y, float):
            levels[y] = layer["level"]
        values = np.full(len(found.time_s), y) if isinstance(y, float) else getattr(found, y)
        colour, label = PALETTE[layer["colour"]], layer.get("label")
        if layer["marker"] == "step":
            axes.step(found.time_s, values, color=colour, where="post", linewidth=1.1, label=label)
            continue
        axes.plot(
            found.time_s, values, color=colour, marker=layer["marker"], linestyle="", label=label, zorder=3,
            markersize=layer.get("size", 4.0),
            markerfacecolor="none" if layer.get("hollow") else colour,
        )  # fmt: skip
    if levels:
        axes.set_yticks(list(levels), list(levels.values()))
    if any("label" in layer for layer, _ in layers):
        axes.legend(loc="lower right", fontsize=8)
    for name, value in wanted.get("axes", {}).items():
        getattr(axes, f"set_{name}")(value)
    inside = [line for line in wanted.get("verticals", ()) if begin <= line["value"] < end]
    marks(axes, work, {**wanted, "verticals": inside}, [])
    axes.set_xlim(begin, end)
