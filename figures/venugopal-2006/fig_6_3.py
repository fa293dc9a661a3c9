"""Figure 6.3: two peripherals, perfect radio, over load and token rate.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the token rate (S = 25, M = 5, L = 20). The range of token rates is not printed; the text names 250 kbit/s
and more.

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import pages, token_rates

CLAIMS = ("goodput-falls-beyond-tb", "place-of-loss")
RATES = token_rates((150, 200, 225, 250, 275, 300, 350, 400))

draw = pages("piconet", RATES, (2,), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
