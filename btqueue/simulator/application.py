"""Applications: Poisson messages into an unbounded send queue, or a greedy source that always has data."""

from btqueue.simulator.compilation import compiled
from btqueue.simulator.random_streams import exponential
from btqueue.simulator.timers import schedule


@compiled
def arrival_timer(sim, flow):
    """Return the number of the flow's arrival timer; the flow's retransmission timer is the next one."""
    return 1 + 2 * sim.central[0].peripherals + 2 * flow


@compiled
def schedule_arrival(sim, flow, now):
    """Draw the time of the flow's next message."""
    gap = exponential(sim.streams[flow], sim.connections[flow].mean_interarrival)
    schedule(sim, arrival_timer(sim, flow), now + int(gap))


@compiled
def on_arrival(sim, flow, now):
    """A message of one segment is written to the connection; draw the next."""
    sim.connections[flow].written += 1
    sim.flow_statistics[flow].messages += 1
    schedule_arrival(sim, flow, now)
