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


def group(name: str) -> str:
    """Return under which heading a point is counted besides all of them."""
    return name.split(",")[0]


def _model(name: str, pep: float, **changes) -> Scenario:
    changes.setdefault("run__duration_s", 1000)
    return bt.load(f"johansson-2000/{name}").with_(radio__per=pep, **changes)


def _loaded(name: str, pep: float, load: float, **changes) -> Scenario:
    return _model(name, pep, traffic__load_kbps=load * FULL_KBPS[pep], **changes)


REASONS = """
* **Message delays at a load of 0.8** are left out: it comes near to what a window of two carries, where
  delays tell a percent of its speed, and how two connections of which both stall fit together is known on the
  average only. With `transport.protocol = "none"` the queue's mean delay is within 2 %.
* **Bursts.** Mean round trips are 3 to 7 % short and delays 4 to 8 % long: segments that are held back are
  taken to meet the smallest window; in the simulator one in ten finds a larger one. The 90 % quantile is 12 %
  short, because each rhythm of a full window has only the spread of its services.
* **Bursts of two** bring round trips 6 % long: in short bursts windows of three are full for too short a
  time to settle in their cycle.
* **Greedy both ways, no errors.** Nothing but the phase of the ticks is random, and the connections settle in
  one of several rhythms; the model knows the even one, without spread.
* **The window of greedy connections** rests where slow start leaves it for thousands of round trips. The
  model lets it grow by a whole round trip's acknowledgements at a time, the simulator by two of three.
* **Each segment acknowledged at once.** Acknowledgements wait behind data that bunch with them: the 90 %
  quantile of the round trip is 14 % short.
"""
