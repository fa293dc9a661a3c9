"""Figure 4: variability of the delay of a segment against load, in the runs of figure 3.

Squared coefficient of variation of the time from a segment's arrival until its receiver acknowledges it.

It is largest where some segments wait for the tick and others find data to ride on. From a load of 0.8 on
replications differ widely, as in figure 3.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import Panel
from btqueue.reproduction.figures.johansson_2000 import LOAD_LABEL, by_pep
from btqueue.reproduction.figures.work import runs_note


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    panel = Panel(
        by_pep(work, "smooth", "acknowledged_delay_scv"),
        "squared coefficient of variation of the delay",
        xlabel=LOAD_LABEL,
        finish=lambda axes: axes.set(xlim=(0, 1)),
    )
    note = f"Simulated: {runs_note(work.scenario('smooth'))}."
    title = f"{work.citation}: smooth arrivals, tick of 500 ms"
    yield Picture(curves([panel], title=title, size=(6.2, 4.2), note=note))


if __name__ == "__main__":
    run_script(__file__)
