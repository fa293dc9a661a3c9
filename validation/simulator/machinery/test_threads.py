"""Jobs in threads: order, errors, and Ctrl-C at the moments at which it is hardest to handle."""

import os
import signal
import threading
import time
from functools import partial

import pytest

from btqueue.simulator.machinery.threads import Stopped, in_threads


def pieces(result, count, work):
    """A job of so many pieces, which returns early when told to stop."""
    for number in range(count):
        if number and (yield):
            break
        work()
    return result


def until_stopped(result):
    """A job that has no end of its own."""
    while not (yield):
        time.sleep(0.0001)
    return result


def test_results_come_in_the_order_of_the_jobs():
    jobs = (pieces(number, 1, partial(time.sleep, (3 - number) / 100)) for number in range(4))
    assert in_threads(jobs, threads=4) == [*range(4)]


@pytest.mark.parametrize(("jobs", "threads"), [(10, 4), (7, 4), (5, 4), (5, 2), (3, 4), (8, 4), (1, 2)])
def test_all_threads_are_busy_to_the_end(jobs, threads):
    """A piece ends only when every thread has one: a thread without a job would keep the others for ever."""
    together = threading.Barrier(min(jobs, threads))
    work = partial(together.wait, timeout=60)
    assert in_threads([pieces(number, 20, work) for number in range(jobs)], threads) == [*range(jobs)]


def test_an_error_stops_the_other_jobs():
    seen = []

    def fails():
        yield
        raise ArithmeticError("no")

    def goes_on():
        seen.append((yield from until_stopped("stopped")))

    with pytest.raises(ArithmeticError, match="no"):
        in_threads([goes_on(), fails()], threads=2)
    assert seen == ["stopped"]


@pytest.mark.parametrize("attempt", range(100))
def test_ctrl_c_in_the_first_moment_keeps_what_was_done(attempt):
    """The first job interrupts as soon as it runs, while threads are still being started."""

    def interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        return (yield from until_stopped("done"))

    with pytest.raises(Stopped) as stopped:
        in_threads([interrupts(), until_stopped("done"), until_stopped("done")], threads=2)
    assert 1 <= len(stopped.value.results) <= 3
    assert set(stopped.value.results) == {"done"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_is_not_held_back():
    def deaf():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        yield

    with pytest.raises(KeyboardInterrupt) as raised:
        in_threads([deaf()], threads=1)
    assert not isinstance(raised.value, Stopped)
