"""Any scenario, right or damaged: every key of the vocabulary, read from its tables.

`scenario_strategy` draws networks that hang together; the shipped scenarios are networks that the models were
made for. Here single keys of both are changed, to any value that their types and bounds allow, or damaged.
"""

import copy
import datetime
import math
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from scenario_strategy import chosen, dictionaries
from vocabulary import Kind, vocabulary

from btqueue.baseband.packets import PACKET_TYPES
from btqueue.scenario import Scenario, ScenarioError, list_models, load
from btqueue.scenario.flow_patterns import flows_of
from btqueue.scenario.radio import KEYS_OF_MODEL

ENTRIES = ("network.flows", "network.outside_links", "radio.links")
"""Lists of tables with keys of their own."""
NAMES = ("name", "from", "to", "node", "direction", "medium")
"""Keys of those entries that say where they are: they are right, or damaged, but not changed."""
STRUCTURE = ("network.topology", "network.flows", "network.piconet_list")
"""Keys that only go together; `scenario_strategy.networks` draws them all."""
MOST = {"network.piconets": 12, "network.hops": 20}
"""Smaller than the vocabulary allows (10,000 and 100), so that a scenario is a matter of seconds."""
LEAST = 1e-12
"""Smallest time (s) and rate (kbit/s) that is drawn where the vocabulary only asks for more than 0."""
EVENTS = 200_000
"""About as many events are simulated of one scenario."""


class Fuzzed(NamedTuple):
    """A scenario as nested dicts.

    Attributes:
        number: the seed that it was drawn from.
        data: the tables.
        damaged: the key that was damaged, `table.key`; empty in a right scenario. Where it begins with "?", a
            part is missing, and the rest may be a scenario all the same.
        extreme: whether values at the bounds of the vocabulary were drawn.
    """

    number: int
    data: dict[str, Any]
    damaged: str
    extreme: bool


def drawn(number: int, files: dict[str, list[str]]) -> Fuzzed:
    """Return the scenario of this seed; *files* has the names of files for the keys that want one."""
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
        data.draw(st.integers(0, 2**32))  # the second example differs from the simplest one here
        found.append(fuzzed(data.draw, number, files))

    draw_one()
    return found[-1]


def fuzzed(draw, number: int, files: dict[str, list[str]]) -> Fuzzed:
    """Draw a network that hangs together or a shipped scenario, change some keys, and damage one of seven."""
    extreme = draw(st.integers(0, 4)) == 0
    shipped = draw(st.booleans())
    if shipped:
        data = load(draw(st.sampled_from(list_models()))).to_dict(resolved=False)
    else:
        data = draw(dictionaries().filter(usable))
    data = without_nothing(data)
    for _ in range(draw(st.integers(0, 8))):
        changed = copy.deepcopy(data)
        change(draw, changed, files, extreme)
        if usable(changed):
            data = changed
    data = bounded(data)
    if draw(st.integers(0, 6)):
        return Fuzzed(number, data, "", extreme)
    return Fuzzed(number, data, damage(draw, data), extreme)


def without_nothing(data):
    """Return the tables without the empty ones."""
    return {table: keys for table, keys in data.items() if keys != {}}


def usable(data) -> bool:
    """Whether this is a scenario."""
    try:
        Scenario.from_dict(data)
    except ScenarioError:
        return False
    return True


# --------------------------------------------------------------------------------- the vocabulary, key by key


@cache
def keys() -> list[str]:
    """Return the keys of all tables, and those that entries of lists have beside their places."""
    of_tables = [key for key in vocabulary() if "." in key and "[]" not in key]
    entries = [key.rpartition("[].") for key in vocabulary()]
    return of_tables + [f"{name}[].{key}" for name, _, key in entries if name in ENTRIES and key not in NAMES]


def change(draw, data, files, extreme) -> None:
    """Set one key of a table, or of an entry of a list, to a value that its type and bounds allow."""
    key = draw(st.sampled_from([key for key in keys() if key not in (*STRUCTURE, *ENTRIES)]))
    where, _, name = key.rpartition(".")
    table, _, listed = where.removesuffix("[]").partition(".")
    place = data.setdefault(table, {})
    if listed:
        if listed == "links" and not place.get(listed):
            place[listed] = [{"node": draw(st.sampled_from(members_of(data)))}]
        if not isinstance(place.get(listed), list) or not place[listed]:
            return
        place = draw(st.sampled_from(place[listed]))
    if name not in REQUIRED and draw(st.integers(0, 9)) == 0:
        place.pop(name, None)
    else:
        place[name] = draw(values_of_key(key, files, extreme))
    reading = sorted(model for model, read in KEYS_OF_MODEL.items() if name in read)
    if listed == "links" and reading:  # a link refuses keys that its model does not read
        place["model"] = reading[0]
        if reading[0] == "trace" and "trace_file" in files:
            place["trace_file"] = draw(st.sampled_from(files["trace_file"]))


REQUIRED = ("name", "from", "to", "node", "central", "peripherals", "at_s")


def members_of(data) -> list[str]:
    """Return the peripherals of all piconets of a scenario that is right so far."""
    return sorted(
        {m for p in Scenario.from_dict(without_nothing(data)).network.piconet_names for m in p.members}
    )


def values_of_key(key, files, extreme):
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
    values = st.one_of([values_of(kind, extreme) for kind in vocabulary()[key]])
    return values.map(lambda value: min(value, MOST[key])) if key in MOST else values


def values_of(kind: Kind, extreme: bool):
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
    """Return the bounds of a number: the first of `ge` and `gt`, and of `le` and `lt`, that it has."""
    low = kind.bounds.get("ge", kind.bounds.get("gt"))
    high = kind.bounds.get("le", kind.bounds.get("lt"))
    assert low is not None and high is not None, "every number of the vocabulary has both bounds"
    return low, high


def numbers(kind: Kind, extreme: bool):
    """Return a strategy for a number: most within a power and a half of ten of its default."""
    low, high = ends(kind)
    low = max(low, LEAST) if "gt" in kind.bounds else low
    high = high * (1 - 1e-9) if "lt" in kind.bounds else high
    default = kind.default
    usual = default if isinstance(default, int | float) and default > 0 else min(max(1, low), high)
    near = st.floats(-1.5, 1.5).map(lambda power: usual * 10**power)
    choices = [near, near, near, st.just(usual), st.just(low if low == 0 else usual)]
    if extreme:
        everywhere = st.floats(math.log10(max(low, LEAST)), math.log10(high)).map(lambda power: 10**power)
        choices += [st.just(low), st.just(high), everywhere]
    numbers = st.one_of(choices)
    if kind.type is int:
        return numbers.map(lambda value: min(max(round(value), low), high))
    return numbers.map(lambda value: float(min(max(value, low), high)))


# ----------------------------------------------------------------------------------------------- bounded work

CLOCKS = (
    *("polling.rendezvous_s", "polling.longest_rendezvous_s", "polling.bridge_patience_s"),
    "link.flush_timeout_s",
    *("traffic.application_timeout_s", "traffic.file_period_s"),
    *("transport.initial_rto_s", "transport.min_rto_s", "transport.max_rto_s", "transport.ack_delay_s"),
    *("transport.centaurus_watchdog_s", "transport.centaurus_worker_s"),
)
"""Times after which something happens again."""


def bounded(data):
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
    flows = flows_of(s.network)
    if s.network.active_flows != "all":
        flows = flows[: s.network.active_flows]
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
    places = (key.partition(".") for key in CLOCKS)
    times = [getattr(getattr(s, table), key) for table, _, key in places]
    clocks = sum(1 / time for time in times if time)
    return 1600.0 * piconets + rate * (1 + piconets) + clocks * (len(flows) + piconets)


# ----------------------------------------------------------------------------------------------------- damage


def damage(draw, data) -> str:
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
            beyond += [low] if "gt" in kind.bounds else []
            beyond += [math.nan, math.inf, -math.inf] if kind.type is float else [1.5]
    return beyond


def missing(draw, data) -> str:
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
