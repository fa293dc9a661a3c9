"""Figure 2: throughput of the six packet types against the bit error rate.

Equation 4: payload times success over n + 1 slots. Left with the s/15 code blocks of a coded packet that
the paper prints, right with the s/10 that are meant: a block of 15 bits carries ten payload bits. Dashed:
where the best type changes.

The printed thresholds (0.0001529, 0.0060795, 0.0157813) equal the left panel's to the last digit; with the
right count the upper two are 17 and 20 % lower. DH3 and DH1 are best nowhere. The paper does not print the
range of its axis. Markers are simulations of a saturated link of full packets, whose decoder has the right
number of blocks.
"""

from collections.abc import Iterator

import numpy as np

from btqueue.baseband.packets import PacketType
from btqueue.reproduction.claims.chen_2004.links import one_link
from btqueue.reproduction.figures.chen_2004 import COUNTS, TYPES, error_rate, mark_thresholds, thresholds
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("rates", "attempts", "link-throughput", "thresholds", "sequence-of-best-types")
BERS = np.geomspace(1e-5, 1e-1, 401)
SIMULATED_AT = {
    "DH5": (3e-5, 1e-4, 3e-4, 1e-3),
    "DH3": (3e-5, 1e-4, 3e-4, 1e-3),
    "DM5": (1e-4, 1e-3, 3e-3, 6e-3, 1e-2),
    "DM3": (1e-4, 1e-3, 3e-3, 6e-3, 1e-2),
}
"""Beyond them next to nothing gets through, and TCP stalls."""


def with_simulation(work: Work, packet: PacketType, line: np.ndarray) -> Curve:
    """Return the line with the user rate of a saturated simulated link, headers of segments included."""
    link = one_link(packet.name, 0.0)
    over = {"radio.ber": SIMULATED_AT[packet.name]}
    found = work.sweep(link, over, changes={"run.duration_s": 100}, engines=("simulate",), what=packet.name)
    headers = (link.transport.mss_bytes + 44) / link.transport.mss_bytes
    bers = found["radio.ber"].values
    unknown = np.full(len(BERS), np.nan)
    return Curve(
        packet.name,
        np.append(BERS, bers),
        mean=np.append(unknown, headers * found["goodput_kbps"].values),
        ci95=np.append(unknown, headers * found["goodput_kbps_ci95"].values),
        model=np.append(line, np.full(len(bers), np.nan)),
    )


def draw(work: Work) -> Iterator[Picture]:
    """Yield equation 4 with both counts of blocks."""
    panels = []
    for title, printed in COUNTS.items():
        drawn = []
        for packet in TYPES:
            line = packet.asymmetric_kbps * (1 - error_rate(packet, BERS, printed=printed))
            also = not printed and packet.name in SIMULATED_AT
            drawn.append(
                with_simulation(work, packet, line) if also else Curve(packet.name, BERS, model=line)
            )
        found = thresholds(work, printed=printed)

        def finish(axes, found=found):
            axes.set(xscale="log", ylim=(0, 760), xlim=(1e-5, 1e-1))
            mark_thresholds(axes, found)

        panels.append(Panel(drawn, "throughput (kbit/s)", title, "bit error rate", finish))
    yield Picture(curves(panels, title=f"{work.citation}: throughput of a link by packet type"))
