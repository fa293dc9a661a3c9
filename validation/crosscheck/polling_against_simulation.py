"""Polling systems solved and simulated at random parameters: the error table of the documentation.

    python validation/crosscheck/polling_against_simulation.py [systems]

writes the table into docs/explanation/queueing-polling.md and every point into the .csv beside it; 600
systems (400 with infinite buffers) take about half an hour. None of these systems was used to
develop the approximations.
"""

import csv
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from btqueue.queueing.polling.finite import solve_finite_polling
from btqueue.queueing.polling.model import PollingModel, polling_model
from btqueue.queueing.polling.polling import solve_polling
from btqueue.simulator.queueing_only.polling_system import PollingSystem, simulate_polling_system
from btqueue.simulator.queueing_only.random_times import (
    ConstantTime,
    ErlangTime,
    ExponentialTime,
    TimeLaw,
    TwoPointTime,
)

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "queueing-polling.md"
MARKS = ("<!-- errors: begin -->", "<!-- errors: end -->")
FIRST_SEED = 20_000
MAX_LIMIT, MAX_CAPACITY = 32, 60
SHARP = 0.05
"""A point counts if the simulation's 95 % interval is within this share of the value."""
FAMILIES = ("limited", "limited, limit 1", "exhaustive and gated", "mixed", "equal queues, limited")


class RandomSystem(NamedTuple):
    """One system for both sides; ``capacity`` is None for infinite buffers."""

    seed: int
    family: str
    load: float
    model: PollingModel
    simulated: PollingSystem
    capacity: np.ndarray | None


class Point(NamedTuple):
    """One queue of a system: (ours, simulation, its half-width) of the mean wait and of blocking."""

    seed: int
    family: str
    finite: bool
    queues: int
    queue: int
    discipline: str
    limit: float
    capacity: float
    load: float
    wait: float
    wait_simulated: float
    wait_ci95: float
    blocking: float
    blocking_simulated: float
    blocking_ci95: float


def random_law(random: np.random.Generator, mean: float) -> tuple[TimeLaw, float]:
    """A law with this mean, and its mean square: squared coefficients of variation 0, 1/2 and 1."""
    kind = int(random.integers(4))
    if kind == 0:
        return ConstantTime(slots=mean), mean**2
    if kind == 1:
        return ExponentialTime(mean=mean), 2 * mean**2
    if kind == 2:
        return ErlangTime(mean=mean, phases=2), 1.5 * mean**2
    return TwoPointTime(short=mean / 2, long=3 * mean, probability_long=0.2), 2 * mean**2


def random_system(seed: int, *, finite: bool, queues: int | None = None) -> RandomSystem:
    """Draw a system: 1 to 7 queues, load .1 to .95 (finite: to 1.6), limits 1 to 30, capacities 1 to 60."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 8)) if queues is None else queues
    family = FAMILIES[seed % len(FAMILIES)]
    limit = np.rint(30 ** random.uniform(0, 1, n))
    rate, service, walk = (
        np.exp(random.normal(0, 0.7, n)),
        random.uniform(0.5, 6, n),
        random.uniform(0.2, 5, n),
    )
    kinds = {"exhaustive and gated": ["exhaustive", "gated"], "mixed": ["exhaustive", "gated", "limited"]}
    disciplines = [str(d) for d in random.choice(kinds.get(family, ["limited"]), n)]
    if family == "limited, limit 1":
        limit[:] = 1
    if family == "equal queues, limited":
        rate, service, walk, limit = (np.full(n, value[0]) for value in (rate, service, walk, limit))
    services, walks = [random_law(random, m) for m in service], [random_law(random, m) for m in walk]
    if family == "equal queues, limited":
        services, walks = services[:1] * n, walks[:1] * n
    limited = np.array([d == "limited" for d in disciplines])
    load = random.uniform(0.1, 1.6 if finite else 0.95)
    rate *= load / (rate @ service + walk.sum() * (rate / np.where(limited, limit, np.inf)).max())
    capacity = np.rint(60 ** random.uniform(0, 1, n)).astype(int) if finite else None
    model = polling_model(
        arrival_rate=rate,
        service_mean=service,
        service_second=np.array([second for _, second in services]),
        switch_mean=walk,
        switch_second=np.array([second for _, second in walks]),
        discipline=disciplines,
        limit=limit,
    )
    simulated = PollingSystem(
        arrival_rates=[float(r) for r in rate],
        services=[law for law, _ in services],
        walks=[law for law, _ in walks],
        limit=[int(k) if own else None for k, own in zip(limit, limited, strict=True)],
        gated=[d == "gated" for d in disciplines],
        buffer=None if capacity is None else [int(k) for k in capacity],
    )
    return RandomSystem(seed, family, load, model, simulated, capacity)


def compare(system: RandomSystem, *, customers: float) -> list[Point]:
    """Solve and simulate one system; ``customers`` arrive in all ten replications together."""
    n, model = system.model.queues, system.model
    if system.capacity is None:
        wait, blocking = np.asarray(solve_polling(model, max_limit=MAX_LIMIT).mean_wait), np.zeros(n)
    else:
        finite = solve_finite_polling(model, system.capacity, max_capacity=MAX_CAPACITY, max_limit=MAX_LIMIT)
        wait, blocking = np.asarray(finite.mean_wait), np.asarray(finite.blocking)
    slots = customers / 10 / float(np.sum(model.arrival_rate))
    run = simulate_polling_system(
        system.simulated, duration_slots=slots, warmup_slots=slots / 20, replications=10, seed=system.seed
    )
    waited, lost = run.waiting.mean("replication").values, run.loss.mean("replication").values
    names = np.array(["exhaustive", "gated", "limited"])[np.asarray(model.discipline)]
    return [
        Point(
            system.seed,
            system.family,
            system.capacity is not None,
            n,
            queue,
            names[queue],
            float(model.limit[queue]),
            np.inf if system.capacity is None else float(system.capacity[queue]),
            system.load,
            float(wait[queue]),
            float(waited[queue]),
            float(run.waiting_half_width.values[queue]),
            float(blocking[queue]),
            float(lost[queue]),
            float(run.loss_half_width.values[queue]),
        )
        for queue in range(n)
    ]


def wait_errors(points: list[Point]) -> tuple[list[Point], np.ndarray]:
    """The points whose simulated wait is sharp, and the relative errors of ours."""
    sharp = [p for p in points if p.wait_ci95 < SHARP * p.wait_simulated]
    return sharp, np.array([p.wait / p.wait_simulated - 1 for p in sharp])


def blocking_errors(points: list[Point]) -> tuple[list[Point], np.ndarray]:
    """The points whose simulated blocking is above 1e-4 and sharp, and the relative errors of ours."""
    sharp = [p for p in points if p.blocking_simulated > max(1e-4, p.blocking_ci95 / (2 * SHARP))]
    return sharp, np.array([p.blocking / p.blocking_simulated - 1 for p in sharp])


def row(title: str, points: list[Point], errors: np.ndarray) -> str:
    """A line of the Markdown table."""
    size = np.abs(errors)
    worst = points[int(size.argmax())]
    place = f"n = {worst.queues}, {worst.discipline}, k = {worst.limit:.0f}, load {worst.load:.2f}"
    if worst.finite:
        place += f", K = {worst.capacity:.0f}"
    return (
        f"| {title} | {len(points)} | {np.median(size):.2%} | {np.quantile(size, 0.95):.1%} | "
        f"{np.quantile(size, 0.99):.1%} | {errors[int(size.argmax())]:+.1%} | {place} |"
    )


def table(points: list[Point]) -> str:
    """The error table in Markdown."""
    lines = [
        "| quantity and systems | queues | median | 95th percentile | 99th percentile | worst | worst at |",
        "|---|---|---|---|---|---|---|",
    ]
    infinite = [p for p in points if not p.finite]
    finite = [p for p in points if p.finite]
    groups = {f"wait: {family}": [p for p in infinite if p.family == family] for family in FAMILIES}
    groups |= {
        "wait: all limited and mixed": [p for p in infinite if p.family != "exhaustive and gated"],
        "wait: the same, load above .8": [
            p for p in infinite if p.family != "exhaustive and gated" and p.load > 0.8
        ],
        "wait, finite buffers": finite,
        "wait, finite buffers, below saturation": [p for p in finite if p.load < 1],
    }
    for title, group in groups.items():
        chosen, errors = wait_errors(group)
        if chosen:
            lines.append(row(title, chosen, errors))
    for title, group in {
        "blocking above 1e-4": finite,
        "blocking, below saturation": [p for p in finite if p.load < 1],
    }.items():
        chosen, errors = blocking_errors(group)
        if chosen:
            lines.append(row(title, chosen, errors))
    return "\n".join(lines)


def main() -> None:
    """Compare, print the table and put it into the page."""
    systems = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    points: list[Point] = []
    started = time.monotonic()
    for number in range(systems):
        system = random_system(FIRST_SEED + number, finite=number >= 2 * systems // 3)
        points += compare(system, customers=2e7 if 0.85 < system.load < 1 else 4e6)
        print(f"\r{number + 1} of {systems}, {time.monotonic() - started:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)
    with PAGE.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Point._fields)
        for point in points:
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in point])
    text = table(points)
    print(text)
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
