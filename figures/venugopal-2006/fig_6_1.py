"""Figure 6.1: two peripherals, perfect radio, over load and token buffer.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the size S of the token buffer (M = 5, token rate 250 kbit/s, L = 20).

The thesis draws surfaces; curves are added, with the model beside the simulation. Where intervals are long
(S = 10), replications settle in different periodic orbits: a saturated piconet on a perfect radio has
nothing random in it.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import BUFFERS, pages

CLAIMS = (
    "goodput-2",
    "goodput-rises-with-S",
    "timeouts-fall-with-S",
    "fast-retransmits-rise-with-S",
    "window-rises-with-S",
    "rtt-2",
    "best-S",
)

draw = pages("piconet", BUFFERS, (2,), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
