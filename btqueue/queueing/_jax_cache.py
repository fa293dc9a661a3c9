"""Room for JAX's compiled programs in a long process.

XLA keeps every compiled program in memory, some 50 MB for a large one. Each program also takes memory
mappings, of which Linux allows a process 65,530 (``vm.max_map_count``). A process that solves thousands of
systems of different shapes reaches this limit, and the next compilation ends it with a segmentation fault. So
memory and mappings are checked now and then. When too much of the allowance is taken, JAX's programs are
dropped; they are compiled again when next called.
"""

import ctypes
import gc
import os
from pathlib import Path

import jax
import jax.monitoring

COMPILED = "/jax/core/compile/backend_compile_duration"
LOOK_EVERY = 20  # programs: some 20 mappings each, so one look in 400 mappings or so
SHARE = 0.5  # of the mappings allowed, beyond which programs are dropped
SHARE_OF_MEMORY = 0.1  # of the machine's, that a process may take before its programs are dropped

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


def memory_taken() -> float:
    """Share of the machine's memory that this process takes; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) / os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0.0


def keep_room() -> None:
    """Drop JAX's programs if they have taken too much; looks after every 20 compilations."""
    global _since_last_look
    if _since_last_look < LOOK_EVERY:
        return
    _since_last_look = 0
    if mappings_taken() > SHARE or memory_taken() > SHARE_OF_MEMORY:
        jax.clear_caches()
        gc.collect()
        give_back_memory()


def give_back_memory() -> None:
    """Return to the system the memory that a compilation has freed (up to half a GB); glibc would keep it."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
