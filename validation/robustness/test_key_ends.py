"""Every numeric key at its ends, in both engines: an answer, a refusal, or nothing delivered, no hang."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from any_scenario import OWN, Fuzzed, ends, vocabulary, with_value
from scenario_fuzz import WALL_S, Worker, write_files

from btqueue.scenario import Scenario
from btqueue.scenario.traits import is_trait, traits

SHORT = {"duration_s": 0.25, "warmup_s": 0.0, "replications": 2}
LONG_AT_THE_GREATEST = {
    "simulate": {"run.duration_s", "run.warmup_s", "run.replications", "network.piconets"},
    "solve": {"network.piconets"},
}
"""Keys whose greatest value honestly takes hours: such a run has to hear the first Ctrl-C."""
LEAST_POSITIVE = math.ulp(0.0)

LAN = {"name": "lan", "from": "c1", "to": "h", "kind": "other", "rate_kbps": 300.0, "delay_s": 0.01}
GATEWAY = {
    "network": {
        "outside_links": [LAN],
        "flows": [{"from": "p1.1", "to": "h"}, {"from": "p1.2", "to": "p1.1"}],
    },
    "radio": {"model": "constant", "ber": 1e-5, "links": [{"node": "p1.1"}]},
    "traffic": {"source": "ibp", "load_kbps": 80.0, "load_schedule": [{"at_s": 0.1, "load_kbps": 100.0}]},
}
"""A network with lists of everything, for the keys of their entries."""
SCATTERNET = {"network": {"topology": "scatternet", "peripherals": 1}, "traffic": {"load_kbps": 10.0}}
CHAIN = {"network": {"topology": "chain", "hops": 2}}
PRECISE = {"run": {"precision": 0.5}, "traffic": {"load_kbps": 20.0}}
FLOWS = "network.flows[]."
OF_A_FLOW = {f"{FLOWS}{key}" for key in OWN}
"""Numbers that an entry of a list of flows may have. Others are tried in their tables: they are the same."""
KEYS = [
    (key, kind)
    for key, kinds in vocabulary().items()
    for kind in kinds
    if kind.type in (int, float) and (not key.startswith(FLOWS) or key in OF_A_FLOW)
]
TABLES = sorted({key.partition(".")[0] for key, _ in KEYS})


def base_of(key: str) -> dict[str, Any]:
    """Return a small scenario in which a key can say something."""
    if "[]" in key and key.partition("[]")[0] in ("network.flows", "network.outside_links", "radio.links"):
        return GATEWAY
    if key.startswith("traffic.load_schedule"):
        return GATEWAY
    if key.startswith("le.channel_classes"):
        return {"link": {"bearer": "le"}, "le": {"channel_classes": [{"channels": 37, "ber": 1e-4}]}}
    if key == "network.hops":
        return CHAIN
    if key == "network.piconets" or key.startswith(("polling.bridge", "polling.res", "polling.rendez")):
        return SCATTERNET
    return PRECISE if key == "run.precision" else {}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """A process for the engines."""
    started = Worker(cpu_s=WALL_S)  # it may have to compile first
    yield started
    started.close()


def asked(data: dict[str, Any], engine: str) -> Fuzzed:
    """Return a scenario for one engine, which may be refused."""
    return Fuzzed(0, data, "?", True, (engine,))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, list[str]]:
    """The files that some keys name."""
    return write_files(tmp_path)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("engine", ["simulate", "solve"])
def test_every_number_at_its_ends_is_answered_or_refused(worker, files, engine, table):
    wrong = []
    for key, kind in [one for one in KEYS if one[0].startswith(f"{table}.")]:
        low, high = ends(kind)
        small = base_of(key)
        data = small | {"run": SHORT | small.get("run", {})}
        for value in dict.fromkeys((low, high, max(low, 1 if kind.type is int else LEAST_POSITIVE))):
            long = value == high and key in LONG_AT_THE_GREATEST[engine]
            # an entry of a list of numbers is the only one
            given = with_value(data, key.removesuffix("[]"), [value] if key.endswith("]") else value, files)
            found = worker.answer(asked(given, engine), interrupt_s=2.0 if long else None)
            wrong += [f"{key} = {value}: {fault}" for fault in found["faults"]]
    assert not wrong, "\n".join(wrong)


def test_every_key_has_an_effect_in_its_scenario(files):
    """Else its ends would be tried where nobody reads it."""
    unread = []
    for key, _ in KEYS:
        if is_trait(key) and "[]" not in key:
            scenario = Scenario.from_dict(with_value(base_of(key), key, None, files))
            unread += [] if key in {one.kind for one in traits(scenario)} else [key]
    assert unread == []


def test_the_first_ctrl_c_is_heard_though_the_network_was_quiet_and_then_busy(worker):
    # While nothing happens a chunk grows to hundred thousands of seconds; then it holds 10^9 events.
    # Twenty runs of 20 s each: a machine fifty times as fast is still busy when Ctrl-C comes.
    scenario = {
        "traffic": {"start_s": 5e5},
        "run": {"warmup_s": 1e6, "duration_s": 1e6, "replications": 20},
    }
    assert worker.answer(asked(scenario, "simulate"), interrupt_s=8.0)["read"] == "interrupted"
