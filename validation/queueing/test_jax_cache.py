"""A long process keeps room for JAX's programs, and forgets none of its answers when it drops them."""

import subprocess
import sys

import jax.monitoring
import pytest

from btqueue.queueing import _jax_cache as programs

DROPPED = """
import jax.monitoring
import numpy as np
from btqueue.queueing import _jax_cache as programs
from btqueue.queueing.polling.model import polling_model
from btqueue.queueing.polling.polling import solve_polling

def wait():
    two = polling_model(
        arrival_rate=[0.02, 0.01], service_mean=6, service_second=36, switch_mean=2, switch_second=4
    )
    found = solve_polling(two).mean_wait
    assert found.dtype == np.float64 and jax.numpy.zeros(1).dtype == np.float32
    return float(found[0])

before, taken = wait(), programs.mappings_taken()
programs.LOOK_EVERY, programs.SHARE = 1, 0.0
jax.monitoring.record_event_duration_secs(programs.COMPILED, 0.0)
programs.keep_room()
assert programs.mappings_taken() < taken
assert wait() == before
"""
"""In a process of its own: other tests go on with the programs of theirs."""


@pytest.mark.long
@pytest.mark.skipif(programs.mappings_taken() == 0.0, reason="the system does not say what is mapped")
def test_an_answer_is_the_same_when_its_program_was_dropped():
    subprocess.run([sys.executable, "-c", DROPPED], check=True)


@pytest.mark.parametrize(("mappings", "memory", "times"), [(1.0, 1.0, 0), (1.01, 1.0, 1), (1.0, 1.01, 1)])
def test_programs_are_dropped_when_they_take_too_much_and_not_before(monkeypatch, mappings, memory, times):
    dropped: list[int] = []
    monkeypatch.setattr(programs, "LOOK_EVERY", 1)
    monkeypatch.setattr(programs.jax, "clear_caches", lambda: dropped.append(1))
    monkeypatch.setattr(programs, "mappings_taken", lambda: mappings * programs.SHARE)
    monkeypatch.setattr(programs, "memory_taken", lambda: memory * programs.SHARE_OF_MEMORY)
    jax.monitoring.record_event_duration_secs(programs.COMPILED, 0.0)
    programs.keep_room()
    assert len(dropped) == times
