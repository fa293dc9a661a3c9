"""Figure 6.4: four and six peripherals, perfect radio, over load and token buffer.

Goodput, round-trip time, window, timeouts and fast retransmits over the offered load of each connection and
the size S of the token buffer, 5 to 40 (M = 5, L = 20; token rate 110 kbit/s for four peripherals, 80 for
six).

The thesis draws surfaces; curves are added, with the model beside the simulation. Four peripherals stay
below the 90 kbit/s of the thesis, which is the bare capacity of the slots: at S = 25 packets are lost there.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.venugopal_2006 import BUFFERS_TO_40, pages

CLAIMS = ("goodput-4", "goodput-6", "goodput-falls-with-n", "capacity", "rtt-6", "best-S-4-6")

draw = pages("piconet", BUFFERS_TO_40, (4, 6), CLAIMS)

if __name__ == "__main__":
    run_script(__file__)
