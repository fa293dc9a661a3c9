"""Figure 6.17: summary over two and four hops, with and without bit errors.

Goodput, round-trip time and timeouts. Left the piconet (2 hops), right the scatternet (4 hops; peripherals
of each piconet); S = 25, M = 5, L = 20, token rates 250, 110, 80 kbit/s for 2, 4, 6 peripherals of a
piconet, 250, 120, 70, 50 for 1, 2, 4, 6 in a scatternet. The axes are not printed. One picture goes over the
number of peripherals, at the highest load of figures 6.1 to 6.16, the other over the load.

The caption of panel (f) says round-trip time there; it must be timeouts. "Fitted" is the scenario that was
fitted to the thesis's numbers for the radio with bit errors.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes

from btqueue.cli.figures import run_script
from btqueue.plotting import axis_label
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curve_of
from btqueue.reproduction.figures.published import mark_key, mark_point, stated
from btqueue.reproduction.figures.venugopal_2006 import (
    PICONET_ERROR_LOADS,
    PICONET_LOADS,
    SCATTERNET_LOADS,
    scenario_name,
)

CLAIMS = (
    *("goodput-2", "rtt-grows-with-n", "rtt-with-hops", "rtt-growth-by-radio", "timeouts-negligible", "hops"),
    "dimensioning",
)
METRICS = ("goodput_kbps", "rtt_s", "timeouts_per_s")
PLACES = ("piconet", "scatternet")
RADIOS = {"perfect radio": "{place}", "bit errors": "{place}-errors"}
FITTED = {"bit errors, fitted": "{place}-errors-as-reported"}
STATED = {
    "piconet": ("goodput-2", "goodput-4", "goodput-6", "rtt-2", "rtt-6"),
    "piconet, errors": ("errors-goodput-2", "errors-goodput-4", "errors-rtt-2", "errors-rtt-6"),
    "scatternet": ("scatternet-goodput-1", "scatternet-goodput-2", "scatternet-rtt-1", "scatternet-rtt-2",
                   "scatternet-rtt-6"),
    "scatternet, errors": ("scatternet-errors-goodput-1",),
}  # fmt: skip
"""Numbers that the text gives at the peak of goodput."""


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture over the number of peripherals, then the picture over the load."""
    title = f"{work.citation}: 2 hops (left) and 4 hops (right), S = 25, M = 5"
    panels = [
        Panel(
            [over_number(work, place, metric, radio) for radio in RADIOS | FITTED], axis_label(metric), place,
            "peripherals" if place == "piconet" else "peripherals of each piconet",
            finish=lambda axes, place=place, metric=metric: mark(axes, work.paper, place, metric),
        )
        for metric in METRICS
        for place in PLACES
    ]  # fmt: skip
    yield Picture(curves(panels, title=title, size=(4.8, 2.9), more=[mark_key()]), "peripherals")
    panels = [
        Panel(
            [over_load(work, place, metric, radio, n) for radio in RADIOS for n in loads_of(place, radio)],
            axis_label(metric), place, "offered load of each connection (kbit/s)",
        )
        for metric in METRICS
        for place in PLACES
    ]  # fmt: skip
    yield Picture(curves(panels, title=title, size=(5.2, 3.2)), "load")


def loads_of(place: str, radio: str) -> dict[int, range]:
    """Return the loads (kbit/s) by number of peripherals."""
    if place == "scatternet":
        return SCATTERNET_LOADS
    return PICONET_LOADS if radio == "perfect radio" else PICONET_ERROR_LOADS


def over_number(work: Work, place: str, metric: str, radio: str) -> Curve:
    """Return a metric at the highest load over the number of peripherals."""
    loads = loads_of(place, radio)
    pattern = (RADIOS | FITTED)[radio].format(place=place)
    points = [
        work.scenario(scenario_name(pattern, n), {"traffic.load_kbps": float(loads[n][-1])}) for n in loads
    ]
    found = work.answers(points, what=f"{place}, {radio}")
    simulated = [one["simulate"].metrics[metric] for one in found]
    solved = [one["solve"].means.get(metric, np.nan) for one in found]
    mean, ci95 = (np.array([getattr(value, name) for value in simulated]) for name in ("mean", "ci95"))
    return Curve(radio, np.array(list(loads)), mean, ci95, np.array(solved))


def over_load(work: Work, place: str, metric: str, radio: str, n: int) -> Curve:
    """Return a metric over the load."""
    loads = [float(load) for load in loads_of(place, radio)[n]]
    name = scenario_name(RADIOS[radio].format(place=place), n)
    found = work.sweep(name, {"traffic.load_kbps": loads}, what=f"{place}, {radio}, n = {n}")
    return curve_of(found, metric, f"{radio}, n = {n}")


def mark(axes: Axes, paper: str, place: str, metric: str) -> None:
    """Mark the numbers of the text."""
    for name in STATED[place] + STATED[f"{place}, errors"]:
        one = stated(paper, name)
        if one.metric == metric:
            mark_point(axes, one.scenario.network.peripherals, one)
    axes.set_xticks(list(SCATTERNET_LOADS if place == "scatternet" else PICONET_LOADS))


if __name__ == "__main__":
    run_script(__file__)
