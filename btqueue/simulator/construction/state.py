"""The state of a replication: built from a scenario, copied for each one, grown when a pool runs low."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.topology import Topology, topology
from btqueue.simulator.construction import low_energy, network
from btqueue.simulator.construction.flows import Flows, Layouts, add_flow_timers, add_flows
from btqueue.simulator.construction.numbering import CONSTANT, Draft, Numbers, heaps, write
from btqueue.simulator.construction.radio_tables import radio_tables, types_of
from btqueue.simulator.engine import BEGIN, advance
from btqueue.simulator.machinery.random_streams import make_streams
from btqueue.simulator.records.arrays import (
    FIELDS,
    SHAPE,
    Columns,
    Packed,
    State,
    pack,
    plain,
    record_type,
)
from btqueue.simulator.records.connections import TICKS
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.records.nodes import QUEUE_KINDS
from btqueue.simulator.records.run import log_dtype
from btqueue.simulator.scope import require_simulated
from btqueue.simulator.statistics.backlog import LOOKS
from btqueue.simulator.statistics.histograms import BINS

POOLS = ("packets", "segments", "messages")
"""Arrays of entries, in the order of `State.pools`."""
FIRST_POOL = 256
"""Packets, segments and messages that a pool starts with, at least; it doubles when needed."""
LOG_LENGTH = 1 << 15
"""Records of the log between two times that Python reads it."""
MESSAGES_RESERVED = 4
"""More than the messages that one event writes."""


def new_state(scenario: Scenario, replication: int, *, logging: bool = False) -> State:
    """Return the state at time 0 of one replication; it depends on (scenario, seed, replication) only.

    Args:
        scenario: the scenario to simulate.
        replication: number of the replication, from 0.
        logging: write every event to `log`, which the caller has to read whenever `advance` needs space.

    Raises:
        NotBuiltYet: the simulator cannot run the scenario.
        ScenarioError: a file that the scenario names cannot be read, or a segment does not fit any packets.
    """
    return empty_network(scenario).begin(scenario.run.seed, replication, logging=logging)


class EmptyNetwork:
    """A network with nothing in it: `state`, without counts, and `packed`, with pools as they were needed."""

    def __init__(self, given: dict[str, np.ndarray], packed: Packed) -> None:
        """Keep the network.

        Args:
            given: its arrays, but for arrays of zeros.
            packed: all of them.
        """
        self.packed = packed
        self.state = State(packed._replace(block=np.zeros(0, np.uint8)), given)
        self.ticks = bool((plain(given["connections"])["ack_clock"] == TICKS).any())

    def begin(self, seed: int, replication: int, *, logging: bool = False) -> State:
        """Return the state at time 0 of a replication; see `new_state`."""
        sim = State(self.packed.copy())
        streams = sim.streams.view(np.uint8)
        streams[:] = make_streams(seed, replication, len(sim.streams)).view(np.uint8)
        if logging:
            # Events in the log are in the order of time only within an island.
            heap, islands = heaps(sim.timers, np.zeros(len(sim.timers), np.int64))
            sim = sim.replaced(log=_zeros(log_dtype, LOG_LENGTH), heap=heap, islands=islands)
            sim.clock[0].logging = True
            sim.piconets.plain = False
        if self.ticks:
            draw_phases(sim, seed, replication)
        advance(sim, BEGIN)
        return sim

    def keep_pools(self, sim: State) -> None:
        """Let the next replication begin with pools as large as the pools of `sim` are now."""
        sizes = {name: len(sim.apart[name]) for name in POOLS if name in sim.apart}
        if sizes:
            own = State(self.packed.copy())
            more = {name: size for name, size in sizes.items() if size > len(getattr(own, name))}
            self.packed = pack(enlarge(own, more).arrays())


def network_of(scenario: Scenario) -> State:
    """Return the network of the scenario with nothing in it, no counts, no packets, nothing started."""
    return empty_network(scenario).state


def empty_network(scenario: Scenario) -> EmptyNetwork:
    """Return the network, from memory if neither the scenario nor a file that it names has changed."""
    files = tuple((name, modified_at(name)) for name in scenario.files)
    return keep(cast(Any, scenario), files)  # frozen models are hashable, though a type checker cannot know


def modified_at(name: str) -> int:
    """Return when the file was changed last (ns), 0 if there is none."""
    try:
        return Path(name).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=2)
def keep(scenario: Scenario, files: tuple[tuple[str, int], ...]) -> EmptyNetwork:
    """Build the network of a scenario once."""
    collects = gc.isenabled()
    gc.disable()  # many new rows, none of them garbage, would be looked through again and again
    try:
        require_simulated(scenario)
        structure, numbers, tables = numbers_of(scenario)
        return Skeleton.of(structure).network(numbers, tables)
    finally:
        if collects:
            gc.enable()


class Structure(NamedTuple):
    """Everything that decides which rows the arrays of a network have, and which of them refer to others."""

    plan: Topology
    low: bool  # links of Bluetooth Low Energy
    flows: tuple[tuple, ...]  # the group of each
    radios: tuple[tuple[tuple[int, str], int], ...]  # of nodes and directions with their own
    together: bool  # other links of a piconet share a channel
    layers: tuple[str, ...]  # delay lines of hosts
    relays: bool  # nodes on the way put segments together
    tokens: bool  # token buckets are used
    memory: tuple[int, int]  # segments that each connection remembers, and beginnings of segments
    lengths: tuple[tuple[int, ...], ...]  # of the tables


def numbers_of(scenario: Scenario) -> tuple[Structure, Numbers, dict[str, np.ndarray]]:
    """Return the structure of a scenario's network, the numbers of all groups of rows, and the tables."""
    plan, low = topology(scenario), scenario.link.bearer == "le"
    type_names = [kind.name for kind in types_of(scenario.link)]
    layouts: Any = low_energy.Layouts(scenario) if low else Layouts(scenario, type_names)
    flows = Flows(scenario, plan, layouts)
    radios, own_radios = network.radios_of(scenario, plan)
    radio = (
        low_energy.tables(scenario, list(layouts.lengths), radios)
        if low
        else radio_tables(radios, scenario.link, scenario.voice.packet)
    )
    numbers = CONSTANT | flows.numbers | network.numbers_of_places(scenario, plan, radio.error_rates)
    numbers |= {("radio", place): fields for place, fields in enumerate(radio.channel_fields)}
    if low:
        numbers["le link"] = low_energy.options(scenario, len(radio.error_rates))
    numbers["settings"] = {
        "relay_segments": scenario.network.relay == "segment",
        "lossy_feedback": scenario.link.arq != "none" and scenario.link.arq_feedback == "lossy",
        "adapts_to_quality": scenario.link.adaptation_estimate == "link-quality",
        "node_buffers": scenario.link.node_buffer_bytes is not None,
    }
    tables = {
        "layouts": layouts.table(),
        "patterns": np.array(flows.patterns, np.int64),
        "schedules": np.array(flows.schedules, np.int64),
        "le_channels": np.array([one.channels for one in scenario.le.channel_classes], np.int64),
        **radio.arrays,
    }
    for name, reserve in zip(POOLS, (layouts.most_packets + 2, 2, MESSAGES_RESERVED), strict=True):
        size = max(FIRST_POOL, 2 * reserve)
        tables[name] = _pool(FIELDS[name][0], size)
        numbers[name] = {"left": size, "reserve": reserve}
    structure = Structure(
        plan,
        low,
        tuple(flows.groups),
        tuple(own_radios.items()),
        scenario.radio.fading == "per-piconet",
        tuple(name for name in network.LAYERS if name in numbers),
        scenario.network.relay == "segment",
        scenario.flow_control.enabled,
        (flows.ring, 1 if all(numbers[group]["unit"] == 1 for group in set(flows.groups)) else flows.ring),
        tuple(SHAPE(table) for table in tables.values()),
    )
    return structure, numbers, tables


class Skeleton:
    """The arrays of a network's structure, built once: scenarios of this structure only replace numbers.

    The arrays of the first numbers never change, so that nothing of one scenario is left in another one.
    """

    @staticmethod
    @lru_cache(maxsize=4)
    def of(structure: Structure) -> Skeleton:
        """Return the skeleton of a structure, made once."""
        return Skeleton(structure)

    def __init__(self, structure: Structure) -> None:
        """Add all rows.

        Timers that are due at the same time fire in the order in which they are added: of centrals, of hosts,
        of outside links, of flows. The first random streams are of the flows' applications.
        """
        plan, draft, routes = structure.plan, Draft(), paths(structure.plan)
        self.structure, self.draft = structure, cast(Draft | None, draft)
        self.members: dict[Hashable, list[tuple[str, list[int]]]] = {}
        add_flows(draft, plan, structure.flows)
        for _ in plan.nodes:
            draft.nodes.add("node")
        (low_energy.add_links if structure.low else network.add_piconets)(draft, plan)
        network.add_outside_ports(draft, plan)
        network.add_channels(draft, dict(structure.radios), together=structure.together)
        network.add_hosts(draft, plan, routes, structure.layers, structure.relays, structure.tokens)
        network.add_outside_lines(draft, plan)
        network.add_media_and_streams(draft)
        add_flow_timers(draft)
        for number, route in enumerate(routes):
            draft.connections[number // 2]["back_route" if number % 2 else "route"] = len(draft.routes)
            draft.routes += [*(draft.port_of[step] for step in itertools.pairwise(route)), NOTHING]
        draft.clock.add("clock")
        draft.settings.add("settings")
        for name in POOLS:
            draft.pools.add(name)
        self.first: tuple[Numbers, dict[str, Any], Packed] | None = None

    def network(self, numbers: Numbers, tables: dict[str, np.ndarray]) -> EmptyNetwork:
        """Return a network with nothing in it, nothing started, with these numbers and tables."""
        draft = self.draft
        if self.first is None and draft is not None:
            arrays = {**draft.arrays(self.structure.plan.islands(), numbers), **tables, **self.zeros(draft)}
            arrays["fresh"] = arrays["connections"] if len(draft.sessions) else (0,)
            self.first, self.members = (numbers, arrays, pack(arrays)), draft.members()
            self.draft = None  # many rows take much memory
        assert self.first is not None
        before, arrays, packed = self.first
        changed = {name: table for name, table in tables.items() if table is not arrays[name]}
        for group, places in self.members.items():
            if before[group] != numbers[group]:
                for name, rows in places:
                    if name not in changed:
                        changed[name] = arrays[name].copy()
                    write(changed[name], rows, before[group], numbers[group])
        if "connections" in changed and len(arrays["sessions"]):
            changed["fresh"] = changed["connections"]
        given = {name: array for name, array in (arrays | changed).items() if not isinstance(array, tuple)}
        return EmptyNetwork(given, packed.copy().written(changed) if changed else packed)

    def zeros(self, draft: Draft) -> dict[str, Any]:
        """Return the shapes of arrays of zeros, and the times of looks, of which there are none yet."""
        count, (ring, beginnings) = len(draft.connections), self.structure.memory
        return {
            "streams": (draft.stream_count,),
            "queue_statistics": (len(draft.queues),),
            **dict.fromkeys(("backlogs", "flow_statistics", "halfway"), (count,)),
            **dict.fromkeys(("out_of_order", "scoreboard", "sent_at"), (count, ring)),
            **dict.fromkeys(("rtt_histogram", "delay_histogram"), (count, BINS)),
            "starts": (count, beginnings),
            "looks": np.full(LOOKS + 2, NEVER),
            "seen": (LOOKS + 1, count + len(QUEUE_KINDS)),
            "log": (1,),
        }


@lru_cache(maxsize=16)
def _pool(dtype: np.dtype, size: int) -> np.ndarray:
    """Return a pool all of whose entries are free; not to be changed."""
    pool = _zeros(dtype, size)
    pool.next = [*range(1, size), NOTHING]
    return pool


def paths(plan: Topology) -> list[list[int]]:
    """Return the nodes on the way of each flow, there and back, in the order of the flows."""
    both = []
    for flow in plan.flows:
        hops = plan.route(flow.source, flow.target)
        there = [flow.source, *(hop.target for hop in hops)]
        both += [there, there[::-1]]
    return both


def draw_phases(sim: State, seed: int, replication: int) -> None:
    """Give every receiver's free-running clock a random phase."""
    ticking = sim.connections.ack_clock == TICKS
    sequence = np.random.SeedSequence(seed, spawn_key=(replication, 2**32 - 1))
    phases = np.random.default_rng(sequence).random(len(ticking)) * sim.connections.ack_delay
    sim.connections.tick_phase = np.where(ticking, phases.astype(np.int64), 0)


def grow(sim: State) -> State:
    """Return the state with larger pools where free packets, segments or messages are short."""
    sizes = {}
    for name, pool in zip(POOLS, sim.pools, strict=True):
        length = len(getattr(sim, name))
        if pool.left < pool.reserve:
            sizes[name] = max(2 * length, length + 2 * int(pool.reserve))
    return enlarge(sim, sizes)


def enlarge(sim: State, sizes: dict[str, int]) -> State:
    """Return the state with pools of these sizes; new entries are chained in front of the old free list."""
    replaced = {}
    for name, size in sizes.items():
        pool, entries = sim.pools[POOLS.index(name)], getattr(sim, name)
        larger = replaced[name] = _zeros(entries.dtype, size)
        larger.view(np.uint8)[: entries.nbytes] = entries.view(np.uint8)
        following = Columns(larger).next
        following[len(entries) :] = np.arange(len(entries) + 1, size + 1)
        following[-1] = pool.free
        pool.left += size - len(entries)
        pool.free = len(entries)
    return sim.replaced(**replaced)


def _zeros(dtype: np.dtype, length: int) -> np.recarray:
    return np.zeros(length, record_type(dtype)).view(np.recarray)
