"""Figure 7: time-sequence graph around the first duplicate acknowledgements.

As the sender sees it: segments, acknowledgements, duplicate acknowledgements, and retransmissions. The text
says that three of them repair the loss before the timer expires.

So it is here; that the first came after 3.6 s belongs to the testbed's single trace. In the simulation they
come when the first slow start overruns the gateway's buffer.
"""

from collections.abc import Iterator

from btqueue.reproduction.figures.curve_panels import Panel, curves
from btqueue.reproduction.figures.suliman_2005 import sequence, transfer
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("III.D-first-dupacks", "III.D-fast-retransmit")


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    seen = transfer(work.scenario("round-trips"))
    first_s = seen.heard_s[seen.duplicate][0]
    begin_s, end_s = first_s - 0.4, first_s + 1.2

    def finish(axes):
        sequence(axes, seen, begin_s, end_s)
        axes.set_xlim(begin_s, end_s)

    panel = Panel([], "segment number", xlabel="time (s)", finish=finish)
    title = f"{work.citation}: one transfer, in detail"
    note = f"Simulated, one run. First duplicate acknowledgement after {first_s:.2f} s (paper: 3.6 s)."
    yield Picture(curves([panel], title=title, size=(6.8, 4.6), note=note, zero=False))
