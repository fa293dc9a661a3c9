"""Queueing theory: laws of one queue and of polling.

`polling_model`, `solve_polling` and `vacation_queue` stand here, and are imported when they are first used.

* `vacations`: one queue with room for K packets, whose server may go away;
* `polling`: one server for several queues, and the law that their waits keep (`conservation`).

`polling` is in JAX, and computes in double precision whatever the caller's JAX precision.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.queueing.polling.model import polling_model
    from btqueue.queueing.polling.polling import solve_polling
    from btqueue.queueing.vacations import vacation_queue

HOMES = {
    "polling_model": "btqueue.queueing.polling.model",
    "solve_polling": "btqueue.queueing.polling.polling",
    "vacation_queue": "btqueue.queueing.vacations",
}
"""Modules of these names."""

__all__ = ["polling_model", "solve_polling", "vacation_queue"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(HOMES[name]), name)
