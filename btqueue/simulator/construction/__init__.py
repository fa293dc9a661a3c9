"""From a scenario to the state of a replication."""
