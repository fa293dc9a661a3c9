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
* **Message delays above half load.** The window slows the queue only while it holds segments back. In the
  simulator a window of two segments also stalls the link with nothing held back, when both segments wait for
  their acknowledgement. With `transport.protocol = "none"`, no window, the queue's mean delay is within 2 %.
* **Bursts.** The other direction is on or off for geometric spells, though busy spells vary more: message
  delays both ways come out 10 to 25 % short, one way within 10 % up to half load.
* **Round trips from half load on** come out 5 to 12 % long: more acknowledgements find data to ride on than
  the model's independent hosts offer.
* **Greedy both ways, no errors.** Nothing but the phase of the ticks is random, and the connections settle in
  one of several rhythms; the model knows the even one, without spread.
* **Each segment acknowledged at once.** Acknowledgements wait behind data that bunch with them: the 90 %
  quantile of the round trip is about 20 % short.
"""
