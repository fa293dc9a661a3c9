"""Polling systems solved and simulated at random parameters: the error table of the documentation.

    python tools/polling_against_simulation.py [simulate]

solves the recorded systems, and writes the waits beside the simulated ones into docs/explanation/
queueing-polling.csv and the table into the page beside it; some ten minutes. With ``simulate`` it draws and
simulates them again first, half an hour more. The first 400 systems had no part in the development of the
approximation but to confirm it; 120 narrower ones, seeds from 0, chose one floor of its iteration.
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polling_loop
import recorded_rows
from polling_loop import Law, constant, erlang

from btqueue.queueing import polling_model, solve_polling
from btqueue.queueing.polling.model import PollingModel
from btqueue.reproduction.report import markdown

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "queueing-polling.md"
MARKS = ("<!-- errors: begin -->", "<!-- errors: end -->")
FIRST_SEED, SYSTEMS, NARROW_SYSTEMS = 20_000, 400, 120
MAX_LIMIT = 32
SHARP = 0.05
"""A point counts if the simulation's 95 % interval is within this share of the value."""
FAMILIES = ("limited", "limited, limit 1", "exhaustive and gated", "mixed", "equal queues, limited")
NARROW = ("batches", "no walks", "batches, no walks", "short walks")


class System(NamedTuple):
    """One system for both sides."""

    family: str
    load: float  # as a share of saturation
    model: PollingModel
    simulated: polling_loop.Polling


class Point(NamedTuple):
    """One queue of a system: ours, the simulation and its half-width; ``weight`` is the queue's load."""

    seed: int
    family: str
    queues: int
    queue: int
    discipline: str
    limit: float
    batch: int
    load: float
    weight: float
    wait: float
    wait_simulated: float
    wait_ci95: float


def random_law(random: np.random.Generator, mean: float) -> Law:
    """A law with this mean: squared coefficients of variation 0, 1/2 and 1."""
    laws = constant(mean), erlang(mean), erlang(mean, 2), Law(mean / 2, 3 * mean, 0.2)
    return laws[int(random.integers(4))]


def both_sides(family, load, rate, laws, disciplines, limit, batch) -> System:
    """The system whose rates are scaled to this share of saturation."""
    service, walk = (np.array([law.mean for law in each]) for each in laws)
    service_second, walk_second = ([law.second for law in each] for each in laws)
    limited = np.array([each == "limited" for each in disciplines])
    rate = rate * load / (rate @ service + walk.sum() * (rate / np.where(limited, limit, np.inf)).max())
    times = {"service_mean": service, "service_second": service_second}
    times |= {"switch_mean": walk, "switch_second": walk_second}
    batches = {"batch_mean": batch, "batch_second": batch**2}
    model = polling_model(arrival_rate=rate, discipline=disciplines, limit=limit, **times, **batches)
    gated, most = [each == "gated" for each in disciplines], np.where(limited, limit, np.inf)
    services, walks = laws
    simulated = polling_loop.Polling(
        rates=rate / batch, services=services, walks=walks, limit=most, gated=gated, batch=batch
    )
    return System(family, load, model, simulated)


def random_system(seed: int) -> System:
    """Draw a system: 1 to 7 queues, load .1 to .95, limits 1 to 30."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 8))
    family = FAMILIES[seed % len(FAMILIES)]
    limit = np.rint(30 ** random.uniform(0, 1, n))
    rate = np.exp(random.normal(0, 0.7, n))
    service, walk = random.uniform(0.5, 6, n), random.uniform(0.2, 5, n)
    kinds = {"exhaustive and gated": ["exhaustive", "gated"], "mixed": ["exhaustive", "gated", "limited"]}
    disciplines = [str(each) for each in random.choice(kinds.get(family, ["limited"]), n)]
    if family == "limited, limit 1":
        limit[:] = 1
    if family == "equal queues, limited":
        rate, service, walk, limit = (np.full(n, value[0]) for value in (rate, service, walk, limit))
    laws = [[random_law(random, mean) for mean in means] for means in (service, walk)]
    if family == "equal queues, limited":
        laws = [each[:1] * n for each in laws]
    return both_sides(family, random.uniform(0.1, 0.95), rate, laws, disciplines, limit, np.ones(n))


def narrow_system(seed: int) -> System:
    """Draw a system of batches of 1 to 6, or walks 20 times as short or none: 2 to 4 queues, limits to 8."""
    random = np.random.default_rng(seed)
    n, family = int(random.integers(2, 5)), NARROW[seed % len(NARROW)]
    kinds = ["exhaustive", "gated", "limited"]
    disciplines = [str(each) for each in random.choice(kinds, n, p=[0.2, 0.2, 0.6])]
    if "limited" not in disciplines:
        disciplines[0] = "limited"
    limit = np.rint(8 ** random.uniform(0, 1, n))
    rate, service = np.exp(random.normal(0, 0.7, n)), random.uniform(0.5, 6, n)
    no_walk = "no walks" in family
    walk = np.ones(n) if no_walk else random.uniform(0.2, 5, n) * (0.05 if family == "short walks" else 1)
    batch = np.rint(6 ** random.uniform(0, 1, n)) if "batches" in family else np.ones(n)
    services, walks = ([random_law(random, mean) for mean in means] for means in (service, walk))
    walks = [constant(0)] * n if no_walk else walks
    load = random.uniform(0.1, 0.9)
    return both_sides(family, load, rate, [services, walks], disciplines, limit, batch)


def drawn(seed: int) -> System:
    """The recorded system with this seed."""
    return random_system(seed) if seed >= FIRST_SEED else narrow_system(seed)


def simulate(seed: int) -> list[Point]:
    """Simulate one system in ten replications; the solver's waits are not filled in."""
    system = drawn(seed)
    customers = 2e7 if seed >= FIRST_SEED and system.load > 0.85 else 4e6 if seed >= FIRST_SEED else 3e6
    slots = customers / 10 / float(np.sum(system.model.arrival_rate))
    run = polling_loop.simulate(system.simulated, slots=slots, replications=10, seed=seed)["waiting"]
    waited, half_width = run.mean(axis=0), polling_loop.half_width(run)
    return [
        Point(
            seed, system.family, len(waited), queue, "", 0.0, 0, system.load, 0.0, np.nan,
            float(waited[queue]), float(half_width[queue]),
        )
        for queue in range(len(waited))
    ]  # fmt: skip


def solved(points: list[Point], max_limit: int = MAX_LIMIT) -> list[Point]:
    """The points of one system with the solver's waits."""
    model = drawn(points[0].seed).model
    wait = solve_polling(model, max_limit=max_limit).mean_wait
    names = np.array(["exhaustive", "gated", "limited"])[np.asarray(model.discipline)]
    return [
        point._replace(
            discipline=str(names[point.queue]),
            limit=float(model.limit[point.queue]),
            batch=round(float(model.batch_mean[point.queue])),
            weight=float(model.loads[point.queue]),
            wait=float(wait[point.queue]),
        )
        for point in points
    ]


def recorded() -> dict[int, list[Point]]:
    """The points on file, by seed."""
    return by_seed(recorded_rows.read(PAGE.with_suffix(".csv"), Point))


def by_seed(points: list[Point]) -> dict[int, list[Point]]:
    """The points of each system."""
    systems = defaultdict(list)
    for point in points:
        systems[point.seed].append(point)
    return systems


def wait_errors(points: list[Point]) -> np.ndarray:
    """Relative errors of the waits of queues whose simulated wait is sharp."""
    sharp = [point for point in points if point.wait_ci95 < SHARP * point.wait_simulated]
    return np.array([point.wait / point.wait_simulated - 1 for point in sharp])


def weighted_errors(points: list[Point]) -> np.ndarray:
    """Relative errors of the mean waits of whole systems, weighted by load, where the simulation is sharp."""
    errors = []
    for queues in by_seed(points).values():
        weight, wait, simulated, ci = (
            np.array([getattr(point, name) for point in queues])
            for name in ("weight", "wait", "wait_simulated", "wait_ci95")
        )
        if weight @ ci < SHARP * weight @ simulated:
            errors.append(weight @ wait / (weight @ simulated) - 1)
    return np.array(errors)


def table(points: list[Point]) -> str:
    """The error table in Markdown."""
    first = [point for point in points if point.seed >= FIRST_SEED and point.family != FAMILIES[2]]
    groups: dict[str, Callable[[Point], bool]] = {
        family: lambda point, family=family: point.family == family for family in FAMILIES
    }
    chosen = {title: [point for point in points if test(point)] for title, test in groups.items()}
    chosen["**all limited and mixed**"] = first
    chosen["the same, load above .8"] = [point for point in first if point.load > 0.8]
    chosen |= {family: [point for point in points if point.family == family] for family in NARROW}
    lines = []
    for title, group in chosen.items():
        cells = [title]
        for errors in (wait_errors(group), weighted_errors(group)):
            size = np.abs(errors)
            worst = errors[int(size.argmax())]
            shares = f"{np.median(size):.2%}", f"{np.quantile(size, 0.95):.1%}", f"{worst:+.1%}"
            cells += [f"{len(size)}", *shares]
        lines.append(cells)
    sizes = "median", "95th percentile", "worst"
    return "\n".join(markdown.table(("systems", "queues", *sizes, "systems", *sizes), lines))


def main() -> None:
    """Solve, print the table and put it into the page."""
    if sys.argv[1:] == ["simulate"]:
        seeds = [*range(FIRST_SEED, FIRST_SEED + SYSTEMS), *range(NARROW_SYSTEMS)]
        systems = {seed: simulate(seed) for seed in seeds}
    else:
        systems = recorded()
    found = {}
    # one compilation for a number of queues
    for seed in sorted(systems, key=lambda seed: len(systems[seed])):
        found[seed] = solved(systems[seed])
        print(f"\r{len(found)} of {len(systems)}", end="", file=sys.stderr)
    points = [point for seed in systems for point in found[seed]]
    recorded_rows.write(PAGE.with_suffix(".csv"), Point._fields, points)
    text = table(points)
    print(f"\n{text}")
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
