"""Figure 5.2: arrivals at the first peripheral together with the state of its radio.

The same run as in figure 5.1. The thesis draws the state as a square wave, 1 good and 0 bad, over the
arrivals at 0.75 (DH5) and 0.25 (DH3). The three spells of two seconds with the most arrivals are shown: over
the whole run, of 480 s, the wave would be a black band.

The stays are exponential with means of 437.5 and 55.8 ms. Packets are damaged in the good state, too: there
a DH5 fails with a probability of 0.17, in the bad state with 0.97.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from btqueue.plotting import house_style
from btqueue.reproduction.figures.runs import events
from btqueue.reproduction.figures.venugopal_2006 import ERRONEOUS_RUN, RECEIVED, arrivals, with_fading
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("mean-stays", "exponential-stays")
SPELL_S = 2.0


def draw(work: Work) -> Iterator[Picture]:
    """Yield the busiest spells of one run."""
    base = work.scenario("piconet-errors-original", {"run.warmup_s": 0})
    scenario, states, step_s = with_fading(work, base, seed=ERRONEOUS_RUN)
    received = events(scenario, only=RECEIVED).of(node="p1.1")
    counts = np.bincount((received.time_s // SPELL_S).astype(int))
    busiest = np.sort(np.argsort(-counts, kind="stable")[:3])
    good = ~states["p1.1"]
    with house_style():
        figure = Figure(figsize=(9.0, 6.6), layout="constrained")
        for axes, spell in zip(figure.subplots(3, 1), busiest, strict=False):
            begin = SPELL_S * spell
            axes.step(np.arange(len(good)) * step_s, good, where="post", color="#999999", linewidth=1.0)
            arrivals(axes, received, size=26)
            axes.set(xlim=(begin, begin + SPELL_S), ylim=(-0.05, 1.1))
            axes.set_yticks([*axes.get_yticks(), 0.0, 1.0], [*names(axes), "bad", "good"])
        axes.set_xlabel("time (s)")
        figure.suptitle(f"{work.citation}: arrivals at peripheral p1.1, and the state of its radio")
        yield Picture(figure)


def names(axes: Axes) -> list[str]:
    """Return the names of the levels."""
    return [label.get_text() for label in axes.get_yticklabels()]
