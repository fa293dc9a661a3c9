"""Put random scenarios to both engines, each in a process that may hang or die without taking others along.

A parent draws the scenarios and hands them one by one to workers, which run this file as a script. The system
ends a worker that has used `CPU_S` seconds of processor time for one scenario; the parent ends one that has
not answered after `WALL_S`. Both are faults of that seed, and the rest goes on with a new worker.
"""

import json
import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import traceback
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

CPU_S = 30.0
"""Processor time that a scenario may take; compiling the models' largest program takes two thirds of it."""
WALL_S, STARTING_S = 240.0, 600.0
"""Time that it may take on a machine that has other things to do, and to start and compile."""
HERE = Path(__file__).resolve()
STARTED = "ready"


def write_files(folder: Path) -> dict[str, list[str]]:
    """Write a trace of each kind and arrivals; return the names for the keys that want a file."""
    folder.mkdir(parents=True, exist_ok=True)
    trace, arrivals = folder / "trace.txt", folder / "arrivals.txt"
    trace.write_text("0\n1e-5\n0.001\n0.5\n0\n")
    arrivals.write_text("0.0 100\n0.1 3000\n0.1 20\n0.7 9000\n")
    return {"trace_file": [str(trace)], "arrival_file": [str(arrivals)]}


# ----------------------------------------------------------------------------------------------------- worker


def judge(fuzzed) -> dict[str, Any]:
    """Put one scenario to its engines; return what came out, and what should not have."""
    from btqueue.scenario import Scenario, ScenarioError

    try:
        scenario = Scenario.from_dict(fuzzed.data)
    except ScenarioError as error:
        return {"read": "refused", "faults": refusal_faults(error, fuzzed.damaged)}
    if fuzzed.damaged and not fuzzed.damaged.startswith("?"):
        return {"read": "taken", "faults": [f"{fuzzed.damaged} is damaged, and nobody said so"]}
    answers = {engine: ask(engine, scenario) for engine in fuzzed.engines}
    faults = [fault for one in answers.values() for fault in one["faults"]]
    datasets = [one["dataset"] for one in answers.values() if "dataset" in one]
    if len(datasets) == 2:
        faults += report_faults(scenario, *datasets)
    return {"read": "taken", **{name: one["outcome"] for name, one in answers.items()}, "faults": faults}


def refusal_faults(error, damaged: str) -> list[str]:
    """Return what is wrong with a refusal: of a right scenario, or one that does not name the damaged key."""
    if not damaged:
        return [f"a right scenario is refused: {error}"]
    keys = [problem.key for problem in error.problems]
    key = damaged.removeprefix("?")
    if damaged.startswith("?") or any(one.startswith(key) for one in keys):
        return []
    return [f"{key} is damaged, and the message is about {', '.join(keys)}"]


def ask(engine: str, scenario) -> dict[str, Any]:
    """Solve or simulate; a violated invariant is a fault of the simulator, which has lost count."""
    from impossible_metrics import impossible

    from btqueue import network, simulator
    from btqueue.scenario import NotBuiltYet, ScenarioError

    try:
        dataset = network.solve(scenario) if engine == "solve" else simulator.simulate(scenario, threads=1)
    except NotBuiltYet:
        return {"outcome": "not built", "faults": []}
    except (network.NoConvergence, network.ImpossibleAnswer) as error:
        return {"outcome": f"no answer: {error}"[:200], "faults": []}
    except ScenarioError as error:
        return {"outcome": f"refused: {error}"[:200], "faults": []}
    except Exception as error:
        return {"outcome": "foreign exception", "faults": [f"{engine}: {described(error)}"]}
    faults = [f"{engine}: {found}" for found in impossible(scenario, dataset)]
    return {"outcome": "answered", "faults": faults, "dataset": dataset}


def report_faults(scenario, solved, simulated) -> list[str]:
    """Lay two answers side by side and write them as JSON; return what goes wrong."""
    from btqueue.cli.documents import document
    from btqueue.cli.engines import Answer
    from btqueue.study import side_by_side

    try:
        side_by_side(scenario, solved, simulated)
        content = document(scenario, solved=Answer(solved, 0.0), simulated=Answer(simulated, 0.0))
        json.dumps(content, allow_nan=False)
    except Exception as error:
        return [f"compare: {described(error)}"]
    return []


def described(error: Exception) -> str:
    """Return an exception with the place in btqueue that it comes from."""
    places = [f for f in traceback.extract_tb(error.__traceback__) if "btqueue" in f.filename]
    place = f" at {Path(places[-1].filename).name}:{places[-1].lineno}" if places else ""
    return f"{type(error).__name__}: {error}"[:300] + place


def compile_all() -> None:
    """Compile the simulator, and what theory has: once for a version, and no matter of a scenario's."""
    from btqueue.cli.engines import compile_now
    from btqueue.network import solve
    from btqueue.scenario import Scenario, load

    compile_now(Scenario())
    solve(load("venugopal-2006/piconet"))  # one connection is sampled


def serve() -> None:
    """Answer scenarios, each in a line of its own, by lines of JSON until there are no more."""
    from btqueue.cli.engines import keep_compiled_models

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed is no answer
    keep_compiled_models()
    compile_all()
    warnings.simplefilter("error")
    print(json.dumps(STARTED), file=answers, flush=True)
    for line in sys.stdin:
        try:
            fuzzed = pickle.loads(b64decode(line))
            # the signal ends the process, wherever it is
            signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))
            found = judge(fuzzed)
        except KeyboardInterrupt:
            found = {"read": "interrupted", "faults": []}
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(found), file=answers, flush=True)


# ----------------------------------------------------------------------------------------------------- parent


class Worker:
    """A process that judges scenarios one by one, each by a deadline; started anew when it has ended."""

    def __init__(self, cpu_s: float = CPU_S) -> None:
        """Start nothing yet; a scenario may take so much processor time (s)."""
        self.cpu_s = cpu_s
        self.process: subprocess.Popen[str] | None = None

    def answer(self, fuzzed, interrupt_s: float | None = None) -> dict[str, Any]:
        """Return what a process says, or how it ended; after `interrupt_s` it gets one Ctrl-C."""
        if self.process is None or self.process.poll() is not None:
            self.close()
            pipe, command = subprocess.PIPE, [sys.executable, str(HERE), str(self.cpu_s)]
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
            if self._line(STARTING_S) != json.dumps(STARTED):
                raise RuntimeError("a process does not start")
        assert self.process.stdin
        with suppress(BrokenPipeError):
            self.process.stdin.write(b64encode(pickle.dumps(fuzzed)).decode() + "\n")
            self.process.stdin.flush()
        line = self._line(interrupt_s or WALL_S)
        if line is None and interrupt_s:
            self.process.send_signal(signal.SIGINT)
            line = self._line(WALL_S)
        if line:
            return json.loads(line)
        code = None if line is None else self.process.wait()
        self.close()
        if code is None:
            return {"read": "hang", "faults": [f"no answer in {WALL_S:g} s"]}
        if code == -signal.SIGPROF:
            return {"read": "hang", "faults": [f"no answer in {self.cpu_s:g} s of processor time"]}
        return {"read": "died", "faults": [f"the process ended with {code}"]}

    def _line(self, timeout_s: float) -> str | None:
        """Return the next line; None if there is none in time, empty if the process has ended."""
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        return self.process.stdout.readline().rstrip("\n") if ready else None

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def fuzz(
    numbers: range, files: dict[str, list[str]], processes: int = 1
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the scenario of each seed with what came out."""
    from any_scenario import drawn

    workers: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for _ in range(processes):
        workers.put(Worker())

    def judged(fuzzed: Any) -> tuple[Any, dict[str, Any]]:
        worker = workers.get()
        try:
            return fuzzed, worker.answer(fuzzed)
        finally:
            workers.put(worker)

    try:
        with ThreadPoolExecutor(processes) as threads:
            yield from threads.map(judged, (drawn(number, files) for number in numbers))
    finally:
        for _ in range(processes):
            workers.get().close()


if __name__ == "__main__":
    serve()
