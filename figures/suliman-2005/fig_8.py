"""Figure 8: time-sequence graph of a whole transfer.

As figure 7, over 30 s. The text sees many losses and retransmissions, and prints no count. Here the gateway's
buffer overflows a few times only, because nothing is lost on the WLAN; the losses of 0.5 % there that bring
round trips closer to the testbed's are the lower panel.
"""

from collections.abc import Iterator
from functools import partial

from btqueue.reproduction.claims.suliman_2005.systems import wlan_with_loss
from btqueue.reproduction.figures.curve_panels import Panel, curves
from btqueue.reproduction.figures.suliman_2005 import sequence, transfer
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("III.D-many-retransmissions", "III.D-fast-retransmit")


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    panels = []
    for words, loss in (("no losses on the WLAN", 0.0), ("0.5 % lost on the WLAN", 0.005)):
        scenario = work.scenario(wlan_with_loss(loss))
        seen = transfer(scenario)
        panels.append(
            Panel(
                [], "segment number", xlabel="time (s)",
                title=f"{words}: {seen.again.sum()} of {len(seen.sent)} segments sent again",
                finish=partial(sequence, seen=seen, begin_s=0.0, end_s=scenario.run.duration_s, size=1.2),
            )
        )  # fmt: skip
    title = f"{work.citation}: one transfer"
    note = "Simulated, one run each."
    yield Picture(curves(panels, columns=1, title=title, size=(6.8, 3.6), zero=False, note=note))
