"""The chains of Chen 2004: figures 5, 6 and 8, and the same for three and six hops, thinned.

Figure 5 sweeps the bit error rate; a link that never adapts is followed to 0.001, where it starves.
"""

import btqueue as bt
from btqueue.scenario import Scenario

BERS = {"regular": (1e-5, 1e-4, 2e-4, 5e-4, 1e-3), "adaptive": (2e-4, 1e-3, 3e-3, 1e-2)}


def points() -> list[tuple[str, Scenario]]:
    """Return the points: the link (regular or adaptive), its hops and its radio."""
    found = [point(link, hops, ber) for hops in (1, 2, 4, 6) for link, bers in BERS.items() for ber in bers]
    for radio in ("alternating", "trace"):
        for link in ("regular", "adaptive"):
            for hops in (1, 2, 4):
                scenario = bt.load(f"chen-2004/{radio}-{link}").with_(network__hops=hops)
                found.append((f"{link}, {hops} hops, {radio}", scenario))
    return found


def point(link: str, hops: int, ber: float) -> tuple[str, Scenario]:
    """Return a point of constant bit error rate."""
    scenario = bt.load(f"chen-2004/{link}-4").with_(
        network__hops=hops, radio__ber=ber, run__duration_s=300, run__replications=4
    )
    return f"{link}, {hops} hops, bit error rate {ber:g}", scenario


def group(name: str) -> str:
    """Return under which heading a point is counted besides all of them."""
    return "several piconets" if name.split(", ")[1] in ("4 hops", "6 hops") else "one piconet"


REASONS = """
* **Timeouts over two hops** at a bit error rate of 5e-4 and more, and with states of the radio that change
  within a round trip. A recovery takes about as long as the timer, so that its chance of expiry is a small
  difference; the timer's own deviation is estimated, and changes of the radio are not in it. What an expiry
  sends again unnecessarily costs up to 5 % of the goodput there.
* **Fast retransmits and losses over bridges.** Rare excursions of a random walk to the rim of a node's
  buffer: they come out up to twice as frequent where the packets are hardly ever repeated.
* **Six hops on a bad radio.** Two bridges that meet in the middle piconet wait for each other more often than
  in turn: goodput up to 6 % high.
* **A bit error rate of 0.001 without adaptation over four hops**: a round trip takes eight seconds and a
  sawtooth minutes, so that the simulated interval is wide, and the warm-up is felt.
"""
