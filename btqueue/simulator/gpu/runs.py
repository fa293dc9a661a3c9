"""Replications on a GPU: states are copied there, played by the same event loop, copied back and measured.

Each replication is a thread. One that runs short of packets, segments or messages stops; its pools grow on
the CPU, exactly as they do there, and it goes on.

All arithmetic, of whole and of floating-point numbers, is equal to the CPU bit for bit. Only results of
`log`, `log1p`, `exp` and powers may differ. They are accurate to about one unit in the last place on both
sides, but the last place may differ. A time drawn from the exponential law is cut to whole nanoseconds and
differs once in some hundred million draws; from then on this replication is another sample of the same law.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from btqueue.scenario import Scenario
from btqueue.simulator.construction.state import grow, new_state
from btqueue.simulator.engine import NEEDS_SPACE, REACHED
from btqueue.simulator.machinery.threads import Progress, Stopped
from btqueue.simulator.records.arrays import Packed, State, pack
from btqueue.simulator.records.conventions import SECOND
from btqueue.simulator.statistics.backlog import plan_looks
from btqueue.simulator.statistics.results import Replication, finish

CHUNK_S = 20.0
"""Simulated seconds between two looks at the progress bar and at Ctrl-C."""

INSTALL = 'install it with: pip install "btqueue[gpu]" (CUDA 12)'


class GpuUnavailable(RuntimeError):
    """There is no GPU that the simulator can use; the message gives the reason."""


def run_replications(
    scenario: Scenario, numbers: Sequence[int], warmup_s: float, progress: Progress | None = None
) -> list[Replication]:
    """Run the replications of these numbers on the GPU, all at once, and return them in order.

    Raises:
        Stopped: by Ctrl-C, with the counts of each replication by then, None in the warm-up.
        GpuUnavailable: numba-cuda or a GPU is missing.
        InvariantViolated: the simulator's counts are inconsistent (a bug).
    """
    target = open_gpu()
    with np.errstate(over="ignore"):
        total_s = warmup_s + scenario.run.duration_s
        begun = [new_state(scenario, number) for number in numbers]
        for sim in begun:
            plan_looks(sim, round(warmup_s * SECOND), total_s)
        on_gpu = StatesOnGpu(target, begun)
        complete = run_until(on_gpu, total_s, progress)
        measured = [finish(on_gpu.fetch(index), complete) for index in range(len(begun))]
    if not complete:
        raise Stopped(measured)
    return [one for one in measured if one is not None]


def open_gpu() -> Any:
    """Return the module that runs the kernel, once there is a GPU to run it on.

    Raises:
        GpuUnavailable: numba-cuda or a GPU is missing.
    """
    try:
        from btqueue.simulator.gpu import kernel
    except (ImportError, AttributeError) as error:  # the latter: a NumPy newer than numba-cuda knows
        raise GpuUnavailable(f"numba's CUDA target does not work here ({error}); {INSTALL}") from error
    if kernel.SIMULATED:
        return kernel
    cuda = kernel.cuda
    if cuda.implementation == "Built-in":
        raise GpuUnavailable(f"the package numba-cuda is missing; {INSTALL}")
    if not cuda.is_available():
        raise GpuUnavailable(f"no CUDA device was found ({cuda.cuda_error()}); use the CPU")
    return kernel


def run_until(on_gpu: "StatesOnGpu", end_s: float, progress: Progress | None) -> bool:
    """Advance all replications to `end_s`, chunk by chunk; return False if Ctrl-C stopped them before."""
    start_s = on_gpu.now / SECOND
    count = max(1, math.ceil((end_s - start_s) / CHUNK_S))
    for step in range(1, count + 1):
        before, until = on_gpu.now, round((start_s + (end_s - start_s) * step / count) * SECOND)
        try:
            on_gpu.advance(until)
        except KeyboardInterrupt:
            on_gpu.advance(until)  # no metric can be measured in the middle of an event
            return False
        if progress is not None:
            progress(len(on_gpu.tables) * (until - before) / SECOND / end_s)
    return True


class StatesOnGpu:
    """The states of some replications, in the GPU's memory."""

    def __init__(self, target: Any, states: Sequence[State]) -> None:
        """Copy the states, all of them at time 0, to the GPU."""
        self.target = target
        self.now = 0
        sent = [target.send(pack(sim.arrays())) for sim in states]
        self.packed: list[Packed] = [packed for packed, _ in sent]
        self.tables: list[Any] = [table for _, table in sent]

    def fetch(self, index: int) -> State:
        """Copy one state back."""
        return State(self.target.fetch(self.packed[index]))

    def advance(self, until: int) -> None:
        """Play all replications up to `until` (ns), with larger pools where needed."""
        while np.any((reasons := self.target.launch(self.tables, until)) != REACHED):
            for index in map(int, np.flatnonzero(reasons == NEEDS_SPACE)):
                larger = pack(grow(self.fetch(index)).arrays())
                self.packed[index], self.tables[index] = self.target.send(larger)
        self.now = until
