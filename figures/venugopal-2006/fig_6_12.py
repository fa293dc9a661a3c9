"""Figure 6.12: scatternets of 2, 4 and 6 peripherals a piconet, perfect radio, over load and token rate.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the token rate: 90 to 180 kbit/s for two, 40 to 100 for four, 30 to 80 for six peripherals (S = 25, M = 5, L
= 20).

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import pages, token_rates

CLAIMS = ("scatternet-tb-extremes",)
RATES = {
    2: token_rates(range(90, 181, 15)),
    4: token_rates(range(40, 101, 10)),
    6: token_rates(range(30, 81, 10)),
}

draw = pages("scatternet", RATES, (2, 4, 6), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
