"""Print the benchmarks as a table of ratios: `python validation/benchmarks/report.py`."""

import measurements
from rich.console import Console
from rich.table import Table


def rows():
    """Yield (what, measured, asked) for each benchmark, as it finishes."""
    speed = measurements.piconet_speed()
    yield "two peripherals, load 160: events/s", f"{speed['events_per_s'] / 1e6:.1f} million", ""
    yield "two peripherals, load 160: simulated s/s", f"{speed['simulated_s_per_s']:,.0f}", ""
    simpy = measurements.seven_queues_against_simpy()
    yield "seven queues: our events/s", f"{simpy['our_played_events_per_s'] / 1e6:.1f} million", ""
    yield "seven queues: SimPy's events/s", f"{simpy['their_events_per_s'] / 1e6:.3f} million", ""
    yield "seven queues: ours / SimPy, events played", f"{simpy['ratio_of_played_events']:.0f}", ">= 30"
    yield "seven queues: ours / SimPy, simulated time", f"{simpy['ratio']:.0f}", ""
    ciw = measurements.mm1_against_ciw()
    yield "M/M/1: ours / Ciw", f"{ciw['ratio']:.0f}", ">= 30"
    threads = measurements.two_threads_against_one()
    yield "two threads / one", f"{threads['ratio']:.2f}", ">= 1.9"
    memory = measurements.memory_growth()
    yield "state after 10,000 s / after 100 s", f"{memory['long'] / memory['short']:.2f}", "1"
    costs = measurements.cost_by_devices()
    yield "cost of a simulated second, 7 devices / 2", f"{costs[7] / costs[2]:.2f}", "<= 3.5"
    if reason := measurements.why_no_solve():
        yield "solve", reason, ""
        return
    solve = measurements.solve_times()
    yield "solve, warm", f"{solve['warm_call_s'] * 1e3:.2f} ms", "milliseconds"
    yield (
        "solve in a fresh process / import jax",
        f"{solve['fresh_process_s'] / solve['import_jax_s']:.2f}",
        "<= 2",
    )


def main():
    """Measure and print."""
    title = "Ratios within one run; meaningful on a quiet machine"
    table = Table("benchmark", "measured", "asked", title=title)
    for row in rows():
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
