"""A server that visits stations in turn, each with a queue in either direction, and moves frame pairs.

* `queue`, `batch`: the fast solution, of one system and of many; `solution`: its measures. Behind it, from
  the ground up: `matrices`, `queue_runs`, `frames`, `station_visits`, `tour`, `closure`, `measures`.
* `polling` (equal stations) and `relay` (what one sends the next receives): slower references, with `visit`,
  `stations` and `cycle_memory`; `joint_chain` and `relay_chain`: exact, two stations.
"""
