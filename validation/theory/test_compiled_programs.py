"""A long process keeps room for JAX's programs, and forgets none of its answers when it drops them."""

import jax.monitoring
import numpy as np
import pytest

from btqueue.queueing import _compiled_programs as programs
from btqueue.queueing.single.finite_queue import finite_queue
from btqueue.queueing.traffic.arrivals import PoissonBatches


def loss(capacity: int) -> float:
    batches = PoissonBatches(0.2, np.array([0, 0, 0, 0, 0, 1.0]))
    return float(finite_queue(arrivals=batches, service=np.array([0.0, 1.0]), capacity=capacity).packet_loss)


@pytest.mark.skipif(programs.mappings_taken() == 0.0, reason="the system does not say what is mapped")
def test_programs_are_dropped_when_they_take_too_much(monkeypatch: pytest.MonkeyPatch):
    capacities = (31, 33)
    before = [loss(capacity) for capacity in capacities]
    taken = programs.mappings_taken()
    monkeypatch.setattr(programs, "LOOK_EVERY", 1)
    monkeypatch.setattr(programs, "SHARE", 0.0)
    jax.monitoring.record_event_duration_secs(programs.COMPILED, 0.0)
    programs.keep_room()
    assert programs.mappings_taken() < taken
    assert [loss(capacity) for capacity in capacities] == before


def test_nothing_is_dropped_while_there_is_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "LOOK_EVERY", 1)
    monkeypatch.setattr(programs.jax, "clear_caches", lambda: pytest.fail("dropped without need"))
    monkeypatch.setattr(programs, "mappings_taken", lambda: programs.SHARE)
    monkeypatch.setattr(programs, "memory_taken", lambda: programs.SHARE_OF_MEMORY)
    jax.monitoring.record_event_duration_secs(programs.COMPILED, 0.0)
    programs.keep_room()
