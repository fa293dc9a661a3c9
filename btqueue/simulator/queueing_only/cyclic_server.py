"""One server and its queues: cyclic polling with exhaustive, gated or k-limited visits.

Nothing here is kept in an event list. The server is in one place at a time, so its next event is
`server.due`; and nobody looks at a queue before the server comes, so the customers that came meanwhile are
let in then, one by one in their order and at their own instants (`let_in`). Queue lengths, losses and
waiting times are those of a loop that plays every arrival when it happens.
"""

from typing import NamedTuple

import numpy as np

from btqueue.simulator.machinery.compilation import compiled, entry_point
from btqueue.simulator.machinery.random_streams import exponential
from btqueue.simulator.queueing_only.random_times import draw_time, law_dtype
from btqueue.simulator.records.conventions import NEVER, flags, integers, reals

REACHED, NEEDS_SPACE = 0, 1

server_dtype = np.dtype(
    [
        *integers("now statistics_since due station"),
        *flags("serving arriving walks"),
        *integers("allowance served"),
    ]
)
"""`due`: end of the present service or walk. `walks`: whether walks take time. `served` customers of this
visit, which may become `allowance`."""

station_dtype = np.dtype(
    [
        # the law of arrivals and what happens in a visit
        *reals("mean_interarrival"),
        *integers("batch places limit"),
        *flags("gated"),
        ("service", law_dtype),
        ("walk", law_dtype),
        # the queue, a ring of arrival instants
        *integers("arrival_due first length"),
        # statistics
        *integers("changed_at area inside_at_start batches batches_cut offered refused started waited"),
        *integers("served sojourn visits pairs_served"),
    ]
)
"""`batch` customers come at once; `places` counts the one in service too. `batches_cut` lost a customer or
more; `waited`: waiting times of the `started` services (ns); `sojourn`: time inside of those served, and
`area`: integral of the length up to `changed_at`, both since the statistics began (ns); `pairs_served`:
sum of N(N-1) over visits."""


class PollingState(NamedTuple):
    """One replication: `rings[i]` holds the arrival instants of queue i (ns), modulo its length."""

    server: np.recarray
    stations: np.recarray
    rings: np.ndarray
    streams: np.recarray


@compiled
def change_length(station, change, now):
    """Bring the integral of the queue length up to now, and change the length."""
    station.area += station.length * (now - station.changed_at)
    station.changed_at = now
    station.length += change


@compiled
def let_in(station, ring, stream, now):
    """Let the customers in that came up to now; return False if the ring has no room for them."""
    while station.arrival_due <= now:
        if station.length + station.batch > len(ring):
            return False
        at = station.arrival_due
        joining = min(station.batch, station.places - station.length)
        for place in range(joining):
            ring[(station.first + station.length + place) & (len(ring) - 1)] = at
        change_length(station, joining, at)
        station.batches += 1
        station.offered += station.batch
        if joining < station.batch:
            station.refused += station.batch - joining
            station.batches_cut += 1
        station.arrival_due = at + int(exponential(stream, station.mean_interarrival))
    return True


@compiled
def finish_service(server, station, ring, now):
    """The customer in service leaves."""
    came_at = ring[station.first]
    station.first = (station.first + 1) & (len(ring) - 1)
    change_length(station, -1, now)
    station.served += 1
    station.sojourn += now - max(came_at, server.statistics_since)
    server.serving = False
    server.served += 1


@compiled
def begin_service(server, station, ring, stream, now):
    """Start to serve the first customer of the queue where the server is."""
    station.started += 1
    station.waited += now - ring[station.first]
    server.serving = True
    server.due = now + draw_time(station.service, stream)


@compiled
def begin_visit(server, station):
    """The server has come: fix how many customers this visit may serve."""
    server.arriving = False
    server.served = 0
    server.allowance = min(station.limit, station.length) if station.gated else station.limit


@compiled
def end_visit(server, station, stations, stream, now):
    """Walk to the next queue."""
    station.visits += 1
    station.pairs_served += server.served * (server.served - 1)
    server.arriving = True
    server.station += 1
    if server.station == len(stations):
        server.station = 0
    if server.walks:
        server.due = now + draw_time(station.walk, stream)
    else:
        server.due = max(now, first_customer(stations))


@compiled
def first_customer(stations):
    """Return when the next customer comes (ns), a time that has passed if one waits already."""
    earliest = NEVER
    for station in stations:
        if station.length > 0:
            return 0
        earliest = min(earliest, station.arrival_due)
    return earliest


@entry_point
def start_polling(sim):
    """Draw the first arrivals, at time 0, with the server on its way to the first queue."""
    for queue in range(len(sim.stations)):
        station = sim.stations[queue]
        station.arrival_due = int(exponential(sim.streams[3 * queue], station.mean_interarrival))


@entry_point
def advance_polling(sim, until):
    """Play all events up to and including time `until` (ns); return REACHED or NEEDS_SPACE."""
    server = sim.server[0]
    while server.due <= until:
        now = server.due
        queue = server.station
        station, ring = sim.stations[queue], sim.rings[queue]
        if not let_in(station, ring, sim.streams[3 * queue], now):
            return NEEDS_SPACE
        if server.serving:
            finish_service(server, station, ring, now)
        elif server.arriving:
            begin_visit(server, station)
        if station.length > 0 and server.served < server.allowance:
            begin_service(server, station, ring, sim.streams[3 * queue + 1], now)
        else:
            end_visit(server, station, sim.stations, sim.streams[3 * queue + 2], now)
    for queue in range(len(sim.stations)):
        if not let_in(sim.stations[queue], sim.rings[queue], sim.streams[3 * queue], until):
            return NEEDS_SPACE
    server.now = until
    return REACHED
