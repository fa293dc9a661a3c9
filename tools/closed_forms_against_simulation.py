"""Closed forms of TCP over a piconet and over wires against simulation, for docs/explanation/closed-forms.md.

    python tools/closed_forms_against_simulation.py [--afresh] [--plot FILE]

draws scenarios in the stated range of each form, simulates what is not in closed_forms.csv beside it, and
prints the table of errors. `--afresh` simulates all. The test of these forms reads the same file. `--plot`
draws each form as a curve beside simulations in place of the table.
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import recorded_rows

import btqueue as bt
from btqueue.reproduction.report import markdown
from btqueue.scenario import Scenario
from btqueue.study.closed_forms import closed_forms
from btqueue.study.sensitivity.formulas import WAYS, Evaluated, Setting, of_path, of_piconet
from btqueue.study.summary import summarise

RECORD = Path(__file__).with_suffix(".csv").with_name("closed_forms.csv")
SEED = 20261127
EACH = 40
"""Scenarios drawn for each form; those outside its range are drawn and refused."""
AIMS = {"round trip": (0.03, 0.10), "carried by": (0.005, 0.005), "capacity": (0.005, 0.005),
        "window": (0.005, 0.005), "saw": (0.02, 0.08)}  # fmt: skip
"""Median and 95th percentile of the relative error that were wanted, by the beginning of a form's name."""
RUN = {"run.duration_s": 1500.0, "run.warmup_s": 20.0, "run.replications": 8, "run.seed": 5}
PICONET = {
    "link.arq": "unlimited", "flow_control.enabled": False, "flow_control.baseband_packets": 200,
    "flow_control.buffer_packets": 200,
}  # fmt: skip
SIZES = [(1460, ("DH5", "DH3")), (1000, ("DH5", "DH3")), (1460, ("DH3", "DH1"))]
LOAD, WINDOW = "traffic.load_kbps", "transport.receive_window_segments"
LIMITS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25)


def aim_of(form: str) -> tuple[float, float]:
    """Return the aims of a form."""
    return next(aim for name, aim in AIMS.items() if form.startswith(name))


class Row(NamedTuple):
    """A scenario of a form, with the simulated mean of its flows and the half-width of its 95 % interval."""

    form: str
    changes: str
    simulated: float
    ci95: float


def drawn() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the forms and the changes to their scenarios."""
    rng = random.Random(SEED)
    for flows, where in WAYS.items():
        for form in (f"round trip, carried {where}", f"round trip, carried {where} behind tokens"):
            yield from ((form, carried(rng, flows, tokens="tokens" in form)) for _ in range(EACH))
    for form, flows in (
        ("capacity of a star, each flow", ("uplink", "downlink")),
        ("capacity of a ring under ARQ", ("ring",)),
    ):
        for _ in range(EACH):
            size, packets = rng.choice(SIZES)
            changes = piconet(rng, rng.choice(flows), size, packets) | {"traffic.source": "greedy"}
            changes[WINDOW] = rng.choice([2, 4, 8, 16, 32] if len(flows) > 1 else [16, 24, 32])
            if rng.random() < 0.5:
                changes |= {"radio.model": "constant", "radio.ber": rng.choice([1e-5, 3e-5, 1e-4])}
            yield form, changes | {"flow_control.baseband_packets": 400}
    for _ in range(EACH):
        changes = piconet(rng, rng.choice(("uplink", "downlink")), 1460, ("DH5", "DH3"))
        changes |= {"traffic.source": "greedy", WINDOW: 1}
        changes["polling.limit"] = rng.choice([7, 8, 10, 15, 25])
        yield "window of one in a star, each flow", changes
    for form in ("window over a path", "saw over a path"):
        for _ in range(EACH):
            link = {"rate_kbps": rng.choice([500, 1000, 2000, 5000])}
            link |= {"delay_s": round(rng.uniform(0.005, 0.3), 3)}
            window = rng.randint(1, 60)
            if form.startswith("saw"):
                window, link["buffer_packets"] = 1000, rng.randint(3, 40)
            yield form, {"link": link, WINDOW: window}
    for form, flows in (("carried by a star, each flow", "uplink"), ("carried by a ring, each flow", "ring")):
        for _ in range(EACH // 2):
            changes = carried(rng, flows, tokens=False)
            changes[LOAD] *= rng.choice([1.0, 1.5, 4.0])
            yield form, changes | {WINDOW: 24, "flow_control.baseband_packets": 400}


def piconet(rng: random.Random, flows: str, size: int, packets: tuple[str, str]) -> dict[str, Any]:
    """Return a piconet with a number of stations and a limit drawn at random."""
    return {
        "network.flows": flows, "network.peripherals": rng.randint(2, 7), "polling.limit": rng.choice(LIMITS),
        "traffic.message_bytes": size, "transport.mss_bytes": size, "link.packets": list(packets),
    }  # fmt: skip


def carried(rng: random.Random, flows: str, *, tokens: bool) -> dict[str, Any]:
    """Return a piconet with a share of its capacity as load, and of its tokens."""
    size, packets = rng.choice([SIZES[0]] * 4 + [(300, ("DH5", "DH3")), *SIZES[1:]])
    changes, share, use = piconet(rng, flows, size, packets), rng.uniform(0.05, 0.6), rng.uniform(0.2, 0.7)
    kind = "ring under ARQ" if flows == "ring" else "star, each flow"
    capacity = evaluated(f"capacity of a {kind}", changes)
    changes[LOAD] = round(share * capacity.value * size * 8e-3, 3)
    if tokens:
        paid = [*capacity.at.data, *(capacity.at.ack if flows == "ring" else ())]
        rate = changes[LOAD] * sum(each for _, each in paid) / size / use
        changes |= {"flow_control.enabled": True, "flow_control.token_rate_kbps": round(rate, 2)}
    return changes


def scenario_of(form: str, changes: dict[str, Any]) -> Scenario:
    """Return the scenario of a form."""
    changes = dict(changes)
    if "path" not in form:
        return bt.load("venugopal-2006/piconet").changed(PICONET | RUN | changes)
    link = {"name": "wire", "from": "a", "to": "b"} | changes.pop("link")
    network = {
        "topology": "custom", "relay": "segment", "flows": [{"from": "a", "to": "b"}],
        "piconet_list": [{"name": "idle", "central": "c", "peripherals": ["p"]}], "outside_links": [link],
    }  # fmt: skip
    run = {"duration_s": 3000, "warmup_s": 200, "replications": 2}
    known = {"network": network, "transport": {"preset": "thesis", "windows": "segments"}}
    known |= {"traffic": {"source": "greedy"}, "run": run}
    return Scenario.from_dict(known).changed(changes)


def evaluated(form: str, changes: dict[str, Any]) -> Evaluated:
    """Return a form with its numbers in a scenario, which is not solved for them."""
    setting = Setting(scenario_of(form, changes))
    numbers = (of_path if "path" in form else of_piconet)(setting).get(form, {})
    return Evaluated(closed_forms()[form], numbers, setting)


def doubt(found: Evaluated) -> str:
    """Return why a form refuses its scenario; empty if it does not."""
    return "no value" if found.missing else found.doubt


def simulated(form: str, scenario: Scenario) -> tuple[float, float]:
    """Return mean and half-width of the round trip in s, or of the segments a second."""
    metric, unit = "goodput_kbps", scenario.traffic.message_bytes * 8e-3
    if form.startswith("round trip"):
        metric, unit = "rtt_s", 1.0
    found = summarise(bt.simulate(scenario, threads=1))[metric]
    return found.mean / unit, found.ci95 / unit


def recorded() -> list[Row]:
    """Return the rows of the file."""
    return recorded_rows.read(RECORD, Row)


def errors(rows: list[Row]) -> dict[str, np.ndarray]:
    """Return the relative errors by form, of the scenarios that it does not refuse."""
    found: dict[str, list[float]] = {}
    for row in rows:
        one = evaluated(row.form, json.loads(row.changes))
        if not doubt(one):
            found.setdefault(row.form, []).append(one.value / row.simulated - 1.0)
    return {form: np.array(values) for form, values in found.items()}


def table(errors_of: dict[str, np.ndarray]) -> str:
    """Return the Markdown table of these errors."""
    lines = []
    for form, found in errors_of.items():
        size, (median, high) = abs(found), aim_of(form)
        sizes = f"{np.median(size):.1%}", f"{np.quantile(size, 0.95):.1%}", f"{found[size.argmax()]:+.1%}"
        lines.append((form, f"{len(found)}", *sizes, f"{median:.1%} and {high:.1%}"))
    names = "form", "scenarios", "median", "95th percentile", "worst", "wanted"
    return "\n".join(markdown.table(names, lines)) + "\n"


STAR = {
    "network.flows": "uplink",
    "network.peripherals": 4,
    "polling.limit": 5,
    "traffic.message_bytes": 1460,
    "transport.mss_bytes": 1460,
}
RING = STAR | {"network.flows": "ring"}
TOKENS = {"flow_control.enabled": True, "flow_control.token_rate_kbps": 90.0}
WIRE = {"rate_kbps": 1000, "delay_s": 0.1}
PANELS: list[tuple[str, str, str, list[tuple[str, str, dict[str, Any], np.ndarray]]]] = [
    ("Carried round trips", "load of each flow (kbit/s)", LOAD, [
        ("round trip, carried up a star", "up a star", STAR, np.linspace(10, 90, 9)),
        ("round trip, carried down a star", "down a star", STAR | {"network.flows": "downlink"},
         np.linspace(10, 90, 9)),
        ("round trip, carried in a ring", "in a ring", RING, np.linspace(5, 45, 9)),
    ]),
    ("Behind tokens of 90 kbit/s", "load of each flow (kbit/s)", LOAD, [
        ("round trip, carried up a star behind tokens", "up a star", STAR | TOKENS, np.linspace(10, 60, 6)),
        ("round trip, carried down a star behind tokens", "down a star",
         STAR | TOKENS | {"network.flows": "downlink"}, np.linspace(10, 60, 6)),
        ("round trip, carried in a ring behind tokens", "in a ring", RING | TOKENS, np.linspace(5, 40, 8)),
    ]),
    ("Load or capacity", "load of each flow (kbit/s)", LOAD, [
        ("carried by a star, each flow", "star", STAR | {WINDOW: 24, "flow_control.baseband_packets": 400},
         np.linspace(20, 260, 9)),
        ("carried by a ring, each flow", "ring", RING | {WINDOW: 24, "flow_control.baseband_packets": 400},
         np.linspace(20, 260, 9)),
    ]),
    ("Stations that always send", "stations", "network.peripherals", [
        ("capacity of a star, each flow", "star", STAR | {"traffic.source": "greedy"}, np.arange(2, 8)),
        ("capacity of a ring under ARQ", "ring",
         RING | {"traffic.source": "greedy", WINDOW: 24, "flow_control.baseband_packets": 400},
         np.arange(2, 8)),
        ("window of one in a star, each flow", "star, window of one",
         STAR | {"traffic.source": "greedy", WINDOW: 1, "polling.limit": 10}, np.arange(2, 8)),
    ]),
    ("One flow over a wire", "window (segments)", WINDOW, [
        ("window over a path", "no losses", {"link": WIRE}, np.arange(2, 41, 4)),
    ]),
    ("A window that overflows a buffer", "places of the buffer (packets)", "buffer", [
        ("saw over a path", "2 Mbit/s, 0.2 s", {"link": {"rate_kbps": 2000, "delay_s": 0.2}, WINDOW: 1000},
         np.arange(4, 73, 8)),
    ]),
]  # fmt: skip
"""Titles, labels of the axis below, keys, and curves: forms, names, scenarios, and values of the key."""
SHORT = {"run.duration_s": 400.0, "run.replications": 4}


def picture() -> Any:
    """Return a figure of each form as a curve, with simulated points and their 95 % intervals."""
    from matplotlib.figure import Figure

    from btqueue.plotting import MARKERS, PALETTE, house_style

    with house_style():
        figure = Figure(figsize=(9.5, 8.5), layout="constrained")
        for axes, (title, label, key, curves) in zip(figure.subplots(3, 2).flat, PANELS, strict=True):
            for number, (form, name, changes, places) in enumerate(curves):
                every = [_with(changes, key, place) for place in places.tolist()]
                lines = [evaluated(form, one) for one in every]
                there = [place for place, one in enumerate(lines) if not doubt(one)]
                trip = form.startswith("round trip")
                found = [
                    simulated(form, scenario_of(form, every[n]).changed(SHORT if trip else {})) for n in there
                ]
                style = {"color": PALETTE[number]}
                axes.plot(places[there], [lines[n].value for n in there], label=name, **style)
                means, halves = np.array(found).T
                axes.errorbar(
                    places[there], means, halves, fmt=MARKERS[number], markerfacecolor="white", capsize=2,
                    **style,
                )  # fmt: skip
            axes.set_title(title, fontsize=9)
            axes.set_xlabel(label)
            axes.set_ylabel("round trip (s)" if trip else "segments/s")
            axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
            axes.legend(fontsize=8)
    return figure


def _with(changes: dict[str, Any], key: str, place: float) -> dict[str, Any]:
    """Return the changes with a value of a key, or of the buffer of the wire."""
    if key == "buffer":
        return changes | {"link": changes["link"] | {"buffer_packets": place}}
    return changes | {key: place}


def main() -> None:
    """Draw the forms, or simulate what is not recorded, and print the table."""
    if "--plot" in sys.argv:
        picture().savefig(sys.argv[sys.argv.index("--plot") + 1])
        return
    known = {} if "--afresh" in sys.argv else {row[:2]: row for row in recorded()}
    rows: list[Row] = []
    for form, changes in drawn():
        text = json.dumps(changes)
        if (form, text) in known:
            rows.append(known[form, text])
        elif not doubt(evaluated(form, changes)):
            rows.append(Row(form, text, *simulated(form, scenario_of(form, changes))))
            kept = [*rows, *(row for row in known.values() if row not in rows)]
            recorded_rows.write(RECORD, Row._fields, kept)
    recorded_rows.write(RECORD, Row._fields, rows)
    print(table(errors(rows)))


if __name__ == "__main__":
    main()
