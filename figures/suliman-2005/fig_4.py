"""Figure 4: throughput of the only busy peripheral against the number of active peripherals.

Window 64 KB, packets of 1,500 bytes; the others have no traffic but are polled. The text says that each idle
peripheral costs its two slots in every cycle; the dashed line is one DH5 in each cycle, from 723 to 241
kbit/s.

The second series is not in the paper, which only argues for it: polling by activity (fair exhaustive polling)
leaves idle peripherals out and removes the penalty.
"""

from collections.abc import Iterator

import numpy as np

from btqueue.baseband import PACKET_TYPES
from btqueue.cli.figures import run_script
from btqueue.reproduction.claims.suliman_2005.systems import with_peripherals
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import metric_panel
from btqueue.reproduction.figures.suliman_2005 import through
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("III.B-throughput-vs-slaves", "III.B-slots-independent-of-activity", "III.B-adaptive-better")
SERIES = {"round robin": "round-robin", "polling by activity": "fep"}
SLOT_MS = 0.625


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    counts = work.some(range(1, 8))
    drawn = []
    for label, discipline in SERIES.items():
        points = [work.scenario(with_peripherals(n), {"polling.discipline": discipline}) for n in counts]
        drawn.append(through(work, label, counts, points, "goodput_kbps"))

    def finish(axes):
        n = np.arange(1, 8)
        ceiling = PACKET_TYPES["DH5"].payload_bytes * 8 / ((6 + 2 * (n - 1)) * SLOT_MS)
        axes.plot(n, ceiling, color="#555555", linestyle=(0, (5, 3)), linewidth=1.0)
        axes.text(2.6, 500, "one DH5 in each cycle", fontsize=7.5, color="#444444")
        axes.set_ylim(top=780)

    panel = metric_panel("goodput_kbps", drawn, xlabel="active peripherals", finish=finish)
    note = f"Simulated: {runs_note(work.scenario('one-of-seven'))}."
    title = f"{work.citation}: one peripheral receives"
    yield Picture(curves([panel], title=title, size=(6.2, 4.2), note=note))


if __name__ == "__main__":
    run_script(__file__)
