"""A long process keeps room for JAX's programs, and forgets none of its answers when it drops them."""

import numpy as np
import pytest

from btqueue.queueing import _compiled_programs as programs
from btqueue.queueing.token_bucket.token_bucket import token_bucket
from btqueue.queueing.traffic.arrivals import PoissonBatches


def loss(buffer: int) -> float:
    batches = PoissonBatches(20.0, np.array([0, 0, 0, 0, 0, 1.0]))
    return float(token_bucket(batches=batches, token_time=0.01, depth=9, buffer=buffer).packet_loss)


@pytest.mark.skipif(programs.mappings_taken() == 0.0, reason="the system does not say what is mapped")
def test_programs_are_dropped_when_they_take_too_much(monkeypatch: pytest.MonkeyPatch):
    buffers = (31, 33)
    before = [loss(buffer) for buffer in buffers]
    taken = programs.mappings_taken()
    monkeypatch.setattr(programs, "LOOK_EVERY", 1)
    monkeypatch.setattr(programs, "SHARE", 0.0)
    programs._count(programs.COMPILED, 0.0)
    programs.keep_room()
    assert programs.mappings_taken() < taken
    assert [loss(buffer) for buffer in buffers] == before


def test_nothing_is_dropped_while_there_is_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "LOOK_EVERY", 1)
    monkeypatch.setattr(programs.jax, "clear_caches", lambda: pytest.fail("dropped without need"))
    monkeypatch.setattr(programs, "mappings_taken", lambda: programs.SHARE)
    monkeypatch.setattr(programs, "memory_taken", lambda: programs.SHARE_OF_MEMORY)
    programs._count(programs.COMPILED, 0.0)
    programs.keep_room()


def test_programs_held_elsewhere_are_dropped_when_memory_is_short(monkeypatch: pytest.MonkeyPatch):
    held = {"a program": 1}
    monkeypatch.setattr(programs, "LOOK_EVERY", 1)
    monkeypatch.setattr(programs, "memory_taken", lambda: 2.0 * programs.SHARE_OF_MEMORY)
    monkeypatch.setattr(programs, "TO_CLEAR", [held.clear])
    monkeypatch.setattr(programs.jax, "clear_caches", lambda: None)
    programs._count(programs.COMPILED, 0.0)
    programs.keep_room()
    assert held == {}
