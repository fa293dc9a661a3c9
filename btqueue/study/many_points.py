"""Many points of a study: in this process, in several, or on a cluster.

On a cluster dask.distributed (extra `cluster`) sends out the same work as goes to own processes.

Workers are started from scratch, not forked: JAX starts threads, and a fork of a process with threads may
stand still forever. They do not import the user's main program, so a script needs no guard, and no module of
the working directory. A worker that dies loses one point, and its number is known. When the parent dies, its
workers end at once.
"""

import contextlib
import itertools
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, NamedTuple

from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.expressions import Quantity
from btqueue.simulator.traces.extras import require
from btqueue.study.evaluate import (
    Answer,
    Engine,
    Failure,
    PointResult,
    available_cores,
    environment,
    evaluate,
    failure_of,
)  # fmt: skip
from btqueue.study.points import Numbered
from btqueue.study.provenance import versions

ATTEMPTS = 2
"""How often a point is tried whose process dies."""
COMMAND = (sys.executable, "-c", "from btqueue.study.many_points import serve; serve()")


class Question(NamedTuple):
    """The question about every point, without its changes: see `map_points`."""

    base: Scenario
    engines: tuple[Engine, ...]
    metrics: tuple[str, ...]
    quantities: tuple[Quantity, ...] = ()

    def answer(self, number: int, changes: Mapping[str, Any], threads: int | None) -> PointResult:
        """Return the answers at a point; "solve" beside "simulate" is theory alone."""
        try:
            scenario = self.base.changed(changes) if changes else self.base
        except ScenarioError as error:
            return self.failed(number, failure_of(error))
        alone: Engine = "theory" if "simulate" in self.engines else "solve"
        found: dict[Engine, Answer] = {}
        for engine in self.engines:
            asked = alone if engine == "solve" else engine
            answer = evaluate(scenario, asked, threads=threads, metrics=self.metrics)
            found[engine] = answer.with_quantities(self.quantities)
        return PointResult(number, found)

    def failed(self, number: int, failure: Failure) -> PointResult:
        """Return a point that no engine could be asked about."""
        return PointResult(number, dict.fromkeys(self.engines, Answer(failure=failure)))


class WorkerDied(Exception):
    """The process of a worker has ended; the message says how."""


class Worker:
    """A process that evaluates one point after the other; used by one thread."""

    def __init__(self, question: Question, threads: int) -> None:
        """Start the process; it gets ready while the caller goes on."""
        theirs = environment()
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"OPENBLAS_NUM_THREADS": "1"} | os.environ | theirs,  # the processes share the cores
            start_new_session=True,  # Ctrl-C is for the process that asked
        )
        questions, answers = self.process.stdin, self.process.stdout
        assert questions is not None and answers is not None  # both are pipes
        self._questions, self._answers = questions, answers
        self._greeting = (question, threads)

    def evaluate(self, number: int, changes: Mapping[str, Any]) -> PointResult:
        """Return the answers at a point.

        Raises:
            WorkerDied: the process has ended before it answered.
        """
        try:
            if self._greeting is not None:
                pickle.dump(self._greeting, self._questions)
                self._greeting = None
            pickle.dump((number, dict(changes)), self._questions)
            self._questions.flush()
            return pickle.load(self._answers)
        except (EOFError, OSError, pickle.UnpicklingError):
            self.end()
            code, how = self.process.returncode, f"ended with exit code {self.process.returncode}"
            if code < 0:
                how = f"was ended by signal {-code} ({signal.Signals(-code).name})"
            raise WorkerDied(f"its process {how}") from None

    def end(self) -> None:
        """End the process, whatever it does."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.1)  # one that died by itself tells how
        self.process.kill()
        self.process.wait()
        for stream in (self._questions, self._answers):
            with contextlib.suppress(OSError):
                stream.close()


def map_in_processes(
    question: Question, points: Numbered, numbers: Sequence[int], workers: int
) -> Generator[PointResult]:
    """Yield the points as they are finished; see `btqueue.study.many_points.map_points`."""
    threads = available_cores() if "simulate" in question.engines else 1
    pool, lock, stopping = ThreadPoolExecutor(workers), threading.Lock(), threading.Event()
    idle, running = list[Worker](), set[Worker]()

    def ask(number: int) -> PointResult:
        death: WorkerDied | None = None
        for _ in range(ATTEMPTS):
            with lock:
                if stopping.is_set():
                    raise CancelledError
                worker = idle.pop() if idle else Worker(question, threads)
                running.add(worker)
            try:
                result = worker.evaluate(number, points[number])
            except WorkerDied as error:
                death = error
            else:
                idle.append(worker)
                return result
        why = f"{death}, {ATTEMPTS} times in a row"
        return question.failed(number, Failure("worker", why))

    try:
        for _, future in as_finished(partial(pool.submit, ask), numbers, ahead=workers):
            yield future.result()
    finally:
        with lock:
            stopping.set()
            for worker in running:
                worker.process.kill()
        pool.shutdown(cancel_futures=True)
        for worker in running:
            worker.end()


def as_finished(
    submit: Callable[[int], Future[PointResult]], numbers: Sequence[int], *, ahead: int
) -> Iterator[tuple[int, Future[PointResult]]]:
    """Yield points by number as they are finished; *ahead* of them are sent before the first comes back."""
    todo = iter(numbers)
    under_way = {submit(number): number for number in itertools.islice(todo, ahead)}
    while under_way:
        for future in wait(under_way, return_when=FIRST_COMPLETED).done:
            finished = under_way.pop(future)
            under_way |= {submit(number): number for number in itertools.islice(todo, 1)}
            yield finished, future


def serve() -> None:
    """Be a worker: read the scenario, then points from standard input, until its end."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anybody prints must not stand between answers
    questions: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions,), daemon=True).start()
    with _ending_the_process():
        question, threads = questions.get()
        while True:
            number, changes = questions.get()
            pickle.dump(question.answer(number, changes, threads), answers)
            answers.flush()


def _listen(questions: queue.SimpleQueue[Any]) -> None:
    """Hand on the points from standard input; it ends in the middle of a point if the parent has died."""
    with _ending_the_process():
        while True:
            questions.put(pickle.load(sys.stdin.buffer))


@contextlib.contextmanager
def _ending_the_process() -> Iterator[None]:
    """End the process with the block: in silence if nobody is at the other end of the pipes."""
    try:
        yield
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


AHEAD = 4
"""Points sent out for each thread of the cluster before the first of them has come back."""


class ClusterError(ValueError):
    """The cluster cannot be used; the message says why."""


def map_on_cluster(
    question: Question, points: Numbered, numbers: Sequence[int], cluster: str
) -> Generator[PointResult]:
    """Yield the points as the cluster finishes them; see `btqueue.study.many_points.map_points`.

    A point whose worker dies is sent to another one; how often, the scheduler decides.

    Raises:
        MissingPackage: dask.distributed is not installed.
        ClusterError: there is no scheduler at that address, or a worker has other versions than this process,
            so that its numbers could differ.
    """
    distributed = require("distributed", "sweeps on a cluster", "cluster")
    try:
        client = distributed.Client(cluster, timeout=10, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(f"--cluster {cluster}: no dask scheduler answers there ({error})") from None
    with client:
        known, executor = versions(), client.get_executor(pure=False)

        def submit(number: int) -> Future[PointResult]:
            return executor.submit(evaluate_elsewhere, question, number, dict(points[number]), known)

        ahead = AHEAD * max(1, sum(client.nthreads().values()))
        for number, future in as_finished(submit, numbers, ahead=ahead):
            try:  # a result that was lost with its worker is waited for until another one has computed it
                yield future.result()
            except distributed.KilledWorker:
                failure = Failure("worker", "the workers that it was sent to have died")
                yield question.failed(number, failure)
            except CancelledError:
                why = "the cluster was lost; finished points are kept if there is a file"
                raise ClusterError(why) from None


def evaluate_elsewhere(
    question: Question, number: int, changes: Mapping[str, Any], known: Mapping[str, str]
) -> PointResult:
    """Evaluate a point in a worker of a cluster.

    Raises:
        ClusterError: the worker has other versions than the process that asks.
    """
    here = versions()
    if different := [
        f"{name} {here.get(name)}, not {known[name]}" for name in known if here.get(name) != known[name]
    ]:
        raise ClusterError(f"a worker of the cluster has {', '.join(different)}: results could differ")
    return question.answer(number, changes, 1)


FEW, ALONE_S = 200, 3.0
"""Number of points up to which one process evaluates them, until that has taken `ALONE_S` seconds."""


def map_points(
    base: Scenario,
    points: Numbered,
    *,
    engines: Sequence[Engine] = ("solve",),
    workers: int | None = None,
    numbers: Sequence[int] | None = None,
    cluster: str | None = None,
    metrics: Sequence[str] = (),
    quantities: Sequence[Quantity] = (),
) -> Generator[PointResult]:
    """Evaluate many points and yield them as they are finished, in any order.

    Args:
        base: the scenario that the points change.
        points: changes by dotted key; `points[number]` is asked for as late as possible.
        engines: which to run.
        workers: processes at once; 1: this process alone. By default one for each core; of up to `FEW`
            points the first are evaluated in this process, because starting others takes seconds.
        numbers: which of the points; all by default.
        cluster: address of a dask scheduler ("tcp://host:8786"), in place of own processes.
        metrics: that every answer by "solve" is to have; see `btqueue.study.evaluate.theory_or_simulation`.
        quantities: that are added to the metrics of every answer.

    A point whose process dies is tried once more, then it is a failure of kind "worker". Closing the iterator
    (or Ctrl-C) ends all processes; results do not depend on where or in which order points are evaluated.

    Raises:
        KeyboardInterrupt: by Ctrl-C; the points yielded before stay valid.
    """
    wanted = range(len(points)) if numbers is None else numbers
    question = Question(base, tuple(engines), tuple(metrics), tuple(quantities))
    if cluster is not None:
        return map_on_cluster(question, points, wanted, cluster)
    return _on_this_machine(question, points, wanted, workers)


def _on_this_machine(
    question: Question, points: Numbered, numbers: Sequence[int], workers: int | None
) -> Generator[PointResult]:
    """Yield points of several processes, or of this one: alone, or at first, for starting takes seconds."""
    few, began = workers is None and len(numbers) <= FEW, math.inf
    for place, number in enumerate(numbers):
        most = min(len(numbers) - place, workers or available_cores())
        if most > 1 and (not few or time.monotonic() - began > ALONE_S):
            yield from map_in_processes(question, points, numbers[place:], most)
            return
        yield question.answer(number, points[number], None)
        began = min(began, time.monotonic())  # the first point is spent on imports and compilation
