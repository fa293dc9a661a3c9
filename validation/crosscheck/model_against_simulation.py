"""Solve against simulate over the piconet grid of the 2006 thesis: the error table of the documentation.

    python validation/crosscheck/model_against_simulation.py

writes docs/explanation/model-against-simulation.md and, point by point, the .csv beside it (about four
minutes on two cores). Simulated are 10 replications of 480 s after 60 s of warm-up, 40 with radio errors,
where replications differ more. A small processing jitter (5 ms) is on at every point: without it the
saturated perfect radio has several limit cycles, and a single one of them is no fair reference.
"""

import csv
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "model-against-simulation.md"
METRICS = {
    "goodput_kbps": ("goodput", 0.0),
    "rtt_s": ("round-trip time", 0.0),
    "window_segments": ("window used", 0.0),
    "timeouts_per_s": ("timeouts, where above 0.01/s", 0.01),
    "fast_retransmits_per_s": ("fast retransmits, where above 0.01/s", 0.01),
    "segment_loss": ("segment loss, where above 0.1 %", 0.001),
    "cycle_s": ("polling cycle", 0.0),
}
"""Heading of each metric and the simulated value from which on a relative error means something."""


class Point(NamedTuple):
    """A point of the grid, in the thesis's symbols."""

    n: int
    load: int
    S: int
    M: int
    tb: int
    errors: bool


def grid() -> list[Point]:
    """Return the thesis's piconet experiments 6.1 to 6.6, 6.13 and 6.14, thinned."""
    usual = {2: 250, 4: 110, 6: 80}
    loads = {2: (80, 120, 160, 200, 240), 4: (30, 60, 90, 120), 6: (20, 40, 60, 80, 100)}
    rates = {2: (150, 200, 300, 400), 4: (50, 80, 140), 6: (30, 60, 100)}
    lossy = {2: (80, 140, 200), 4: (40, 70, 100), 6: (30, 60, 90)}
    points: list[Point] = []
    for n, tb in usual.items():
        for load in loads[n]:
            points += [Point(n, load, s, 5, tb, False) for s in (5, 10, 15, 20, 25)]
            points += [Point(n, load, 25, m, tb, False) for m in (10, 15, 25)]
            points += [Point(n, load, 25, 5, rate, False) for rate in rates[n]]
        for load in lossy[n]:
            points += [Point(n, load, s, 5, tb, True) for s in (5, 15, 25)]
            points.append(Point(n, load, 25, 15, tb, True))
    return points


def answers(point: Point) -> dict[str, tuple[float, float, float]]:
    """Return (model, simulation, half-width) of each metric at a point."""
    import btqueue as bt
    from btqueue.study.summary import student_half_width

    scenario = bt.load(f"venugopal-2006/{'piconet-errors' if point.errors else 'piconet'}").with_(
        network__peripherals=point.n,
        traffic__load_kbps=point.load,
        flow_control__buffer_packets=point.S,
        flow_control__token_rate_kbps=point.tb,
        polling__limit=point.M,
        run__jitter_s=0.005,
        run__replications=40 if point.errors else 10,
    )
    solved, simulated = bt.solve(scenario), bt.simulate(scenario, threads=1)
    row = {}
    for name in METRICS:
        inner = [dim for dim in simulated[name].dims if dim != "replication"]
        values = simulated[name].mean(inner).values
        row[name] = (float(solved[name].mean()), float(values.mean()), student_half_width(values))
    return row


class Comparison(NamedTuple):
    """A point of the grid with (model, simulation, half-width) of each metric."""

    point: Point
    row: dict[str, tuple[float, float, float]]

    def error(self, name: str) -> float:
        """Return the relative error of the model."""
        model, simulation, _ = self.row[name]
        return model / simulation - 1.0


def run_grid(points: list[Point]) -> list[Comparison]:
    """Answer every point twice, on two processes."""
    done = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for point, row in zip(points, pool.map(answers, points, chunksize=4), strict=True):
            done.append(Comparison(point, row))
            print(f"\r{len(done)} of {len(points)} points", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return done


def table(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a Markdown table of the relative errors of these points."""
    comparisons = list(comparisons)
    lines = [
        "| metric | points | median | 95th percentile | worst | worst at |",
        "|---|---|---|---|---|---|",
    ]
    for name, (heading, least) in METRICS.items():
        counted = [c for c in comparisons if c.row[name][1] > least]
        if not counted:
            continue
        errors = np.abs([c.error(name) for c in counted])
        worst = counted[int(errors.argmax())]
        p = worst.point
        place = f"n={p.n}, load {p.load}, S={p.S}, M={p.M}, tb={p.tb}"
        median, high = np.median(errors), np.quantile(errors, 0.95)
        lines.append(
            f"| {heading} | {len(counted)} | {median:.1%} | {high:.0%} | {worst.error(name):+.0%} | {place} |"
        )
    return lines


def page(comparisons: list[Comparison]) -> str:
    """Return the documentation page."""
    parts = ["# Model against simulation\n\n" + INTRODUCTION]
    groups = {
        "All points": lambda p: True,
        "Perfect radio": lambda p: not p.errors,
        "Perfect radio, 2 peripherals": lambda p: not p.errors and p.n == 2,
        "Perfect radio, 4 peripherals": lambda p: not p.errors and p.n == 4,
        "Perfect radio, 6 peripherals": lambda p: not p.errors and p.n == 6,
        "Error-prone radio": lambda p: p.errors,
        "Error-prone radio, S = 15 and more": lambda p: p.errors and p.S >= 15,
    }
    for title, belongs in groups.items():
        parts.append(
            f"\n## {title}\n\n" + "\n".join(table(c for c in comparisons if belongs(c.point))) + "\n"
        )
    return "\n".join(parts) + "\n" + REASONS


INTRODUCTION = """\
Every point of the 2006 thesis's piconet grid was solved and simulated. The tables give the relative error of
the model; they are written by `python validation/crosscheck/model_against_simulation.py`, and the values at
each point stand in [a file of their own](model-against-simulation.csv). Simulated with 5 ms of jitter: see
[why](simulator.md).
"""

REASONS = """
## Where it is worse, and why

* **S = 5 and S = 10** (a window of two or three segments fills the buffer). Whether the last packet of a
  burst still fits depends on the tokens of a few milliseconds, on which the model, where the air is a
  fluid, is not exact: the saturated goodput comes out up to 20 % low at two peripherals. At load 80 and
  120 the simulator sits for long times in either of two regimes (load carried, or stalled by overflow);
  the model reports the saturated one.
* **Token rates just above the air's share** (tb = 300 and 400 at two peripherals): losses move from S to
  L, and the polled service of L in visits of M frames matters; the model's steady service overflows at
  other moments.
* **M above 5.** The relay ring is solved with at most 10 frames a visit at two peripherals and 5 beyond,
  and the saturated orbit knows M only through the mean cycle: round trips with M = 25 come out up to 16 %
  low below saturation, and up to 20 % off above it.
* **The knee** (two peripherals at load 160). Goodput is right, but losses and timeouts there are made by
  rare queue excursions that neither Poisson batches nor greedy connections describe.
* **Timeouts below about 0.05 per second** come from recoveries that fail (a retransmission lost, or too
  few duplicate acknowledgements). They are rare events of the orbit and depend on its fine structure.
* **Error-prone radio.** The chain sees one constant round-trip time where the real one depends on the
  window (round trips are 20 % off in the median), and takes losses by overflow as independent although they
  come with the largest bursts: with S = 5 goodput is up to 47 % low. With S = 15 and more it is the better
  half of the table. The two hops see their channels at one instant."""


def main() -> None:
    """Run the grid and write the page and the values."""
    comparisons = run_grid(grid())
    PAGE.write_text(page(comparisons), encoding="utf-8")
    with PAGE.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        columns = [f"{name}_{part}" for name in METRICS for part in ("model", "simulation", "ci95")]
        writer.writerow([*Point._fields, *columns])
        for comparison in comparisons:
            values = [f"{value:.6g}" for name in METRICS for value in comparison.row[name]]
            writer.writerow([*comparison.point, *values])


if __name__ == "__main__":
    main()
