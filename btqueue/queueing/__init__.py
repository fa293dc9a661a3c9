"""Queueing theory on a slotted time axis.

From the ground up:

* `laws`: probability vectors on the slots (`lattice`), with the mass beyond their end; phase-type laws;
* `traffic`: what comes (`arrivals`, `map_arrivals`);
* `chains`: Markov chains (`markov`, `sparse_chain`, `absorbing`, `birth_death`, `quasi_birth_death`, ...);
* `single`: one queue (`single_queue`, `finite_queue`, `priority_queue`, `modulated_queue`, ...);
* `vacations`: one queue whose server goes away (`queue` is the door to all disciplines);
* `polling`: one server for several queues (`polling`, `finite`, `small_chain`);
* `pairs`: a server that visits stations with a queue in each direction (`queue` is the fast door);
* `token_bucket`, `links`, `bridges`: what stands before a link, and what it does to a packet;
* `closed_forms`, `traffic_forms`: where there are formulas.

`fixed_point` and `implicit` iterate and differentiate what is iterated.

Every public function computes in double precision, whatever the caller's JAX precision.
"""
