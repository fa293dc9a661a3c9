"""Shared by several figures of Johansson, Kihl and Körner (2000): loads as shares of the saturated goodput.

Section 5.2: load 1 is the saturated goodput at the same packet error probability (PEP); here, as in the
claims, it is the goodput both ways that the same engine gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from btqueue.reproduction.claims.johansson_2000.systems import NOISY, PEPS
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curve_of, curves, metric_panel
from btqueue.reproduction.figures.work import Picture, Work, runs_note
from btqueue.study.evaluate import ENGINES, Engine

LOADS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Loads of figures 3 to 5: from nearly none to nearly the capacity of the link."""

LOAD_LABEL = "load (share of the saturated goodput at this PEP)"


def delay_axes(axes: Axes) -> None:
    """Give a panel of delays over load the axes of figures 3 and 5, so that they can be compared."""
    axes.set(yscale="log", ylim=(0.04, 15), xlim=(0, 1))
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def saturated_kbps(work: Work, pep: float, engine: Engine) -> float:
    """Return load 1 (kbit/s each way) at a packet error probability, by one engine."""
    scenario = work.scenario("symmetric", {"radio.per": pep})
    (found,) = work.answers([scenario], (engine,), what=f"load 1 at PEP {pep:g}")
    return found[engine].means["goodput_kbps"]


def over_load(
    work: Work,
    name: str,
    metric: str,
    *,
    pep: float,
    loads: Sequence[float],
    label: str,
    changes: Mapping[str, Any] | None = None,
) -> Curve:
    """Return the curve of a metric over the load, each engine at shares of the saturated goodput it gives.

    Args:
        work: the workbench.
        name: of the scenario, as "smooth".
        metric: its name.
        pep: packet error probability.
        loads: shares of the saturated goodput; fewer in a quick figure.
        label: in the legend.
        changes: of all points, by dotted key.
    """
    few = np.array(work.some(loads))
    found: dict[Engine, Curve] = {}
    for engine in ENGINES:
        rates = (few * saturated_kbps(work, pep, engine)).tolist()
        swept = work.sweep(
            name, {"traffic.load_kbps": rates}, changes={"radio.per": pep, **(changes or {})},
            engines=(engine,), what=label,
        )  # fmt: skip
        found[engine] = curve_of(swept, metric, label, few)
    simulated = found["simulate"]
    return Curve(label, few, simulated.mean, simulated.ci95, found["solve"].model)


def by_pep(work: Work, name: str, metric: str, loads: Sequence[float] = LOADS) -> list[Curve]:
    """Return the curves of figures 3 to 6: one for each packet error probability, one in a quick figure."""
    peps = NOISY[:1] if work.settings.quick else NOISY
    return [over_load(work, name, metric, pep=pep, loads=loads, label=f"PEP {pep:g}") for pep in peps]


def variability(
    name: str, what: str, loads: Sequence[float], most: float
) -> Callable[[Work], Iterator[Picture]]:
    """Return the function that draws the squared coefficient of variation of the delay: figures 4 and 6.

    Args:
        name: of the scenario, as "smooth".
        what: title, after the citation.
        loads: shares of the saturated goodput.
        most: end of the axis of loads.
    """

    def draw(work: Work) -> Iterator[Picture]:
        """Yield the picture."""
        panel = Panel(
            by_pep(work, name, "acknowledged_delay_scv", loads),
            "squared coefficient of variation of the delay",
            xlabel=LOAD_LABEL,
            finish=lambda axes: axes.set(xlim=(0, most)),
        )
        note = f"Simulated: {runs_note(work.scenario(name))}."
        yield Picture(curves([panel], title=f"{work.citation}: {what}", size=(6.2, 4.2), note=note))

    return draw


def beside_each_other(
    work: Work,
    cases: Mapping[str, Mapping[str, Any]],
    arrivals: Sequence[str],
    finish: Callable[[Axes], Any] | None = None,
) -> list[Panel]:
    """Return panels in which the cases of section 6 differ: saturated goodputs, and delays of *arrivals*.

    Args:
        work: the workbench.
        cases: by label, changes of all points, by dotted key.
        arrivals: scenarios, a panel of delays each.
        finish: as of `Panel`.
    """
    panels = []
    for link in ("asymmetric", "symmetric"):
        drawn = [
            curve_of(work.sweep(link, {"radio.per": PEPS}, changes=change, what=link), "goodput_kbps", label)
            for label, change in cases.items()
        ]
        title = f"{link} link, saturated"
        axis = "packet error probability"
        panels.append(metric_panel("goodput_kbps", drawn, title=title, xlabel=axis, finish=finish))
    metric, pep, loads = "acknowledged_delay_s", 0.1, (0.1, 0.3, 0.6, 0.8)
    for name in arrivals:
        drawn = [
            over_load(work, name, metric, pep=pep, loads=loads, label=label, changes=change)
            for label, change in cases.items()
        ]
        title = f"{name} arrivals, PEP {pep:g}"
        panels.append(metric_panel(metric, drawn, title=title, xlabel=LOAD_LABEL, finish=finish))
    return panels
