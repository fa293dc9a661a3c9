r"""Two queues that share a link's slots: each is served slower while the other is busy.

Both directions get compound Poisson jobs (geometric batches) and are alike. Work V is measured in seconds
that the direction needs with the air to itself; it is served at a speed that depends on both sides: 1 with
the other idle, less with the other busy, less again where a window stalls. In equilibrium the mean drifts of
V1^2 and of V1 V2 vanish:

    l E[W^2] / 2 + r E[V] = E[V1 c1],        r E[V] = E[V1 c2],

l batches a second, each of work W, r = l E[W], and c1, c2 the two speeds. With c = 1 alone and c = g together
this gives the mean work of coupled processors, without any approximation:

    E[V] = l E[W^2] / (2 (1 - r / g)).

Approximation: where c depends on more than idle or busy, and for the chances of being busy, each side's
number of jobs is told apart as none, one, and more (nine states). The rate out of "one" is that of the
M/G/1 queue, the rate out of "more" follows from the flow of work; the two drifts then give the work of "more"
with the neighbour idle and busy. Without a neighbour all is exact.

Sources: Cohen & Boxma, Boundary Value Problems in Queueing System Analysis (1983); Fayolle & Iasnogorodski,
Z. Wahrscheinlichkeitstheorie 47 (1979); Kleinrock, Queueing Systems I (1975).
"""

from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.answers import NoConvergence

Array = NDArray[np.float64]

PRECISION = 1e-12
"""Relative, of the flow of work."""
STEPS = 60
RAREST = 1e-11
"""Probability of an arrival during a service below which the rounding of its complement shows."""


class Overloaded(ValueError):
    """More jobs come than the direction can carry."""


class Arrivals(NamedTuple):
    """Batches a second, and the mean number of jobs in a batch (geometric)."""

    rate: float
    batch: float

    @property
    def jobs(self) -> float:
        """Jobs a second."""
        return self.rate * self.batch


class Service(NamedTuple):
    """Mean (s) and variance (s2) of a job's time with the air to itself."""

    mean: float
    variance: float

    @property
    def square(self) -> float:
        """Mean square (s2)."""
        return self.variance + self.mean**2

    def transform(self, rate: float) -> float:
        """Laplace transform, of the gamma law with these moments."""
        if self.variance <= 0.0:
            return exp(-rate * self.mean)
        return (1.0 + rate * self.variance / self.mean) ** (-(self.mean**2) / self.variance)


class CoupledQueue(NamedTuple):
    """Steady state of one direction.

    Attributes:
        states: (3, 3) or (3, 1) chances of none, one, more jobs here, and of the neighbour.
        number: mean number of jobs, the one in service included.
        wait: mean time (s) of a job until its service begins.
        service: mean time (s) that a job is in service, the neighbour and stalls included.
        residual: what is missing in the flow of work, relative.
        iterations: until it was found.
    """

    states: Array
    number: float
    wait: float
    service: float
    residual: float
    iterations: int

    @property
    def busy(self) -> float:
        """Share of the time with a job here."""
        return float(self.states[1:].sum())

    @property
    def neighbour_busy(self) -> float:
        """Share of that time in which the neighbour has a job too."""
        return float(self.states[1:, 1:].sum()) / self.busy

    @property
    def crowded(self) -> float:
        """Mean number of jobs where there are two or more."""
        here = self.states.sum(axis=1)
        return max((self.number - float(here[1])) / float(here[2]), 2.0)

    def at_most(self, most: int) -> float:
        """Chance of at most so many jobs: from two on the law is taken as geometric."""
        here = self.states.sum(axis=1)
        if most < 2:
            return float(here[: most + 1].sum())
        return 1.0 - float(here[2]) * (1.0 - 1.0 / (self.crowded - 1.0)) ** (most - 1)


def coupled_queue(arrivals: Arrivals, service: Service, speeds: Array) -> CoupledQueue:
    """Return the steady state of a direction beside a neighbour that is like it.

    Args:
        arrivals: of jobs.
        service: of a job.
        speeds: (3, 3), or (3, 1) without a neighbour: the share of full speed with none, one, more jobs here
            (row) and there. Row 0 is not used.

    Raises:
        Overloaded: the direction cannot carry its jobs.
    """
    load = arrivals.jobs * service.mean
    if load >= float(speeds[2, -1]):
        raise Overloaded(f"the link cannot carry {arrivals.jobs:.4g} jobs a second")
    states, residual, iterations = _states(arrivals, service, speeds, load)
    busy = float(states[1:].sum())
    rest = 0.5 * service.square / service.mean
    queued = (_work(arrivals, service, speeds, states, rest) - rest * busy) / service.mean
    return CoupledQueue(
        states=states,
        number=queued + busy,
        wait=queued / arrivals.jobs,
        service=busy / arrivals.jobs,
        residual=residual,
        iterations=iterations,
    )


def _states(arrivals: Arrivals, service: Service, speeds: Array, load: float) -> tuple[Array, float, int]:
    """Return the chances of the states, by Newton's method in the logarithm of the rate out of "more"."""
    free = service.transform(arrivals.rate)
    if 1.0 - free < RAREST:
        raise NoConvergence(
            f"{arrivals.jobs:.3g} messages a second are too few for this model: their queue is lost in "
            "rounding"
        )
    of_one = arrivals.rate * free / (1.0 - free)
    alone = (1.0 - load) * (1.0 / free - 1.0)
    of_more = arrivals.rate * (alone + (1.0 - load) * (1.0 - 1.0 / arrivals.batch)) / (load - alone)
    fixed, growing = _generators(arrivals, of_one, speeds)
    size = len(fixed)
    right = np.zeros(size)
    right[-1] = 1.0
    work = np.where(np.arange(3)[:, None] > 0, speeds, 0.0).reshape(-1)
    residual = 1.0
    for iteration in range(1, STEPS + 1):
        moves = (fixed + of_more * growing).T
        moves[-1] = 1.0
        law = np.linalg.solve(moves, right).astype(float)
        change = -of_more * (growing.T @ law)
        change[-1] = 0.0
        residual = float(law @ work) / load - 1.0
        if abs(residual) < PRECISION:
            return law.reshape(speeds.shape), abs(residual), iteration
        slope = float(np.linalg.solve(moves, change) @ work) / load
        of_more *= exp(min(max(-residual / slope, -2.0), 2.0))
    raise NoConvergence(f"the flow of work is {residual:.2g} off after {STEPS} steps of Newton's method")


def _generators(arrivals: Arrivals, of_one: float, speeds: Array) -> tuple[Array, Array]:
    """Return the generator without departures from "more", and what each unit of their rate adds."""
    one = arrivals.rate / arrivals.batch
    comes = np.array([[0.0, one, arrivals.rate - one], [0.0, 0.0, arrivals.rate], [0.0, 0.0, 0.0]])
    others = speeds.shape[1]
    fixed, growing = np.zeros((3, others, 3, others)), np.zeros((3, others, 3, others))
    for there in range(others):
        fixed[:, there, :, there] += comes
        fixed[1, there, 0, there] += of_one * speeds[1, there]
        growing[2, there, 1, there] += speeds[2, there]
    if others > 1:
        # the neighbour moves alike
        fixed, growing = (part + part.transpose(1, 0, 3, 2) for part in (fixed, growing))
    both = (part.reshape(3 * others, 3 * others) for part in (fixed, growing))
    fixed, growing = (part - np.diag(part.sum(axis=1)) for part in both)
    return fixed, growing


def _work(arrivals: Arrivals, service: Service, speeds: Array, states: Array, rest: float) -> float:
    """Return the mean work (s) from the two drifts: what "one" has is ``rest``, what "more" has is unknown.

    Raises:
        Overloaded: no finite work keeps the balance.
    """
    load = arrivals.jobs * service.mean
    batch = arrivals.batch
    square = batch * service.variance + (2.0 * batch - 1.0) * batch * service.mean**2
    one, more = states[1], states[2]
    brought = 0.5 * arrivals.rate * square + load * rest * one.sum() - rest * float(one @ speeds[1])
    if speeds.shape[1] == 1:
        unknown = brought / (float(speeds[2, 0]) - load)
    else:
        here = float(more[1:] @ speeds[2, 1:] / more[1:].sum())
        there = float(more[1:] @ speeds[1:, 2] / more[1:].sum())
        crossed = rest * (float(one[1:] @ speeds[1:, 1]) - load * one.sum())
        # drift of V1^2 / 2: (s20 - r) x0 + (here - r) x1 = brought; of V1 V2: r x0 + (r - there) x1 = crossed
        alone = float(speeds[2, 0]) - load
        ahead = alone * (there - load) + load * (here - load)
        unknown = (
            (brought * (there - load) + crossed * (here - load)) + (load * brought - alone * crossed)
        ) / ahead
    if not unknown > 0.0:
        raise Overloaded(f"the link cannot carry {arrivals.jobs:.4g} jobs a second")
    return rest * float(one.sum()) + unknown
