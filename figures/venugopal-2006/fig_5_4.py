"""Figure 5.4: fast retransmits and timeouts for seven pairs of mean stays in the good and the bad state.

The same runs as in figure 5.3. Timeouts become more frequent as the radio improves: the timer is doubled
less often, so that the connection is idle for shorter times. Fast retransmits do not occur: near one
segment, no window is large enough for three duplicate acknowledgements.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import metric_panel
from btqueue.reproduction.figures.venugopal_2006 import stay_curves

CLAIMS = ("original-timeouts-rise-with-good",)


def draw(work: Work) -> Iterator[Picture]:
    """Yield both metrics over the load."""
    found = stay_curves(work, ("fast_retransmits_per_s", "timeouts_per_s"))
    panels = [metric_panel(name, found[name], xlabel="offered load (kbit/s)") for name in found]
    title = f"{work.citation}: mean stays in the good and the bad state (ms), original error rates"
    yield Picture(curves(panels, title=title, size=(5.2, 4.0)))


if __name__ == "__main__":
    run_script(__file__)
