"""The piconet experiments of Venugopal 2006: 6.1 to 6.6, 6.13 and 6.14, thinned; others beside them.

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
    found += [
        voice(n, load, tb, errors=False)
        for n, load, tb in ((1, 60, 150), (3, 20, 80), (3, 60, 120), (5, 15, 60))
    ]
    found += [
        independent(n, load, rate) for n, load in ((1, 200), (2, 140), (4, 70)) for rate in (1e-6, 3e-6, 1e-5)
    ]
    found += [point(1, load, 25, 5, 500, errors=errors) for load in (150, 250) for errors in (False, True)]
    return [*found, voice(3, 30, 150, errors=True)]


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


def independent(n: int, load: int, rate: float) -> tuple[str, Scenario]:
    """Return a point with independent bit errors at this rate."""
    usual = {1: 500, 2: 250, 4: 110}
    _, scenario = point(n, load, 25, 5, usual[n], errors=False)
    name = f"independent bit errors, load {load}, n={n}, bit error rate {rate:g}"
    return name, scenario.with_(radio__model="constant", radio__ber=rate, run__replications=40)


def voice(n: int, load: int, tb: int, *, errors: bool) -> tuple[str, Scenario]:
    """Return a point beside one HV3 link, which leaves four slots in a row."""
    _, scenario = point(n, load, 25, 5, tb, errors=errors)
    name = f"voice, load {load}, n={n}, tb={tb}{', bit errors' if errors else ''}"
    return name, scenario.with_(voice__packet="HV3", voice__links=1, link__packets=("DH3", "DH1"))
