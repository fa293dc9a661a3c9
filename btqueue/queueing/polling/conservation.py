"""The pseudo-conservation law of cyclic polling: a weighted sum of the mean waits, exactly.

The work in the system is the work of the queue without walks plus the work present during walks, for all
disciplines. With ``s`` and ``s2`` the first two moments of all walks of a cycle,

    sum_i w_i E[W_i] = rho sum lambda_i b2_i / (2 (1 - rho)) + rho s2 / (2 s)
                       + s (rho^2 - sum rho_i^2) / (2 (1 - rho)) + sum_gated rho_i^2 s / (1 - rho)
                       + sum_limited [ rho_i^2 s / (k_i (1 - rho))
                                       - b_i (1 - rho_i) E[N_i (N_i - 1)] / (2 k_i) ],

``w_i = rho_i`` and for limited queues ``w_i = rho_i (1 - u_i)``, ``u_i = lambda_i s / (k_i (1 - rho))``;
``N_i`` customers are served in a visit. For a limit above 1 the law needs ``E[N_i (N_i - 1)]``: a check
rather than an answer. Batches ``G`` with ``g = E[G^2] / E[G]`` add
``sum_i (g_i - 1) b_i rho_i / (2 (1 - rho))`` and ``sum_limited (g_i - 1) b_i u_i / 2``. Without walks the
quotient by ``s`` is 0.

Sources: Boxma & Groenendijk, Journal of Applied Probability 24 (1987), for limit 1; Fuhrmann & Wang,
Performance Evaluation 9 (1988), for limits above.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.polling.model import PollingModel


class ConservationLaw(NamedTuple):
    """``weights @ mean_wait = total``."""

    weights: Array  # (n,)
    total: Array  # ()


@in_float64
def conservation_law(model: PollingModel, served_pairs: ArrayLike) -> ConservationLaw:
    """The law's two sides.

    Args:
        model: a stable system.
        served_pairs: ``E[N_i (N_i - 1)]``, ``(n,)``; read for limited queues only.

    Example:
        >>> from btqueue.queueing.polling.conservation import conservation_law
        >>> from btqueue.queueing import polling_model
        >>> system = polling_model(
        ...     arrival_rate=[0.02, 0.01], service_mean=6, service_second=36, switch_mean=2, switch_second=4
        ... )
        >>> law = conservation_law(system, [0.0, 0.0])
        >>> round(float(law.total), 4)
        0.5137
    """
    loads, walk = model.loads, model.mean_walk
    load = loads.sum()
    walk_second = (model.switch_second - model.switch_mean**2).sum() + walk**2
    idle = walk / (1.0 - load)
    behind = model.service_mean * (model.grouping - 1.0) / 2.0  # work behind a customer in its batch
    work = (load * (model.arrival_rate @ model.service_second) / 2.0 + loads @ behind) / (1.0 - load)
    walks = jnp.where(walk > 0.0, walk_second / jnp.where(walk > 0.0, walk, 1.0), 0.0)
    total = work + load * walks / 2.0 + idle / 2.0 * (load**2 - (loads**2).sum())
    pairs = model.service_mean * (1.0 - loads) * jnp.asarray(served_pairs, float) / (2.0 * model.limit)
    limited = loads**2 * idle / model.limit + behind * model.full_visits - pairs
    total = total + jnp.where(model.is_a("gated"), loads**2 * idle, 0.0).sum()
    total = total + jnp.where(model.is_a("limited"), limited, 0.0).sum()
    return ConservationLaw(loads * (1.0 - model.full_visits), total)


@in_float64
def conservation_residual(model: PollingModel, mean_wait: ArrayLike, served_pairs: ArrayLike) -> Array:
    """Return by which share mean waits miss the pseudo-conservation law, ``weights @ mean_wait / total - 1``.

    Example:
        >>> from btqueue.queueing.polling.conservation import conservation_residual
        >>> from btqueue.queueing import polling_model
        >>> system = polling_model(
        ...     arrival_rate=[0.02, 0.01], service_mean=6, service_second=36, switch_mean=2, switch_second=4
        ... )
        >>> from btqueue.queueing import solve_polling
        >>> abs(float(conservation_residual(system, solve_polling(system).mean_wait, [0.0, 0.0]))) < 1e-9
        True
    """
    law = conservation_law(model, served_pairs)
    return law.weights @ jnp.asarray(mean_wait, float) / law.total - 1.0
