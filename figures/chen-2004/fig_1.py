"""Figure 1: link quality against bit error rate.

Three straight lines, of slopes 40,000, 1,250 and 156.25: CSR's mapping. On the published axis, from 0 to 1,
the two steep ones are hardly to be seen; a logarithmic axis is added, with the thresholds of table 3.

The lines do not meet at 0.001 (215 and 213.75) and at 0.1 (90 and 89.375). From 0.672 on the third one
would be negative; the link quality is cut at 0 there.
"""

from collections.abc import Iterator

import numpy as np

from btqueue.channel import link_quality
from btqueue.reproduction.figures.chen_2004 import mark_thresholds, thresholds
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("link-quality",)
BREAKS = (1e-3, 0.1, 105 * 256 / 40_000)
"""Where one line ends and the next begins, and where the last one is cut."""


def draw(work: Work) -> Iterator[Picture]:
    """Yield the mapping on both axes."""
    linear, log = np.linspace(0, 1, 2001), np.geomspace(1e-5, 1, 1001)
    found = thresholds(work, printed=True)

    def breaks(axes):
        for ber in BREAKS:
            quality = float(link_quality(ber))
            axes.plot([ber], [quality], "o", color="#333333", markersize=4)
            axes.annotate(
                f"{ber:.3g}: {quality:g}", (ber, quality), (6, 5), textcoords="offset points", fontsize=8
            )
        axes.set(xlim=(0, 1), ylim=(0, 260))

    def marks(axes):
        axes.set(xscale="log", ylim=(0, 260))
        mark_thresholds(
            axes, found, [f"{ber:.5g}: {float(link_quality(ber)):.1f}" for ber in found], low=True
        )

    panels = [
        Panel(
            [Curve("", linear, model=link_quality(linear))],
            "link quality",
            "as published",
            "bit error rate",
            breaks,
        ),
        Panel(
            [Curve("", log, model=link_quality(log))], "link quality", "logarithmic", "bit error rate", marks
        ),
    ]
    note = "Dots: where the lines end. Dashed: thresholds of table 3, with the link quality there."
    yield Picture(curves(panels, title=f"{work.citation}: link quality", note=note))
