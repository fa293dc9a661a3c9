"""Queueing theory: laws of one queue, of polling, and formulas.

* `vacations`: one queue with room for K packets, whose server may go away;
* `polling`: one server for several queues, and the law that their waits keep (`conservation`);
* `closed_forms`, `traffic_forms`: where there are formulas.

`polling` is in JAX, and computes in double precision whatever the caller's JAX precision.
"""
