"""Figure 5: mean delay of a segment against load, bursty arrivals.

As figure 3, with C2 = 50: about 25 segments in a burst, and acknowledgements on the tick of 500 ms. The text
says that bursts make the delay dramatically longer; thin dashed lines are the simulated delays of figure 3.

At a load of 0.9 the difference is no longer certain: two-way Vegas falls at times into a rhythm that carries
less, then the queue of smooth arrivals grows as well, and replications differ by factors.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.plotting import PALETTE
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import metric_panel
from btqueue.reproduction.figures.johansson_2000 import LOAD_LABEL, by_pep, delay_axes
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("bursts-cost-delay",)
METRIC = "acknowledged_delay_s"


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    smooth = by_pep(work, "smooth", METRIC)

    def finish(axes):
        for curve, colour in zip(smooth, PALETTE, strict=False):
            axes.plot(curve.x, curve.mean, color=colour, linewidth=0.8, linestyle=(0, (4, 3)))
        delay_axes(axes)

    panel = metric_panel(METRIC, by_pep(work, "bursty", METRIC), xlabel=LOAD_LABEL, finish=finish)
    runs = runs_note(work.scenario("bursty"))
    note = f"Simulated: {runs}. Thin dashed: simulated, smooth arrivals (figure 3)."
    title = f"{work.citation}: arrivals in bursts, C2 = 50"
    yield Picture(curves([panel], title=title, size=(6.2, 4.2), note=note, zero=False))


if __name__ == "__main__":
    run_script(__file__)
