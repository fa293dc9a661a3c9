"""Figure 6.10: scatternets of 2, 4 and 6 peripherals a piconet, perfect radio, over load and token buffer.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the size S of the token buffer (M = 5, L = 20; token rates 120, 70 and 50 kbit/s).

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import BUFFERS, pages

CLAIMS = (
    "scatternet-goodput-2",
    "scatternet-goodput-falls-with-n",
    "scatternet-rtt-2",
    "scatternet-rtt-6",
    "scatternet-loss-with-S",
    "bridge-never-full",
)

draw = pages("scatternet", BUFFERS, (2, 4, 6), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
