"""Single queues, vacations, priorities and token buckets at random parameters, solved and simulated.

    python validation/crosscheck/queues_against_simulation.py [--systems N]

writes the table of docs/explanation/queueing-against-simulation.md; N systems of each method (10 by
default), every fourth of them in SimPy too. All methods are exact, so one in a hundred of the simulations'
99 % intervals should miss them.
"""

import argparse
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from exact_queues import exact_values
from queue_simulations import (
    SAMPLES,
    Sample,
    has_simpy_model,
    in_a_loop,
    in_queueing_only_mode,
    in_simpy,
    packet_rate,
    relaxation,
)
from random_queues import METHODS, Bucket, Bulk, PriorityQueue, System, load_of, mean, random_system
from scipy import stats

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "queueing-against-simulation.md"
MARKS = ("<!-- table: begin -->", "<!-- table: end -->")
FIRST_SEED = 500
RELAXATIONS = 100
"""Least length of a replication in relaxation times; five more are warm-up."""
LEAST_EVENTS = 100.0
"""Batches that are lost, late or waiting in a replication, by the exact values, for the quantity to count."""
MOST_IN_SIMPY = 1.5e5
"""Packets in a run of SimPy; systems that need more are left out."""

FALSE_ALARM = 1e-4
"""Probability that the comparison complains of exact methods."""


class Point(NamedTuple):
    """One quantity of one system."""

    method: str
    seed: int
    simulator: str
    quantity: str
    load: float
    exact: float
    simulated: float
    error: float
    samples: int

    @property
    def sigmas(self) -> float:
        return abs(self.exact - self.simulated) / self.error

    def outside(self, level: float) -> bool:
        """Whether the exact value is outside Student's interval that misses with probability ``level``."""
        return self.sigmas > float(stats.t.isf(level / 2, self.samples - 1))


def share_that_counts(system: System, exact: Sample, quantity: str) -> float:
    """A share of the batches below that of those lost, late or waiting; by the exact values alone."""
    if quantity.endswith("loss"):
        return exact.get("batch loss", exact["packet loss"])
    if quantity == "late packets":
        return min(exact[quantity], 1.0 - exact[quantity])
    if isinstance(system, Bucket):  # a wait is at most that for all tokens of the buffer
        return exact["mean wait"] / (system.buffer * system.token_time)
    return 1.0


def points_of(
    of: tuple[str, int, System], exact: Sample, simulator: str, samples: list[Sample], batches: float
) -> list[Point]:
    """Compare every quantity that both sides know; ``batches`` are offered in a sample."""
    method, seed, system = of
    points = []
    for quantity, value in exact.items():
        if quantity not in samples[0] or share_that_counts(system, exact, quantity) * batches < LEAST_EVENTS:
            continue
        seen = np.array([sample[quantity] for sample in samples])
        error = float(seen.std(ddof=1) / np.sqrt(len(seen)))
        average = float(seen.mean())
        if error > 1e-9 * abs(average):  # else there is nothing random in it
            at = (method, seed, simulator, quantity, load_of(system))
            points.append(Point(*at, value, average, error, len(seen)))
        else:
            np.testing.assert_allclose(value, average, rtol=1e-6, atol=1e-12, err_msg=f"{method} {seed}")
    return points


def compare(
    method: str, seed: int, *, packets: float, few: bool = False, simpy: bool | None = None
) -> list[Point]:
    """Solve and simulate a system; about ``packets`` come in all replications together, or more if needed.

    ``simpy`` says whether SimPy simulates it too: every fourth seed if left out. What nothing else can
    simulate, SimPy always does.
    """
    system = random_system(method, seed, few=few)
    exact, forget, rate = exact_values(system), relaxation(system), packet_rate(system)
    per_batch = 1.0 if isinstance(system, PriorityQueue | Bulk) else mean(system.sizes)
    fast = in_queueing_only_mode(system)
    name = "queueing-only mode" if fast else "loop"
    fast = fast or in_a_loop(system)
    points: list[Point] = []
    if fast:
        length = max(packets / SAMPLES / rate, RELAXATIONS * forget)
        run = partial(fast, seed)
        with ThreadPoolExecutor(2) as pool, np.errstate(over="ignore"):
            samples = list(pool.map(lambda n: run(n, 5 * forget, 5 * forget + length), range(SAMPLES)))
        batches = length * rate / per_batch
        points += points_of((method, seed, system), exact, name, samples, batches)
    wanted = seed % 4 == 0 if simpy is None else simpy
    if (wanted or not fast) and has_simpy_model(system):
        length = max(min(packets, 3e4) / SAMPLES / rate, RELAXATIONS / 2 * forget)
        if length * SAMPLES * rate < MOST_IN_SIMPY:
            samples = in_simpy(seed, system, 5 * forget, length)
            batches = length * rate / per_batch
            points += points_of((method, seed, system), exact, "SimPy", samples, batches)
    return points


def rows(points: Iterable[Point]) -> dict[tuple[str, str, str], list[Point]]:
    """Points by method, simulator and quantity: those of one row are of different, independent systems."""
    groups: dict[tuple[str, str, str], list[Point]] = {}
    for point in points:
        groups.setdefault((point.method, point.simulator, point.quantity), []).append(point)
    return groups


def most_outside(count: int, false_alarm: float) -> int:
    """Points outside 99 % that are exceeded with at most this probability if the method is exact."""
    return int(stats.binom.isf(false_alarm, count, 0.01))


def complaints(points: list[Point], false_alarm: float) -> list[str]:
    """What is wrong; something is with at most this probability if everything is exact.

    Half of it is for the numbers outside 99 % in each row, half for the point that is farthest out.
    """
    groups = rows(points)
    found = []
    for names, group in groups.items():
        outside, most = (
            sum(p.outside(0.01) for p in group),
            most_outside(len(group), false_alarm / 2 / len(groups)),
        )
        if outside > most:
            found.append(f"{', '.join(names)}: {outside} of {len(group)} outside 99 %, at most {most} may be")
    far = [p for p in points if p.outside(false_alarm / 2 / len(points))]
    return found + [f"{p.sigmas:.1f} standard errors off: {p}" for p in far]


def line(names: Iterable[str], points: list[Point]) -> str:
    """A row of the Markdown table."""
    errors = np.array([abs(p.exact / p.simulated - 1.0) for p in points])
    widths = np.array([stats.t.isf(0.005, p.samples - 1) * p.error / p.simulated for p in points])
    outside = sum(p.outside(0.01) for p in points)
    return (
        f"| {' | '.join(names)} | {len(points)} | {outside} ({outside / len(points):.1%}) | "
        f"{np.median(errors):.2%} | {errors.max():.1%} | {np.median(widths):.2%} |"
    )


def table(points: list[Point]) -> str:
    """Errors by method and simulator, by quantity, and in all, in Markdown."""
    head = (
        "| {} | values | outside 99 % | median error | worst error | median half-width |\n"
        "|---|{}---|---|---|---|---|"
    )
    lines = [head.format("method | simulated by", "---|")]
    pairs: dict[tuple[str, str], list[Point]] = {}
    quantities: dict[str, list[Point]] = {}
    for point in points:
        pairs.setdefault((point.method, point.simulator), []).append(point)
        quantities.setdefault(point.quantity, []).append(point)
    lines += [line(names, group) for names, group in pairs.items()]
    lines += ["", head.format("quantity", "")]
    lines += [line((name,), group) for name, group in quantities.items()]
    lines.append(line(("all",), points))
    return "\n".join(lines)


def main() -> None:
    """Compare, print the table and put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--systems", type=int, default=10, help="systems of each method")
    parser.add_argument("--packets", type=float, default=3e5, help="packets simulated of each, at least")
    options = parser.parse_args()
    points: list[Point] = []
    started = time.monotonic()
    for method in METHODS:
        for number in range(options.systems):
            points += compare(method, FIRST_SEED + number, packets=options.packets)
        print(f"{method}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    text = table(points)
    print(text)
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")
    wrong = complaints(points, FALSE_ALARM)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
