"""Figure 8: goodput in each ten seconds under a trace of link quality, 1, 2 and 4 hops: SYNTHETIC trace.

With the trace of figure 7, which is not the measured one: only the order of the two links can be compared.
The trace has five minutes and a run ten, so it is played twice; that the measured one was, too, is our
guess. All hops follow the same trace. The adaptive link knows the link quality as a whole number.
"""

from collections.abc import Iterator

from btqueue.reproduction.figures.chen_2004 import over_time, trace_path
from btqueue.reproduction.figures.work import Picture, Work


def draw(work: Work) -> Iterator[Picture]:
    """Yield a panel for each number of hops."""

    def scenario(link, hops):
        return work.scenario(f"trace-{link}", {"network.hops": hops, "radio.trace_file": trace_path()})

    def again(axes):
        if axes.get_xlim()[1] > 300:
            axes.axvline(300, color="#888888", linestyle=":", linewidth=1.0)
            axes.annotate(
                "trace begins anew", (300, 0.03), xycoords=axes.get_xaxis_transform(), xytext=(3, 0),
                textcoords="offset points", fontsize=7, color="#444444",
            )  # fmt: skip

    note = "SYNTHETIC trace. Markers: one simulated run, every 10 s. Lines: mean by the model."
    yield Picture(over_time(work, scenario, note=note, finish=again))
