"""Figure 6.7: scatternet of 1 peripheral a piconet, perfect radio, over load and token buffer.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the size S of the token buffer (M = 5, token rate 250 kbit/s, L = 20).

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.venugopal_2006 import BUFFERS, SCATTERNET_LOADS, pages

CLAIMS = (
    "scatternet-goodput-1",
    "scatternet-goodput-1: S = 25, load 180",
    "scatternet-lossless",
    "scatternet-S5-timeouts",
    "moderate-load-dip",
    "scatternet-rtt-1",
    "scatternet-below-piconet",
)


def draw(work: Work) -> Iterator[Picture]:
    """Yield curves and surfaces."""
    return pages(work, "scatternet-{n}", SCATTERNET_LOADS, BUFFERS, numbers=(1,), claims=CLAIMS)


if __name__ == "__main__":
    run_script(__file__)
