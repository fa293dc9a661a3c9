"""Figure 2: components of CentaurusComm and the way of control messages.

As figure 1, with what moves the state machine: messages of the other end, the worker routine, the watchdog,
and a master's polls. An end answers each message as its state says (figure 3); control messages are never
repeated, so one that is lost leaves it to the watchdog to destroy the session.

The paper's local messages between Level I and Level II (HELO, HELORESP, SENT) take no time here and have no
names.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.avancha_2002 import code
from btqueue.reproduction.figures.diagrams import arrow, blank, box, queue
from btqueue.simulator.traces.trace_files import CONTROL_NAMES

TIMERS = (
    ("worker: the last packet is out", "centaurus.state_machine.on_worker"),
    ("watchdog: nothing has progressed", "centaurus.state_machine.on_watchdog"),
    ("poll: the turn of a slave (master)", "centaurus.state_machine.on_poll"),
)


def draw(work: Work) -> Iterator[Picture]:
    """Yield one end, its timers, and its messages."""
    figure, axes = blank(8.4, 5.0, f"{work.citation}: way of control messages")
    level_2, level_1, light = "#fdf0d5", "#e3f0e3", "#dfe9f3"
    for place, (title, function) in enumerate(TIMERS):
        y = 4.3 - 0.8 * place
        box(axes, (1.65, y), f"{title}\n{code(function)}", width=3.1, height=0.55, fill=level_1, size=7.5)
        arrow(axes, (3.2, y), (4.4, 3.5 + 0.12 * (1 - place)))
    box(
        axes,
        (6.2, 4.55),
        f"application\n{code('applications.exchange.write')}",
        width=3.0,
        fill=light,
        size=7.5,
    )
    arrow(axes, (6.2, 4.3), (6.2, 3.8), "own object")
    machine = f"Level II: state machine\n{code('centaurus.state_machine.next_output')}"
    box(axes, (6.2, 3.5), machine, width=3.6, height=0.6, fill=level_2, size=7.5)
    answers = f"Level II: messages\n{code('centaurus.messages.control')}"
    box(axes, (7.0, 2.35), answers, width=2.5, height=0.55, fill=level_2, size=7.5)
    received = f"Level II: reaction\n{code('centaurus.state_machine.on_segment')}"
    box(axes, (3.9, 1.6), received, width=3.0, height=0.55, fill=level_2, size=7.5)
    arrow(axes, (7.0, 3.2), (7.0, 2.625))
    arrow(axes, (4.4, 1.875), (5.4, 3.2))
    out = queue(axes, (7.0, 0.7), "to the other end")
    arrow(axes, (7.0, 2.075), (out[0] - 0.45, out[1]))
    axes.text(6.55, 1.45, "\n".join(CONTROL_NAMES), ha="right", va="center", fontsize=7)
    came = queue(axes, (2.4, 0.7), "from the other end")
    arrow(axes, (came[0] + 0.45, came[1]), (3.9, 1.325))
    yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
