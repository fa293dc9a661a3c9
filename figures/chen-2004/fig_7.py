"""Figure 7: bit error rate over five minutes, a value every 100 ms: SYNTHETIC.

The paper's trace was measured between two devices, 5 m apart, beside 802.11b stations, and never published.
`models/chen-2004/link-quality.txt` stands in for it: clear spells and shorter ones of interference, with
exponential lengths of 6 and 3 s in the mean, and levels that are our choice. It says nothing about the
measured one.

Link qualities are whole numbers, so the bit error rate has steps of 0.000025. Dashed: the first threshold
of table 3; above it the adaptive link sends DM5. The upper thresholds (0.006 and 0.016) are never reached.
"""

from collections.abc import Iterator

import numpy as np

from btqueue.channel import ber_from_link_quality
from btqueue.reproduction.figures.chen_2004 import thresholds, trace_path
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.published import mark_level
from btqueue.reproduction.figures.work import Picture, Work


def draw(work: Work) -> Iterator[Picture]:
    """Yield the synthetic trace."""
    step_s = work.scenario("trace-adaptive").radio.trace_step_s
    ber = ber_from_link_quality(np.loadtxt(trace_path()))
    first = thresholds(work, printed=True)[0]
    time_s = step_s * np.arange(len(ber))

    def finish(axes):
        axes.lines[0].set(drawstyle="steps-post", linewidth=0.8)
        axes.set(xlim=(0, time_s[-1] + step_s), ylim=(0, 1.25e-3))
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        mark_level(axes, first, "")
        axes.text(
            1.005, first, f"first threshold\n{first:.4g}", transform=axes.get_yaxis_transform(), fontsize=8
        )
        axes.text(
            0.5, 0.93, "synthetic: the measured trace was not published", ha="center", va="center",
            transform=axes.transAxes, color="#D55E00", fontsize=11,
        )  # fmt: skip

    panel = Panel([Curve("", time_s, model=ber)], "bit error rate", "", "time (s)", finish)
    share = float((ber > first).mean())
    work.note(f"Mean bit error rate {ber.mean():.2g}, above the first threshold {share:.0%} of the time.")
    yield Picture(curves([panel], size=(9.0, 3.2), title=f"{work.citation}: a made-up trace in its place"))
