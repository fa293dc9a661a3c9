"""Queueing theory on a slotted time axis.

From the ground up:

* `lattice`, `arrivals`, `markov`: laws on the slots, batches of packets, stationary vectors;
* `token_bucket`, `vacations`, `vacation_roots`, `closed_forms`: one queue;
* `pair_visit`, `pair_stations`, `cycle_memory`: a server that visits stations with two queues each, solved in
  `pair_polling` (independent inputs) and `pair_relay` (a ring of relays), and exactly for two stations in
  `pair_joint_chain` and `pair_relay_chain`; `fixed_point` iterates.

Every public function computes in double precision, whatever the caller's JAX precision.
"""
