"""The generator of scenarios of all tests, fed by the declarations of the keys.

A scenario is a network that hangs together, or a shipped scenario, in which keys are changed to any value
that their types and bounds allow, as long as the keys go together. A new key is there by itself.
"""

import datetime
import math
from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from btqueue.baseband.packets import PACKET_TYPES
from btqueue.scenario import Scenario, ScenarioError, list_models, load
from btqueue.scenario.fields import conditions
from btqueue.scenario.overrides import copied, merged
from btqueue.scenario.radio import KEYS_OF_MODEL
from btqueue.scenario.topology import active_flows, topology

Files = dict[str, list[str]]
"""Names of files for the keys that want one."""

ENTRIES = ("network.flows", "network.outside_links", "radio.links")
"""Lists of tables with keys of their own."""
NAMES = ("name", "from", "to", "node", "direction", "medium")
"""Keys of those entries that say where they are: they are right, or damaged, but not changed."""
REQUIRED = ("name", "from", "to", "node", "central", "peripherals", "at_s")
STRUCTURE = ("network.topology", "network.flows", "network.piconet_list")
"""Keys that only go together; `networks` draws them all."""
OWN = ("source", "load_kbps", "message_bytes", "start_s", "variant", "receive_window_segments")
"""Keys of tables that are tried as keys of a flow, too: all of them reach it in the same way."""
MOST = {"network.piconets": 12, "network.hops": 20}
"""Smaller than the vocabulary allows (10,000 and 100), so that a scenario is a matter of seconds."""
LEAST = 1e-12
"""Smallest time (s) and rate (kbit/s) that is drawn where the vocabulary only asks for more than 0."""
EVENTS = 200_000
"""About as many events are simulated of one scenario."""
SESSIONS = {"traffic.source": "request-reply"}
ERRORS = {"radio.model": "constant", "radio.ber": 2e-5}
FACTS: dict[str, dict[str, Any]] = {
    "errors": ERRORS,
    "packets are repeated": ERRORS | {"link.arq": "unlimited"},
    "repetition": {"link.arq": "unlimited"},
    "both ways": {"traffic.two_way": True},
    "messages share segments": {"traffic.message_bytes": 700, "transport.windows": "bytes"},
    "single messages": {"transport.windows": "segments"},
}
"""Keys that bring about the facts that conditions of keys name; other facts are about the network."""
ALSO: dict[str, dict[str, Any]] = {
    "polling.limit": {"polling.discipline": "e-limited"},
    "radio.per": {"radio.ber": 0.0},
    "radio.fading": {"radio.model": "gilbert-elliott"},
    "link.adaptation": ERRORS | {"link.arq": "unlimited", "radio.ber": 5e-4},
    "flow_control.drop": {"flow_control.enabled": True},
    "voice.packet": {"link.packets": ["DM3", "DM1"], "link.adaptation": "fixed"},
    "voice.links": {"link.packets": ["DH1"], "link.adaptation": "fixed", "voice.packet": "HV3"},
    "voice.retransmission_slots": ERRORS | {"voice.packet": "2-EV3"},
    "traffic.load_kbps": {"traffic.source": "poisson"},
    "transport.handshake": SESSIONS,
    "transport.connection_per_session": {"transport.handshake": True},
    "transport.piggyback": {"transport.delayed_ack": True},
    "network.outside_links[].up_s": {"network.outside_links[].down_s": 0.2},
    "network.outside_links[].down_s": {"network.outside_links[].up_s": 0.5},
}
"""Keys beside which a key shows, more than its declaration asks for."""


RECORDED = {"file": "arrival_file", "trace": "trace_file"}
"""Values that want a file, with the key beside them that names it."""


# --------------------------------------------------------------------------------- the vocabulary, key by key


class Kind(NamedTuple):
    """A type that a key can have (a class, a `Literal`, or a tuple), its bounds by `ge`, `gt`, `le`, `lt`."""

    type: Any
    bounds: dict[str, float]
    default: Any


@cache
def vocabulary() -> dict[str, list[Kind]]:
    """Return every key by its dotted name, as a file writes it; `[]` stands for an entry of a list."""
    found: dict[str, list[Kind]] = {}
    for key, kind in _kinds(Scenario, [], "", None):
        found.setdefault(key, []).append(kind)
    return found


def _kinds(annotation: Any, metadata: list[Any], key: str, default: Any) -> Iterator[tuple[str, Kind]]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = [m for one in arguments[1:] for m in (one.metadata if isinstance(one, FieldInfo) else [one])]
        yield from _kinds(arguments[0], [*metadata, *inner], key, default)
    elif origin in (Union, UnionType):
        for argument in arguments:
            yield from _kinds(argument, metadata, key, default)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            inside = f"{key}.{field.serialization_alias or name}".lstrip(".")
            yield from _kinds(field.annotation, field.metadata, inside, field.default)
    elif annotation is not NoneType:
        bounds = {n: getattr(m, n) for m in metadata for n in ("ge", "gt", "le", "lt") if hasattr(m, n)}
        yield key, Kind(annotation, bounds, default)
        if origin is tuple:
            yield from _kinds(arguments[0], [], f"{key}[]", None)


@cache
def keys() -> list[str]:
    """Return the keys of all tables, and those that entries of lists have beside their places."""
    of_tables = [key for key in vocabulary() if "." in key and "[]" not in key]
    entries = [key.rpartition("[].") for key in vocabulary()]
    return of_tables + [f"{name}[].{key}" for name, _, key in entries if name in ENTRIES and key not in NAMES]


@cache
def switches() -> list[str]:
    """Return the keys that conditions of other keys name."""
    named = {name for cases in conditions(Scenario).values() for case in cases for name in case}
    return sorted(named & set(vocabulary()))


def needed(key: str, scenario: Scenario) -> dict[str, Any]:
    """Return changes with which a key has an effect on a scenario, as its declaration says."""
    case = next(iter(conditions(Scenario).get(key, ())), {})
    found = dict(ALSO.get(key, {}))
    for name, values in case.items():
        if name in FACTS:
            damaged = scenario.radio.model != "perfect"  # already
            facts = FACTS[name].items()
            found = {one: value for one, value in facts if not (damaged and one in ERRORS)} | found
        elif name in vocabulary():
            there = scenario.value_of(name) in values
            found = needed(name, scenario) | ({} if there else {name: values[0]}) | found
    return found


# --------------------------------------------------------------------------------------------------- networks


def chosen(draw, *values):
    """Draw one of the values."""
    return draw(st.sampled_from(values))


@st.composite
def networks(draw) -> dict[str, Any]:
    """Draw a topology and flows that fit it."""
    shape = chosen(draw, "piconet", "piconet", "scatternet", "chain", "custom", "gateway")
    if shape == "chain":
        return {"topology": "chain", "hops": draw(st.integers(1, 5)), "bridge": chosen(draw, "SS", "MS")}
    if shape == "custom":
        return custom_network(draw)
    if shape == "gateway":
        return gateway(draw)
    network = {"topology": shape, "peripherals": draw(st.integers(1, 5))}
    network["flows"] = chosen(draw, "ring", "downlink", "uplink")
    if shape == "scatternet":
        network |= {"piconets": draw(st.integers(2, 4)), "bridge": chosen(draw, "SS", "MS")}
    if draw(st.booleans()) and (shape == "scatternet" or network["peripherals"] > 1):
        network["flows"] = "pairs"
    return network


def some_flows(draw, nodes: list[str]) -> list[dict[str, Any]]:
    """Draw one to four flows between nodes."""
    ends = [draw(st.permutations(nodes))[:2] for _ in range(draw(st.integers(1, 4)))]
    return [{"from": source, "to": target} for source, target in ends]


def gateway(draw) -> dict[str, Any]:
    """Draw a piconet with outside hosts behind its central or a peripheral, at times on one medium."""
    peripherals = draw(st.integers(1, 3))
    names = ["c1", *(f"p1.{i}" for i in range(1, peripherals + 1))]
    hosts = [f"h{i}" for i in range(1, draw(st.integers(1, 3)) + 1)]
    medium = {"medium": "air", "kind": "wlan"} if draw(st.integers(0, 2)) == 0 else {}
    links = [{"name": f"x{host}", "from": chosen(draw, *names), "to": host, **medium} for host in hosts]
    network = {"topology": "piconet", "peripherals": peripherals, "outside_links": links}
    return network | {"flows": some_flows(draw, names + hosts)}


def custom_network(draw) -> dict[str, Any]:
    """Draw one to three piconets joined by devices that are in two of them, SS or MS."""
    piconets, before = [], []
    for k in range(draw(st.integers(1, 3))):
        members = [f"d{k}.{i}" for i in range(draw(st.integers(1, 3)))]
        if before:
            members.append(chosen(draw, *before))
        piconets.append({"name": f"P{k}", "central": f"m{k}", "peripherals": members})
        before = [*(name for name in members if name.startswith(f"d{k}")), f"m{k}"]
    nodes = sorted({name for p in piconets for name in (p["central"], *p["peripherals"])})
    return {"topology": "custom", "piconet_list": piconets, "flows": some_flows(draw, nodes)}


# ---------------------------------------------------------------------------------------------------- changes


@st.composite
def tables(draw, files: Files | None = None, *, shipped: bool = False, extreme: bool = False):
    """Draw the tables of a valid scenario: of a network or a shipped scenario, with changes."""
    name = draw(st.sampled_from(list_models())) if shipped else None
    data = {"network": draw(networks())} if name is None else load(name).to_dict(resolved=False)
    wanted = [] if name else [key for key in switches() if draw(st.booleans())]
    unnamed = set(RECORDED.values()) - set(files or {})  # any text would be the name of a file
    others = [key for key in keys() if key not in (*STRUCTURE, *ENTRIES, *switches())]
    others = [key for key in others if key.rpartition(".")[2] not in unnamed]
    of_tables, of_entries = (
        st.sampled_from([key for key in others if ("[]" in key) == inside]) for inside in (False, True)
    )
    wanted += draw(st.lists(st.one_of(of_tables, of_tables, of_entries), max_size=20, unique=True))
    for key in wanted:
        changed = change(draw, data, key, files or {}, extreme)
        data = changed if usable(changed) else data
    return data


def scenarios(files: Files | None = None) -> st.SearchStrategy[Scenario]:
    """Return a strategy for scenarios."""
    return tables(files).map(Scenario.from_dict)


def usable(data: dict[str, Any]) -> bool:
    """Whether this is a scenario, and ways lead to the ends of its flows."""
    try:
        topology(Scenario.from_dict(data))
    except ScenarioError:
        return False
    return True


def change(draw, data: dict[str, Any], key: str, files: Files, extreme: bool) -> dict[str, Any]:
    """Return the tables with another value of a key, most times beside the keys that it needs."""
    entry = ""
    if "[]" in key:
        listed = key.partition("[]")[0]
        scenario = Scenario.from_dict(data)
        entries = scenario.value_of(listed)
        if listed == "radio.links" and not entries:
            members = sorted({m for p in scenario.network.piconet_names for m in p.members})
            entries = [{"node": draw(st.sampled_from(members))}] if members else ()
            data = merged(Scenario, data, {listed: entries})
        if isinstance(entries, str) or not entries:
            return data
        entry = f"[{draw(st.integers(1, len(entries)))}]"
    alone = "[]" not in key and draw(st.integers(0, 3)) == 0
    unset = key.rpartition(".")[2] not in REQUIRED and draw(st.integers(0, 9)) == 0
    value = None if unset else draw(values(key, files, extreme))
    return with_value(data, key, value, files, entry=entry, alone=alone)


def with_value(
    data: dict[str, Any], key: str, value: Any, files: Files, *, entry: str = "[1]", alone: bool = False
) -> dict[str, Any]:
    """Return the tables with a value of a key, if not `alone` beside the keys that it needs."""
    changes = {} if alone else needed(key, Scenario.from_dict(data))
    name = key.rpartition(".")[2]
    if key.startswith("radio.links[]."):  # a link refuses keys that its model does not read
        reading = (model for model, read in KEYS_OF_MODEL.items() if name in read)
        changes["radio.links[].model"] = next(reading, "constant")
    changes[key] = value
    for place, now in list(changes.items()):
        wanted = RECORDED.get(now, "") if isinstance(now, str) else ""
        if wanted in files:
            changes.setdefault(f"{place.rpartition('.')[0]}.{wanted}", files[wanted][0])
    return merged(Scenario, data, {place.replace("[]", entry): now for place, now in changes.items()})


def values(key: str, files: Files, extreme: bool) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a key: a file, packet types, or anything of its type."""
    name = key.rpartition(".")[2]
    if name in files:
        return st.sampled_from(files[name])
    if name in ("packets", "adaptation_packets"):
        return st.lists(st.sampled_from(list(PACKET_TYPES)), min_size=1, max_size=5, unique=True)
    if name == "adaptation_thresholds":
        return st.lists(st.floats(0, 0.5), max_size=4, unique=True).map(sorted)
    if name == "load_schedule":
        steps = st.tuples(st.floats(0, 2), st.floats(1, 500))
        steps = st.lists(steps, max_size=3, unique_by=lambda step: step[0]).map(sorted)
        return steps.map(lambda steps: [{"at_s": at, "load_kbps": load} for at, load in steps])
    if name == "channel_classes":
        rates = st.tuples(st.integers(1, 36), st.floats(0, 1e-3), st.floats(0, 1e-3))
        classes = rates.map(lambda drawn: ((drawn[0], drawn[1]), (37 - drawn[0], drawn[2])))
        return classes.map(lambda both: [{"channels": number, "ber": ber} for number, ber in both])
    found = st.one_of([values_of_kind(kind, extreme) for kind in vocabulary()[key]])
    return found.map(lambda value: min(value, MOST[key])) if key in MOST else found


def values_of_kind(kind: Kind, extreme: bool) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of this type, as TOML writes them."""
    if get_origin(kind.type) is Literal:
        return st.sampled_from(get_args(kind.type))
    if kind.type is bool:
        return st.booleans()
    if kind.type in (int, float):
        return numbers(kind, extreme)
    if kind.type is str:
        return st.text(max_size=12)
    raise TypeError(f"no values for {kind.type}")


def ends(kind: Kind) -> tuple[float, float]:
    """Return the least and the greatest value of a number."""
    bounds, whole = kind.bounds, kind.type is int
    if "ge" in bounds:
        low = bounds["ge"]
    else:
        low = bounds["gt"] + 1 if whole else math.nextafter(bounds["gt"], math.inf)
    if "le" in bounds:
        return low, bounds["le"]
    return low, bounds["lt"] - 1 if whole else math.nextafter(bounds["lt"], 0)


def numbers(kind: Kind, extreme: bool) -> st.SearchStrategy[Any]:
    """Return a strategy for a number: most within a power and a half of ten of its default."""
    low, high = ends(kind)
    low = max(low, LEAST) if "gt" in kind.bounds else low
    default = kind.default
    usual = default if isinstance(default, int | float) and default > 0 else min(max(1, low), high)
    near = st.floats(-1.5, 1.5).map(lambda power: usual * 10**power)
    choices = [near, near, near, st.just(usual), st.just(low if low == 0 else usual)]
    if extreme:
        everywhere = st.floats(math.log10(max(low, LEAST)), math.log10(high)).map(lambda power: 10**power)
        choices += [st.just(low), st.just(high), everywhere]
    found = st.one_of(choices).map(lambda value: min(max(value, low), high))
    return found.map(round if kind.type is int else float)


# ----------------------------------------------------------------------------------------------- bounded work

CLOCKS = (
    "polling.rendezvous_s",
    "link.flush_timeout_s",
    *("traffic.application_timeout_s", "traffic.file_period_s"),
    *("transport.initial_rto_s", "transport.min_rto_s", "transport.max_rto_s", "transport.ack_delay_s"),
    *("transport.centaurus_watchdog_s", "transport.centaurus_worker_s"),
)
"""Times after which something happens again."""


def bounded(data: dict[str, Any]) -> dict[str, Any]:
    """Return the scenario with a simulated time that takes about `EVENTS` events at most."""
    scenario = Scenario.from_dict(data)
    run = data.setdefault("run", {})
    replications = min(scenario.run.replications, 3)
    precision = scenario.run.precision
    if precision is not None:  # as many replications as it takes, a thousand at most
        run["precision"] = max(precision, 0.05)
    repeated = replications * (30 if precision is not None else 1)
    duration_s = min(EVENTS / events_per_s(scenario) / repeated, 10.0)
    run["replications"] = replications
    run["duration_s"] = min(scenario.run.duration_s, duration_s)
    if scenario.run.warmup_s != "auto":
        run["warmup_s"] = min(float(scenario.run.warmup_s), duration_s / 2)
    return data


def events_per_s(s: Scenario) -> float:
    """Return about how many events a second of the network has at most."""
    flows = active_flows(s.network)
    piconets = len(s.network.piconet_names)
    load = max([s.traffic.load_kbps, *(step.load_kbps for step in s.traffic.load_schedule)])
    rate = 0.0
    for flow in flows:
        message = flow.message_bytes or s.traffic.message_bytes
        bytes_per_s = max(flow.load_kbps or 0.0, load) * 125
        rate += bytes_per_s / message + bytes_per_s / min(message, s.transport.mss_bytes)
    for link in s.network.outside_links:
        rate += link.rate_kbps * 125 / min(s.transport.mss_bytes, s.traffic.message_bytes)
        rate += sum(1 / time for time in (link.up_s, link.down_s) if time > 0)
    clocks = sum(1 / time for time in map(s.value_of, CLOCKS) if time)
    return 1600.0 * piconets + rate * (1 + piconets) + clocks * (len(flows) + piconets)


# ----------------------------------------------------------------------------------------------------- damage


class Fuzzed(NamedTuple):
    """A scenario as nested dicts.

    Attributes:
        number: the seed that it was drawn from.
        data: the tables.
        damaged: the key that was damaged, `table.key`; empty in a right scenario. Where it begins with "?", a
            part is missing, and the rest may be a scenario all the same.
        extreme: whether values at the bounds of the vocabulary were drawn.
        engines: those to which it is put.
    """

    number: int
    data: dict[str, Any]
    damaged: str
    extreme: bool
    engines: tuple[str, ...] = ("solve", "simulate")


def drawn(number: int, files: Files) -> Fuzzed:
    """Return the scenario of this seed: one of seven is damaged."""
    found: list[Fuzzed] = []

    @seed(number)
    @settings(
        max_examples=2,  # the first example is always the simplest one, the second is drawn
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(data=st.data())
    def draw_one(data: Any) -> None:
        draw = data.draw
        draw(st.integers(0, 2**32))  # the second example differs from the simplest one here
        extreme, shipped = draw(st.integers(0, 4)) == 0, draw(st.booleans())
        fuzzed = bounded(copied(draw(tables(files, shipped=shipped, extreme=extreme))))
        damaged = "" if draw(st.integers(0, 6)) else damage(draw, fuzzed)
        found.append(Fuzzed(number, fuzzed, damaged, extreme))

    draw_one()
    return found[-1]


def damage(draw, data: dict[str, Any]) -> str:
    """Damage one key and return its name: unknown, of a wrong type, out of range, or missing."""
    kind = chosen(draw, "unknown", "type", "type", "range", "range", "missing")
    if kind == "missing":
        return missing(draw, data)
    key = draw(st.sampled_from([key for key in keys() if "[]" not in key]))
    table, _, name = key.partition(".")
    place = data.setdefault(table, {})
    if kind == "unknown":
        letter = draw(st.integers(0, len(name) - 1))
        misspelt = name[:letter] + name[letter] * 2 + name[letter + 1 :]
        place[misspelt] = place.get(name, 1)
        return f"{table}.{misspelt}"
    wrong = [{"a": 1}, [["x"]], datetime.datetime(2006, 1, 1), "\0?"]
    if kind == "range" and (outside := out_of_range(key)):
        wrong = outside
    place[name] = draw(st.sampled_from(wrong))
    if isinstance(place[name], str) and name in ("trace_file", "arrival_file"):
        place[name] = 5  # any text may be the name of a file
    return key


def out_of_range(key: str) -> list[Any]:
    """Return numbers beyond the bounds of a key, none if it takes no number."""
    beyond: list[Any] = []
    for kind in vocabulary()[key]:
        if kind.type in (int, float):
            low, high = ends(kind)
            beyond += [low - 1, high + 1, -high - 1, 10**400]
            beyond += [kind.bounds["gt"]] if "gt" in kind.bounds else []
            beyond += [math.nan, math.inf, -math.inf] if kind.type is float else [1.5]
    return beyond


def missing(draw, data: dict[str, Any]) -> str:
    """Leave out a table, or a key of an entry of a list."""
    entries = [(table, key) for table, keys in data.items() if isinstance(keys, dict) for key in keys
               if isinstance(keys[key], list) and keys[key] and isinstance(keys[key][0], dict)]  # fmt: skip
    if entries and draw(st.booleans()):
        table, key = draw(st.sampled_from(entries))
        entry = draw(st.sampled_from(data[table][key]))
        lost = draw(st.sampled_from(sorted(entry)))
        del entry[lost]
        return f"{table}.{key}" if lost in REQUIRED else f"?{table}.{key}"
    table = draw(st.sampled_from(sorted(set(data) - {"run"})))
    del data[table]
    return f"?{table}"
