"""Venugopal 2006, figure 6.1: two peripherals on a perfect radio, over offered load and token buffer.

Five panels over the load of each connection and the size S of the token buffer (M = 5, token rate 250 kbit/s,
L = 20): goodput, round-trip time, window, timeouts and fast retransmits. Writes two pictures: surfaces, as in
the thesis, and lines that can be read. Both show the simulation (mean and 95 % interval) and the model.

The window shown is min(cwnd, receive window), what a sender may use: cwnd itself grows without bound while
nothing is lost, and its mean then says how long the run was.

    python figures/venugopal-2006/fig_6_1.py [--out FOLDER] [--replications N]
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import btqueue as bt
from btqueue.network import NoConvergence
from btqueue.plotting import (
    axis_label,
    curve_key,
    house_style,
    line_panel,
    published_point,
    published_value,
    surface_key,
    surface_panel,
)
from btqueue.scenario import models_folder
from btqueue.study import summarise

LOADS_KBPS = np.arange(80.0, 241.0, 20.0)
BUFFERS = np.array([5, 10, 15, 20, 25])
METRICS = ("goodput_kbps", "rtt_s", "window_segments", "timeouts_per_s", "fast_retransmits_per_s")

TITLE = "Venugopal 2006, figure 6.1: two peripherals, perfect radio (M = 5, token rate 250 kbit/s, L = 20)"
LOAD_LABEL = "offered load of each connection (kbit/s)"

Grids = dict[str, dict[str, np.ndarray]]
"""For each metric: "mean", "ci95" and "model", shape (buffers, loads)."""


def compute(replications: int, report: Callable[[str], None]) -> tuple[Grids, int]:
    """Simulate and solve every point; return the grids and the number of points without a solution."""
    standard = bt.load("venugopal-2006/piconet", {"run.replications": replications})
    shape = (len(BUFFERS), len(LOADS_KBPS))
    grids: Grids = {name: {k: np.full(shape, np.nan) for k in ("mean", "ci95", "model")} for name in METRICS}
    unsolved = 0
    for place in np.ndindex(shape):
        load, size = float(LOADS_KBPS[place[1]]), int(BUFFERS[place[0]])
        report(f"S = {size}, load {load:g} kbit/s")
        point = standard.with_(traffic__load_kbps=load, flow_control__buffer_packets=size)
        simulated = summarise(bt.simulate(point))
        try:
            solved = summarise(bt.solve(point))
        except NoConvergence as error:
            solved, unsolved = {}, unsolved + 1
            print(f"no solution at S = {size}, load {load:g}: {error}", file=sys.stderr)
        for name in METRICS:
            if name in simulated:
                grids[name]["mean"][place] = simulated[name].total.mean
                grids[name]["ci95"][place] = simulated[name].total.ci95
            if name in solved:
                grids[name]["model"][place] = solved[name].total.mean
    return grids, unsolved


def published() -> dict[str, dict[str, Any]]:
    """Return the claims of the thesis's text, by id."""
    with (models_folder() / "venugopal-2006" / "published.toml").open("rb") as file:
        return {claim["id"]: claim for claim in tomllib.load(file)["claim"]}


def lines(grids: Grids, note: str) -> Figure:
    """Draw one curve for each S over the load."""
    figure, panels = plt.subplots(2, 3, figsize=(11.5, 6.8), layout="constrained")
    claims = published()
    for axes, name in zip(panels.flat, METRICS, strict=False):
        grid = grids[name]
        for place in range(len(BUFFERS)):
            line_panel(
                axes, LOADS_KBPS, grid["mean"][place], grid["ci95"][place], grid["model"][place], place=place
            )
        axes.set(title=axis_label(name), xlabel=LOAD_LABEL, xticks=LOADS_KBPS[::2])
        axes.set_ylim(bottom=0)
    for axes, claim, words, position in (
        (panels[0, 0], claims["goodput-2"], "thesis: 170 at saturation, S = 25", (0.02, "bottom")),
        (panels[0, 1], claims["rtt-2"], "thesis: 0.3 s at the peak of goodput", (0.02, "bottom")),
    ):
        published_value(axes, claim["value"], tolerance=claim["rel_tol"], text=words, position=position)
    axes = panels[0, 0]
    axes.plot(LOADS_KBPS, LOADS_KBPS, color="#999999", linewidth=0.8, linestyle=":", zorder=1)
    axes.annotate(
        "offered", (200.0, 200.0), xytext=(-5, 0), textcoords="offset points", ha="right", va="center",
        fontsize=7.5, color="#777777",
    )  # fmt: skip
    axes.set_ylim(0, 215)
    _legend(panels[1, 2], curve_key([f"S = {size}" for size in BUFFERS]), note)
    figure.suptitle(TITLE)
    return figure


def surfaces(grids: Grids, note: str) -> Figure:
    """Draw surfaces over load and S, as in the thesis."""
    claims = published()
    stated = {  # load and value: at the load of the claim's scenario
        "goodput_kbps": (200.0, claims["goodput-2"]["value"]),
        "rtt_s": (160.0, claims["rtt-2"]["value"]),
    }
    figure = plt.figure(figsize=(12.5, 8.0))
    figure.subplots_adjust(left=0.02, right=0.96, top=0.92, bottom=0.04, wspace=0.12, hspace=0.16)
    for number, name in enumerate(METRICS, start=1):
        axes: Any = figure.add_subplot(2, 3, number, projection="3d")
        # Falling surfaces are seen from the side of small buffers, so that nothing hides behind a crest.
        view = (24, -50) if name in ("timeouts_per_s", "rtt_s") else (24, -125)
        surface_panel(axes, LOADS_KBPS, BUFFERS, grids[name]["mean"], grids[name]["model"], view=view)
        axes.set(xlabel="offered load (kbit/s)", ylabel="S (packets)", yticks=BUFFERS)
        axes.set_title(axis_label(name), y=0.96)
        axes.set_xticks(LOADS_KBPS[::2])
        axes.set_zlim(bottom=0)
        if name in stated:
            load, value = stated[name]
            published_point(axes, (load, 25.0, value))
    axes = figure.add_subplot(2, 3, 6)
    _legend(axes, surface_key(), note)
    figure.suptitle(TITLE)
    return figure


def _legend(axes: Any, handles: list[Any], note: str) -> None:
    axes.axis("off")
    axes.legend(handles=handles, loc="upper left", ncols=2)
    axes.text(
        0.03, 0.58, note, transform=axes.transAxes, va="top", linespacing=1.4, fontsize=8, color="#444444"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute the points and write `fig_6_1_surfaces.png` and `fig_6_1_lines.png`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="FOLDER", help="where to write; default: here"
    )
    parser.add_argument(
        "--replications", type=int, default=10, metavar="N", help="of each point; default: 10"
    )
    options = parser.parse_args(arguments)
    if not options.out.is_dir():
        parser.error(f"--out {options.out}: there is no such folder")
    matplotlib.use("Agg")
    quiet = not sys.stderr.isatty()
    grids, unsolved = compute(
        options.replications,
        lambda text: None if quiet else print(f"\r\033[K{text}", end="", file=sys.stderr),
    )
    note = (
        f"Simulation: {options.replications} replications of 480 s each.\n"
        "Window: min(cwnd, receive window of 8 segments),\nmean over acknowledgements; cwnd has no bound.\n"
        "Where intervals are long (S = 10), replications settle in\n"
        "different periodic orbits; see the system's README.md."
    )
    if unsolved:
        note += f"\nNo solution of the model at {unsolved} of {BUFFERS.size * LOADS_KBPS.size} points."
    with house_style():
        for name, draw in (("surfaces", surfaces), ("lines", lines)):
            target = options.out / f"fig_6_1_{name}.png"
            draw(grids, note).savefig(target)
            print(target)


if __name__ == "__main__":
    main()
