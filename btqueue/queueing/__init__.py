"""Queueing theory on a slotted time axis.

From the ground up:

* `lattice`, `cut_laws`, `generating_functions`: laws on the slots, with the mass beyond their end;
* `arrivals`, `map_arrivals`, `map_sources`, `phase_type`: what comes, and how long it takes;
* `markov`, `sparse_chain`, `absorbing`, `birth_death`, `quasi_birth_death`, `gi_m_1`: chains;
* `single_queue`, `finite_queue`, `priority_queue`, `busy_period`, `n_policy`, `modulated_queue`,
  `bulk_service`: one queue;
* `vacation_queue` (`vacations`, `unlimited_vacations`, `vacation_sojourn`): one queue whose server goes away;
* `polling` (`polling_finite`, `polling_small_chain`): one server for several queues;
* `token_bucket`, `token_bucket_joint`, `arq`, `periodic_server`, `walk_in_bridge`: what stands before a link;
* `closed_forms`: where there are formulas;
* `pair_visit`, `pair_stations`, `cycle_memory`: a server that visits stations with two queues each, solved in
  `pair_polling` (independent inputs) and `pair_relay` (a ring of relays), and exactly for two stations in
  `pair_joint_chain` and `pair_relay_chain`; `fixed_point` iterates.

Every public function computes in double precision, whatever the caller's JAX precision.
"""
