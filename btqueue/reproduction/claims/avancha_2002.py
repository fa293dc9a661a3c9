"""Avancha et al. (2002): the checks that their record cannot describe."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import Finding, rounded
from btqueue.reproduction.claims.record import Claim
from btqueue.scenario import load
from btqueue.simulator.construction.flows import pieces_of
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.replications import run_until

NOISY = 0.02
"""Block error rate of CDPD at bad times."""


def nothing_twice(engine: Engine, _claim: Claim) -> Finding:
    """Data packets in a run at bad times: a lost control message never causes an unnecessary one."""
    engine.only_simulated("count of single packets")
    size = 4096
    keys = {"traffic.request_bytes": size, "network.outside_links[1].loss": NOISY}
    scenario = load("avancha-2002/cdpd-centaurus", keys)
    count = run_until(new_state(scenario, 0), scenario.run.duration_s).flow_statistics
    lost, delivered = int(count.segments_damaged.sum()), int(count.delivered_in_order.sum())
    arrived = int(count.segments_finished.sum()) - lost
    under_way = len(pieces_of(scenario, size))
    return Finding(
        0 <= arrived - delivered <= under_way and lost > 0,
        f"{arrived + lost} sent, {lost} lost, {delivered} delivered, "
        f"{arrived - delivered} of a message of {under_way} under way",
    )


def segments_of_large_messages(_engine: Engine, _claim: Claim) -> Finding:
    """Messages of 4 to 8 KB are 8 to 16 segments on a small device."""
    counts = [
        len(pieces_of(load("avancha-2002/cdpd-tcp", {"transport.mss_bytes": mss}), size))
        for mss in (512, 536)
        for size in (4096, 8192)
    ]
    return Finding(
        counts == [8, 16, 8, 16],
        f"{counts[0]} and {counts[1]} of 512 byte, {counts[2]} and {counts[3]} of 536",
    )


def centaurus_is_linear(engine: Engine, _claim: Claim) -> Finding:
    """CentaurusComm's time on Bluetooth is linear in the size."""
    sizes = np.array((64, 128, 1024, 2048, 4096))
    scenario = load("avancha-2002/bluetooth-centaurus")
    times = [
        1000 * engine.sample(scenario, "session_time_s", traffic__reply_bytes=size) for size in sizes.tolist()
    ]
    fit = float(np.corrcoef(sizes, [t.mean() for t in times])[0, 1] ** 2)
    return Finding(fit > 0.95, f"R² = {fit:.4f}: {rounded(*times)} ms")


PROCEDURES = {
    "nothing_twice": nothing_twice,
    "segments_of_large_messages": segments_of_large_messages,
    "centaurus_is_linear": centaurus_is_linear,
}
