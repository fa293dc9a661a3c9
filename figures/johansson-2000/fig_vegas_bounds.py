"""Bounds of Vegas: goodput and delay with other values of alpha and beta.

The paper draws no figure of it; section 6 says that the bounds, varied within reason, change neither. It does
not say which values it tried; 1 and 3 are its standard.

In the simulation this holds for goodput below saturation, for saturated goodput with a beta of 3 and more,
and for delays up to half load. With beta 2 a lossy link loses goodput: Vegas takes the time of repetitions
for queueing and shrinks its window to two segments, which no longer cover the link while an acknowledgement
waits for its second segment. Bounds that close are also where the model is least exact (up to 10 %).
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.claims.johansson_2000.systems import VEGAS
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.johansson_2000 import beside_each_other
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("vegas-bounds",)


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    bounds = {
        f"alpha {low}, beta {high}": {"transport.alpha": low, "transport.beta": high}
        for low, high in work.some(VEGAS)
    }
    panels = beside_each_other(work, bounds, ("smooth",))
    note = f"Simulated: {runs_note(work.scenario('smooth'))}."
    title = "Johansson 2000, section 6: bounds of Vegas"
    yield Picture(curves(panels, columns=3, size=(4.0, 3.4), title=title, note=note))


if __name__ == "__main__":
    run_script(__file__)
