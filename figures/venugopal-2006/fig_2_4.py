"""Figure 2.4: connection states and modes of a device.

From the specification: a connected device is active, or in one of three modes that save power, which it
enters and leaves by agreement. Shaded is what is modelled here: active members, and bridges that meet a
central at agreed times (`polling.bridge_schedule`); hold and park are not.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.cli.figures import run_script
from btqueue.plotting import house_style
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.diagrams import Transition, state_machine

TRANSITIONS = [
    Transition("standby", "inquiry", "search"), Transition("inquiry", "standby"),
    Transition("standby", "page", "connect"), Transition("inquiry", "page", "found"),
    Transition("page", "active", "connected"), Transition("active", "standby", "detach"),
    Transition("active", "sniff", "meet at intervals"), Transition("sniff", "active"),
    Transition("active", "hold", "absent once"), Transition("hold", "active", "time over"),
    Transition("active", "park", "give up the address"), Transition("park", "active", "unpark"),
]  # fmt: skip
PLACES = {
    "standby": (0.0, 4.2), "inquiry": (-2.4, 2.4), "page": (-1.2, 0.4), "active": (1.6, 1.2),
    "sniff": (5.0, 3.4), "hold": (5.4, 1.2), "park": (5.0, -1.0),
}  # fmt: skip


def draw(work: Work) -> Iterator[Picture]:
    """Yield the state machine."""
    with house_style():
        figure = Figure(figsize=(8.0, 5.4), layout="constrained")
        axes = figure.subplots()
        state_machine(axes, TRANSITIONS, PLACES, radius=0.55, bend=0.14, shaded=("active", "sniff"))
        figure.suptitle(f"{work.citation}: states and modes (shaded: modelled here)")
        yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
