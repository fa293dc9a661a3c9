"""Bounds of Vegas with more peripherals: goodput and round trip with other values of alpha and beta.

Section 6 of the paper supposes, without a simulation, that the bounds matter more with more active
peripherals. All connections are saturated both ways, PEP 0.1, one exchange a visit; the spread is the largest
difference between the mean goodputs of the four pairs, over their mean.

It grows with many peripherals, because the central then holds segments of all its connections in 15 KB, which
overflow for large bounds. But a single link is more sensitive than two to four: it can run idle when its only
window is small. The model of one link answers for one peripheral only.
"""

from collections.abc import Iterator

import numpy as np

from btqueue.cli.figures import run_script
from btqueue.reproduction.claims.johansson_2000.systems import VEGAS
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curve_of, metric_panel
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("vegas-bounds-with-more-peripherals",)


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    saturated = {"polling.discipline": "1-limited", "radio.per": 0.1}
    found = {
        f"alpha {low}, beta {high}": work.sweep(
            "symmetric", {"network.peripherals": range(1, 8)}, engines=("simulate",),
            changes=saturated | {"transport.alpha": low, "transport.beta": high},
        )
        for low, high in VEGAS
    }  # fmt: skip
    count = next(iter(found.values()))["network.peripherals"].values
    goodputs = {label: count * one["goodput_kbps"].values for label, one in found.items()}
    together = [
        Curve(label, count, goodputs[label], count * one["goodput_kbps_ci95"].values)
        for label, one in found.items()
    ]
    all_four = np.array(list(goodputs.values()))
    spread = Curve("spread", count, 100 * np.ptp(all_four, axis=0) / all_four.mean(axis=0))
    trips = [curve_of(one, "rtt_s", label) for label, one in found.items()]
    panels = [
        Panel(together, "goodput of all, one way (kbit/s)", xlabel="peripherals",
              finish=lambda axes: axes.set_ylim(280, 380)),
        metric_panel("rtt_s", trips, xlabel="peripherals"),
        Panel([spread], "spread of the goodputs (%)", xlabel="peripherals"),
    ]  # fmt: skip
    title = "Johansson 2000, section 6: bounds of Vegas with more peripherals"
    note = f"Simulated: {runs_note(work.scenario('symmetric'))}."
    yield Picture(curves(panels, columns=3, size=(3.6, 3.2), title=title, note=note))


if __name__ == "__main__":
    run_script(__file__)
