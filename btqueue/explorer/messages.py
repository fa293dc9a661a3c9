"""The page's requests and the server's replies, as plain values of JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from btqueue.explorer.controls import Control
from btqueue.explorer.curves import Curve
from btqueue.scenario import METRICS, Scenario, ScenarioError
from btqueue.scenario.errors import shown
from btqueue.scenario.topology import topology
from btqueue.study.evaluate import Answer
from btqueue.study.points import known_key, parse_one
from btqueue.study.summary import Estimate, of_groups
from btqueue.text_files import BadToml, parse_toml

LONGEST_TOML = 100_000
"""Characters of a scenario that the page may send."""


def scenario_of(message: Mapping[str, Any], files: Collection[str]) -> Scenario:
    """Return the scenario that a message holds: its `toml`, changed by its `changes` (texts by key).

    Args:
        message: from the page.
        files: that it may name; they were named on the command line.

    Raises:
        ScenarioError: the message holds no scenario, or it is not valid, or names another file.
    """
    text, changes = message.get("toml"), message.get("changes", {})
    if not isinstance(text, str) or len(text) > LONGEST_TOML or not isinstance(changes, dict):
        raise ScenarioError(f"a scenario is a text of at most {LONGEST_TOML:,} characters")
    try:
        scenario = Scenario.from_dict(parse_toml(text))
    except BadToml as error:
        raise ScenarioError(f"the scenario {error}") from None
    if changes:
        scenario = scenario.changed({known_key(key): parse_one(key, str(changes[key])) for key in changes})
    for name in scenario.files:
        if name not in files:
            why = "is not read for the page: start btqueue explore with it"
            raise ScenarioError(f"the file {shown(name)} {why}")
    return scenario


def told_scenario(scenario: Scenario, found: list[Control]) -> dict[str, Any]:
    """Return title, text, controls and picture of a scenario."""
    return {
        "title": scenario.title,
        "toml": scenario.to_toml(resolved=False),
        "controls": [control._asdict() for control in found],
        "network": picture(scenario),  # pyright: ignore[reportArgumentType]
    }


def told_curve(curve: Curve, groups: Sequence[str] = ()) -> dict[str, Any]:
    """Return a curve as plain values: its points, and for each metric a list of values, with gaps.

    Args:
        curve: the points answered so far.
        groups: groups of the flows, where these differ.
    """
    failures = [one.failure for one in curve.answers.values() if one.failure is not None]
    numbers = sorted(curve.answers)
    kinds = ["short run" if number in curve.sketched else _kind(curve.answers[number]) for number in numbers]
    values = [_values(curve.answers[number], groups) for number in numbers]
    metrics = {
        name: [one.get(name, math.nan) for one in values]
        for name in dict.fromkeys(name for one in values for name in one)
    }
    return {
        "places": [curve.places[number] for number in numbers],
        "solved": len(numbers),
        "of": len(curve.places),
        "complete": curve.complete,
        "drafts": curve.drafts,
        "kinds": kinds,
        "sketched": len(curve.sketched),
        "simulated": kinds.count("simulated"),
        "doubted": sum(bool(one.notes.get("warnings")) for one in curve.answers.values()),
        "wall_ms": round(1000 * curve.wall_s, 1),
        "problem": str(failures[0]) if failures else "",
        "metrics": metrics,
    }


def _kind(answer: Answer) -> str:
    """Return who has answered, and whether theory doubts its answer."""
    if answer.notes.get("answered_by") == "simulation":
        return "simulated"
    return "solved, in doubt" if answer.notes.get("why") else "solved"


def _values(answer: Answer, groups: Sequence[str]) -> dict[str, float]:
    """Return the means of an answer; means of queues and groups are named as in "queue_packets uplink"."""
    queues = answer.metrics.get("queue_packets")
    by_queue = zip(answer.names.get("queue", ()), queues.means, strict=False) if queues else ()
    found = answer.means | {f"queue_packets {name}": mean for name, mean in by_queue}
    for metric, one in answer.metrics.items():
        found |= {f"{metric} {group}": part.mean for group, part in of_groups(one, groups).items()}
    return found


def told_answer(answer: Answer, groups: Sequence[str] = ()) -> dict[str, Any]:
    """Return an answer: mean and interval of each metric, and the values of its flows, links and queues.

    Beside flows stand their `groups`, where flows differ.
    """

    def told(one: Estimate) -> dict[str, Any]:
        of, names = of_groups(one, groups), answer.names.get(one.part, ())
        means, widths = (dict(zip(names, values, strict=False)) for values in (one.means, one.ci95s))
        return {
            "mean": one.mean,
            "ci95": one.ci95,
            "parts": means | {group: part.mean for group, part in of.items()},
            "intervals": widths | {group: part.ci95 for group, part in of.items()},
        }

    return {
        "problem": "" if answer.failure is None else str(answer.failure),
        "warnings": answer.notes.get("warnings", []),
        "answered_by": answer.notes.get("answered_by", ""),
        "why": answer.notes.get("why", []),
        "metrics": {name: told(one) for name, one in answer.metrics.items()},
    }


def metrics_told() -> dict[str, dict[str, str]]:
    """Return heading and unit of every metric."""
    return {name: {"title": one.long_name, "unit": one.unit} for name, one in METRICS.items()}


@lru_cache(maxsize=8)
def picture(scenario: Scenario) -> dict[str, Any]:
    """Return nodes with places in a square of side 1, and the links between them."""
    import networkx as nx

    plan = topology(scenario)
    graph = plan.graph()
    places = nx.kamada_kawai_layout(graph) if len(graph) < 60 else nx.spring_layout(graph, seed=1)
    return {
        "nodes": [
            {
                "name": name,
                "role": data["role"],
                "x": (places[name][0] + 1) / 2,
                "y": (places[name][1] + 1) / 2,
            }
            for name, data in graph.nodes(data=True)
        ],
        "links": [
            {"ends": [one, other], "kind": data["kind"]} for one, other, data in graph.edges(data=True)
        ],
        "flows": [[plan.nodes[flow.source], plan.nodes[flow.target]] for flow in plan.flows],
    }
