"""Figure 2: goodput against packet error probability, saturated one way and both ways.

The upper curve is the asymmetric link (data one way, acknowledgements back), the lower one the symmetric link
(data both ways, goodput of one of them). The text says that both fall strongly and begin slightly below the
rates of the link, which are marked.

Here they begin 13 and 10 % below: 1,429 bytes of data take four DH5 and a DH3, 58 slots for two segments and
their separate acknowledgement, or 46 for a segment each way.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import curve_of, metric_panel
from btqueue.reproduction.figures.published import mark_level
from btqueue.reproduction.figures.work import runs_note

CLAIMS = (
    "goodput-asymmetric",
    "goodput-symmetric",
    "goodput-against-pep",
    "asymmetric-over-symmetric",
    "usable-at-pep-50",
    "link-rates",
)
PEPS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
LINKS = {"asymmetric": 721.0, "symmetric": 432.6}
"""Scenarios, and the rates (kbit/s) that section 2.1 gives for such links."""


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    drawn = [
        curve_of(work.sweep(name, {"radio.per": PEPS}, what=name), "goodput_kbps", f"{name} link")
        for name in LINKS
    ]

    def finish(axes):
        for name, rate in LINKS.items():
            mark_level(axes, rate, f"{name} link in the paper: {rate:g}", at=0.55)
        axes.set_ylim(top=780)

    panel = metric_panel("goodput_kbps", drawn, xlabel="packet error probability", finish=finish)
    note = f"Simulated: {runs_note(work.scenario('asymmetric'))}."
    yield Picture(curves([panel], title=f"{work.citation}: saturated", size=(6.2, 4.2), note=note))


if __name__ == "__main__":
    run_script(__file__)
