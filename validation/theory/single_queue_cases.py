"""Arrivals and services that the tests of single queues share, few of them, as each shape is compiled."""

import numpy as np
from hypothesis import strategies as st

from btqueue.queueing.laws import lattice
from btqueue.queueing.single.single_queue import SingleQueueSolution, single_queue
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

LENGTH, HORIZON = 60, 400
UNIFORM = lattice.uniform(2, 7)
# CONSTANT is as long as UNIFORM and SINGLE as MIXED, so that one compiled solver serves them all
CONSTANT = np.pad(lattice.point(6), (0, 1))
SINGLE = np.array([0.0, 1.0, 0.0, 0.0])
MIXED = np.array([0.0, 0.3, 0.2, 0.5])
FIVE = lattice.point(5)
INVERSION = 2e-13  # of an inverted law's entries: 1e-14 from folding and rounding, times about 1 / (1 - rho)
ARRIVALS = {
    "poisson": lambda load, sizes: PoissonBatches(load / 4.5 / (sizes @ np.arange(4)), sizes),
    "bernoulli": lambda load, sizes: BernoulliBatches(load / 4.5 / (sizes @ np.arange(4)), sizes),
}
positive = st.floats(0.05, 1.0)


def solve(arrivals, service=UNIFORM, *, slotted: bool = True, length: int = LENGTH) -> SingleQueueSolution:
    return single_queue(arrivals=arrivals, service=service, length=length, horizon=HORIZON, slotted=slotted)


def padded(law: np.ndarray, length: int) -> np.ndarray:
    return np.pad(law, (0, length - law.shape[0]))
