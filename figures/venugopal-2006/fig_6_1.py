"""Figure 6.1: two peripherals, perfect radio, over load and token buffer.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the size S of the token buffer (M = 5, token rate 250 kbit/s, L = 20).

The thesis draws surfaces; curves are added, with the model beside the simulation. Where intervals are long
(S = 10), replications settle in different periodic orbits: a saturated piconet on a perfect radio has
nothing random in it.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.venugopal_2006 import BUFFERS, PICONET_LOADS, pages

CLAIMS = (
    "goodput-2",
    "goodput-rises-with-S",
    "timeouts-fall-with-S",
    "fast-retransmits-rise-with-S",
    "window-rises-with-S",
    "rtt-2",
    "best-S",
)


def draw(work: Work) -> Iterator[Picture]:
    """Yield curves and surfaces."""
    return pages(work, "piconet-{n}", PICONET_LOADS, BUFFERS, numbers=(2,), claims=CLAIMS)


if __name__ == "__main__":
    run_script(__file__)
