"""A ring piconet without ARQ, solved: its metrics, from a fixed point of TCP, token buckets, polling, radio.

1. Held back by radio errors: every connection always has data, and works as `coupled.connection` says.
2. The load is below that: goodput is the load. Rates of events go with the share of the time that the
   connection needs. Messages that wait behind a timeout, and those that come before they have been cleared
   away, meet a busy connection; the others meet the network alone.
"""

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.coupled.balance import MOST_BUSY, Balance, share_of_air, solve_balance
from btqueue.network.coupled.path import Timing
from btqueue.network.coupled.radio import Crossing, crossing
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.scenario import Scenario

FREQUENT = 0.15
"""Share of the data segments that the radio destroys from which on windows hardly ever exceed `SMALL`."""
SMALL, LARGE = 5, 6
"""Largest windows of the chain: 6 changes goodput by up to 1 % where losses are frequent, and takes ten times
as long; 8 takes seconds."""
LATE = 1.1
"""Multiple of the timeout's floor above which the estimate of the round trip decides about goodput."""
SHORT_TIMEOUT = 4.0
"""Least timeout, in round trips, below which connections live by their timers."""
FEW_PACKETS = 3
"""Packets of a segment below which a visit takes several segments."""
NOTHING = 1e-9
"""Chance of a segment to get through below which nothing is said about the connection."""
CROWDED = 0.5
"""Share of the air used by others from which on a second solution is looked for."""
APART = 1e-3
"""Relative difference of goodput that makes two solutions of one."""

ERRORS = {
    "radio": "goodput 2 % in the median, 6 % at most; round trips 2 and 4 %; timeouts 1 and 5 %; fast "
    "retransmits above 0.01/s 4 and 12 %; at random points without a warning goodput up to 15 %, round trips "
    "21 %, timeouts 17 %",
    "rare": "goodput 2 % in the median, 8 % at most; round trips 16 and 39 %; timeouts 9 and 66 %; fast "
    "retransmits 8 and 17 %; at random points with a warning round trips and timeouts up to a factor of two",
}
"""Measured against the simulator, on the grid of validation/crosscheck."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: no fixed point was found, or nothing gets through.
    """
    ring, traffic = ring_of(scenario), scenario.traffic
    kilobits = traffic.message_bytes * 8 / 1000
    offered = np.inf if traffic.source == "greedy" else traffic.load_kbps / kilobits
    lost = data_loss(crossing(scenario, Timing(ring)))
    if lost > 1.0 - NOTHING:
        raise NoConvergence("no segment gets through: the connections never move")
    largest = SMALL if lost >= FREQUENT else LARGE
    window = min(scenario.transport.receive_window_segments, largest)
    found = solve_balance(scenario, window, offered)
    warnings = other_solutions(scenario, window, offered, found)
    metrics = metrics_of(ring, found, offered)
    metrics["goodput_kbps"] = metrics.pop("goodput") * kilobits
    metrics["throughput_kbps"] = metrics.pop("sends") * kilobits
    rare = found.duty < 1.0 or (lost < FREQUENT and window < scenario.transport.receive_window_segments)
    if rare:
        warnings.append(
            "radio errors hardly hold the connections back: windows larger than the chain's "
            f"{window} segments, full queues on the air and messages that come one by one are only roughly "
            "accounted for"
        )
    if found.given.rto > LATE * scenario.transport.min_rto_s:
        warnings.append(
            f"timeouts last {found.given.rto:.2f} s, more than their floor, and so depend on how round trips "
            "vary: goodput and timeouts come out up to 26 % high"
        )
    if scenario.transport.min_rto_s < SHORT_TIMEOUT * metrics["rtt_s"]:
        warnings.append(
            f"transport.min_rto_s = {scenario.transport.min_rto_s:g} is less than {SHORT_TIMEOUT:g} round "
            "trips: goodput comes out up to 13 % high"
        )
    if len(ring.data) < FEW_PACKETS:
        warnings.append(
            f"segments of {len(ring.data)} packets: several go in one visit, which the times of a burst do "
            "not account for; round trips come out up to 43 % short"
        )
    if found.timing.others > CROWDED:
        warnings.append(
            f"the others use {found.timing.others:.0%} of the air, which processor sharing describes only "
            "roughly: goodput comes out up to 15 % high"
        )
    notes = {
        "method": "solved: exact chain of TCP with channels and token bucket, in a fixed point with polling",
        "converged": True,
        "residual": found.residual,
        "iterations": found.iterations,
        "warnings": warnings,
        "errors": ERRORS["rare" if warnings else "radio"],
    }
    return metrics, notes


def data_loss(radio: Crossing) -> float:
    """Return the share of data segments that the radio destroys, if they come one by one."""
    law = radio.transition(np.array(np.inf))[0]
    return float(law @ radio.fates(np.zeros(radio.gaps_s.shape), 0.0)[0].sum(axis=1))


def other_solutions(scenario: Scenario, window: int, offered: float, found: Balance) -> list[str]:
    """Look for another fixed point, from a full network on; return a warning if there is one."""
    if found.timing.others < CROWDED:
        return []
    capacity = ring_of(scenario).air_capacity
    full = found.given._replace(data=capacity, acks=capacity)
    other = solve_balance(scenario, window, offered, start=full)
    if abs(other.connection.goodput / found.connection.goodput - 1.0) < APART:
        return []
    kilobits = scenario.traffic.message_bytes * 8 / 1000
    return [
        f"two solutions: {found.goodput * kilobits:.1f} and {other.goodput * kilobits:.1f} kbit/s; the first "
        "is given, to which a network that begins empty comes"
    ]


def metrics_of(ring: Ring, found: Balance, offered: float) -> dict:
    """Return the metrics by name; `goodput` and `sends` are rates of segments still."""
    connection, duty, given = found.connection, found.duty, found.given
    flows = ring.peripherals
    used = share_of_air(ring, flows, given.data, given.acks)
    packets = 2 * flows * SLOT_S * (given.data * ring.data_slots + given.acks * ring.ack_slots)
    metrics = {
        "goodput": min(offered, connection.goodput),
        "sends": duty * connection.sends,
        "rtt_s": round_trip(ring, found),
        "timeouts_per_s": duty * connection.timeouts,
        "fast_retransmits_per_s": duty * connection.fast_retransmits,
        "segment_loss": 1.0 - connection.received / connection.sends,
        "queue_packets": {"token_buffer": duty * connection.waiting},
        "cycle_s": 2 * flows * SLOT_S / max(1.0 - used, 1e-3),
        "slot_utilisation": packets,
    }
    if duty == 1.0 and not np.isnan(connection.window):
        metrics["window_segments"] = connection.window
    return metrics


def round_trip(ring: Ring, found: Balance) -> float:
    """Return the mean round trip (s): of messages that find the connection busy, and of the others."""
    used = share_of_air(ring, ring.peripherals, found.given.data, found.given.acks)
    sparse = Timing(ring, min(used, MOST_BUSY)).round_trip_s
    return found.busy * found.connection.rtt + (1.0 - found.busy) * sparse
