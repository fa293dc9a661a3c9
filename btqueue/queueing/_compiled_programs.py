"""Room for JAX's compiled programs in a long process.

XLA keeps every program it has compiled in memory mappings of its own, and Linux allows a process 65,530
of them (``vm.max_map_count``). One that solves thousands of systems of different shapes gets there, and
the next compilation ends it with a segmentation fault. So the mappings are counted now and then, and when
half of what is allowed is taken, JAX's programs are dropped; they are compiled again when next called.
"""

import gc
from pathlib import Path

import jax
import jax.monitoring

COMPILED = "/jax/core/compile/backend_compile_duration"
LOOK_EVERY = 200  # programs: some 20 mappings each, so one look in 4,000 mappings or so
SHARE = 0.5  # of the mappings allowed, beyond which programs are dropped

_since_last_look = 0


def _count(event: str, duration_secs: float, **kwargs: str | int) -> None:
    global _since_last_look
    _since_last_look += event == COMPILED


jax.monitoring.register_event_duration_secs_listener(_count)


def mappings_taken() -> float:
    """Share of the memory mappings that this process may have and has; 0 where the system does not say."""
    try:
        allowed = int(Path("/proc/sys/vm/max_map_count").read_text())
        with open("/proc/self/maps", "rb") as maps:
            return sum(1 for _ in maps) / allowed
    except OSError:
        return 0.0


def keep_room() -> None:
    """Drop JAX's programs if they have taken half of the mappings; looks after every 200 compilations."""
    global _since_last_look
    if _since_last_look < LOOK_EVERY:
        return
    _since_last_look = 0
    if mappings_taken() > SHARE:
        jax.clear_caches()
        gc.collect()
