"""Call the solver and the simulator as a command does: timed, with progress and a word about compilation."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from btqueue.cli.exits import say
from btqueue.scenario import Scenario, require_built


@dataclass(frozen=True)
class Answer:
    """What an engine returned, and the seconds that it took."""

    dataset: xr.Dataset
    wall_s: float


def run_solver(scenario: Scenario) -> Answer:
    """Solve, timed."""
    require_built(scenario)
    keep_compiled_models()
    from btqueue.network import solve

    begin = time.perf_counter()
    dataset = solve(scenario)
    return Answer(dataset, time.perf_counter() - begin)


def keep_compiled_models() -> None:
    """Let JAX keep compiled models on disk between commands, unless the user has set this already.

    Only the command line does so: in a user's own process JAX's configuration is the user's.
    """
    root = os.environ.get("BTQUEUE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    folder = (Path(root) if root else Path.home() / ".cache") / "btqueue" / "models"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")


def run_simulator(scenario: Scenario, *, threads: int | None, quiet: bool) -> Answer:
    """Compile the simulator if that was not done yet, then simulate; the time is without compilation."""
    require_built(scenario)
    from btqueue.simulator import simulate

    if not is_compiled():
        if not quiet:
            say("compiling the simulator, once for this version: about 15 s")
        with interrupt_held():
            compile_now(scenario)
    with progress_bar(scenario, quiet=quiet) as progress:
        begin = time.perf_counter()
        dataset = simulate(scenario, threads=threads, progress=progress)
        return Answer(dataset, time.perf_counter() - begin)


def is_compiled() -> bool:
    """Whether machine code of this version's event loop is in the cache, or none is wanted."""
    from btqueue.simulator.compilation import cache_folder
    from btqueue.simulator.engine import advance

    plain_python = not hasattr(advance, "py_func")  # under NUMBA_DISABLE_JIT=1
    return plain_python or any(cache_folder().rglob("engine.advance-*.nbc"))


def compile_now(scenario: Scenario) -> None:
    """Run a moment of *scenario*, for which the event loop has to be compiled."""
    from btqueue.simulator.replications import run_replication

    run_replication(scenario.with_(run__duration_s=0.001, run__warmup_s=0.0), 0)


@contextmanager
def interrupt_held() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, then raise KeyboardInterrupt.

    LLVM calls back into Python while it compiles, and an exception in such a call would be lost: the command
    would go on as if nobody had interrupted it.
    """
    held: list[int] = []

    def hold(number: int, frame: object) -> None:
        held.append(number)
        say("stopping as soon as the compilation is done")

    before = signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


@contextmanager
def progress_bar(scenario: Scenario, *, quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """Yield a function that advances a bar on standard error; None if it is no terminal or *quiet*."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("simulating"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # How many replications a wanted precision takes is not known beforehand: the bar then has no end.
    total = None if scenario.run.precision else scenario.run.replications
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=total)
        yield lambda share: bar.advance(task, share)
