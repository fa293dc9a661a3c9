"""Figure 1: components of CentaurusComm and the way of data through them.

The paper's picture has an application interface, a medium-independent Level II, a Level I for each medium,
queues and a shared area. Here are the parts that this simulator has in their place, with the functions that
do their work: an object is written by the application, cut into packets by its bitmap, carried by a link,
and collected by the other end's bitmap. The same two ends exchange control messages (figure 2).

Two things differ. Level I and Level II share no memory area: Level II hands each packet over when the link
has room, so there is one queue, that of the link. IrDA, UDP and Bluetooth are kinds of links of a scenario.
"""

from collections.abc import Iterator
from itertools import pairwise

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.avancha_2002 import code
from btqueue.reproduction.figures.diagrams import arrow, blank, box, queue

SENDER = (
    ("application", "applications.exchange.write", "#dfe9f3"),
    ("Level II: outgoing object", "centaurus.state_machine.next_output", "#fdf0d5"),
    ("Level II: sender's bitmap", "centaurus.bitmaps.next_unsent", "#fdf0d5"),
    ("Level II: data packet", "centaurus.messages.next_packet", "#fdf0d5"),
    ("Level I: host", "hosts.host.next_message", "#e3f0e3"),
)
RECEIVER = (
    ("application", "applications.exchange.on_request", "#dfe9f3"),
    ("Level II: accepted object", "centaurus.state_machine.deliver", "#fdf0d5"),
    ("Level II: receiver's bitmap", "centaurus.bitmaps.record", "#fdf0d5"),
    ("Level II: state machine", "centaurus.state_machine.on_segment", "#fdf0d5"),
    ("Level I: host", "hosts.host.receive_message", "#e3f0e3"),
)


def draw(work: Work) -> Iterator[Picture]:
    """Yield both ends side by side, with the way of a message."""
    figure, axes = blank(7.6, 5.4, f"{work.citation}: way of data")
    for x, parts, down in ((1.7, SENDER, True), (5.9, RECEIVER, False)):
        axes.text(x, 5.15, "sending end" if down else "receiving end", ha="center", fontsize=9, weight="bold")
        heights = [4.65 - 0.85 * place for place in range(len(parts))]
        for y, (title, function, fill) in zip(heights, parts, strict=True):
            box(axes, (x, y), f"{title}\n{code(function)}", width=3.0, height=0.55, fill=fill, size=7.5)
        for above, below in pairwise(heights):
            upper, lower = (x, above - 0.275), (x, below + 0.275)
            arrow(axes, upper if down else lower, lower if down else upper)
    place = queue(axes, (3.8, 0.5), "queue of the link\n(loss, rate, delay)")
    arrow(axes, (1.7, 0.975), (place[0] - 0.45, place[1]), bend=0.25)
    arrow(axes, (place[0] + 0.45, place[1]), (5.9, 0.975), bend=0.25)
    yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
