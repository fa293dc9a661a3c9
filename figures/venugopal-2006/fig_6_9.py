"""Figure 6.9: scatternet of 1 peripheral a piconet, perfect radio, over load and token rate.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the token rate (S = 25, M = 5, L = 20). The text names 175 to 275 kbit/s and more; the upper end is not
printed.

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import pages, token_rates

CLAIMS = ("scatternet-tb-lossless", "scatternet-tb-moderate")
RATES = token_rates((175, 200, 225, 250, 275, 300, 350))

draw = pages("scatternet", RATES, (1,), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
