"""Figure 6.7: scatternet of 1 peripheral a piconet, perfect radio, over load and token buffer.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the size S of the token buffer (M = 5, token rate 250 kbit/s, L = 20).

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import BUFFERS, pages

CLAIMS = (
    "scatternet-goodput-1",
    "scatternet-goodput-1: S = 25, load 180",
    "scatternet-lossless",
    "scatternet-S5-timeouts",
    "moderate-load-dip",
    "scatternet-rtt-1",
    "scatternet-below-piconet",
)

draw = pages("scatternet", BUFFERS, (1,), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
