"""Section 3: how CentaurusComm and TCP repair losses."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.claims.avancha_2002.systems import NOISY, cdpd_link, scenario, simulated
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import Finding, exceeds, rounded
from btqueue.simulator.construction.flows import pieces_of
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.replications import run_until


def packets_at_bad_times(size: int) -> tuple[int, int, int]:
    """Return how many data packets arrived, were lost and were delivered with their message, in one run."""
    noisy = cdpd_link(NOISY)
    single = scenario("cdpd-centaurus", size, network__outside_links=[noisy])
    sim = run_until(new_state(single, 0), single.run.duration_s)
    count = sim.flow_statistics
    lost = int(count.segments_damaged.sum())
    return int(count.segments_finished.sum()) - lost, lost, int(count.delivered_in_order.sum())


def nothing_twice(engine: Engine) -> Finding:
    """A lost control message never causes an unnecessary data packet."""
    engine.only_simulated("count of single packets")
    size = 4096
    arrived, lost, delivered = packets_at_bad_times(size)
    under_way = len(pieces_of(scenario("cdpd-centaurus"), size))
    return Finding(
        0 <= arrived - delivered <= under_way and lost > 0,
        f"{arrived + lost} sent, {lost} lost, {delivered} delivered, "
        f"{arrived - delivered} of a message of {under_way} under way",
    )


def segments_of_large_messages(_engine: Engine) -> Finding:
    """Messages of 4 to 8 KB are 8 to 16 segments on a small device."""
    counts = [
        len(pieces_of(scenario("cdpd-tcp", transport__mss_bytes=mss), size))
        for mss in (512, 536)
        for size in (4096, 8192)
    ]
    return Finding(
        counts == [8, 16, 8, 16],
        f"{counts[0]} and {counts[1]} of 512 byte, {counts[2]} and {counts[3]} of 536",
    )


def satellite(engine: Engine, variant: str, window: int) -> np.ndarray:
    """Return the goodput (kbit/s) over a satellite with a variant of TCP and a window (segments)."""
    result = simulated(
        engine, "satellite", transport__variant=variant, transport__receive_window_segments=window
    )
    return result["goodput_kbps"].values[:, 0]


def sack_with_small_windows(engine: Engine) -> Finding:
    """SACK does not help with small windows."""
    pairs = [
        (satellite(engine, "sack", window), satellite(engine, "newreno", window)) for window in (2, 3, 4)
    ]
    gains = [100 * (sack.mean() / newreno.mean() - 1) for sack, newreno in pairs]
    return Finding(
        all(abs(gain) < 5 for gain in gains),
        ", ".join(f"{gain:+.1f} %" for gain in gains) + " at 2, 3, 4 segments",
    )


def sack_over_satellite(engine: Engine) -> Finding:
    """SACK beats Reno over long-delay links."""
    sack, reno = satellite(engine, "sack", 64), satellite(engine, "reno", 64)
    return Finding(exceeds(sack, reno), f"{rounded(sack)} against {rounded(reno)} kbit/s")
