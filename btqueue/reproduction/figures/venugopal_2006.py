"""Shared by figures of the thesis: ranges and pages of chapter 6, the radio and arrivals of chapter 5.

Ranges are from its text, which prints no steps. Here steps are 5 for S and M, 5 to 25 kbit/s for the token
rate and 5 to 20 kbit/s for the load, so that the standard values are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from btqueue.plotting import PALETTE
from btqueue.reproduction.fading import fading
from btqueue.reproduction.figures.curve_panels import Curve, curve_of
from btqueue.reproduction.figures.load_pages import FIVE, Swept, five_panels
from btqueue.reproduction.figures.runs import Events
from btqueue.reproduction.figures.work import Picture, Work
from btqueue.scenario import Scenario

PICONET_LOADS = {2: range(80, 241, 20), 4: range(30, 121, 10), 6: range(20, 101, 10)}
PICONET_ERROR_LOADS = {2: range(80, 201, 20), 4: range(40, 101, 10), 6: range(30, 91, 10)}
SCATTERNET_LOADS = {1: range(80, 181, 20), 2: range(40, 101, 10), 4: range(25, 56, 5), 6: range(15, 36, 5)}
"""Offered by each connection (kbit/s), by number of peripherals (of each piconet)."""

BUFFERS = Swept("flow_control.buffer_packets", "S", "packets", range(5, 26, 5))
BUFFERS_TO_40 = Swept("flow_control.buffer_packets", "S", "packets", range(5, 41, 5))
LIMITS = Swept("polling.limit", "M", "frames", range(5, 26, 5))

WITH_ERRORS = tuple("cwnd_segments" if metric == "window_segments" else metric for metric in FIVE)
"""The five metrics where bit errors keep cwnd small: there the thesis reports cwnd."""

RATES_GOOD_BAD = (6.8979e-5, 1.263e-3)
"""Bit error rates of chapter 5 in the good and the bad state (table 3.1)."""

WORDS = {1: "one peripheral", 2: "two peripherals", 4: "four peripherals", 6: "six peripherals"}


def token_rates(values: Sequence[float]) -> Swept:
    """Return the token rate tb (kbit/s) as the swept key."""
    return Swept("flow_control.token_rate_kbps", "tb", "kbit/s", [float(value) for value in values])


def pages(
    system: str, swept: Swept | Mapping[int, Swept], numbers: Sequence[int], claims: Sequence[str]
) -> Callable[[Work], Iterator[Picture]]:
    """Return the function that draws a figure of chapter 6: over the load and another key.

    With bit errors the scenarios that were fitted to the thesis's numbers follow, as curves.

    Args:
        system: scenarios without the number of peripherals, as "piconet-errors".
        swept: the other key, or one for each number of peripherals.
        numbers: of peripherals (of each piconet); curves and surfaces for each.
        claims: ids, for marks.
    """

    def draw(work: Work) -> Iterator[Picture]:
        """Yield curves and surfaces."""
        with_errors = system.endswith("errors")
        loads = SCATTERNET_LOADS
        if system.startswith("piconet"):
            loads = PICONET_ERROR_LOADS if with_errors else PICONET_LOADS
        place = "each of two piconets" if system.startswith("scatternet") else "a piconet"
        radio = "radio with bit errors" if with_errors else "perfect radio"
        metrics = WITH_ERRORS if with_errors else FIVE
        for n in numbers:
            key = swept if isinstance(swept, Swept) else swept[n]
            heading = f"{WORDS[n]} in {place}, {radio}"
            part = f"n{n}" if len(numbers) > 1 else ""
            yield from five_panels(
                work, scenario_name(system, n), loads[n], key,
                heading=heading, part=part, claims=claims, metrics=metrics,
            )  # fmt: skip
            if with_errors:
                yield from five_panels(
                    work, scenario_name(f"{system}-as-reported", n), loads[n], key,
                    heading=f"{heading}, fitted", part=f"{part}-fitted".removeprefix("-"), surfaces=False,
                    claims=claims, metrics=metrics, marks_of=work.scenario(scenario_name(system, n)),
                )  # fmt: skip

    return draw


def scenario_name(system: str, n: int) -> str:
    """Return the name of the scenario with *n* peripherals; with two in a piconet it has no number."""
    return system if n == 2 and system.startswith("piconet") else f"{system}-{n}"


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
STAYS_MS = (
    (437.5, 55.8), (447.5, 45.8), (457.5, 35.8), (467.5, 25.8), (477.5, 15.8), (487.5, 5.8), (492.3, 1.0),
)  # fmt: skip
"""Mean stays in the good and the bad state, section 5.2."""


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


def stay_curves(work: Work, metrics: Sequence[str]) -> dict[str, list[Curve]]:
    """Return curves over the load, by metric, one for each pair of mean stays (original error rates)."""
    found: dict[str, list[Curve]] = {metric: [] for metric in metrics}
    for good_ms, bad_ms in work.some(STAYS_MS):
        label = f"{good_ms:g}/{bad_ms:g}"
        stays = {"radio.good_s": good_ms / 1000, "radio.bad_s": bad_ms / 1000}
        loads = {"traffic.load_kbps": [float(load) for load in range(80, 201, 20)]}
        changes = stays | {"run.replications": 100}
        answers = work.sweep("piconet-errors-original", loads, changes=changes, what=label)
        for metric in metrics:
            found[metric].append(curve_of(answers, metric, label))
    return found
