"""Figure 5.7: packets that arrive at the first peripheral under rising load.

The same run as in figure 5.5, with the levels of figure 5.1. In the first 10 s packets arrive in quick
succession, all of them intact; later a few arrive whenever a timer has expired, many of them damaged.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.plotting import house_style
from btqueue.reproduction.figures.runs import events
from btqueue.reproduction.figures.venugopal_2006 import RECEIVED, arrivals, load_steps, mark_steps
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("errors-after-10-s",)


def draw(work: Work) -> Iterator[Picture]:
    """Yield the arrivals of one run."""
    scenario = load_steps(work)
    received = events(scenario, only=RECEIVED).of(node="p1.1")
    with house_style():
        figure = Figure(figsize=(9.0, 5.4), layout="constrained")
        for axes, end_s in zip(figure.subplots(2, 1), (15.0, scenario.run.duration_s), strict=True):
            arrivals(axes, received)
            axes.set_xlim(0, end_s)
            mark_steps(axes, end_s)
        axes.set_xlabel("time (s)")
        figure.suptitle(f"{work.citation}: packets that arrive at peripheral p1.1")
        yield Picture(figure)
