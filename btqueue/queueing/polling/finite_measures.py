"""What both solvers of polling with finite buffers tell: `polling.finite` and `polling.small_chain`."""

import equinox as eqx
from jax import Array


class FinitePolling(eqx.Module):
    """Steady state with finite buffers; ``(n,)`` arrays, times in slots.

    Attributes:
        mean_cycle: mean time from visit to visit.
        mean_served: mean customers served in a visit.
        served_pairs: ``E[N (N - 1)]`` of the customers served in a visit.
        throughput: customers served a slot.
        blocking: share of the customers that find the queue full.
        occupancy: law of each queue at a random moment, customer in service included, ``(n, max K + 1)``.
        mean_queue: mean of ``occupancy``.
        mean_sojourn: mean time from arrival to end of service of those accepted.
        mean_wait: mean time from arrival to start of service.
    """

    mean_cycle: Array
    mean_served: Array
    served_pairs: Array
    throughput: Array
    blocking: Array
    occupancy: Array
    mean_queue: Array
    mean_sojourn: Array
    mean_wait: Array
