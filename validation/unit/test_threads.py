"""Jobs in threads: order, errors, and Ctrl-C at the moments at which it is hardest to handle."""

import os
import signal
import time

import pytest

from btqueue.simulator.machinery.threads import Stopped, in_threads


def test_results_come_in_the_order_of_the_jobs():
    def job(number):
        def run(stop):
            time.sleep((3 - number) / 100)
            return number

        return run

    assert in_threads([job(n) for n in range(4)], threads=4) == [0, 1, 2, 3]


def test_an_error_stops_the_other_jobs():
    seen = []

    def fails(stop):
        raise ArithmeticError("no")

    def goes_on(stop):
        while not stop.wanted:
            time.sleep(0.001)
        seen.append("stopped")

    with pytest.raises(ArithmeticError, match="no"):
        in_threads([goes_on, fails], threads=2)
    assert seen == ["stopped"]


@pytest.mark.parametrize("attempt", range(100))
def test_ctrl_c_in_the_first_moment_keeps_what_was_done(attempt):
    """The first job interrupts as soon as it runs, while threads are still being started."""

    def interrupts(stop):
        os.kill(os.getpid(), signal.SIGINT)
        while not stop.wanted:
            time.sleep(0.0001)
        return "done"

    def waits(stop):
        while not stop.wanted:
            time.sleep(0.0001)
        return "done"

    with pytest.raises(Stopped) as stopped:
        in_threads([interrupts, waits, waits], threads=2)
    assert 1 <= len(stopped.value.results) <= 2
    assert set(stopped.value.results) == {"done"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_is_not_held_back():
    def deaf(stop):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    with pytest.raises(KeyboardInterrupt) as raised:
        in_threads([deaf], threads=1)
    assert not isinstance(raised.value, Stopped)
