"""The chains of Chen 2004: figures 5, 6 and 8, and the same for six hops, thinned.

Figure 5 sweeps the bit error rate; a link that never adapts is followed to 0.001, where it starves. The runs
are longer than those of the paper, for timeouts are rare, and a sawtooth lasts up to minutes.
"""

from itertools import product

import btqueue as bt
from btqueue.scenario import Scenario

LONG_RUN = {"run__duration_s": 6000, "run__replications": 6}
BERS = {"regular": (1e-5, 1e-4, 2e-4, 5e-4, 1e-3), "adaptive": (2e-4, 1e-3, 3e-3, 1e-2)}


def points() -> list[tuple[str, Scenario]]:
    """Return the points: the link (regular or adaptive), its hops and its radio."""
    found = []
    for hops in (1, 2, 4, 6):
        for link, bers in BERS.items():
            base = bt.load(f"chen-2004/{link}-4").with_(network__hops=hops, **LONG_RUN)
            name = f"{link}, {hops} hops, bit error rate"
            found += [(f"{name} {ber:g}", base.with_(radio__ber=ber)) for ber in bers]
    for radio, link in product(("alternating", "trace"), BERS):
        base = bt.load(f"chen-2004/{radio}-{link}").with_(**LONG_RUN)
        found += [(f"{link}, {hops} hops, {radio}", base.with_(network__hops=hops)) for hops in (1, 2, 4)]
    return found
