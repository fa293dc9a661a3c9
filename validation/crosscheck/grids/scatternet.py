"""The scatternet experiments of Venugopal 2006: 6.7 to 6.12 and 6.15 to 6.18, thinned.

Simulated are 6 replications of 480 s, 40 with radio errors, where replications differ more. A small
processing jitter (5 ms) is on where the radio is perfect: without it an overloaded scatternet stays in
whatever limit cycle it fell into.
"""

import btqueue as bt
from btqueue.scenario import Scenario

USUAL = {1: (250, 180), 2: (120, 100), 4: (70, 55), 6: (50, 35)}
"""Token rate and load (kbit/s) by peripherals of a piconet."""


def points() -> list[tuple[str, Scenario]]:
    """Return the points: every scenario, then peripherals n, load, buffer S, limit M, token rate tb."""
    found = [
        (name, _load(name))
        for name in ("scatternet-capacity", *(f"scatternet{kind}-{n}" for kind in KINDS for n in USUAL))
    ]
    loads = {1: (20, 60, 100, 120, 140), 2: (20, 40, 60, 70), 6: (5, 10, 15, 20, 25)}
    for n, some in loads.items():
        found += [point(n, load=load) for load in some]
        found.append(point(n, load=some[2], S=10))
        found += [point(n, S=5), point(n, S=15), point(n, M=10), point(n, M=25)]
    found += [point(1, tb=tb) for tb in (150, 175, 200)] + [point(6, tb=tb) for tb in (30, 40)]
    return found


KINDS = ("", "-errors", "-errors-as-reported")


def point(
    n: int, *, load: int | None = None, S: int = 25, M: int = 5, tb: int | None = None
) -> tuple[str, Scenario]:
    """Return a point with a perfect radio, in the thesis's symbols."""
    tb, load = tb or USUAL[n][0], load or USUAL[n][1]
    scenario = _load(f"scatternet-{n}").with_(
        traffic__load_kbps=load,
        flow_control__buffer_packets=S,
        flow_control__token_rate_kbps=tb,
        polling__limit=M,
    )
    return f"perfect radio, n={n}, load {load}, S={S}, M={M}, tb={tb}", scenario


def _load(name: str) -> Scenario:
    scenario = bt.load(f"venugopal-2006/{name}")
    if "errors" in name:
        return scenario.with_(run__replications=40)
    return scenario.with_(run__replications=6, run__jitter_s=0.005)


def group(name: str) -> str:
    """Return under which heading a point is counted besides all of them."""
    if name.startswith("perfect radio"):
        return name.split(", load")[0]
    return "bit errors" if "errors" in name else "scenarios, perfect radio"


REASONS = """
* **Several limit cycles** (S of 5 to 20, low token rates). Which one an overloaded connection falls into
  depends on how its window was filled; the model averages over three ways with equal weights, the simulator
  over Poisson arrivals and jitter. The worst is S = 5 with six peripherals: of the three ways only the burst
  leads to the stalled cycle in which the simulator nearly always is.
* **Close to saturation.** The flow-equivalent server takes service for exponential, where the bridge serves
  nearly steadily: at 90 % of the capacity round trips come out up to 11 % high. With six peripherals they
  come out up to 9 % low at half load and more: some of the time is lost in recoveries there.
* **Bit errors.** Traffic of the others comes in bursts between long pauses; the model takes it for Poisson
  arrivals: round trips come out up to 13 % low, their 90 % quantile up to 21 %.
"""
