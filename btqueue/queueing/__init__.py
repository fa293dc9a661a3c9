"""Queueing theory on a slotted time axis.

`polling_model` and `solve_polling` stand here, and are imported (with JAX) when they are first used.

From the ground up:

* `laws`: probability vectors on the slots (`lattice`), with the mass beyond their end;
* `traffic`: what comes, batches of packets (`arrivals`);
* `single`: one queue (`single_queue`, `finite_queue`);
* `vacations`: one queue with room for K whose server goes away;
* `polling`: one server for several queues, and the law that their waits keep (`conservation`);
* `closed_forms`, `traffic_forms`: where there are formulas.

`elimination` finds stationary laws.

Every public function computes in double precision, whatever the caller's JAX precision.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btqueue.queueing.polling.model import polling_model
    from btqueue.queueing.polling.polling import solve_polling

__all__ = ["polling_model", "solve_polling"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "model" if name == "polling_model" else "polling"
    return getattr(importlib.import_module(f"{__name__}.polling.{home}"), name)
