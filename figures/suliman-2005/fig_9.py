"""Figure 9: outstanding data over time, as an estimate of the window.

The text says that they never reach 64 KB, and that the window grows slowly and falls to one segment at
duplicate acknowledgements.

In the simulation, too, they form a sawtooth. But they reach all 44 segments while a loss is repaired, because
the hole holds back the acknowledgement. cwnd itself stays below once the first slow start is over, whose
overshoot a host that remembers the slow-start threshold of an earlier transfer does not have (second panel).
A sender with SACK, as the paper's, falls to half its window; a fall to one segment belongs to Tahoe (third
panel) or to a timeout.
"""

from collections.abc import Iterator

from btqueue.plotting import PALETTE
from btqueue.reproduction.claims.suliman_2005.systems import OVERSHOOT_FREE
from btqueue.reproduction.figures.curve_panels import Panel, curves
from btqueue.reproduction.figures.published import mark_level
from btqueue.reproduction.figures.work import Picture, Work
from btqueue.simulator.statistics.series import time_series

CLAIMS = ("III.D-window-never-full", "III.D-cwnd-sawtooth")
SENDERS = {
    "SACK": {},
    "SACK, slow-start threshold remembered": {"transport.initial_ssthresh_segments": OVERSHOOT_FREE},
    "Tahoe": {"transport.variant": "tahoe"},
}


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    panels = []
    for title, changes in SENDERS.items():
        scenario = work.scenario("round-trips", changes)
        one = time_series(scenario, step_s=0.01).isel(flow=0)

        def finish(axes, one=one, mss=scenario.transport.mss_bytes):
            axes.plot(one["time"], one["outstanding_segments"] * mss, color=PALETTE[0], linewidth=0.8)
            axes.plot(one["time"], one["cwnd_segments"] * mss, color=PALETTE[1], linewidth=0.9)
            mark_level(axes, 65536, "window: 64 KB", at=0.75)
            axes.set(xlim=(0, float(one["time"][-1])), ylim=(0, 84000))
            words = "blue: outstanding data, orange: cwnd"
            axes.text(0.99, 0.04, words, transform=axes.transAxes, ha="right", fontsize=7.5, color="#444444")

        panels.append(Panel([], "data (byte)", title=title, xlabel="time (s)", finish=finish))
    heading = f"{work.citation}: one transfer"
    yield Picture(curves(panels, columns=1, title=heading, size=(6.8, 2.7), note="Simulated, one run each."))
