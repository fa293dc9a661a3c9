"""The simulator at the edges of its settings: nothing hangs, nothing is miscounted."""

import numpy as np
import pytest
import whole_network
from thesis import thesis
from whole_network import go_on

from btqueue.simulator.records.conventions import SECOND
from btqueue.simulator.replications import run_replication, simulate
from btqueue.simulator.statistics.invariants import check_invariants

SHORT = {"run__duration_s": 20, "run__warmup_s": 0}
LAN = {"name": "lan", "from": "c1", "to": "h", "buffer_packets": 1}


def play(scenario, until_s):
    """Play a network from the start, check its counts, and return its state."""
    sim = whole_network.play(scenario, until_s)
    check_invariants(sim)
    return sim


def goodput(scenario):
    measured = run_replication(scenario, 0)
    assert measured is not None
    assert measured.complete
    return measured.counts.goodput_kbps()


# ------------------------------------------------------------------------------------------- small and large

BUFFERS_OF_ONE = {
    **{f"flow_control__{name}_packets": 1 for name in ("buffer", "baseband", "central_buffer")},
    "polling__bridge_buffer_packets": 1,
    "traffic__load_kbps": 5,
}
PLACES = {
    "piconet": {},
    "scatternet": {"network__topology": "scatternet"},
    "chain": {"network__topology": "chain", "network__hops": 3},
    "gateway": {"network__outside_links": [LAN], "network__flows": [{"from": "p1.1", "to": "h"}]},
}


@pytest.mark.parametrize("place", PLACES)
def test_segments_of_one_packet_pass_buffers_of_one_and_longer_ones_do_not(place):
    scenario = thesis().with_(**SHORT, **PLACES[place], **BUFFERS_OF_ONE)
    assert (goodput(scenario.with_(traffic__message_bytes=100, transport__mss_bytes=100)) > 1).all()
    # 1,504 bytes are 5 packets that come to the first queue at once
    assert not goodput(scenario.with_(flow_control__enabled=False)).any()


def test_what_was_sent_before_measuring_is_no_loss_above_all():
    """A backlog of packets, each damaged with probability 1/2 and sent once; hardly any come after it."""
    schedule = [{"at_s": 1.0, "load_kbps": 0.01}]
    scenario = thesis(
        run={"duration_s": 3, "warmup_s": 1, "replications": 2},
        transport={"protocol": "none"},
        traffic={"source": "periodic", "load_kbps": 600, "load_schedule": schedule},
        flow_control={"enabled": False, "baseband_packets": 10_000},
        link={"arq": 1},
        radio={"model": "constant", "per": 0.5},
    )
    result = simulate(scenario)
    assert ((result.loss_arq > 0) & (result.loss_arq <= 1)).all()


# ------------------------------------------------------------------------------- what never delivers anything

DEAD = {"radio__model": "constant", "radio__per": 1.0, "run__duration_s": 300, "run__warmup_s": 0}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"link__arq": "unlimited"},
        {"link__arq": "unlimited", "link__arq_feedback": "lossy"},
        {"link__arq": 3},
        {"link__arq": "unlimited", "link__flush_timeout_s": 0.05},
        {"link__arq": "unlimited", "link__adaptation": "best"},
        {"transport__variant": "sack", "traffic__source": "greedy"},
    ],
    ids=str,
)
def test_a_dead_link_delivers_nothing_and_the_timer_backs_off(changes):
    """Timeouts of 3 s, 6, ..., 48, 64, 64, ... end 3, 9, 21, 45, 93, 157, 221, 285 s after the first segment.

    That one comes within 15 s: sources write 14 messages a second.
    """
    scenario = thesis().with_(**DEAD, **changes)
    sim = play(scenario, 300)
    assert not sim.flow_statistics.bytes_delivered.any()
    assert sim.flow_statistics.timeouts.tolist() == [8, 8]


RING = {
    "network__topology": "custom",
    "network__piconet_list": [
        {"name": "A", "central": "a", "peripherals": ["x", "b"]},
        {"name": "B", "central": "b", "peripherals": ["y", "c"]},
        {"name": "C", "central": "c", "peripherals": ["z", "a"]},
    ],
    "network__flows": [{"from": "x", "to": "y"}, {"from": "y", "to": "z"}, {"from": "z", "to": "x"}],
    "traffic__load_kbps": 20,
}


def test_centrals_that_wait_for_each_other_for_ever_end_the_run_all_the_same():
    """Three centrals, each a walk-in bridge in the next piconet: all leave, and nobody is there to poll."""
    sim = play(thesis().with_(**RING), 300)
    assert sim.piconets.away.all()
    before = sim.flow_statistics.bytes_delivered.copy()
    with np.errstate(over="ignore"):
        sim = go_on(sim, 600 * SECOND)
    check_invariants(sim)
    assert (sim.flow_statistics.bytes_delivered == before).all()


def test_control_messages_are_no_throughput():
    """CentaurusComm without a radio error: what is sent and what is delivered are the same messages."""
    scenario = thesis().with_(
        transport__protocol="centaurus",
        traffic__source="request-reply",
        traffic__pause_s=1,
        network__active_flows=1,
    )
    sim = play(scenario, 100.5)
    count = sim.flow_statistics
    assert count.sessions[0] > 50
    assert (count.bytes_sent - count.bytes_delivered <= 1024).all(), "at most one message is on its way"
