"""Build the state of a replication from a scenario; grow its pools; forget the statistics of the warm-up."""

import numpy as np

from btqueue.baseband import PACKET_TYPES, TCP_PDU_OVERHEAD_BYTES, segment
from btqueue.channel.error_rates import packet_error_rate
from btqueue.scenario import Scenario
from btqueue.simulator import records
from btqueue.simulator.engine import start
from btqueue.simulator.polling import DOWNLINK_HALF, UPLINK_HALF
from btqueue.simulator.random_streams import make_streams
from btqueue.simulator.records import NEVER, NOTHING, SECOND, SLOT, State

NANOBITS_A_BYTE = 8 * 1_000_000_000
UNLIMITED = 2**62
FIRST_POOL = 256
"""Packets and segments that a pool starts with; it doubles when needed."""


def new_state(scenario: Scenario, replication: int) -> State:
    """Return the state at time 0 of one replication; it depends on (scenario, seed, replication) only."""
    peripherals = scenario.network.peripherals
    flows = ring_flows(peripherals)
    channels = 1 if scenario.radio.fading == "per-piconet" else peripherals
    layouts = segment_layouts(scenario)
    sim = State(
        clock=_array(records.clock_dtype, 1),
        timers=_array(records.timer_dtype, 1 + 2 * peripherals + 2 * len(flows)),
        heap=np.arange(1 + 2 * peripherals + 2 * len(flows)),
        streams=make_streams(scenario.run.seed, replication, len(flows) + 2 * channels + peripherals),
        packet_types=packet_types(scenario),
        layouts=layouts,
        packets=_array(records.packet_dtype, 0),
        segments=_array(records.segment_dtype, 0),
        queues=queues(scenario),
        queue_statistics=_array(records.queue_statistics_dtype, len(records.QUEUE_KINDS) * peripherals),
        buckets=buckets(scenario),
        peripherals=_array(records.peripheral_dtype, peripherals),
        channels=_array(records.channel_dtype, channels),
        central=_array(records.central_dtype, 1),
        connections=connections(scenario, flows),
        flow_statistics=_array(records.flow_statistics_dtype, len(flows)),
    )
    _set_up_hosts(sim, scenario)
    _set_up_channels(sim, scenario)
    _set_up_timers(sim)
    _set_up_central(sim, scenario)
    largest = int(layouts.count.max())
    clock = sim.clock[0]
    clock.free_packet = clock.free_segment = NOTHING
    # One event lets a connection send at most a full window and a retransmission.
    clock.segment_reserve = scenario.transport.receive_window_segments + 2
    clock.packet_reserve = clock.segment_reserve * largest
    sim = grow(sim)
    start(sim)
    return sim


def ring_flows(peripherals: int) -> list[tuple[int, int]]:
    """Return (source, destination) of the flows of a ring: from each peripheral to the next, cyclically."""
    return [(source, (source + 1) % peripherals) for source in range(peripherals)]


def grow(sim: State) -> State:
    """Return the state with at least twice the packets and segments, the old ones kept in place."""
    clock = sim.clock[0]
    packets = _extend(sim.packets, clock.free_packet, clock.packet_reserve)
    segments = _extend(sim.segments, clock.free_segment, clock.segment_reserve)
    clock.free_packets += len(packets) - len(sim.packets)
    clock.free_segments += len(segments) - len(sim.segments)
    clock.free_packet = len(sim.packets)
    clock.free_segment = len(sim.segments)
    return sim._replace(packets=packets, segments=segments)


def _extend(pool: np.recarray, free: int, reserve: int) -> np.recarray:
    """Return a larger pool whose new entries are chained in front of the old free list."""
    size = max(FIRST_POOL, 2 * len(pool), len(pool) + 2 * int(reserve))
    larger = _array(pool.dtype, size)
    larger[: len(pool)] = pool
    larger.next[len(pool) :] = np.arange(len(pool) + 1, size + 1)
    larger.next[-1] = free
    return larger


def packet_types(scenario: Scenario) -> np.recarray:
    """Return the packet types of the link with their error rates in the good and in the bad state."""
    radio = scenario.radio
    bers = {"perfect": (0.0, 0.0), "constant": (radio.ber, radio.ber)}.get(
        radio.model, (radio.ber_good, radio.ber_bad)
    )
    table = _array(records.packet_type_dtype, len(scenario.link.packets))
    for row, name in enumerate(scenario.link.packets):
        kind = PACKET_TYPES[name]
        table[row].slots = kind.slots
        table[row].duration = kind.slots * SLOT
        table[row].per_good = packet_error_rate(kind, bers[0], bits=radio.bits)
        table[row].per_bad = packet_error_rate(kind, bers[1], bits=radio.bits)
    return table


def segment_layouts(scenario: Scenario) -> np.recarray:
    """Return how data segments and acknowledgements are cut, shape (2,)."""
    link = scenario.link
    types = [PACKET_TYPES[name] for name in link.packets]
    sizes = {
        records.DATA: scenario.traffic.message_bytes + TCP_PDU_OVERHEAD_BYTES,
        records.ACK: TCP_PDU_OVERHEAD_BYTES,
    }
    layouts = _array(records.segment_layout_dtype, 2)
    for kind, size in sizes.items():
        pieces = segment(size, types, link.segmentation)
        layouts[kind].count = len(pieces)
        for position, piece in enumerate(pieces):
            full = scenario.flow_control.charge == "payload"
            charged = piece.packet.payload_bytes if full else piece.carried_bytes
            layouts[kind].types[position] = link.packets.index(piece.packet.name)
            layouts[kind].tokens[position] = charged * NANOBITS_A_BYTE
    return layouts


def queues(scenario: Scenario) -> np.recarray:
    """Return the empty queues: token buffers (S), uplink queues (L) and the central's downlink queues."""
    limits = (scenario.flow_control.buffer_packets, scenario.flow_control.baseband_packets, UNLIMITED)
    table = _array(records.queue_dtype, len(limits) * scenario.network.peripherals)
    table.head = table.tail = NOTHING
    table.limit = np.repeat(limits, scenario.network.peripherals)
    return table


def buckets(scenario: Scenario) -> np.recarray:
    """Return one full token bucket for each peripheral."""
    flow_control = scenario.flow_control
    table = _array(records.bucket_dtype, scenario.network.peripherals)
    table.enabled = flow_control.enabled
    table.rate = round(flow_control.token_rate_kbps * 1000)
    table.depth = table.tokens = flow_control.bucket_bytes * NANOBITS_A_BYTE
    table.whole_segments = flow_control.drop == "segment"
    return table


def connections(scenario: Scenario, flows: list[tuple[int, int]]) -> np.recarray:
    """Return the connections, established and with nothing sent."""
    transport, traffic = scenario.transport, scenario.traffic
    table = _array(records.connection_dtype, len(flows))
    table.source, table.destination = np.array(flows).T
    table.greedy = traffic.source == "greedy"
    table.written = UNLIMITED if traffic.source == "greedy" else 0
    if traffic.source != "greedy":
        table.mean_interarrival = traffic.message_bytes * 8 / (traffic.load_kbps * 1000) * SECOND
    table.cwnd = transport.initial_window_segments
    table.ssthresh = transport.initial_ssthresh_segments
    table.rwnd = transport.receive_window_segments
    table.recover = NOTHING
    table.rto = round(transport.initial_rto_s * SECOND)
    table.min_rto = round(transport.min_rto_s * SECOND)
    table.max_rto = round(transport.max_rto_s * SECOND)
    table.backoff = transport.rto_backoff
    table.rto_deadline = NEVER
    return table


def _set_up_hosts(sim: State, scenario: Scenario) -> None:
    sim.peripherals.channel = np.arange(len(sim.peripherals)) % len(sim.channels)
    sim.peripherals.outbox_head = sim.peripherals.outbox_tail = NOTHING
    sim.peripherals.jitter = round(scenario.run.jitter_s * SECOND)


def _set_up_channels(sim: State, scenario: Scenario) -> None:
    radio = scenario.radio
    sim.channels.lossy = bool(np.any(sim.packet_types.per_good) or np.any(sim.packet_types.per_bad))
    if radio.model == "gilbert-elliott":
        sim.channels.stationary_good = radio.good_s / (radio.good_s + radio.bad_s)
        sim.channels.relaxation_rate = 1 / radio.good_s + 1 / radio.bad_s
        # The first look then draws from the stationary law: the far past has been forgotten.
        sim.channels.sampled_at = -round(100 * SECOND * (radio.good_s + radio.bad_s))
    else:
        sim.channels.stationary_good = 1.0
    sim.channels.good = True


def _set_up_timers(sim: State) -> None:
    hosts = [
        (kind, host) for host in range(len(sim.peripherals)) for kind in (records.TOKENS, records.OUTBOX)
    ]
    flows = [
        (kind, flow)
        for flow in range(len(sim.connections))
        for kind in (records.ARRIVAL, records.RETRANSMISSION)
    ]
    sim.timers.kind, sim.timers.owner = np.array([(records.TURN, 0), *hosts, *flows]).T
    sim.timers.due = NEVER
    sim.timers.place = sim.heap


def _set_up_central(sim: State, scenario: Scenario) -> None:
    limits = {"e-limited": scenario.polling.limit, "1-limited": 1, "exhaustive": UNLIMITED}
    sim.central.peripherals = scenario.network.peripherals
    sim.central.limit = limits[scenario.polling.discipline]
    sim.central.phase = DOWNLINK_HALF
    sim.central.packet = NOTHING


def forget_statistics(sim: State) -> None:
    """Start measuring now (end of the warm-up): clear every count, keep all that is inside the network."""
    clock = sim.clock[0]
    clock.statistics_since = clock.now
    clock.events = 0
    sim.flow_statistics[:] = np.zeros_like(sim.flow_statistics)
    sim.flow_statistics.inside_at_start = packets_inside(sim)
    sim.queue_statistics[:] = np.zeros_like(sim.queue_statistics)
    sim.queue_statistics.inside_at_start = sim.queues.length
    sim.queue_statistics.changed_at = clock.now
    sim.central.visits = -visits_ahead(sim)
    sim.central.data_slots = 0


def visits_ahead(sim: State) -> int:
    """Return how many idle visits are counted that lie after the present time, because they were skipped."""
    central = sim.central[0]
    start = sim.timers[0].due - SLOT
    if central.packet != NOTHING or central.phase == UPLINK_HALF or start <= sim.clock[0].now:
        return 0
    return -((sim.clock[0].now - start) // (2 * SLOT))


def packets_inside(sim: State) -> np.ndarray:
    """Return the packets of each flow now in some queue, by walking the queues, shape (flows,)."""
    inside = np.zeros(len(sim.connections), np.int64)
    for line in sim.queues:
        packet = line.head
        for _ in range(line.length):
            inside[sim.segments[sim.packets[packet].segment].flow] += 1
            packet = sim.packets[packet].next
    return inside


def _array(dtype: np.dtype, length: int) -> np.recarray:
    return np.zeros(length, dtype).view(np.recarray)
