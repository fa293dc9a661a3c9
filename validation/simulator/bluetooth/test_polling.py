"""A central that sleeps while nothing waits, beside one that plays every idle visit."""

import numpy as np
import pytest
from thesis import thesis
from whole_network import go_on

from btqueue.simulator.construction import state
from btqueue.simulator.records.conventions import SECOND
from btqueue.simulator.statistics.invariants import check_invariants
from btqueue.simulator.statistics.measurement import measure, take_counts


def sleepless(scenario):
    """Return the state at time 0 of a network that plays every idle visit."""
    state.keep.cache_clear()
    state.State(state.empty_network(scenario).packed).piconets.can_sleep = False
    try:
        return state.new_state(scenario, 0)
    finally:
        state.keep.cache_clear()


def outcome(sim, seconds):
    """Run from the start; return everything that a result is made of, and the number of events played."""
    for second in range(1, seconds + 1):
        sim = go_on(sim, second * SECOND + 7)
    check_invariants(sim)
    tables = ("connections", "flow_statistics", "queue_statistics", "buckets", "streams", "channels", "links")
    # field by field: what lies between the fields of a record is not defined
    records = {
        f"{table}.{field}": getattr(sim, table)[field].copy()
        for table in tables
        for field in getattr(sim, table).dtype.names
    }
    return records | dict(measure(sim, [take_counts(sim)])), int(sim.clock[0].events)


@pytest.mark.parametrize(
    "changes",
    [
        {"traffic__load_kbps": 10},
        {"traffic__load_kbps": 20, "polling__limit": 2},
        {"traffic__load_kbps": 20, "network__peripherals": 5, "polling__limit": 1},
        {"traffic__load_kbps": 60, "flow_control__token_rate_kbps": 50, "radio__model": "gilbert-elliott"},
        {"traffic__load_kbps": 20, "run__jitter_s": 0.01},
        {"traffic__load_kbps": 20, "polling__discipline": "gated"},
        {"traffic__load_kbps": 20, "polling__discipline": "exhaustive", "link__arq": "unlimited"},
        {"traffic__source": "ibp", "traffic__load_kbps": 20, "transport__delayed_ack": True},
    ],
    ids=str,
)
def test_sleeping_through_idle_visits_changes_nothing(changes):
    scenario = thesis().with_(**changes)
    slept, few = outcome(state.new_state(scenario, 0), 4)
    played, many = outcome(sleepless(scenario), 4)
    assert few < 0.8 * many, "it slept"
    for name, value in played.items():
        np.testing.assert_array_equal(value, slept[name], err_msg=name)
