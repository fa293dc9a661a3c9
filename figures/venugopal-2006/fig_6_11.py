"""Figure 6.11: scatternets of 2, 4 and 6 peripherals a piconet, perfect radio, over load and polling limit.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the polling limit M (S = 25, L = 20; token rates 120, 70 and 50 kbit/s). The thesis prints 120 for six
peripherals, too, which must be a slip.

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import LIMITS, pages

CLAIMS = ("scatternet-M-2-6",)

draw = pages("scatternet", LIMITS, (2, 4, 6), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
