"""Figure 6: empirical distribution function of the round-trip time.

The round trips of figure 5 over 20 transfers, with 95 % bands between transfers, and quantiles of the model.
The text gives the range (37 to 680 ms), the mean (277.7 ms) and the standard deviation (138.6 ms, half of the
mean).

A drop-tail buffer behind a WLAN without losses keeps round trips between half and all of their maximum, so
that the mean is too high and the deviation too small a part of it. Losses of 0.5 % on the WLAN bring the mean
within a quarter of the paper's: the testbed lost segments elsewhere.

The model answers for long runs (of 600 s its quantiles agree to 3 %); a transfer of 30 s begins with a slow
start that overshoots, and with losses its round trips are longer for that.
"""

from collections.abc import Iterator

import numpy as np

from btqueue.plotting import PALETTE
from btqueue.reproduction.claims.suliman_2005 import round_trips, wlan_with_loss
from btqueue.reproduction.figures.curve_panels import Panel, curves
from btqueue.reproduction.figures.work import Picture, Work, runs_note
from btqueue.study.summary import student_half_width

CLAIMS = ("III.C-rtt-range", "III.C-rtt-mean", "III.C-rtt-sd")
PUBLISHED_MS = {"least 37": 37.0, "mean 277.7": 277.7, "most 680": 680.0}
LOSSES = {"no losses": 0.0, "0.5 % lost on the WLAN": 0.005}
GRID_MS = np.arange(0.0, 751.0, 5.0)


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    scenarios = {
        label: work.scenario(wlan_with_loss(loss), {"run.replications": 20}) for label, loss in LOSSES.items()
    }
    solved = work.answers(list(scenarios.values()), ("solve",))

    def finish(axes):
        for (label, scenario), answer, colour in zip(scenarios.items(), solved, PALETTE, strict=False):
            runs = [round_trips(scenario, k)[1] for k in range(scenario.run.replications)]
            below = np.array([[np.mean(1000 * run <= x) for x in GRID_MS] for run in runs])
            band = [student_half_width(column) for column in below.T]
            mean = below.mean(axis=0)
            axes.plot(GRID_MS, mean, color=colour, label=label)
            low, high = np.clip([mean - band, mean + band], 0, 1)
            axes.fill_between(GRID_MS, low, high, color=colour, alpha=0.2, linewidth=0)
            for percent in (50, 90, 95, 99):
                at = answer["solve"].means.get(f"rtt_p{percent}_s", np.nan)
                axes.plot(1000 * at, percent / 100, "D", markersize=4, color=colour, markerfacecolor="white")
        axes.plot([], [], "D", color="#555555", markersize=4, markerfacecolor="white", label="model")
        for text, value in PUBLISHED_MS.items():
            axes.axvline(value, color="#555555", linestyle=(0, (5, 3)), linewidth=1.0)
            axes.text(value + 6, 1.02, f"paper: {text}", fontsize=7, color="#444444", va="bottom")
        axes.set(xlim=(0, 760), ylim=(0, 1.1))
        axes.legend(loc="lower right", bbox_to_anchor=(0.88, 0.0), fontsize=8)

    panel = Panel([], "share of the segments", xlabel="round-trip time (ms)", finish=finish)
    note = f"Simulated: {runs_note(scenarios['no losses'])}."
    title = f"{work.citation}: one transfer"
    yield Picture(curves([panel], title=title, size=(6.8, 4.2), note=note))
