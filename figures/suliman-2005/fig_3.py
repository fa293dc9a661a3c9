"""Figure 3: throughput of one receiving peripheral over window and packet size.

Seven active peripherals, one of which receives. The text says that throughput grows with both sizes and is
best at 64 KB and 1,500 bytes. Windows are as many whole segments as fit; the grids are ours.

The simulation agrees on the packet size. Of the windows only a single segment is poor: 4 KB fill the path,
which holds 2.7 KB with no queue, and at 64 KB the first slow start overruns the gateway's buffer, which costs
3 % in 30 s. The paper's window, rate times measured round trip, is mostly queueing that the window itself
causes.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.claims.suliman_2005.systems import PACKETS, WINDOWS_KB
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import metric_panel
from btqueue.reproduction.figures.suliman_2005 import sizes, through
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("III.A-throughput-vs-window", "III.A-throughput-vs-packet", "III.A-best", "III.A-bdp")
PRODUCT_KB = 25104 / 1024
"""Bandwidth times round-trip time, equation 1."""


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    windows = work.some(WINDOWS_KB)
    drawn = []
    for packet in PACKETS:
        points = [work.scenario("one-of-seven", sizes(window, packet)) for window in windows]
        drawn.append(through(work, f"{packet:,} byte", windows, points, "goodput_kbps"))

    def finish(axes):
        axes.set_xscale("log", base=2)
        axes.set_xticks(WINDOWS_KB, [str(window) for window in WINDOWS_KB])
        axes.axvline(PRODUCT_KB, color="#555555", linestyle=(0, (5, 3)), linewidth=1.0)
        axes.text(PRODUCT_KB * 0.96, 40, "equation 1 of the paper:\n25,104 byte", ha="right", fontsize=7.5,
                  color="#444444")  # fmt: skip

    panel = metric_panel("goodput_kbps", drawn, xlabel="window (KB)", finish=finish)
    note = f"Simulated: {runs_note(work.scenario('one-of-seven'))}."
    title = f"{work.citation}: one of seven receives"
    yield Picture(curves([panel], title=title, size=(6.2, 4.2), note=note))


if __name__ == "__main__":
    run_script(__file__)
