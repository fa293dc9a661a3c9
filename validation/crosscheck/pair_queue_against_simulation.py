"""How far the fast solution of the pair service is from simulation: random systems, a CSV, a table.

Run ``python validation/crosscheck/pair_queue_against_simulation.py [equal] [unlike]`` (numbers of systems,
100 and 40 by default). Loads are fractions of what the stations could send if no slot were lost, 0.1 to 1.6,
so the top is beyond saturation.
"""

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from pair_queue_simulation import Estimates, PairSystem, simulate

from btqueue.queueing.pairs import matrices
from btqueue.queueing.pairs.batch import pair_queue_batch
from btqueue.queueing.pairs.queue import PairQueue, pair_queue

SEED = 20260
PACKETS = ((0, 0, 0, 0.2, 0, 0.8), (0, 1), (0, 0.3, 0, 0.3, 0, 0.4), (0, 0, 0, 0, 0, 1))
BATCHES = ((0, 1), (0, 0, 0, 0, 0, 1), (0, 0.5, 0.5), (0, 0.2, 0.3, 0.1, 0, 0.4))
WIDTH = 6
UNLIKE = (2, 4, 7)  # numbers of unlike stations: each needs a program of its own
PAGE = Path(__file__).parents[2] / "docs" / "explanation"
BEGIN, END = "<!-- measured errors: begin -->", "<!-- measured errors: end -->"


class System(NamedTuple):
    """A random system; arrays of a queue are ``(2, stations)``."""

    load: float
    simulated: PairSystem

    @property
    def stations(self) -> int:
        return len(self.simulated.limit)


def _law(values: tuple[float, ...]) -> np.ndarray:
    return np.pad(np.asarray(values, float), (0, WIDTH - len(values)))


def draw(random: np.random.Generator, *, equal: bool) -> System:
    """One system: 1..7 equal stations, or some that differ in rates, limits, capacities and batches."""
    count = int(random.integers(1, 8) if equal else UNLIKE[random.integers(len(UNLIKE))])
    kinds = 1 if equal else count
    load = float(random.uniform(0.1, 0.95) if random.random() < 0.85 else random.uniform(0.95, 1.6))
    packets = np.stack([_law(PACKETS[random.integers(len(PACKETS))]) for _ in range(2)])
    batches = np.array(
        [[_law(BATCHES[random.integers(len(BATCHES))]) for _ in range(kinds)] for _ in range(2)]
    )
    weight = random.uniform(0.3, 1.0, (2, kinds))
    slots, sizes = packets @ np.arange(WIDTH), batches @ np.arange(WIDTH)
    rate = weight / sizes
    rate *= load / (rate * sizes * slots[:, None]).sum() / (count / kinds)
    limit, capacity = random.integers(1, 31, kinds), random.integers(1, 61, (2, kinds))

    def full(array: np.ndarray) -> np.ndarray:
        return np.repeat(array, count // kinds, axis=-1)

    batches = np.repeat(batches, count // kinds, axis=1)
    packets = np.repeat(packets[:, None], count, axis=1)
    return System(load, PairSystem(full(rate), batches, full(capacity), full(limit), packets))


def solve(systems: list[System], *, equal: bool) -> list[dict[str, np.ndarray]]:
    """Mean wait, packet loss and cycle of the fast method, each ``(2, stations)`` or a number."""
    matrices.CAPACITIES, matrices.LIMITS = (60,), (30,)  # one size class: compiling takes longer than solving
    if equal:
        parts = [system.simulated for system in systems]
        answer = pair_queue_batch(
            stations=[system.stations for system in systems],
            limit=[part.limit[0] for part in parts],
            batch_rate=np.stack([part.batch_rate[:, 0] for part in parts]),
            batch_size=np.stack([part.batch_size[:, 0] for part in parts]),
            packet_slots=np.stack([part.packet_slots[:, 0] for part in parts]),
            capacity=np.stack([part.capacity[:, 0] for part in parts]),
            tolerance=1e-8,
        )
        return [
            {
                "wait": np.array([[answer.inbound.mean_wait[i]], [answer.outbound.mean_wait[i]]]),
                "loss": np.array([[answer.inbound.packet_loss[i]], [answer.outbound.packet_loss[i]]]),
                "cycle": np.asarray(answer.mean_cycle[i]),
            }
            for i in range(len(systems))
        ]
    results = []
    for system in systems:
        part = system.simulated
        answer = pair_queue(
            PairQueue(
                stations=system.stations,
                limit=part.limit,
                batch_rate=part.batch_rate,
                batch_size=part.batch_size,
                packet_slots=part.packet_slots[:, 0],
                capacity=part.capacity,
            ),
            tolerance=1e-8,
        )
        queues = (answer.inbound, answer.outbound)
        results.append(
            {
                "wait": np.stack([queue.mean_wait for queue in queues]),
                "loss": np.stack([queue.packet_loss for queue in queues]),
                "cycle": np.asarray(answer.mean_cycle),
            }
        )
    return results


def errors(system: System, answer: dict[str, np.ndarray], truth: Estimates) -> list[dict[str, float | str]]:
    """One row per queue that differs from the others; equal stations are averaged."""
    kinds = answer["wait"].shape[1]
    rows = []
    for way, name in enumerate(("inbound", "outbound")):
        waits = truth.wait[way].mean(keepdims=True) if kinds == 1 else truth.wait[way]
        losses = truth.packet_loss[way].mean(keepdims=True) if kinds == 1 else truth.packet_loss[way]
        rows += [
            {
                "stations": system.stations,
                "unlike": int(kinds > 1),
                "queue": name,
                "station": station,
                "load": round(system.load, 4),
                "limit": int(system.simulated.limit[station]),
                "capacity": int(system.simulated.capacity[way, station]),
                "cycle_simulated": float(truth.mean_cycle),
                "cycle_error": float(answer["cycle"] / truth.mean_cycle - 1),
                "wait_simulated": float(waits[station]),
                "wait_error": float(answer["wait"][way, station] / waits[station] - 1),
                "loss_simulated": float(losses[station]),
                "loss_error": float(answer["loss"][way, station] / losses[station] - 1)
                if losses[station]
                else 0.0,
            }
            for station in range(kinds)
        ]
    return rows


def compare(count: int, *, equal: bool, slots: float = 8e6, seed: int = SEED) -> list[dict[str, float | str]]:
    """Solve and simulate ``count`` random systems."""
    random = np.random.default_rng([seed, int(equal)])
    systems = [draw(random, equal=equal) for _ in range(count)]
    rows = []
    for number, (system, answer) in enumerate(zip(systems, solve(systems, equal=equal), strict=True)):
        truth = simulate(system.simulated, slots=slots, seed=seed + number, batches=4)
        rows += errors(system, answer, truth)
    return rows


def table(rows: list[dict[str, float | str]]) -> str:
    """The table of the documentation page."""
    lines = [
        "| systems | queues | mean wait: median, 95 %, worst | blocking above 1e-4: queues, median, 95 % "
        "| cycle: median, worst |",
        "|---|---|---|---|---|",
    ]
    groups = (
        ("equal stations, load up to 0.7", lambda row: not row["unlike"] and row["load"] <= 0.7),
        ("equal stations, load 0.7 to 0.95", lambda row: not row["unlike"] and 0.7 < row["load"] <= 0.95),
        ("equal stations, load 0.95 to 1.6", lambda row: not row["unlike"] and row["load"] > 0.95),
        ("equal stations, all", lambda row: not row["unlike"]),
        ("unlike stations, all", lambda row: row["unlike"]),
    )
    for name, belongs in groups:
        members = [row for row in rows if belongs(row)]
        if not members:
            continue
        wait, cycle = (np.abs([row[key] for row in members]) for key in ("wait_error", "cycle_error"))
        loss = np.abs([row["loss_error"] for row in members if float(row["loss_simulated"]) > 1e-4])
        lost = f"{len(loss)}, {_percentiles(loss, 50, 95)}" if len(loss) else "0"
        waits, cycles = _percentiles(wait, 50, 95, 100), _percentiles(cycle, 50, 100)
        lines.append(f"| {name} | {len(members)} | {waits} | {lost} | {cycles} |")
    return "\n".join(lines)


def _percentiles(errors: np.ndarray, *levels: float) -> str:
    """The percentiles of relative errors, in percent."""
    return ", ".join(f"{100 * np.percentile(errors, level):.1f} %" for level in levels)


def main() -> None:
    """Compare, write the CSV and put the table into the documentation page."""
    equal, unlike = (int(value) for value in (*sys.argv[1:3], *(100, 40)[len(sys.argv) - 1 :]))
    rows = compare(equal, equal=True)
    rows += compare(unlike, equal=False) if unlike else []
    with (PAGE / "queueing-pair-polling.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()}
            for row in rows
        )
    text = table(rows)
    page = PAGE / "queueing-pair-polling.md"
    before, rest = page.read_text().split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    print(text)


if __name__ == "__main__":
    main()
