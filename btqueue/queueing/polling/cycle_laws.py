"""Whole laws of cycle and intervisit times in exhaustive and gated polling, exactly, on the lattice of slots.

With services and walks that last whole slots, cycles do too. The generating function of the queues when the
server comes is followed backwards through the visits: a walk multiplies it by ``S_j(x)`` and a visit replaces
``z_j`` by what becomes of one customer found, ``B_j(x)`` if gated and the busy period's ``G_j(x')`` if
exhaustive, with ``x = exp(-sum_k lambda_k (1 - z_k))`` the generating variable of one slot (``x'`` without
``k = j``). A factor ``y`` on every slot of the last cycle marks its length. The law is read off the values on
the unit circle by FFT.

Sources: Eisenberg, Operations Research 20 (1972); Konheim, Levy & Srinivasan, IEEE Trans. Comm. 42 (1994).
"""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_count, require_law, require_no_mass_at_zero
from btqueue.queueing.polling.model import Values

PICARD, NEWTON = 12, 8
"""Steps to the generating function of a busy period."""


class CycleLaws(eqx.Module):
    """Laws on ``0..points-1`` slots, ``(n, points)`` each; mass beyond is folded back onto the start.

    Attributes:
        cycle: from the start of a visit to the next start of a visit to the same queue.
        intervisit: from the end of a visit to the next start of a visit to the same queue.
    """

    cycle: Array
    intervisit: Array


def _busy_period(rate: Array, service: Array, x: Array) -> Array:
    """Generating function ``G = B(x exp(-rate (1 - G)))`` of a busy period, the solution in the unit disc."""

    def image(g: Array) -> Array:
        return jnp.polyval(service[::-1], x * jnp.exp(-rate * (1.0 - g)))

    def newton(_: int, g: Array) -> Array:
        value, slope = jax.jvp(image, (g,), (jnp.ones_like(g),))
        return g - (g - value) / (1.0 - slope)

    start = lax.fori_loop(0, PICARD, lambda _, g: image(g), jnp.zeros_like(x))
    return lax.fori_loop(0, NEWTON, newton, start)


@partial(jax.jit, static_argnames=("gated", "points", "cycles"))
def _laws(
    rates: Array, services: Array, switches: Array, *, gated: tuple[bool, ...], points: int, cycles: int
) -> CycleLaws:
    n = len(gated)
    marks = jnp.exp(-2j * jnp.pi * jnp.arange(points // 2 + 1) / points)  # conjugates give the other half

    def before(queue: int, z: Array, value: Array, mark: Array, visit_mark: Array) -> tuple[Array, Array]:
        """One walk and one visit back in time: from the start of the next visit to that of this one."""
        slot = jnp.exp(-jnp.einsum("k,kp->p", rates, 1.0 - z))
        value = value * jnp.polyval(switches[queue, ::-1], mark * slot)
        if gated[queue]:
            offspring = jnp.polyval(services[queue, ::-1], visit_mark * slot)
        else:
            others = jnp.exp(rates[queue] * (1.0 - z[queue])) * slot
            offspring = _busy_period(rates[queue], services[queue], visit_mark * others)
        return z.at[queue].set(offspring), value

    ones = jnp.ones_like(marks)

    def spectrum(queue: int, with_visit: bool) -> Array:
        z, value = jnp.ones((n, points // 2 + 1), complex), ones
        for back in range(1, n + 1):
            other = (queue - back) % n
            z, value = before(other, z, value, marks, marks if back < n or with_visit else ones)

        def one_cycle(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            for back in range(1, n + 1):
                state = before((queue - back) % n, *state, ones, ones)
            return state, None

        return lax.scan(one_cycle, (z, value), None, length=cycles)[0][1]

    def laws(with_visit: bool) -> Array:
        return jnp.stack([jnp.fft.irfft(spectrum(queue, with_visit), points) for queue in range(n)])

    return CycleLaws(laws(True), laws(False))


@in_float64
def cycle_laws(
    *,
    arrival_rate: Values,
    service_law: Sequence[ArrayLike],
    switch_law: Sequence[ArrayLike],
    discipline: Sequence[str],
    points: int,
    cycles: int = 200,
) -> CycleLaws:
    """Laws of cycle and intervisit times of exhaustive and gated queues with infinite buffers.

    Args:
        arrival_rate: customers a slot, ``(n,)``.
        service_law: law of a service of each queue, in slots, at least one.
        switch_law: law of the walk after each queue's visit, in slots.
        discipline: ``exhaustive`` or ``gated``, one for each queue.
        points: length of the laws; has to cover all but a negligible tail, an even number.
        cycles: cycles back in time, after which the past is forgotten as ``rho**cycles``.

    Raises:
        ValueError: if an argument is not what it should be or the load is not below 1.
    """
    rates = jnp.asarray(arrival_rate, float)
    require_count(points, "points", least=2)
    if points % 2:
        raise ValueError(f"points must be even, got {points}")
    require_count(cycles, "cycles")
    if any(one not in ("exhaustive", "gated") for one in discipline):
        raise ValueError(f"discipline must be exhaustive or gated for each queue, got {discipline}")
    for law in service_law:
        require_law(law, "service_law")
        require_no_mass_at_zero(law, "service_law")
    for law in switch_law:
        require_law(law, "switch_law")

    def padded(laws: Sequence[ArrayLike]) -> Array:
        longest = max(np.shape(law)[0] for law in laws)
        return jnp.stack([jnp.pad(jnp.asarray(law, float), (0, longest - np.shape(law)[0])) for law in laws])

    services, switches = padded(service_law), padded(switch_law)
    load = rates @ (services @ jnp.arange(services.shape[1]))
    if not is_traced(load) and not float(load) < 1.0:
        raise ValueError(f"unstable: the load must be below 1, got {float(load):.6g}")
    gated = tuple(one == "gated" for one in discipline)
    return _laws(rates, services, switches, gated=gated, points=points, cycles=cycles)
