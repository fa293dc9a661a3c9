"""Figure 5.3: goodput and congestion window for seven pairs of mean stays in the good and the bad state.

Two peripherals at the original error rates, offered load 80 to 200 kbit/s (token rate 250 kbit/s, M = 5, S =
25, L = 20). The stays in both states add up to 493.3 ms; the more of them is good, the larger are goodput
and window.

A segment with its acknowledgement gets through in 4 to 15 percent of the attempts, so goodputs are below
100 bits a second. 100 replications a point, in place of 10, make the differences visible.
"""

from collections.abc import Iterator

from matplotlib.axes import Axes

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import metric_panel
from btqueue.reproduction.figures.venugopal_2006 import stay_curves

CLAIMS = ("original-goodput-rises-with-good", "original-window-rises-with-good", "original-window")


def draw(work: Work) -> Iterator[Picture]:
    """Yield both metrics over the load."""
    found = stay_curves(work, ("goodput_kbps", "cwnd_segments"))
    label = "offered load (kbit/s)"
    panels = [
        metric_panel("goodput_kbps", found["goodput_kbps"], xlabel=label),
        metric_panel("cwnd_segments", found["cwnd_segments"], xlabel=label, finish=from_one),
    ]
    title = f"{work.citation}: mean stays in the good and the bad state (ms), original error rates"
    yield Picture(curves(panels, title=title, size=(5.2, 4.0)))


def from_one(axes: Axes) -> None:
    """Let the axis begin at the least window."""
    axes.set_ylim(bottom=1.0)


if __name__ == "__main__":
    run_script(__file__)
