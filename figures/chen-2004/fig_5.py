"""Figure 5: TCP goodput against the bit error rate over 1, 2 and 4 hops, always DH5 or adapted.

One greedy NewReno connection with segments of 500 bytes and nodes that hold 9,000 bytes. "Regular" always
sends DH5, "adaptive" chooses by the thresholds of table 3 (the first of them dashed). The paper says that
its axis ends near 0.001; it prints no values.

Agrees with the text: the same below the first threshold, adaptive above regular beyond it, its advantage
growing up to 0.001, where the regular link carries 4 to 7 % of its capacity (shaded: below 10 %), and half
as much over two hops as over one. Does not agree: four hops carry 90 % of two, where the paper has the
same; a bridge in two piconets is away from each for a time, and its schedule is not described.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.chen_2004 import HOPS, LINKS, mark_thresholds, thresholds
from btqueue.reproduction.figures.curve_panels import curve_of, metric_panel

CLAIMS = ("two-hops-halve", "four-hops-as-two", "adaptation-wins", "gain-grows", "regular-starves")
BERS = (0.0, 5e-5, 1e-4, 1.5e-4, 1.55e-4, 2e-4, 3e-4, 4e-4, 5e-4, 7e-4, 1e-3)


def draw(work: Work) -> Iterator[Picture]:
    """Yield a panel for each number of hops."""
    first = thresholds(work, printed=True)[:1]
    panels = []
    for letter, hops in zip("abc", HOPS, strict=True):
        found = {
            link: work.sweep(
                f"{link}-{hops}",
                {"radio.ber": BERS},
                changes={"run.replications": 5},
                what=f"{link}, {hops} hops",
            )
            for link in LINKS
        }
        drawn = [curve_of(one, "goodput_kbps", link) for link, one in found.items()]
        best = float(found["regular"]["goodput_kbps"].sel(engine="simulate").max())

        def finish(axes, best=best):
            axes.axhspan(0, 0.1 * best, color="#999999", alpha=0.2, zorder=0, lw=0)
            axes.set(xlim=(-3e-5, 1.03e-3), ylim=(0, 1.1 * best), xticks=[0, 2.5e-4, 5e-4, 7.5e-4, 1e-3])
            axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
            mark_thresholds(axes, first)

        title = f"({letter}) {hops} hop{'s' if hops > 1 else ''}"
        panels.append(
            metric_panel("goodput_kbps", drawn, title=title, xlabel="bit error rate", finish=finish)
        )
    yield Picture(
        curves(panels, columns=3, size=(3.9, 3.3), title=f"{work.citation}: always DH5, or adapted")
    )


if __name__ == "__main__":
    run_script(__file__)
