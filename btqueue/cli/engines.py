"""Call the solver and the simulator as a command does: timed, with progress and a word about compilation."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from btqueue.caches import cache_folder
from btqueue.cli.errors import say
from btqueue.cli.files import INTERRUPTED_MARK
from btqueue.interrupts import interrupt_held
from btqueue.progress_bars import bars
from btqueue.scenario import Scenario
from btqueue.scenario.errors import Problem
from btqueue.scenario.metrics import Results

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.study.checked_answers import Check

COMPILING = "about half a minute"
"""How long the simulator compiles on a machine of today."""


@dataclass(frozen=True)
class Answer:
    """An engine's results, the seconds that it took, and how far it came if it was interrupted.

    `compiling_s`: the seconds that it took to compile before, which are not among them.
    """

    results: Results
    wall_s: float
    interrupted: str = ""
    compiling_s: float = 0.0

    def marked(self, dataset: xr.Dataset | None = None) -> xr.Dataset:
        """Return the results, or a dataset made from them, with a mark if the engine was interrupted."""
        written = self.results.to_dataset() if dataset is None else dataset
        return written.assign_attrs({INTERRUPTED_MARK: self.interrupted}) if self.interrupted else written


def run_hints(scenario: Scenario, *, simulated: bool = True, quiet: bool) -> tuple[Problem, ...]:
    """Say hints at keys before a run, and return them; only the simulator reads keys of ``[run]``."""
    keep_compiled_models()
    from btqueue.network.hints import hints

    found = tuple(hint for hint in hints(scenario) if simulated or not hint.key.startswith("run."))
    for hint in () if quiet else found:
        say(f"hint: {hint.message}")
    return found


def run_solver(scenario: Scenario) -> Answer:
    """Solve; the time is without compilation."""
    keep_compiled_models()
    from btqueue.network import solve
    from btqueue.network.numba_cache import Loop

    begin, before_s = time.perf_counter(), Loop.compiling_s
    results = solve(scenario)
    compiling_s = Loop.compiling_s - before_s
    return Answer(results, time.perf_counter() - begin - compiling_s, compiling_s=compiling_s)


def keep_compiled_models() -> None:
    """Let JAX keep compiled models on disk between commands, unless the user has set this already.

    Only the command line does so: in a user's own process JAX's configuration is the user's.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        digest = hashlib.sha256(version("jaxlib").encode()).hexdigest()[:16]
        folder = cache_folder("jax", digest)
        if folder.is_dir():
            os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")


def run_simulator(
    scenario: Scenario, *, threads: int | None, quiet: bool, device: Literal["cpu", "gpu"] = "cpu"
) -> Answer:
    """Compile the simulator if that was not done yet, then simulate; the time is without compilation.

    After Ctrl-C the answer holds the measurements up to then, if there are any, and says so in `interrupted`.
    """
    from btqueue.simulator import simulate
    from btqueue.simulator.scope import require_simulated

    require_simulated(scenario)

    prepare_simulator(scenario, quiet=quiet)
    if device == "gpu" and not quiet:
        say("the first use of a version on a GPU compiles it for a few minutes")
    begin = time.perf_counter()
    try:
        with bars(quiet=quiet) as bar:
            run = scenario.run
            progress = bar("simulating", total=run.replications if run.precision is None else None)
            results = simulate(scenario, threads=threads, progress=progress, device=device)
    except KeyboardInterrupt as interruption:
        partial = getattr(interruption, "results", None)
        if partial is None:
            raise
        return Answer(partial, time.perf_counter() - begin, how_far(partial))
    return Answer(results, time.perf_counter() - begin)


def prepare_simulator(scenario: Scenario, *, quiet: bool) -> None:
    """Compile the simulator if that was not done yet."""
    if not is_compiled():
        if not quiet:
            say(f"compiling the simulator, once for this version: {COMPILING}")
        with interrupt_held():
            compile_now(scenario)


def how_far(partial: Results) -> str:
    """Say in words how much an interrupted simulation has measured."""
    wanted, finished = partial.attrs["wanted"], partial.attrs["finished"]
    if finished:
        return f"{finished} of {wanted} replications"
    measured = partial.variables["measured_s"].values
    return (
        f"none of {wanted} replications; {len(measured)} cut short, "
        f"{measured.min():.3g} to {measured.max():.3g} s"
    )


def is_compiled() -> bool:
    """Whether machine code of this version's event loop is in the cache, or none is wanted."""
    from btqueue.network.numba_cache import interpreted
    from btqueue.simulator.machinery.code_cache import code_file

    return interpreted() or code_file("btqueue.simulator.engine.advance", str(("State", "int"))).is_file()


def run_check(scenario: Scenario, solved: Answer, check: bool | None, *, quiet: bool) -> Check | str | None:
    """Check an answer of theory by a short simulation, or say why it is not checked; None if not wanted.

    If the user says nothing (*check* is None), the check is made where the simulator is compiled already.
    """
    if check is False:
        return None
    from btqueue.network.numba_cache import interpreted
    from btqueue.scenario import ScenarioError
    from btqueue.study.checked_answers import check_answer
    from btqueue.study.summary import summarise

    if check is None and interpreted():
        return "not checked: compilation is switched off, and uncompiled it takes minutes (--check)"
    if check is None and not is_compiled():
        return f"not checked: the simulator compiles once, {COMPILING} (--check)"
    prepare_simulator(scenario, quiet=quiet)
    try:
        return check_answer(scenario, summarise(solved.results))
    except ScenarioError as error:
        return f"not checked: {error}"


def compile_now(scenario: Scenario) -> None:
    """Run a moment of *scenario*, for which the event loop has to be compiled."""
    from btqueue.simulator.replications import run_replication

    run_replication(scenario.with_(run__duration_s=0.001, run__warmup_s=0.0), 0)
