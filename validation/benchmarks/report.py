"""Print the benchmarks as a table of ratios: `python validation/benchmarks/report.py [WORD ...]`.

With words, only the benchmarks whose name contains one of them.
"""

import subprocess
import sys

import measurements
from other_programs import NotHere, compile_times
from rich.console import Console
from rich.table import Table


def million(rate):
    """Write a rate in millions."""
    return f"{rate / 1e6:.2f} million"


def against(measurement, asked):
    """Yield the rows of a comparison by events a second."""
    result = measurement()
    yield "ours / theirs", f"{result['ratio']:.0f}", asked
    yield "our events a CPU second", million(result["our_events_per_s"]), ""
    yield "their events a CPU second", million(result["their_events_per_s"]), ""


def against_cpp(errors):
    """Yield the rows of the comparison with the C++ loop."""
    result = measurements.piconet_against_cpp(errors=errors)
    yield "ours / C++", f"{result['ratio']:.2f}", ">= 0.8" if errors else ">= 0.95"
    yield "our simulated s a CPU second", f"{result['our_s_per_s']:,.0f}", ""
    yield "C++'s simulated s a CPU second", f"{result['cpp_s_per_s']:,.0f}", ""
    yield "our events a CPU second", million(result["our_events_per_s"]), ""


def against_ns3():
    """Yield the rows of the comparison with ns-3."""
    result = measurements.link_against_ns3()
    yield "ours / ns-3 by event", f"{result['ratio']:.0f}", ">= 50"
    yield "ours / ns-3 by simulated time", f"{result['ratio_of_simulated_time']:.0f}", ""
    yield "ns-3's events a CPU second", million(result["their_events_per_s"]), ""


def options():
    """Yield the cost of options that are off."""
    yield "now / before they came", f"{measurements.cost_of_options()['ratio']:.2f}", ""


def compiling():
    """Yield the time of the first call."""
    seconds = compile_times()
    yield "empty cache", f"{seconds['empty_cache_s']:.1f} s", "< 20 s"
    yield "from the cache", f"{seconds['warm_cache_s']:.2f} s", "< 1 s"


def devices():
    """Yield the cost of a simulated second and device."""
    for count, cost in measurements.cost_by_devices().items():
        yield f"{count:,} devices: CPU time a second and device", f"{cost * 1e6:.2f} us", "flat"


def threads():
    """Yield how much threads bring, and what the machine gives to processes that share nothing."""
    for count, asked in ((2, 1.9), (4, 3.4)):
        result = measurements.threads_against_one(threads=count)
        for name, ratio in result["by_scenario"].items():
            yield f"{count} / 1, {name}", f"{ratio:.2f}", f">= {asked}"
        yield f"{count} processes / 1, C++", f"{result['bound']:.2f}", ""
        yield f"{count} / 1, least share of that", f"{result['share']:.2f}", f">= {asked / count:.2f}"


def memory():
    """Yield how much the state grows."""
    grown = measurements.memory_growth()
    yield "state after 10,000 s / after 100 s", f"{grown['long'] / grown['short']:.2f}", "1"


def solving():
    """Yield the times of the solver."""
    if reason := measurements.why_no_solve():
        yield reason, "", ""
        return
    seconds = measurements.solve_times()
    yield "warm", f"{seconds['warm_call_s'] * 1e3:.2f} ms", "milliseconds"
    cold = seconds["fresh_process_s"] / seconds["import_jax_s"]
    yield "fresh process / import jax", f"{cold:.2f}", "<= 2"


BENCHMARKS = {
    "seven queues, SimPy": lambda: against(measurements.seven_queues_against_simpy, ">= 60"),
    "seven queues, LINE": lambda: against(measurements.seven_queues_against_line, ">= 8"),
    "M/M/1, Ciw": lambda: against(measurements.mm1_against_ciw, ">= 60"),
    "piconet, C++, perfect radio": lambda: against_cpp(errors=False),
    "piconet, C++, two-state radio": lambda: against_cpp(errors=True),
    "TCP over a link, ns-3": against_ns3,
    "options that are off": options,
    "compiling": compiling,
    "scaling": devices,
    "threads": threads,
    "memory": memory,
    "solve": solving,
}


def main():
    """Measure and print, each benchmark as it finishes."""
    words = sys.argv[1:]
    console = Console()
    table = Table(
        "benchmark", "what", "measured", "asked", title="Ratios within one run; best on a quiet machine"
    )
    for name, rows in BENCHMARKS.items():
        if words and not any(word in name for word in words):
            continue
        console.print(f"{name} ...", style="dim")
        try:
            for row in rows():
                table.add_row(name, *row)
        except NotHere as reason:
            table.add_row(name, "left out", str(reason), "")
        except subprocess.CalledProcessError as failure:
            table.add_row(name, "failed", failure.stderr.strip().splitlines()[-1], "")
    console.print(table)


if __name__ == "__main__":
    main()
