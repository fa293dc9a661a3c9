"""Figure 3: mean delay of a segment against load, smooth arrivals, acknowledgements on a tick of 500 ms.

From a segment's arrival until its receiver acknowledges it, C2 = 1. The text says that the delay first falls
with load, as acknowledgements find data to ride on, and grows again near saturation.

At a load of 0.9 simulated delays hold for runs of this length only: two-way Vegas falls at times into a
rhythm that carries less, the queue then grows, and replications differ by factors. The model does not know
this rhythm; above half load its delays are too short, because two segments that wait for their
acknowledgement stall the link. The published delay axis is not known; it is logarithmic here.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import metric_panel
from btqueue.reproduction.figures.johansson_2000 import LOAD_LABEL, by_pep, delay_axes
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("delay-u-shaped", "piggybacked-share", "load-normalisation", "usable-at-pep-50")


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    panel = metric_panel(
        "acknowledged_delay_s",
        by_pep(work, "smooth", "acknowledged_delay_s"),
        xlabel=LOAD_LABEL,
        finish=delay_axes,
    )
    note = f"Simulated: {runs_note(work.scenario('smooth'))}."
    title = f"{work.citation}: smooth arrivals, tick of 500 ms"
    yield Picture(curves([panel], title=title, size=(6.2, 4.2), note=note, zero=False))


if __name__ == "__main__":
    run_script(__file__)
