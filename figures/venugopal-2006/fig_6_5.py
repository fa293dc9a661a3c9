"""Figure 6.5: four and six peripherals, perfect radio, over load and polling limit.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the polling limit M (S = 25, L = 20; token rate 110 kbit/s for four peripherals, 80 for six).

The thesis draws surfaces; curves are added, with the model beside the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import LIMITS, pages

CLAIMS = ("recovery-with-n",)

draw = pages("piconet", LIMITS, (4, 6), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
