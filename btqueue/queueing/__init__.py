"""Queueing theory on a slotted time axis.

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
