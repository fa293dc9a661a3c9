"""Figure 5.5: segments that the first peripheral sends, and their acknowledgements, under rising load.

Two peripherals; the load of each connection is 80, 120, 160 and 200 kbit/s from 0, 60, 120 and 180 s on, and
the radio begins to err, at the original rates, after 10 s. The end of the time axis is not printed; a run
takes 480 s.

While the radio is perfect a segment is acknowledged at once. From 10 s on hardly any gets through, and the
doubled timer idles the connection for up to 64 s at a time.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.plotting import PALETTE, house_style
from btqueue.reproduction.figures.runs import events
from btqueue.reproduction.figures.venugopal_2006 import load_steps, mark_steps
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("idle-spell", "errors-after-10-s")


def draw(work: Work) -> Iterator[Picture]:
    """Yield segment numbers over time."""
    scenario = load_steps(work)
    seen = events(scenario, only=("segment sent", "segment received")).of(node="p1.1", flow=1)
    sent, acks = seen.of("segment sent"), seen.of("segment received")
    with house_style():
        figure = Figure(figsize=(9.0, 5.6), layout="constrained")
        for axes, end_s in zip(figure.subplots(1, 2), (15.0, scenario.run.duration_s), strict=True):
            axes.scatter(sent.time_s, sent.segment, s=18, facecolor="none", edgecolor=PALETTE[0], zorder=3)
            axes.scatter(acks.time_s, acks.acknowledged, s=18, marker="x", color=PALETTE[1], zorder=3)
            axes.set(xlabel="time (s)", xlim=(0, end_s), ylabel="number of the segment")
            axes.set_ylim(bottom=-1)
            mark_steps(axes, end_s)
        figure.legend(["sent", "next one acknowledged"], loc="outside lower center", ncols=2)
        figure.suptitle(f"{work.citation}: segments of p1.1 and their acknowledgements")
        yield Picture(figure)
