"""Shared by figures of chapter 5 of the thesis: its radio, and the packets that arrive."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from btqueue.plotting import PALETTE
from btqueue.reproduction.fading import fading
from btqueue.reproduction.figures.runs import Events
from btqueue.reproduction.figures.work import Work
from btqueue.scenario import Scenario

RATES_GOOD_BAD = (6.8979e-5, 1.263e-3)
"""Bit error rates of chapter 5 in the good and the bad state (table 3.1)."""


def with_fading(
    work: Work, scenario: Scenario, seed: int, clean_s: float = 0.0
) -> tuple[Scenario, dict[str, np.ndarray], float]:
    """Return a scenario whose links follow states that were drawn beforehand, the states, and their step (s).

    Args:
        work: the workbench, which keeps the files.
        scenario: a piconet.
        seed: of the states.
        clean_s: the radio is perfect until then.

    Returns:
        The scenario; by node, whether the radio of its link is bad, shape (steps,); the step (s).
    """
    step_s = 0.005
    total_s = scenario.run.duration_s + float(scenario.run.warmup_s)
    generator = np.random.default_rng(seed)
    clean = np.arange(round(total_s / step_s)) * step_s < clean_s
    states, links = {}, []
    for number in range(1, scenario.network.peripherals + 1):
        node = f"p1.{number}"
        states[node] = fading(generator, total_s, step_s, clean_s)
        rates = np.where(states[node], RATES_GOOD_BAD[1], RATES_GOOD_BAD[0])
        file = work.trace_file(np.where(clean, 0.0, rates))
        links.append({"node": node, "model": "trace", "trace_file": file, "trace_step_s": step_s})
    return scenario.changed({"radio.model": "perfect", "radio.links": links}), states, step_s


ARRIVALS = (
    ("DH3", "packet delivered", 0.25, "o", PALETTE[0]),
    ("DH3", "packet corrupted", 0.35, "x", PALETTE[1]),
    ("DH5", "packet delivered", 0.75, "o", PALETTE[0]),
    ("DH5", "packet corrupted", 0.85, "x", PALETTE[1]),
)
"""Packet type, event, level on the vertical axis (of the thesis), marker and colour."""


def arrivals(axes: Axes, received: Events, *, size: float = 16) -> None:
    """Draw packets that arrive, intact and damaged, at the levels of the thesis.

    Args:
        axes: where to draw.
        received: events "packet delivered" and "packet corrupted" of one node.
        size: of the markers (points squared).
    """
    for kind, event, level, marker, colour in ARRIVALS:
        times = received.of(event).time_s[received.of(event).packet_type == kind]
        axes.scatter(times, np.full(len(times), level), s=size, marker=marker, color=colour, zorder=3)
    names = [
        f"{kind} {'intact' if event.endswith('delivered') else 'damaged'}" for kind, event, *_ in ARRIVALS
    ]
    axes.set_yticks([level for _, _, level, *_ in ARRIVALS], names)
    axes.set_ylim(0, 1.05)


RECEIVED = ("packet delivered", "packet corrupted")
ERRONEOUS_RUN = 2
"""Seed of the radio's states in figures 5.1 and 5.2."""
CLEAN_S = 10.0
"""Section 5.4: the radio errs from then on."""


def load_steps(work: Work) -> Scenario:
    """Return the run of section 5.4: the load grows in steps, the radio errs after 10 s."""
    return with_fading(work, work.scenario("piconet-load-steps"), seed=1, clean_s=CLEAN_S)[0]


def mark_steps(axes: Axes, end_s: float) -> None:
    """Mark the begin of bit errors and the steps of the load of `load_steps`, up to `end_s`."""
    for at, text in ((CLEAN_S, "errors"), (60.0, "120"), (120.0, "160"), (180.0, "200 kbit/s")):
        if at < end_s:
            axes.axvline(at, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
            axes.annotate(
                text, (at, 1.0), xycoords=axes.get_xaxis_transform(), xytext=(2, -2),
                textcoords="offset points", va="top", fontsize=7, color="#666666",
            )  # fmt: skip
