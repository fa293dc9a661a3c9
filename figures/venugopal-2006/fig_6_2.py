"""Figure 6.2: two peripherals, perfect radio, over load and polling limit.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the polling limit M (S = 25, token rate 250 kbit/s, L = 20).

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import LIMITS, pages

CLAIMS = ("rtt-rises-with-M", "rtt-rises-with-M: M = 5", "rtt-rises-with-M: M = 25", "best-M")

draw = pages("piconet", LIMITS, (2,), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
