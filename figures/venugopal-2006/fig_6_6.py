"""Figure 6.6: four and six peripherals, perfect radio, over load and token rate.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the token rate, 50 to 140 kbit/s for four peripherals and 30 to 100 for six (S = 25, M = 5, L = 20).

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import pages, token_rates

CLAIMS = ("best-tb",)
RATES = {4: token_rates((50, 65, 80, 95, 110, 125, 140)), 6: token_rates(range(30, 101, 10))}

draw = pages("piconet", RATES, (4, 6), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
