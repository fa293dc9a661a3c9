"""Figure 4: variability of the delay of a segment against load, in the runs of figure 3.

Squared coefficient of variation of the time from a segment's arrival until its receiver acknowledges it.

It is largest where some segments wait for the tick and others find data to ride on. From a load of 0.8 on
replications differ widely, as in figure 3.
"""

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures.johansson_2000 import LOADS, variability

draw = variability("smooth", "smooth arrivals, tick of 500 ms", LOADS, 1.0)

if __name__ == "__main__":
    run_script(__file__)
