"""Fixed windows over shared resources: rates and waits of a closed network of first-come-first-served queues.

With constant service and nothing lost, W segments of a flow go round for ever. Its rate is W over its round
trip, that of an empty way and the waits at full resources; a resource has a queue only if it is full. There
is one such point: rates maximise ``sum W log x - R x`` within the capacities (Mo & Walrand, IEEE/ACM
Transactions on Networking 8(5), 2000). It is that of the fluid; a lone flow's is min(W/R, 1/s) exactly, but
for whole segments.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root_scalar

Vector = NDArray[np.float64]

SWEEPS = 200
"""Turns over the full resources, after which they have not settled."""
SETTLED = 1e-10
"""Change of a wait, relative to the round trip of the empty path, that counts as none."""


class NotSettled(RuntimeError):
    """Waits at several full resources were not found."""


def waits(windows: Vector, empty_s: Vector, service_s: Vector) -> Vector:
    """Return the wait at each resource (s), shape (resources,).

    Args:
        windows: of the flows (segments), shape (flows,).
        empty_s: their round trips where nothing waits (s), shape (flows,).
        service_s: time of each resource for a segment of each flow (s), shape (flows, resources).

    Raises:
        NotSettled: the waits were not found.
    """
    used = service_s > 0.0
    found = np.zeros(service_s.shape[1])
    most = float((windows[:, None] * service_s).sum(axis=0).max()) + 1e-12
    loads = (windows / empty_s) @ service_s
    for _ in range(SWEEPS):
        before = found.copy()
        for resource in np.argsort(-loads):  # behind the slowest of those that all share, nothing waits
            mine, beside = used[:, resource], np.delete(np.arange(len(found)), resource)
            rest = empty_s[mine] + used[mine][:, beside] @ found[beside]
            taken = windows[mine] * service_s[mine, resource]

            def excess(wait: float, taken: Vector = taken, rest: Vector = rest) -> float:
                return float((taken / (rest + wait)).sum()) - 1.0

            found[resource] = 0.0
            if excess(0.0) > 0.0:
                found[resource] = root_scalar(excess, bracket=(0.0, most), xtol=1e-14).root
        if np.abs(found - before).max() <= SETTLED * empty_s.max():
            return found
    raise NotSettled
