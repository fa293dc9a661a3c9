"""Names for the numbers that nodes, ports, queues and packet types have in a state."""

from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology
from btqueue.simulator.construction.radio_tables import types_of
from btqueue.simulator.construction.state import network_of
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.nodes import QUEUE_KINDS


def node_names(scenario: Scenario) -> list[str]:
    """Return the names of all nodes."""
    return list(topology(scenario).nodes)


def port_names(sim: State, scenario: Scenario) -> list[str]:
    """Return the names of all ports: the sending and the receiving node, as `p1.1>c1`."""
    nodes = node_names(scenario)
    return [f"{nodes[port.node]}>{nodes[port.peer]}" for port in sim.ports]


def queue_names(sim: State, scenario: Scenario) -> list[str]:
    """Return the names of all queues: the port that they belong to and their kind, as `p1.1>c1 uplink`."""
    ports = port_names(sim, scenario)
    owners = dict(enumerate(ports))
    owners |= dict(zip(sim.buckets.queue.tolist(), ports, strict=True))
    owners.pop(NOTHING, None)
    return [f"{owners[number]} {QUEUE_KINDS[queue.kind]}" for number, queue in enumerate(sim.queues)]


def packet_type_names(scenario: Scenario) -> list[str]:
    """Return the names of the packet types of the link, of Bluetooth Low Energy the payloads of PDUs."""
    if scenario.link.bearer == "le":
        return [f"{kind.payload} bytes" for kind in network_of(scenario).packet_types]
    return [kind.name for kind in types_of(scenario.link)]
