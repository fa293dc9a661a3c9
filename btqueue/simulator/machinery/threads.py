"""Jobs in threads that Ctrl-C stops, with nothing lost that they had done."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from heapq import heappop, heappushpop
from typing import Any

LOOK_EVERY_S = 0.1
"""Time (s) after which the main thread looks for Ctrl-C while it waits."""


class Stop:
    """Whether jobs shall stop; without a lock, so that a signal handler may set it anywhere."""

    def __init__(self) -> None:
        """Start with no."""
        self.wanted = False


class Stopped(KeyboardInterrupt):
    """Ctrl-C came while jobs were under way; `results` are the results of the jobs begun, in order."""

    def __init__(self, results: Any) -> None:
        """Keep the results."""
        super().__init__("interrupted")
        self.results = results


Job = Generator[None, bool | None, Any]
"""Yields between two pieces of its work, to be told whether to stop. It may go on in another thread."""


Progress = Callable[[float], None]
"""Called with the share of the work done since the last call, in replications."""


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Return threads that are kept: starting two takes 0.2 ms of CPU, a part of a short simulation's own.

    A process that was forked has none of the threads of its parent: each has a pool by its number.
    """
    return ThreadPoolExecutor(threads, thread_name_prefix="btqueue")


def to_the_end(job: Job) -> Any:
    """Run a job to its end and return its result."""
    while True:
        try:
            next(job)
        except StopIteration as end:
            return end.value


def in_threads(jobs: Iterable[Job], threads: int) -> list[Any]:
    """Run the jobs and return their results, in order; the calling thread does its share.

    The last jobs, too few to fill all threads alike, take turns, the job with fewest pieces done first, so
    that all end at about the same time: ten jobs keep four threads busy for as long as 2.5 jobs take, not 3.

    A second Ctrl-C interrupts at once, as the first would have done without this function.

    Raises:
        Stopped: by Ctrl-C, once the jobs that were begun have noticed.
    """
    stop, failed = Stop(), Stop()
    results: dict[int, Any] = {}
    waiting = [(0, place, job) for place, job in enumerate(jobs)]  # a heap, whose steps are atomic
    count = len(waiting)

    def work() -> None:
        while True:
            try:
                pieces, place, job = heappop(waiting)
            except IndexError:
                return
            try:
                play(pieces, place, job)
            except BaseException:
                failed.wanted = True  # the others need not go on
                raise

    def play(pieces: int, place: int, job: Job) -> None:
        while pieces or not (stop.wanted or failed.wanted):
            try:
                job.send((stop.wanted or failed.wanted) if pieces else None)
            except StopIteration as end:
                results[place] = end.value
                break
            pieces += 1
            if count - len(results) < 2 * threads:
                pieces, place, job = heappushpop(waiting, (pieces, place, job))

    with interrupt_stops(stop):
        more = min(threads, count) - 1
        futures = [_pool(threads - 1, os.getpid()).submit(work) for _ in range(more)]
        try:
            work()
        finally:
            left: Iterable[Future[None]] = futures
            while left:  # not for ever: a signal just before the main thread blocks would not wake it
                left = wait(left, timeout=LOOK_EVERY_S).not_done
        for future in futures:
            future.result()
    in_order = [results[place] for place in sorted(results)]
    if stop.wanted:
        raise Stopped(in_order)
    return in_order


@contextmanager
def interrupt_stops(stop: Stop) -> Iterator[None]:
    """Let the first Ctrl-C set `stop` and raise nothing.

    A KeyboardInterrupt can come between any two steps of the main thread, also while it holds the lock of a
    future or starts a thread, and then the pool waits forever or loses a result.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def note(number: int, frame: Any) -> None:
        first, stop.wanted = not stop.wanted, True
        try:
            before(number, frame)
        except KeyboardInterrupt:
            if not first:
                raise

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # unless `before` put another one in its place
            signal.signal(signal.SIGINT, before)
