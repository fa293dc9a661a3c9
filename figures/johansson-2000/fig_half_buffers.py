"""Half the buffer below IP: goodput and delay with 15 and 7.5 KB.

The paper draws no figure of it; section 6 says that half the buffer changes neither. So it is: Vegas keeps
only a few segments below IP, so 15 KB are never full, and 7.5 KB lose a single segment in some long bursts,
which moves mean delays by 1 or 2 %. In the model nothing is lost.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.johansson_2000 import beside_each_other
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("half-the-buffer",)
BUFFERS = {"15 KB": {}, "7.5 KB": {"link.node_buffer_bytes": 7500}}


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""

    def enlarge(axes):  # of two equal markers both are seen
        axes.containers[0].lines[0].set_markersize(9)

    panels = beside_each_other(work, BUFFERS, ("smooth", "bursty"), enlarge)
    note = f"Simulated: {runs_note(work.scenario('smooth'))}."
    yield Picture(curves(panels, title="Johansson 2000, section 6: half the buffer below IP", note=note))


if __name__ == "__main__":
    run_script(__file__)
