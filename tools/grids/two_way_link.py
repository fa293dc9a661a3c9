"""One link with ARQ (Johansson 2000): greedy and loaded, around each of the paper's scenarios.

Loads are shares of the saturated symmetric goodput at the same packet error probability, as in the paper.
"""

import btqueue as bt
from btqueue.scenario import Scenario

FULL_KBPS = {0.0: 390, 0.1: 355, 0.3: 273, 0.5: 195}
"""Simulated goodput of `symmetric` by packet error probability."""
LONG = {"run__duration_s": 4000}
"""Bursts of 25 segments need more time than the paper gave them."""


def points() -> list[tuple[str, Scenario]]:
    """Return the points: packet error probability (PEP), load, and what else differs from the scenario."""
    found = [
        (f"greedy, {name}, PEP {pep}", _model(name, pep))
        for name in ("asymmetric", "symmetric")
        for pep in FULL_KBPS
    ]
    for pep, load in ((0.1, 0.1), (0.1, 0.3), (0.3, 0.3), (0.3, 0.5), (0.5, 0.5), (0.3, 0.7), (0.1, 0.8)):
        found.append((f"load, smooth, PEP {pep}, load {load}", _loaded("smooth", pep, load)))
    for pep, load in ((0.1, 0.3), (0.3, 0.5), (0.5, 0.3)):
        found.append((f"load, fixed-wait, PEP {pep}, load {load}", _loaded("fixed-wait", pep, load)))
    for pep, load in ((0.1, 0.3), (0.3, 0.3), (0.3, 0.5), (0.5, 0.5)):
        found.append((f"bursts, bursty, PEP {pep}, load {load}", _loaded("bursty", pep, load, **LONG)))
    others = {
        "uplink": {"network__flows": "uplink", "traffic__two_way": False},
        "one way": {"traffic__two_way": False},
        "Poisson": {"traffic__source": "poisson"},
        "no layer delays": {"link__l2cap_delay_s": 0, "link__baseband_delay_s": 0},
        "acknowledged each": {"transport__delayed_ack": False},
        "not piggybacked": {"transport__piggyback": False},
        "alpha 2, beta 4": {"transport__alpha": 2, "transport__beta": 4},
        "bursts of 2": {"traffic__scv": 3},
    }
    for name, changes in others.items():
        found.append((f"load, smooth, PEP 0.3, load 0.4, {name}", _loaded("smooth", 0.3, 0.4, **changes)))
    return found


def _model(name: str, pep: float, **changes) -> Scenario:
    changes.setdefault("run__duration_s", 1000)
    return bt.load(f"johansson-2000/{name}").with_(radio__per=pep, **changes)


def _loaded(name: str, pep: float, load: float, **changes) -> Scenario:
    return _model(name, pep, traffic__load_kbps=load * FULL_KBPS[pep], **changes)
