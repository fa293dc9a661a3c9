"""Figure 5.1: packets that arrive at the first peripheral, intact and damaged.

Two peripherals at the original error rates (load 80 kbit/s, token rate 250 kbit/s, M = 5, S = 25, L = 20).
DH5 packets carry data, DH3 packets the rest of a segment or an acknowledgement. Four levels tell them apart,
as in the thesis.

One run of 480 s. Most of the time nothing arrives: the retransmission timers, doubled again and again, are
waiting. The state of each link's radio was drawn beforehand, so that figure 5.2 can show it.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.plotting import house_style
from btqueue.reproduction.figures.runs import events
from btqueue.reproduction.figures.venugopal_2006 import ERRONEOUS_RUN, RECEIVED, arrivals, with_fading
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("both-types-damaged", "idle-spell")


def draw(work: Work) -> Iterator[Picture]:
    """Yield the arrivals of one run."""
    base = work.scenario("piconet-errors-original", {"run.warmup_s": 0})
    scenario, _, _ = with_fading(work, base, seed=ERRONEOUS_RUN)
    received = events(scenario, only=RECEIVED).of(node="p1.1")
    with house_style():
        figure = Figure(figsize=(9.0, 3.2), layout="constrained")
        axes = figure.subplots()
        arrivals(axes, received)
        damaged = received.of("packet corrupted")
        counts = {kind: int((damaged.packet_type == kind).sum()) for kind in ("DH5", "DH3")}
        axes.set(xlabel="time (s)", xlim=(0, scenario.run.duration_s))
        found = f"{counts['DH5']} DH5 and {counts['DH3']} DH3"
        axes.set_title(f"{len(received.time_s)} packets, damaged: {found}", fontsize=9)
        figure.suptitle(f"{work.citation}: packets that arrive at peripheral p1.1")
        yield Picture(figure)
