"""Derivatives of theory against slopes of the simulator with common random numbers: the table of the docs.

    python tools/slopes_against_simulation.py [POINT ...] [--solve-again | --afresh]

writes docs/explanation/slopes-against-simulation.md and the .csv beside it. A point that stands there with
the same scenario is not simulated again; `--solve-again` asks theory again after a change of a law, and
`--afresh` forgets the simulated slopes, too.

The points of the five published systems, with their keys, metrics and aims, were chosen before any error was
looked at; none was dropped since.
"""

import hashlib
import json
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import recorded_rows

import btqueue as bt
from btqueue.reproduction.report import markdown
from btqueue.scenario import METRICS, Scenario
from btqueue.study.summary import student_half_width, summarise

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "slopes-against-simulation.md"
STEP = 0.05
"""Of the simulated central difference, as a share of the value of the key."""
REPLICATIONS = 24
DURATION_S, WARMUP_S = 4000.0, 60.0
LONGER = {
    "ring, bit errors": 8,
    "both ways, packet errors": 8,
    "both ways, greedy": 8,
    "gateway, lossy wire": 16,
    "fading, stays": 4,
}
"""How many times as many replications points have whose simulated slopes vary much."""
AIMS = {"goodput_kbps": 0.05, "rtt_s": 0.15, "delay_s": 0.15, "session_time_s": 0.05}
"""Relative error of a derivative that is wanted, by metric."""
LEAST = 0.02
"""Elasticity from which on the error is relative: below it is a share of this elasticity."""


class Point(NamedTuple):
    """A scenario, and the key by which it is differentiated."""

    system: str
    scenario: Scenario
    key: str


LOAD, TOKENS = "traffic.load_kbps", "flow_control.token_rate_kbps"
RING = bt.load("venugopal-2006/piconet")
ROOMY = RING.with_(flow_control__buffer_packets=400, flow_control__baseband_packets=400)
STAR = RING.with_(
    network__peripherals=3,
    link__arq="unlimited",
    flow_control__enabled=False,
    flow_control__baseband_packets=400,
    traffic__load_kbps=80,
)
FADING = STAR.with_(
    network__flows="downlink",
    radio__model="gilbert-elliott",
    radio__ber_good=1e-7,
    radio__ber_bad=5e-4,
    radio__good_s=0.5,
    radio__bad_s=0.05,
)
ERRORS = STAR.with_(network__flows="uplink", radio__model="constant", radio__ber=1e-4)


def _at(system: str, name: str, key: str, **changes: object) -> Point:
    return Point(system, bt.load(name).with_(**changes), key)


PUBLISHED = {
    **{
        f"ring, load {load}": _at("Venugopal 2006", "venugopal-2006/piconet", LOAD, traffic__load_kbps=load)
        for load in (30, 50, 70, 90, 110)
    },
    "two piconets": _at("Venugopal 2006", "venugopal-2006/scatternet-1", LOAD, traffic__load_kbps=60),
    "ring, bit errors": _at("Venugopal 2006", "venugopal-2006/piconet-errors", "radio.bad_s"),
    "both ways, load": _at("Johansson 2000", "johansson-2000/smooth", LOAD),
    "both ways, packet errors": _at("Johansson 2000", "johansson-2000/smooth", "radio.per"),
    "both ways, greedy": _at("Johansson 2000", "johansson-2000/symmetric", "radio.per", radio__per=0.1),
    "gateway, lossy wire": Point(
        "Suliman 2005",
        bt.load("suliman-2005/round-trips").changed({"network.outside_links[1].loss": 0.005}),
        "network.outside_links[1].loss",
    ),
    "one hop, adapted": _at("Chen 2004", "chen-2004/adaptive-1", "radio.ber"),
    "two hops": _at("Chen 2004", "chen-2004/regular-2", "radio.ber"),
    "sessions, pause": _at("Avancha 2002", "avancha-2002/wlan-tcp", "traffic.pause_s"),
    "sessions, reply": _at("Avancha 2002", "avancha-2002/wlan-tcp", "traffic.reply_bytes"),
    "slow modem": _at("Avancha 2002", "avancha-2002/cdpd-tcp", "network.outside_links[1].delay_s"),
    "satellite": _at("Avancha 2002", "avancha-2002/satellite", "network.outside_links[1].loss"),
}
VARIED = {
    "ring, load 60": (RING.with_(traffic__load_kbps=60), LOAD),
    "ring of four": (RING.with_(network__peripherals=4, traffic__load_kbps=45), LOAD),
    "scarce tokens": (ROOMY.changed({LOAD: 90, TOKENS: 160}), TOKENS),
    "downlinks": (STAR.with_(network__flows="downlink", traffic__load_kbps=90), LOAD),
    "uplinks": (STAR.changed({"network.peripherals": 5, "network.flows": "uplink", LOAD: 70}), LOAD),
    "errors": (ERRORS, "radio.ber"),
    "errors, greedy": (ERRORS.with_(traffic__source="greedy"), "radio.ber"),
    "fading": (FADING, LOAD),
    "fading, stays": (FADING.with_(polling__limit=1), "radio.bad_s"),
}
POINTS = PUBLISHED | {name: Point("piconets", *point) for name, point in VARIED.items()}


class Row(NamedTuple):
    """A derivative at a point.

    Attributes:
        scenario: a digest of what was simulated.
        stands: whether the answer of theory stands there: "yes" or "in doubt".
        mean: simulated metric at the point, from both sides.
        theory, simulated: slopes, of the metric's unit by that of the key.
        ci95: half-width of the 95 % interval of the simulated slope.
    """

    system: str
    point: str
    scenario: str
    key: str
    value: float
    metric: str
    stands: str
    mean: float
    theory: float
    simulated: float
    ci95: float

    @property
    def elasticity(self) -> float:
        """Simulated per cent of the metric for a per cent of the key."""
        return self.simulated * self.value / self.mean

    @property
    def error(self) -> float:
        """Error of theory's slope, relative to the simulated one or to an elasticity of `LEAST`."""
        return (self.theory - self.simulated) / max(abs(self.simulated), LEAST * self.mean / self.value)

    @property
    def hit(self) -> bool:
        """Whether the answer stands and its derivative is as near as wanted."""
        return self.stands == "yes" and abs(self.error) <= AIMS[self.metric]


Simulated = dict[str, tuple[float, float, float]]
"""Mean, slope and half-width of its interval, by metric."""


def value_of(point: Point) -> float:
    """Return the value of the key of a point."""
    return float(point.scenario.value_of(point.key))


def replications(name: str) -> int:
    """Return the pairs of runs of a point."""
    return REPLICATIONS * LONGER.get(name, 1)


def digest(name: str) -> str:
    """Return a short digest of what is simulated at a point."""
    point = POINTS[name]
    content = point.scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    content["slope"] = [point.key, STEP, replications(name), DURATION_S, WARMUP_S]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def _run(replications: int, duration_s: float = DURATION_S) -> dict[str, float]:
    return {"run.duration_s": duration_s, "run.warmup_s": WARMUP_S, "run.replications": replications}


def simulated(point: Point, replications: int, duration_s: float = DURATION_S) -> Simulated:
    """Return simulated slopes: secants of replications that share their random numbers."""
    value = value_of(point)
    whole = isinstance(point.scenario.value_of(point.key), int)
    step = max(round(STEP * value), 1) if whole else STEP * value
    run = _run(replications, duration_s)
    ends = []
    for side in (-1, 1):
        place = (round if whole else float)(value + side * step)
        ends.append(bt.simulate(point.scenario.changed(run | {point.key: place}), threads=1))
    below, above = (summarise(end) for end in ends)
    found = {}
    for name in AIMS:
        if name in below and name in above:
            low, high = np.array([below[name].samples, above[name].samples])
            slopes = (high - low) / (2.0 * step)
            found[name] = float((low + high).mean() / 2.0), float(slopes.mean()), student_half_width(slopes)
    return found


def solved(point: Point) -> tuple[str, dict[str, float]]:
    """Return whether the answer of theory to what is simulated stands, and its slopes by metric, or NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bt.network.InDoubt)
        plan = bt.network.plan(point.scenario.changed(_run(REPLICATIONS)))
        here = plan.metrics()
        names = [name for name in AIMS if name in here and np.isfinite(here[name]).any()]
        slopes = plan.slopes(names, keys=[point.key])
    return "in doubt" if here.warnings else "yes", {name: slopes[name][point.key] for name in names}


def rows_of(name: str, known: Simulated) -> list[Row]:
    """Return the rows of a point, which is simulated if nothing is known."""
    point = POINTS[name]
    known = known or simulated(point, replications(name))
    stands, slopes = solved(point)
    about = point.system, name, digest(name), point.key, value_of(point)
    return [
        Row(*about, metric, stands, known[metric][0], slope, *known[metric][1:])
        for metric, slope in slopes.items()
        if metric in known and np.isfinite(known[metric]).all()
    ]


def kept() -> list[Row]:
    """Return what stands in the file."""
    return recorded_rows.read(PAGE.with_suffix(".csv"), Row)


def keep(rows: list[Row]) -> None:
    """Write all rows, in the order of the points, and the page."""
    places = {name: number for number, name in enumerate(POINTS)}
    rows = sorted((row for row in rows if row.point in places), key=lambda row: places[row.point])
    recorded_rows.write(PAGE.with_suffix(".csv"), Row._fields, rows)
    PAGE.write_text(page(rows), encoding="utf-8")


def page(rows: list[Row]) -> str:
    """Return the page of the documentation."""
    lines = []
    for row in rows:
        slope = f"{row.theory:.4g}" if np.isfinite(row.theory) else "none"
        error = f"{row.error:+.1%}" if np.isfinite(row.error) else ""
        place = row.system, row.point, f"`{row.key}`", f"{row.value:g}", METRICS[row.metric].long_name
        sizes = slope, f"{row.simulated:.4g} ± {row.ci95:.2g}", f"{row.elasticity:+.2f}", error
        lines.append((*place, *sizes, row.stands, "met" if row.hit else "missed"))
    names = "system", "point", "key", "value", "metric", "theory", "simulated", "elasticity", "error"
    published = [row for row in rows if row.point in PUBLISHED]
    counts = []
    for metric, aim in AIMS.items():
        own = [row for row in published if row.metric == metric]
        near = sum(abs(row.error) <= aim for row in own)
        counts.append(
            f"* {METRICS[metric].long_name}: at most {aim:.0%} at {near} of {len(own)} points, and at "
            f"{sum(row.hit for row in own)} of these the answer stands"
        )
    table = markdown.table((*names, "stands", "aim"), lines)
    return INTRODUCTION + "\n".join(counts) + "\n\n" + "\n".join(table) + "\n"


INTRODUCTION = f"""\
# Slopes against simulation

This page compares derivatives of theory ([`bt.network.plan`](../how-to/differentiate.md)) with slopes of the
simulator. It is written by `python tools/slopes_against_simulation.py`. Its numbers stand in [a
separate file](slopes-against-simulation.csv).

A simulated slope is a central difference over {STEP:.0%} of the key's value on either side, from
{REPLICATIONS} or more pairs of runs of {DURATION_S:g} s that share their random numbers; behind ± is half of
its 95 % interval. The elasticity is how many per cent the simulated metric changes for one per cent of the
key. The error is relative to the simulated slope; where the elasticity is below {LEAST:g} it is relative to a
slope of that elasticity. The points of the five published systems were chosen before any error was known. The
aim is met by an answer that stands and whose error is at most the percentage below. An answer in doubt misses
the aim, however small its error is. Errors of the published systems:

"""


def main(arguments: list[str]) -> None:
    """Simulate what is not known, ask theory, and write the page."""
    afresh, solve_again = "--afresh" in arguments, "--solve-again" in arguments
    names = [name for name in arguments if not name.startswith("--")] or list(POINTS)
    rows = kept()
    for number, name in enumerate(names, start=1):
        own = [row for row in rows if row.point == name and row.scenario == digest(name)]
        if not own or afresh or solve_again:
            known = {} if afresh else {row.metric: (row.mean, row.simulated, row.ci95) for row in own}
            rows = [row for row in rows if row.point != name] + rows_of(name, known)
            keep(rows)
        print(f"\r{number} of {len(names)} points", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    keep(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
