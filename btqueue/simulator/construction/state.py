"""The state of a replication: built from a scenario, copied for each one, grown when a pool runs low."""

import itertools
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.topology import Topology, topology
from btqueue.simulator.construction import low_energy, network
from btqueue.simulator.construction.flows import Layouts, add_flow_timers, add_flows
from btqueue.simulator.construction.numbering import Draft, heaps
from btqueue.simulator.construction.radio_tables import radio_tables, types_of
from btqueue.simulator.engine import BEGIN, advance
from btqueue.simulator.machinery.random_streams import make_streams
from btqueue.simulator.records.arrays import FIELDS, Columns, State, pack, record_type
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

    def __init__(self, arrays: dict[str, Any]) -> None:
        """Keep the network.

        Args:
            arrays: of a state; of arrays of zeros only the shapes.
        """
        self.packed = pack(arrays)
        given = {name: array for name, array in arrays.items() if not isinstance(array, tuple)}
        self.state = State(self.packed._replace(block=np.zeros(0, np.uint8)), given)
        self.ticks = bool((self.state.connections.ack_clock == TICKS).any())

    def begin(self, seed: int, replication: int, *, logging: bool = False) -> State:
        """Return the state at time 0 of a replication; see `new_state`."""
        sim = State(self.packed._replace(block=self.packed.block.copy()))
        sim.streams[:] = make_streams(seed, replication, len(sim.streams))
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
            own = State(self.packed._replace(block=self.packed.block.copy()))
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
    return EmptyNetwork(build(scenario))


def build(scenario: Scenario) -> dict[str, Any]:
    """Return the arrays of a network with nothing in it, nothing started; of arrays of zeros the shapes.

    Timers that are due at the same time fire in the order in which they are added: of centrals, of hosts, of
    outside links, of flows. The first random streams are of the flows' applications.
    """
    require_simulated(scenario)
    plan, low = topology(scenario), scenario.link.bearer == "le"
    draft, routes = Draft(), paths(plan)
    type_names = [kind.name for kind in types_of(scenario.link)]
    layouts: Any = low_energy.Layouts(scenario) if low else Layouts(scenario, type_names)
    draft.layouts = layouts
    ring = add_flows(draft, scenario, plan)
    radios, own_radios = network.radios_of(scenario, plan)
    draft.tables = (
        low_energy.tables(scenario, list(layouts.lengths), radios)
        if low
        else radio_tables(radios, scenario.link, scenario.voice.packet)
    )
    network.add_nodes(draft, scenario, plan)
    (low_energy.add_links if low else network.add_piconets)(draft, scenario, plan)
    network.add_outside_ports(draft, plan)
    network.add_channels(draft, scenario, own_radios)
    network.add_hosts(draft, scenario, plan, routes)
    network.add_outside_lines(draft, plan)
    network.add_media_and_streams(draft)
    add_flow_timers(draft)
    for number, route in enumerate(routes):
        draft.connections[number // 2]["back_route" if number % 2 else "route"] = len(draft.routes)
        draft.routes += [*(draft.port_of[step] for step in itertools.pairwise(route)), NOTHING]
    count = len(draft.connections)
    in_bytes = any(one["unit"] != 1 for one in draft.connections.alike)
    pools = first_pools(draft, largest=layouts.most_packets)
    draft.clock.add(dict.fromkeys(("arrived", "entering", "sending", "acknowledging"), NOTHING))
    draft.settings.add(
        {
            "relay_segments": scenario.network.relay == "segment",
            "lossy_feedback": scenario.link.arq != "none" and scenario.link.arq_feedback == "lossy",
            "adapts_to_quality": scenario.link.adaptation_estimate == "link-quality",
            "node_buffers": scenario.link.node_buffer_bytes is not None,
        }
    )
    arrays = draft.arrays(plan.islands())
    radio = ("trace_levels", "level_quality", "type_for_level", "type_for_quality")
    return {
        **arrays,
        **pools,
        **{name: np.asarray(getattr(draft.tables, name), FIELDS[name][0]) for name in radio},
        "error_rates": np.roll(draft.tables.error_rates, 1, axis=1),
        "packet_types": draft.tables.packet_types,
        "streams": (draft.stream_count,),
        "queue_statistics": (len(draft.queues),),
        "le_channels": np.array([one.channels for one in scenario.le.channel_classes], np.int64),
        "fresh": arrays["connections"] if len(draft.sessions) else (0,),
        "backlogs": (count,),
        "out_of_order": (count, ring),
        "scoreboard": (count, ring),
        "sent_at": (count, ring),
        "starts": (count, ring if in_bytes else 1),
        "flow_statistics": (count,),
        "rtt_histogram": (count, BINS),
        "delay_histogram": (count, BINS),
        "looks": np.full(LOOKS + 2, NEVER),
        "seen": (LOOKS + 1, count + len(QUEUE_KINDS)),
        "halfway": (count,),
        "log": (1,),
    }


def first_pools(draft: Draft, largest: int) -> dict[str, np.ndarray]:
    """Return the entries of the pools that a replication begins with; `largest`: packets of a segment."""
    entries = {}
    for name, reserve in zip(POOLS, (largest + 2, 2, MESSAGES_RESERVED), strict=True):
        size = max(FIRST_POOL, 2 * reserve)
        entries[name] = _pool(FIELDS[name][0], size)
        draft.pools.add(left=size, reserve=reserve)
    return entries


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
