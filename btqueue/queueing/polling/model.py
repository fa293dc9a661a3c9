"""A server that visits queues in cyclic order: the parameters, and quantities that need only them.

Customers come to queue ``i`` in Poisson batches; the server visits the queues in the order ``0, 1, ..., n-1,
0, ...`` and after each visit, to an empty queue too, walks to the next one (the *switch-over*). A visit is

* ``exhaustive``: until the queue is empty;
* ``gated``: the customers found on coming, no later ones;
* ``limited``: until the queue is empty or ``limit`` customers are served (E-limited; 1-limited for 1).

The mean waits of exhaustive and gated queues depend on the laws of services, switch-overs and batches through
their first two moments only; the mean waits of limited queues are approximated from the same moments.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced

DISCIPLINES = ("exhaustive", "gated", "limited")
"""The rules that may end a visit."""

Values = ArrayLike | Sequence[float] | Sequence[int]
"""One value for all queues, or one for each."""


class PollingModel(eqx.Module):
    """A cyclic polling system with infinite buffers; ``n`` queues, times in slots.

    Build it with `polling_model`, which checks and broadcasts.

    Attributes:
        arrival_rate: customers a slot, ``(n,)``.
        service_mean: mean service time, ``(n,)``.
        service_second: mean square of the service time, ``(n,)``.
        switch_mean: mean walk after a visit to the queue, ``(n,)``.
        switch_second: mean square of that walk, ``(n,)``.
        limit: most customers served in a visit, ``(n,)``; infinite unless the discipline is ``limited``.
        discipline: position in `DISCIPLINES`, ``(n,)``; numbers rather than words, so that systems with
            different disciplines batch and share one compiled program.
        batch_mean: mean customers that come at once, ``(n,)``.
        batch_second: mean square of them, ``(n,)``.
    """

    arrival_rate: Array
    service_mean: Array
    service_second: Array
    switch_mean: Array
    switch_second: Array
    limit: Array
    discipline: Array
    batch_mean: Array
    batch_second: Array

    @property
    def queues(self) -> int:
        """Number of queues."""
        return self.arrival_rate.shape[-1]

    def is_a(self, discipline: str) -> Array:
        """Which queues have this discipline, ``(n,)``."""
        return self.discipline == DISCIPLINES.index(discipline)

    @property
    def loads(self) -> Array:
        """Load of each queue, ``rho_i = lambda_i b_i``."""
        return self.arrival_rate * self.service_mean

    @property
    def service_variance(self) -> Array:
        """Variance of the service time, ``(n,)``."""
        return self.service_second - self.service_mean**2

    @property
    def grouping(self) -> Array:
        """``E[G^2] / E[G]`` of batches ``G``, ``(n,)``: mean size of the batch that a customer comes in."""
        return self.batch_second / self.batch_mean

    @property
    def mean_walk(self) -> Array:
        """Mean of all walks of a cycle."""
        return self.switch_mean.sum()

    @property
    def mean_cycle(self) -> Array:
        """Mean time of a cycle, ``s / (1 - rho)`` whatever the disciplines (if stable)."""
        return self.mean_walk / (1.0 - self.loads.sum())

    @property
    def saturation(self) -> Array:
        """``rho + s max(lambda_i / k_i)``; the system is stable if it is below 1."""
        return self.loads.sum() + self.mean_walk * (self.arrival_rate / self.limit).max()

    @property
    def full_visits(self) -> Array:
        """``lambda_i s / (k_i (1 - rho))``: mean customers of a visit as a share of the limit, ``(n,)``."""
        return self.arrival_rate * self.mean_cycle / self.limit


def _each(value: Values, queues: int, name: str) -> Array:
    array = jnp.asarray(value, float)
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != queues):
        raise ValueError(
            f"{name} needs one value or one for each of {queues} queues, got shape {array.shape}"
        )
    return jnp.broadcast_to(array, (queues,))


def _check(model: PollingModel) -> None:
    if is_traced(model):
        return
    service = np.asarray(model.service_mean)
    if not (np.isfinite(service) & (service > 0)).all():
        raise ValueError(f"service_mean must be positive and finite, got {service}")
    for name in ("arrival_rate", "switch_mean"):
        values = np.asarray(getattr(model, name))
        if not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(f"{name} must be finite and not negative, got {values}")
    for part in ("service", "switch"):
        mean = np.asarray(getattr(model, f"{part}_mean"))
        second = np.asarray(getattr(model, f"{part}_second"))
        if not (np.isfinite(second) & (second >= mean**2 * (1 - 1e-12))).all():
            raise ValueError(f"{part}_second must be at least {part}_mean squared, {mean**2}, got {second}")
    batch, second = np.asarray(model.batch_mean), np.asarray(model.batch_second)
    if not (np.isfinite(batch) & (batch >= 1)).all():
        raise ValueError(f"batch_mean must be at least 1 and finite, got {batch}")
    least = batch**2 + (batch % 1) * (1 - batch % 1)  # the nearest whole numbers
    if not (np.isfinite(second) & (second >= least * (1 - 1e-12)) & ((batch > 1) | (second == 1))).all():
        raise ValueError(f"batch_second must be at least {least}, and 1 where batch_mean is 1, got {second}")
    limits = np.asarray(model.limit)[np.asarray(model.is_a("limited"))]
    if not ((limits >= 1) & (limits == np.rint(limits)) & np.isfinite(limits)).all():
        raise ValueError(f"limit must be a whole number of at least 1 for limited queues, got {limits}")


@in_float64
def polling_model(
    *,
    arrival_rate: Values,
    service_mean: Values,
    service_second: Values,
    switch_mean: Values,
    switch_second: Values,
    discipline: str | Sequence[str] = "exhaustive",
    limit: Values | None = None,
    batch_mean: Values = 1.0,
    batch_second: Values = 1.0,
) -> PollingModel:
    """The parameters of a cyclic polling system, checked, one value for each queue.

    Args:
        arrival_rate: customers (not batches) a slot, ``(n,)``; its length is the number of queues. If it is 0
            for a queue, the wait there is the wait of a single customer who comes all the same.
        service_mean: mean service time, scalar or ``(n,)``.
        service_second: its mean square (``mean**2`` for a constant, ``2 * mean**2`` if exponential).
        switch_mean: mean walk after a visit to the queue, scalar or ``(n,)``; if all are 0, the waits are the
            limit of short walks.
        switch_second: its mean square.
        discipline: one of `DISCIPLINES`, or one for each queue.
        limit: most customers of a visit for the limited queues, scalar or ``(n,)``; entries of other queues
            are ignored.
        batch_mean: mean customers that come at once, scalar or ``(n,)``.
        batch_second: its mean square (``mean**2`` for constant batches).

    Raises:
        ValueError: naming the argument that is wrong.

    Example:
        >>> from btqueue.queueing import polling_model
        >>> system = polling_model(
        ...     arrival_rate=[0.02, 0.01], service_mean=6, service_second=36, switch_mean=2, switch_second=4
        ... )
        >>> round(float(system.mean_cycle), 6)
        4.878049
    """
    rate = jnp.atleast_1d(jnp.asarray(arrival_rate, float))
    if rate.ndim != 1:
        raise ValueError(f"arrival_rate must be a vector, one entry for each queue, got shape {rate.shape}")
    queues = rate.shape[0]
    disciplines = (discipline,) * queues if isinstance(discipline, str) else tuple(discipline)
    if len(disciplines) != queues or any(one not in DISCIPLINES for one in disciplines):
        raise ValueError(f"discipline must be from {DISCIPLINES}, one or {queues} of them, got {disciplines}")
    codes = jnp.array([DISCIPLINES.index(one) for one in disciplines])
    limited = np.array([one == "limited" for one in disciplines])
    if limited.any() and limit is None:
        raise ValueError("limit is needed for limited queues, got None")
    limits = _each(np.inf if limit is None else limit, queues, "limit")
    model = PollingModel(
        rate,
        _each(service_mean, queues, "service_mean"),
        _each(service_second, queues, "service_second"),
        _each(switch_mean, queues, "switch_mean"),
        _each(switch_second, queues, "switch_second"),
        jnp.where(limited, limits, jnp.inf),
        codes,
        _each(batch_mean, queues, "batch_mean"),
        _each(batch_second, queues, "batch_second"),
    )
    _check(model)
    return model
