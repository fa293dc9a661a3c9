"""Figure 5.6: congestion window and slow start threshold of the first peripheral under rising load.

The same run as in figure 5.5. The window opens within the first 10 s, while the radio is perfect, and stays
near one segment afterwards. The threshold begins at 64 segments and falls to 2.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.plotting import PALETTE, house_style
from btqueue.reproduction.figures.venugopal_2006 import load_steps, mark_steps
from btqueue.reproduction.figures.work import Picture, Work
from btqueue.simulator.statistics.series import time_series

CLAIMS = ("errors-after-10-s",)


def draw(work: Work) -> Iterator[Picture]:
    """Yield both over time, on a logarithmic scale."""
    scenario = load_steps(work)
    series = time_series(scenario, step_s=0.05, flows=[1]).sel(flow=1)
    with house_style():
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, end_s in zip(panels, (15.0, scenario.run.duration_s), strict=True):
            axes.step(series.time, series.cwnd_segments, where="pre", color=PALETTE[0], label="window")
            axes.step(
                series.time, series.ssthresh_segments, where="pre", color=PALETTE[1], linestyle="--",
                label="threshold",
            )  # fmt: skip
            axes.set_yscale("log", base=2)
            axes.set(xlabel="time (s)", xlim=(0, end_s))
            axes.set_yticks([1, 2, 4, 8, 16, 32, 64, 128], ["1", "2", "4", "8", "16", "32", "64", "128"])
            mark_steps(axes, end_s)
        panels[0].set_ylabel("segments")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        figure.suptitle(f"{work.citation}: congestion window and threshold of p1.1")
        yield Picture(figure)
