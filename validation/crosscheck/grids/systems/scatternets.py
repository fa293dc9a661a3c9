"""The scatternet experiments of Venugopal 2006: 6.7 to 6.12 and 6.15 to 6.18, thinned; and larger ones.

Of 3 to 10 piconets in a line, joined by bridges of both kinds: pairs of flows from end to end, and rings of
flows inside the piconets; longer stays, switches that take time, little room, bit errors.

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
    for bridge in ("SS", "MS"):
        found += [larger(count, bridge, load) for count in (3, 4, 6, 10) for load in (20, 50, 100)]
        found += [larger(4, bridge, 60, flows="ring"), larger(3, bridge, 20, stay=2)]
        found += [larger(3, bridge, 20, ber=1e-5), larger(3, bridge, 50, switch=True)]
        found.append(larger(3, bridge, 50, buffer=6))
    return [*found, *(larger(2, "MS", load) for load in (20, 50, 100))]


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


def larger(
    count: int,
    bridge: str,
    load: int,
    *,
    flows: str = "pairs",
    stay: int = 0,
    ber: float = 0.0,
    switch: bool = False,
    buffer: int = 25,
) -> tuple[str, Scenario]:
    """Return a point with so many piconets of two peripherals each, bridges not counted."""
    scenario = _load("scatternet-2").with_(
        network__piconets=count,
        network__bridge=bridge,
        network__flows=flows,
        traffic__load_kbps=load,
        polling__residence="cycle" if stay else "visit",
        polling__residence_cycles=max(stay, 1),
        polling__switch_delay=switch,
        flow_control__buffer_packets=buffer,
        **({"radio__model": "constant", "radio__ber": ber, "run__replications": 20} if ber else {}),
    )
    stays = f", stays of {stay} cycles" if stay else ""
    errors = f", bit error rate {ber:g}" if ber else ""
    more = f"{stays}{errors}{', switch delay' if switch else ''}{', S=6' if buffer < 25 else ''}"
    return f"{count} piconets, {bridge} bridges, {flows}, load {load}{more}", scenario


def _load(name: str) -> Scenario:
    scenario = bt.load(f"venugopal-2006/{name}")
    if "errors" in name:
        return scenario.with_(run__replications=40)
    return scenario.with_(run__replications=6, run__jitter_s=0.005)


def group(name: str) -> str:
    """Return under which heading a point is counted besides all of them."""
    if "bridges" in name:
        return "MS bridges" if "MS" in name else "3 to 10 piconets, SS bridges"
    if name.startswith("perfect radio"):
        return name.split(", load")[0]
    return "bit errors" if "errors" in name else "scenarios, perfect radio"
