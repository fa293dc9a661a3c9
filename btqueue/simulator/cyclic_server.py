"""A server and its queues: classical cyclic polling with k-limited visits, as events over records.

The records and functions of the full simulator that know no network (timers, packet queues, pool, random
streams) serve here too. A customer is a packet that stays in its queue until its service ends.
"""

from typing import NamedTuple

import numpy as np

from btqueue.simulator.compilation import compiled, entry_point
from btqueue.simulator.packet_queue import offer, serve
from btqueue.simulator.pool import free_packet, take_packet
from btqueue.simulator.random_streams import exponential, uniform
from btqueue.simulator.records import NEVER
from btqueue.simulator.timers import cancel, schedule

REACHED, NEEDS_SPACE = 0, 1
SERVER_TIMER = 0

server_dtype = np.dtype(
    [
        ("station", np.int64),
        ("limit", np.int64),
        ("switch", np.int64),
        ("serving", np.bool_),
        ("served", np.int64),
        ("waiting", np.int64),
        ("idle_since", np.int64),
        ("visits", np.int64),
    ]
)
"""`waiting` counts all customers; `idle_since` is when the present idle walk began, `NEVER` when not idle."""

station_dtype = np.dtype(
    [
        ("mean_interarrival", np.float64),
        ("exponential", np.bool_),
        ("short", np.int64),
        ("long", np.int64),
        ("probability_long", np.float64),
        ("started", np.int64),
        ("waited", np.int64),
        ("pairs_served", np.int64),
    ]
)
"""`waited`: waiting times of the `started` services (ns); `pairs_served`: sum of N(N-1) over the visits."""


class PollingState(NamedTuple):
    """One replication of a polling system."""

    clock: np.recarray
    timers: np.recarray
    heap: np.ndarray
    streams: np.recarray
    packets: np.recarray
    queues: np.recarray
    queue_statistics: np.recarray
    server: np.recarray
    stations: np.recarray


@compiled
def draw_service(station, stream):
    """Draw a service time (ns)."""
    if station.exponential:
        return int(exponential(stream, station.long))
    if station.probability_long > 0 and uniform(stream) < station.probability_long:
        return station.long
    return station.short


@compiled
def begin_service(sim, now):
    """Start to serve the first customer of the queue where the server is."""
    server = sim.server[0]
    station = sim.stations[server.station]
    customer = sim.queues[server.station].head
    station.started += 1
    station.waited += now - sim.packets[customer].enqueued_at
    server.serving = True
    schedule(sim, SERVER_TIMER, now + draw_service(station, sim.streams[2 * server.station + 1]))


@compiled
def end_visit(sim, now):
    """Walk to the next queue; if nobody waits anywhere, what happens is settled when somebody comes."""
    server = sim.server[0]
    sim.stations[server.station].pairs_served += server.served * (server.served - 1)
    server.served = 0
    server.visits += 1
    server.station = (server.station + 1) % len(sim.stations)
    if server.waiting == 0:
        server.idle_since = now
        cancel(sim, SERVER_TIMER)
    else:
        schedule(sim, SERVER_TIMER, now + server.switch)


@compiled
def wake_server(sim, queue, now):
    """The first customer after an idle spell: find where the server has walked to by now."""
    server = sim.server[0]
    if server.switch == 0:
        server.station = queue
        begin_service(sim, now)
    else:
        visits = (now - server.idle_since) // server.switch
        server.visits += visits
        server.station = (server.station + visits) % len(sim.stations)
        schedule(sim, SERVER_TIMER, server.idle_since + (visits + 1) * server.switch)
    server.idle_since = NEVER


@compiled
def on_server(sim, now):
    """A service or a walk has ended."""
    server = sim.server[0]
    if server.serving:
        free_packet(sim, serve(sim, server.station, now))
        server.serving = False
        server.served += 1
        server.waiting -= 1
    if sim.queues[server.station].length > 0 and server.served < server.limit:
        begin_service(sim, now)
    else:
        end_visit(sim, now)


@compiled
def schedule_customer(sim, queue, now):
    """Draw when the next customer of this queue comes."""
    gap = exponential(sim.streams[2 * queue], sim.stations[queue].mean_interarrival)
    schedule(sim, 1 + queue, now + int(gap))


@compiled
def on_customer(sim, queue, now):
    """A customer comes: it joins the queue, or is lost."""
    schedule_customer(sim, queue, now)
    customer = take_packet(sim)
    if not offer(sim, queue, customer, now):
        free_packet(sim, customer)
        return
    sim.server[0].waiting += 1
    if sim.server[0].idle_since != NEVER:
        wake_server(sim, queue, now)


@entry_point
def start_polling(sim):
    """Let the sources begin at time 0, with the server idle on its way to the first queue."""
    for queue in range(len(sim.stations)):
        schedule_customer(sim, queue, 0)


@entry_point
def advance_polling(sim, until):
    """Play all events up to and including time `until` (ns); return REACHED or NEEDS_SPACE."""
    clock = sim.clock[0]
    while True:
        timer = sim.heap[0]
        now = sim.timers[timer].due
        if now > until:
            clock.now = until
            return REACHED
        if clock.free_packets == 0:
            return NEEDS_SPACE
        clock.now = now
        clock.events += 1
        if timer == SERVER_TIMER:
            on_server(sim, now)
        else:
            on_customer(sim, timer - 1, now)
