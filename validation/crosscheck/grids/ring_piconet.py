"""The piconet experiments of Venugopal 2006: 6.1 to 6.6, 6.13 and 6.14, thinned.

Simulated are 10 replications of 480 s, 40 with radio errors, where replications differ more. A small
processing jitter (5 ms) is on at every point: without it the saturated perfect radio has several limit
cycles, and a single one of them is no fair reference.
"""

import btqueue as bt
from btqueue.scenario import Scenario


def points() -> list[tuple[str, Scenario]]:
    """Return the points: peripherals n, load, buffer S, limit M, token rate tb (kbit/s)."""
    usual = {2: 250, 4: 110, 6: 80}
    loads = {2: (80, 120, 160, 200, 240), 4: (30, 60, 90, 120), 6: (20, 40, 60, 80, 100)}
    rates = {2: (150, 200, 300, 400), 4: (50, 80, 140), 6: (30, 60, 100)}
    lossy = {2: (80, 140, 200), 4: (40, 70, 100), 6: (30, 60, 90)}
    found = []
    for n, tb in usual.items():
        for load in loads[n]:
            found += [point(n, load, s, 5, tb, errors=False) for s in (5, 10, 15, 20, 25)]
            found += [point(n, load, 25, m, tb, errors=False) for m in (10, 15, 25)]
            found += [point(n, load, 25, 5, rate, errors=False) for rate in rates[n]]
        for load in lossy[n]:
            found += [point(n, load, s, 5, tb, errors=True) for s in (5, 15, 25)]
            found.append(point(n, load, 25, 15, tb, errors=True))
    return found


def point(n: int, load: int, s: int, m: int, tb: int, *, errors: bool) -> tuple[str, Scenario]:
    """Return a point, in the thesis's symbols."""
    name = f"{'bit errors' if errors else 'perfect radio'}, n={n}, load {load}, S={s}, M={m}, tb={tb}"
    scenario = bt.load(f"venugopal-2006/{'piconet-errors' if errors else 'piconet'}").with_(
        network__peripherals=n,
        traffic__load_kbps=load,
        flow_control__buffer_packets=s,
        flow_control__token_rate_kbps=tb,
        polling__limit=m,
        run__jitter_s=0.005,
        run__replications=40 if errors else 10,
    )
    return name, scenario


def group(name: str) -> str:
    """Return under which heading a point is counted besides all of them."""
    return name.split(", load")[0]


REASONS = """
* **Several limit cycles**: M of 15 and more at the knee, S of 10 to 15 at two peripherals. A run of the
  simulator stays in one cycle for minutes; the model's three runs are three samples, and a warning gives
  their range. The worst round trips, and most of the wrong timeouts, are here.
* **Timeouts below about 0.03 per second** come from recoveries that fail (a retransmission lost, or too few
  duplicate acknowledgements): rare excursions, of which the 30,000 segments of an answer hold too few.
* **Error-prone radio.** One constant round-trip time stands for all windows, and the two hops see their
  channels at one instant: round trips come out long, goodput up to 12 % off.
* **Loads below the radio's limit**: timeouts come out 5 to 25 % low, because a sparse source has fewer
  duplicate acknowledgements than the chain's greedy one.
"""
