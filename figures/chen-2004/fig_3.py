"""Figure 3: packet error rate of the six packet types against the bit error rate.

Equations 1 and 2: an uncoded packet survives if all its payload bits do, a coded one if no block of 15 bits
has more than one error. Left with s/15 blocks as printed, right with s/10 as meant, for which the error
rate of coded packets is half as high again.

Coded packets fail in second order of the bit error rate and uncoded ones in first order: slopes of two and
one in the lower row, whose axes are logarithmic. The paper does not print the ranges of its axes.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes

from btqueue.reproduction.figures.chen_2004 import COUNTS, TYPES, error_rate
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("uncoded-error-rate", "coded-error-rate", "coded-packets-are-robust")


def linear(axes: Axes) -> None:
    """Set axes as in figure 2."""
    axes.set(xscale="log", xlim=(1e-5, 1e-1), ylim=(0, 1.02))


def logarithmic(axes: Axes) -> None:
    """Set axes on which powers are straight lines."""
    axes.set(xscale="log", yscale="log", xlim=(1e-5, 1e-1), ylim=(1e-8, 1.5))


def draw(work: Work) -> Iterator[Picture]:
    """Yield both counts of blocks, on linear and logarithmic axes."""
    ber = np.geomspace(1e-5, 1e-1, 401)
    panels = [
        Panel(
            [Curve(t.name, ber, model=error_rate(t, ber, printed=printed)) for t in TYPES],
            "packet error rate", title, "bit error rate", finish,
        )
        for finish in (linear, logarithmic)
        for title, printed in COUNTS.items()
    ]  # fmt: skip
    yield Picture(curves(panels, zero=False, title=f"{work.citation}: packet error rate by packet type"))
