"""Half the buffer below IP: goodput and delay with 15 and 7.5 KB.

The paper draws no figure of it; section 6 says that half the buffer changes neither. So it is: Vegas keeps so
few segments below IP that 15 KB are never full, and 7.5 KB lose a single segment in some long bursts, which
moves mean delays by 1 or 2 %. In the model nothing is lost.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.claims.johansson_2000.systems import PEPS
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import curve_of, metric_panel
from btqueue.reproduction.figures.johansson_2000 import LOAD_LABEL, over_load
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("half-the-buffer",)
BUFFERS = {"15 KB": {}, "7.5 KB": {"link.node_buffer_bytes": 7500}}
LOADS = (0.1, 0.3, 0.6, 0.8)
PEP = 0.1


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""

    def enlarge(axes):  # of two equal markers both are seen
        axes.containers[0].lines[0].set_markersize(9)

    panels = []
    for link in ("asymmetric", "symmetric"):
        drawn = [
            curve_of(work.sweep(link, {"radio.per": PEPS}, changes=change, what=link), "goodput_kbps", label)
            for label, change in BUFFERS.items()
        ]
        panels.append(
            metric_panel("goodput_kbps", drawn, title=f"{link} link, saturated",
                         xlabel="packet error probability", finish=enlarge)
        )  # fmt: skip
    metric = "acknowledged_delay_s"
    for arrivals in ("smooth", "bursty"):
        drawn = [
            over_load(work, arrivals, metric, pep=PEP, loads=LOADS, label=label, changes=change)
            for label, change in BUFFERS.items()
        ]
        panels.append(
            metric_panel(metric, drawn, title=f"{arrivals} arrivals, PEP {PEP:g}", xlabel=LOAD_LABEL,
                         finish=enlarge)
        )  # fmt: skip
    note = f"Simulated: {runs_note(work.scenario('smooth'))}."
    yield Picture(curves(panels, title="Johansson 2000, section 6: half the buffer below IP", note=note))


if __name__ == "__main__":
    run_script(__file__)
