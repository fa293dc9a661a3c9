"""Every numeric key at its ends, in both engines: an answer, a refusal, or nothing delivered; never a hang.

The keys come from the tables of the scenario, so a new one is tested by itself.
"""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vocabulary import OWN as OWN_KEYS
from vocabulary import vocabulary

from btqueue.scenario import load

from .engine_process import EngineProcess

DEADLINE_S = 600.0
"""Of a run that takes a moment, or of the answer to Ctrl-C; the process is killed then."""
SHORT = {"duration_s": 0.25, "warmup_s": 0.0, "replications": 2}
LONG_AT_THE_GREATEST = {
    "simulate": {"run.duration_s", "run.warmup_s", "run.replications", "network.piconets"},
    "solve": {"network.piconets"},
}
"""Keys whose greatest value honestly takes hours: such a run has to hear the first Ctrl-C."""
LEAST_POSITIVE = math.ulp(0.0)

END = {"topology": "custom", "piconet_list": [{"name": "a", "central": "c", "peripherals": ["p", "q"]}]}
OUTSIDE = {"name": "lan", "from": "c", "to": "h", "kind": "other", "rate_kbps": 300.0, "delay_s": 0.01}


def ends(kind: type, bounds: dict[str, float]) -> dict[float, str]:
    """Return the least, the greatest and the least positive value that a key accepts."""
    if kind is int:
        low = bounds["ge"] if "ge" in bounds else bounds["gt"] + 1
        high = bounds["le"] if "le" in bounds else bounds["lt"] - 1
        found = {"least": low, "greatest": high, "least positive": max(1, low)}
    else:
        low = bounds["ge"] if "ge" in bounds else math.nextafter(bounds["gt"], math.inf)
        high = bounds["le"] if "le" in bounds else math.nextafter(bounds["lt"], 0)
        found = {"least": low, "greatest": high, "least positive": max(low, LEAST_POSITIVE)}
    return {value: name for name, value in found.items()}  # equal ones once


FLOWS = [
    {
        "from": "p",
        "to": "h",
        "load_kbps": 40.0,
        "message_bytes": 3000,
        "receive_window_segments": 8,
        "start_s": 0.1,
    },
    {"from": "q", "to": "p"},
]
TCP = {
    "network": {
        **END,
        "outside_links": [
            OUTSIDE
            | {
                "jitter_s": 0.001,
                "loss": 0.01,
                "loss_back": 0.02,
                "loss_block_bytes": 100,
                "header_bytes": 10,
            }
            | {"up_s": 1.0, "down_s": 0.1, "buffer_packets": 10}
        ],
        "flows": FLOWS,
    },
    "radio": {
        "model": "gilbert-elliott",
        **{"ber_good": 1e-6, "ber_bad": 1e-3, "good_s": 0.5, "bad_s": 0.1, "interferers": 1},
        "links": [
            {"node": "p", "direction": "up", "model": "constant", "ber": 1e-5},
            {"node": "p", "direction": "down", "model": "constant", "per": 0.01},
            {"node": "q", "direction": "up", "ber_good": 0.0, "ber_bad": 0.01, "good_s": 1.0, "bad_s": 0.1},
            {"node": "q", "direction": "down", "model": "alternating", "ber_bad": 0.001, "period_s": 0.1},
        ],
    },
    "link": {
        **{
            "arq": 5,
            "flush_timeout_s": 1.0,
            "adaptation": "thresholds",
            "adaptation_packets": ["DH5", "DM1"],
        },
        **{"adaptation_thresholds": [0.001], "adaptation_estimate": "link-quality", "quality_memory_s": 1.0},
        **{
            "l2cap_header_bytes": 4,
            "l2cap_delay_s": 1e-3,
            "baseband_delay_s": 1e-3,
            "node_buffer_bytes": 100_000,
        },
    },
    "flow_control": {
        **{"token_rate_kbps": 250.0, "bucket_bytes": 3000, "buffer_packets": 25, "baseband_packets": 20},
        "central_buffer_packets": 100,
    },
    "polling": {"limit": 5},
    "traffic": {
        **{"source": "ibp", "scv": 10.0, "load_kbps": 80.0, "message_bytes": 1460, "start_s": 0.0},
        "load_schedule": [{"at_s": 0.1, "load_kbps": 100.0}],
    },
    "transport": {
        **{"mss_bytes": 1460, "header_bytes": 40, "receive_window_segments": 8, "initial_window_segments": 1},
        **{"initial_ssthresh_segments": 64, "initial_rto_s": 3.0, "min_rto_s": 1.0, "max_rto_s": 64.0},
        **{"clock_granularity_s": 0.01, "variant": "sack", "sack_blocks": 3, "delayed_ack": True},
        **{"ack_every_segments": 2, "ack_delay_s": 0.2, "tcp_delay_s": 1e-3, "ip_delay_s": 1e-3},
        "send_buffer_segments": 100,
    },
    "run": {"jitter_s": 0.001, "seed": 1},
}
"""TCP over a radio with everything that it can have, and over an outside link that comes and goes."""
VEGAS = {
    "traffic": {"load_kbps": 80.0},
    "transport": {"variant": "vegas", "alpha": 1.0, "beta": 3.0, "gamma": 1.0, "delayed_ack": True}
    | {"ack_clock": "tick", "ack_delay_s": 0.2},
    "run": {"intervals": "batch-means"},
}
DATAGRAMS = {
    "network": {"peripherals": 2, "flows": "uplink", "active_flows": 2},
    "radio": {"model": "constant", "ber": 1e-6},
    "flow_control": {
        "token_rate_kbps": 250.0,
        "bucket_bytes": 3000,
        "buffer_packets": 25,
        "baseband_packets": 20,
    },
    "traffic": {"load_kbps": 40.0, "message_bytes": 200, "start_s": 0.0},
    "transport": {"protocol": "none", "mss_bytes": 1460, "header_bytes": 28, "ip_delay_s": 0.001},
    "voice": {"packet": "HV3", "links": 1},
    "link": {"packets": ["DH1"]},
}
PERIODIC = {
    "network": {"flows": "downlink"},
    "radio": {"model": "alternating", "ber_good": 0.0, "ber_bad": 1e-3, "period_s": 0.1},
    "traffic": {"source": "periodic", "load_kbps": 40.0, "message_bytes": 1000, "start_s": 0.0},
    "transport": {"protocol": "none"},
    "polling": {"discipline": "lwrr", "max_weight": 5},
}
FIXED_RATE = {
    "radio": {"model": "constant", "per": 0.01},
    "link": {"arq": "unlimited"},
    "network": {"flows": "uplink"},
}
WALK_IN = {
    "network": {"topology": "scatternet", "piconets": 2, "peripherals": 2},
    "polling": {"bridge_limit": 10, "bridge_buffer_packets": 10, "bridge_patience_s": 1.0, "limit": 5}
    | {"residence": "cycle", "residence_cycles": 1},
    "traffic": {"load_kbps": 10.0},
}
SNIFF = {
    "network": {"topology": "scatternet", "piconets": 2, "peripherals": 1},
    "polling": {"bridge_schedule": "sniff", "rendezvous_s": 0.1},
}
MEETINGS = SNIFF | {
    "polling": {"bridge_schedule": "lcs", "rendezvous_s": 0.1, "longest_rendezvous_s": 0.8},
}
CHAIN = {
    "network": {"topology": "chain", "hops": 2},
    "link": {"arq": "unlimited"},
    "traffic": {"source": "greedy"},
}
SESSIONS = {
    "network": {**END, "outside_links": [OUTSIDE], "flows": [{"from": "h", "to": "p", "start_s": 0.1}]},
    "traffic": {"source": "request-reply", "request_bytes": 32, "reply_bytes": 1024, "goodbye_bytes": 10}
    | {"pause_s": 0.01, "application_timeout_s": 5.0},
    "transport": {"handshake": True, "connection_per_session": True, "initial_rto_s": 3.0},
}
CENTAURUS = SESSIONS | {
    "transport": {"protocol": "centaurus", "centaurus_packet_bytes": 64, "centaurus_header_bytes": 6}
    | {"centaurus_control_bytes": 16, "centaurus_watchdog_s": 30.0, "centaurus_worker_s": 0.001},
}
RECORDED = {"traffic": {"source": "file", "arrival_file": "ARRIVALS", "file_period_s": 1.0}}
TRACED = {
    "radio": {"model": "trace", "trace_file": "TRACE", "trace_step_s": 0.1}
    | {"links": [{"node": "p1.1", "trace_step_s": 0.2}]}
}
PRECISE = {"run": {**SHORT, "precision": 0.5}, "traffic": {"load_kbps": 20.0}}
OWN = {
    **{"tcp": TCP, "vegas": VEGAS, "datagrams": DATAGRAMS, "periodic": PERIODIC, "fixed rate": FIXED_RATE},
    **{"walk-in": WALK_IN, "sniff": SNIFF, "chain": CHAIN, "sessions": SESSIONS, "centaurus": CENTAURUS},
    **{"meetings": MEETINGS, "recorded": RECORDED, "traced": TRACED, "precise": PRECISE},
}
SHIPPED = (
    *("venugopal-2006/piconet", "venugopal-2006/piconet-errors", "venugopal-2006/scatternet-1"),
    *("johansson-2000/bursty", "suliman-2005/connections", "chen-2004/adaptive-1"),
    *("avancha-2002/cdpd-tcp", "avancha-2002/cdpd-centaurus"),
)
"""One scenario of each model of the solver."""
FLOWS = "network.flows[]."
OF_A_FLOW = {f"{FLOWS}{key}" for key in OWN_KEYS}
"""Numbers that an entry of a list of flows may have. Others are tried in their tables: they are the same."""
KEYS = [
    (key, kind.type, kind.bounds)
    for key, kinds in vocabulary().items()
    for kind in kinds
    if kind.type in (int, float) and (not key.startswith(FLOWS) or key in OF_A_FLOW)
]
TABLES = sorted({key.partition(".")[0] for key, _, _ in KEYS})


def places(data: Any, key: str) -> Iterator[list]:
    """Yield the way to each value that nested tables give for this key."""
    head, _, rest = key.partition(".")
    name = head.removesuffix("[]")
    if not isinstance(data, dict) or name not in data:
        return
    ways = [[name, index] for index in range(len(data[name]))] if head != name else [[name]]
    for way in ways:
        inner = data[name] if len(way) == 1 else data[name][way[1]]
        if not rest:
            yield way
        else:
            yield from ([*way, *further] for further in places(inner, rest))


def with_value(data: dict, way: list, value: Any) -> dict:
    """Return a copy of nested tables with another value at one place."""
    changed = copy.deepcopy(data)
    inside: Any = changed
    for step in way[:-1]:
        inside = inside.setdefault(step, {}) if isinstance(inside, dict) else inside[step]
    inside[way[-1]] = value
    return changed


def scenarios_with(engine: str, key: str, *, every: bool) -> list[tuple[str, dict, list]]:
    """Return scenarios in which this key says something, and where: the first or every one."""
    shipped = {name: load(name).to_dict(resolved=False) for name in SHIPPED}
    known = {**OWN, **shipped} if engine == "simulate" else {**shipped, **OWN}
    found = []
    for name, data in known.items():
        usual = {**data, "run": {**SHORT, **(data.get("run", {}) if name in OWN else {})}}
        # every run has a length, but a scenario about that key comes first
        given = data if name in OWN and key.startswith("run.") else usual
        found += [(name, usual, way) for way in list(places(given, key))[:1]]
    if not found:
        assert "[]" not in key, f"no scenario here has {key}: give one, so that it is tested"
        found = [("the default", {"run": SHORT}, key.split("."))]
    return found if every else found[:1]


def check(process: EngineProcess, engine: str, table: str, files: dict[str, str], *, every: bool) -> None:
    """Run every key of a table at its ends, and collect what must not be."""
    wrong = []
    for key, kind, bounds in KEYS:
        if not key.startswith(f"{table}."):
            continue
        for name, data, way in scenarios_with(engine, key, every=every):
            for value, end in ends(kind, bounds).items():
                scenario = json.loads(json.dumps(with_value(data, way, value)))
                for word, path in files.items():
                    scenario = json.loads(json.dumps(scenario).replace(word, path))
                long = end == "greatest" and key in LONG_AT_THE_GREATEST[engine]
                found = process.outcome(
                    engine, scenario, deadline_s=DEADLINE_S, interrupt_s=2.0 if long else None
                )
                fine = bool({"refused", "no answer"} & found.keys()) or found.get("oddities") == []
                if not fine and not (long and "interrupted" in found):
                    wrong.append(f"{key} = {value} ({end}) in {name}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def process() -> Iterator[EngineProcess]:
    """A process for the engines."""
    started = EngineProcess()
    yield started
    started.close()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The files that scenarios here name, by the words that stand for them."""
    (tmp_path / "arrivals").write_text("0.0 1460\n0.1 3000\n")
    (tmp_path / "trace").write_text("0\n0.001\n1e-5\n")
    return {"ARRIVALS": str(tmp_path / "arrivals"), "TRACE": str(tmp_path / "trace")}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("engine", ["simulate", "solve"])
def test_every_number_at_its_ends_is_answered_or_refused(process, files, engine, table):
    check(process, engine, table, files, every=False)


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("engine", ["simulate", "solve"])
def test_every_number_at_its_ends_in_every_scenario_that_has_it(process, files, engine, table):
    check(process, engine, table, files, every=True)


def test_the_keys_are_found_in_lists_and_choices_too():
    bounds = {key: limits for key, _, limits in KEYS}
    assert bounds["traffic.load_schedule[].at_s"] == {"ge": 0, "le": 1e6}
    assert bounds["link.adaptation_thresholds[]"] == {"ge": 0, "le": 0.5}
    assert bounds["network.active_flows"] == {"ge": 1, "le": 100_000}, 'or "all"'
    assert bounds["radio.per"] == {"ge": 0, "le": 1}, "or nothing"
    assert all(len(limits) == 2 for limits in bounds.values()), "every number has two ends"


def test_a_process_that_hangs_is_killed_and_the_next_run_is_answered(process):
    hours = {"run": {"duration_s": 1e6, "replications": 2}}
    assert process.outcome("simulate", hours, deadline_s=1.0) == {"hangs": 1.0}
    assert process.outcome("simulate", {"run": SHORT}, deadline_s=DEADLINE_S)["oddities"] == []


def test_the_first_ctrl_c_is_heard_though_the_network_was_quiet_and_then_busy(process):
    # While nothing happens a chunk grows to hundred thousands of seconds; then it holds 10^9 events.
    # Twenty runs of 20 s each: a machine fifty times as fast is still busy when Ctrl-C comes.
    scenario = {
        "traffic": {"start_s": 5e5},
        "run": {"warmup_s": 1e6, "duration_s": 1e6, "replications": 20, "intervals": "replications"},
    }
    found = process.outcome("simulate", scenario, deadline_s=DEADLINE_S, interrupt_s=8.0)
    assert "interrupted" in found
