"""A single server and classes of packets with fixed priorities, first come first served within a class.

Class 0 goes first. Non-preemptive: a service once begun is finished. Preemptive resume: a packet of a higher
class interrupts (on the slotted axis at the next slot boundary), and the interrupted service goes on later
where it stopped.

A packet of class k waits for the work of classes ``0..k`` that it finds, for the packet of a lower class in
service if that is not interrupted, and for all higher-class work that arrives meanwhile. The last is the same
for every slot of the first two: each lasts a busy period ``theta(z)`` of the higher classes instead of one
slot, so the wait's generating function is that of the work found, taken at ``theta(z)``.

The work found, at a slot's end and before its arrivals join, has ``V(z) = f(z) / (1 - (1 - G(z)) / (1 - z))``
with ``G`` the work that classes ``0..k`` bring in a slot, as in `single_queue`, and in ``f`` the share of
idle slots plus, for each lower class, its rate times the residuals of its service.

Sources: Takagi, Queueing Analysis, vol. 1 (1991), chapter 3, and vol. 3 (1993); Cobham, Operations
Research 2 (1954) (mean waits); Kleinrock, Queueing Systems, vol. 2 (1976), chapter 3 (conservation law).
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count
from btqueue.queueing.laws import generating_functions as gf
from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.lattice import CutLaw
from btqueue.queueing.single.single_queue import or_infinite
from btqueue.queueing.traffic import batch_streams
from btqueue.queueing.traffic.batch_streams import BatchStream


class PriorityQueueSolution(eqx.Module):
    """Steady state by class, highest first; times in slots, laws and moments as in `SingleQueueSolution`.

    Attributes:
        load: ``(n,)`` work offered a slot by each class.
        stable: ``(n,)`` whether the class and those above it offer less than 1. A class that is not stable
            has its laws' mass at infinity and infinite moments; those above it have finite waits.
        wait: law of the time from arrival to the first start of service, ``(n, horizon)``.
        sojourn: law of the time from arrival to the end of service.
        mean_wait: ``(n,)`` mean time from arrival to the first start of service.
        second_moment_wait: its mean square.
        mean_sojourn: ``(n,)`` mean time from arrival to the end of service.
        second_moment_sojourn: its mean square.
        mean_queue: ``(n,)`` mean packets of the class present.
    """

    load: Array
    stable: Array
    wait: CutLaw
    sojourn: CutLaw
    mean_wait: Array
    second_moment_wait: Array
    mean_sojourn: Array
    second_moment_sojourn: Array
    mean_queue: Array


class _Class(eqx.Module):
    """What decides the wait of one class: those above it, itself, and the services it cannot interrupt."""

    higher: list[tuple[BatchStream, Array]]
    own: tuple[BatchStream, Array]
    residual_rates: Array  # services a slot of each lower class that the class may find in progress
    residual_services: list[Array]
    idle: Array  # share of slots in which the class finds neither its equals and betters nor such a service
    preemptive: bool = eqx.field(static=True)
    slotted: bool = eqx.field(static=True)

    def work_of_higher(self, theta: Array) -> Array:
        """Generating function of the higher-class work of a slot."""
        product = jnp.ones_like(theta)
        for arrivals, service in self.higher:
            product = product * batch_streams.in_slot(
                arrivals, batch_streams.batch_work(arrivals, service, theta)
            )
        return product

    def interruption(self, z: Array, length: int | None) -> Array:
        """``theta(z)``: how long a slot of work takes when higher classes go first."""
        if not self.higher:
            return z
        return gf.first_passage(self.work_of_higher, z, length=length)

    def work_left(self, theta: Array) -> Array:
        """Transform of the work left for the class after a slot (slotted) or as a slot's work begins."""
        streams = [*self.higher, self.own]
        excess = batch_streams.combined_excess(
            [batch_streams.slot_work_excess(arrivals, service, theta) for arrivals, service in streams],
            [
                batch_streams.in_slot(arrivals, batch_streams.batch_work(arrivals, service, theta))
                for arrivals, service in streams
            ],
            theta,
        )
        begun = jnp.zeros_like(theta)
        for rate, service in zip(self.residual_rates, self.residual_services, strict=True):
            begun = begun + rate * gf.excess(service, theta)
        if self.slotted:
            return (self.idle + begun) / (1.0 - excess)
        for arrivals, service in streams:  # batches that find the server idle start at once
            begun = begun + self.idle * batch_streams.batch_rate(arrivals) * (
                batch_streams.batch_work_excess(arrivals, service, theta)
            )
        return begun / (1.0 - excess)

    def wait(self, theta: Array, s: Array, whole_slot: Array) -> Array:
        """Transform of the wait to the first start of service.

        With ``s`` of the time itself (``whole_slot = 1``); with ``s = 0`` of whole slots, where in continuous
        time the slot of work in progress counts as whole, ``whole_slot = z``.
        """
        arrivals, service = self.own
        work = batch_streams.batch_work(arrivals, service, theta)
        # in the slot of arrival, or of work in progress: own work before the arrival, all higher work
        current = self.work_of_higher(theta) * batch_streams.earlier_in_slot(arrivals, work, s)
        found = self.work_left(theta) * current
        if not self.slotted:
            found = self.idle + found * whole_slot
        return found * batch_streams.ahead_in_batch(arrivals, gf.evaluate(service, theta))

    def service(self, theta: Array, z: Array) -> Array:
        """Transform of the time from the first start of service to its end."""
        service = self.own[1]
        if not self.preemptive:
            return gf.evaluate(service, z)
        if not self.slotted:
            return gf.evaluate(service, theta)
        # what arrives in the last slot comes too late to interrupt
        return z * gf.evaluate(service[1:], theta)


def _classes(
    arrivals: Sequence[BatchStream], services: Sequence[Array], preemptive: bool, slotted: bool
) -> tuple[Array, list[_Class]]:
    """Offered loads, and the classes as they meet the server; unstable ones with harmless numbers."""
    offered = jnp.stack(
        [batch_streams.offered_load(stream, law) for stream, law in zip(arrivals, services, strict=True)]
    )
    above = jnp.cumsum(offered) - offered
    carried = jnp.clip(1.0 - above, 0.0, offered)  # a saturated class takes what is left, those below nothing
    service_rates = carried / jnp.stack([lattice.mean(law) for law in services])
    idle = jnp.maximum(1.0 - offered.sum(), 0.0)
    classes = []
    for k in range(len(arrivals)):
        up_to = above[k] + offered[k]
        streams = [
            (batch_streams.calmed(stream, up_to), law)
            for stream, law in zip(arrivals[: k + 1], services[: k + 1], strict=True)
        ]
        classes.append(
            _Class(
                higher=streams[:-1],
                own=streams[-1],
                residual_rates=jnp.zeros(0) if preemptive else service_rates[k + 1 :],
                residual_services=[] if preemptive else list(services[k + 1 :]),
                idle=jnp.maximum(1.0 - up_to, 0.0) if preemptive else idle,
                preemptive=preemptive,
                slotted=slotted,
            )
        )
    return offered, classes


@eqx.filter_jit
def _solve(
    arrivals: list[BatchStream], services: list[Array], horizon: int, preemptive: bool, slotted: bool
) -> PriorityQueueSolution:
    load, classes = _classes(arrivals, services, preemptive, slotted)
    stable = jnp.cumsum(load) < 1.0
    z = gf.circle(horizon)
    columns = []
    for one, fine in zip(classes, stable, strict=True):
        theta = one.interruption(z, horizon)
        wait = one.wait(theta, jnp.zeros(()), z)
        laws = [
            or_infinite(gf.coefficients(values, horizon), fine)
            for values in (wait, wait * one.service(theta, z))
        ]

        def laplace(s: Array, one: _Class = one) -> Array:
            theta = one.interruption(jnp.exp(-s), None)
            wait = one.wait(theta, s, jnp.ones(()))
            return jnp.stack([wait, wait * one.service(theta, jnp.exp(-s))])

        times = [jnp.where(fine, moment, jnp.inf) for moment in gf.moments(laplace)]
        columns.append((laws, jnp.stack(times)))

    def law_of(which: int) -> CutLaw:
        return CutLaw(*(jnp.stack(part) for part in zip(*(laws[which] for laws, _ in columns), strict=True)))

    moments = jnp.stack([times for _, times in columns])  # (class, order, wait or sojourn)
    return PriorityQueueSolution(
        load=load,
        stable=stable,
        wait=law_of(0),
        sojourn=law_of(1),
        mean_wait=moments[:, 0, 0],
        second_moment_wait=moments[:, 1, 0],
        mean_sojourn=moments[:, 0, 1],
        second_moment_sojourn=moments[:, 1, 1],
        mean_queue=jnp.stack([stream.packet_rate for stream in arrivals]) * moments[:, 0, 1],
    )


@in_float64
def priority_queue(
    *,
    arrivals: Sequence[BatchStream],
    services: Sequence[ArrayLike],
    horizon: int,
    preemptive: bool = False,
    slotted: bool = True,
) -> PriorityQueueSolution:
    """Exact waits and sojourns by class: laws to about 1e-13 an entry, moments to rounding.

    Args:
        arrivals: one stream of batches a class, highest priority first, independent.
        services: law of a packet's service in each class, in slots, at least one.
        horizon: entries of the laws, in slots.
        preemptive: whether a higher class interrupts a service (to be resumed), or waits for its end.
        slotted: whether service begins (and interruption happens) at slot boundaries only.

    Raises:
        ValueError: if an argument is out of range, the numbers of streams and services differ, or not even
            the highest class is stable.
    """
    if len(arrivals) != len(services) or not arrivals:
        raise ValueError(
            f"services must be one law for each of the {len(arrivals)} arrivals, got {len(services)}"
        )
    for stream, service in zip(arrivals, services, strict=True):
        batch_streams.require_stream(stream, service, slotted)
    require_count(horizon, "horizon")
    batch_streams.require_stable(batch_streams.offered_load(arrivals[0], services[0]))
    return _solve(list(arrivals), [jnp.asarray(law) for law in services], horizon, preemptive, slotted)
