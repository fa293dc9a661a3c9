"""Figure 6: variability of the delay of a segment with a fixed wait of 200 ms in place of the tick.

As figure 4, but an acknowledgement that finds nothing to ride on waits 200 ms. Only loads up to somewhat more
than 0.4 are shown, as in the paper, whose legible marks are 0.5 and 0.6 on the vertical axis.

A fixed wait is less variable than the tick, of which a segment waits any part. The model lies up to 0.08
above the simulation.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.johansson_2000 import variability

LOADS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
draw = variability("fixed-wait", "smooth arrivals, wait of 200 ms", LOADS, 0.5)

if __name__ == "__main__":
    run_script(__file__)
