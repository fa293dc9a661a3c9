"""The simulated network as a carrier of real IP packets: it delivers each packet later, or loses it."""

from typing import NamedTuple

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.topology import active_flows, topology
from btqueue.simulator.construction.flows import Layouts
from btqueue.simulator.construction.radio_tables import types_of
from btqueue.simulator.construction.state import grow, new_state
from btqueue.simulator.engine import REACHED, advance
from btqueue.simulator.hosts.forwarding import hand_down
from btqueue.simulator.records.run import PACKETS
from btqueue.simulator.traces.trace import SEGMENT_RECEIVED

MTU = 1500
LEAST_IP = 20
"""Longest and shortest IP packet (bytes)."""
SILENT_S = 1e6
"""When the modelled source of the real flow would begin: after eleven days."""


class Delivery(NamedTuple):
    """A packet that has crossed the network: from when to when (ns), towards which end, content."""

    sent_at: int
    at: int
    backward: bool
    packet: bytes


class Carrier:
    """A scenario's network, with real packets in place of one flow's modelled traffic.

    The other flows are simulated as in `simulate`: they are the background traffic. All times are simulated
    times (ns).

    Attributes:
        lost: packets lost since time 0, there and back.
    """

    def __init__(self, scenario: Scenario, flow: int = 0) -> None:
        """Build the network at time 0.

        Args:
            scenario: the network.
            flow: place of the flow whose two ends are real, from 0.

        Raises:
            NotBuiltYet: the simulator cannot run the scenario.
            ScenarioError: the network cannot be built.
        """
        scenario = without_traffic(scenario, flow)
        layouts = Layouts(scenario, [kind.name for kind in types_of(scenario.link)])
        for size in range(LEAST_IP, MTU + 1):
            layouts.of(size, 0)
        own = layouts.table()
        sim = new_state(scenario, 0, logging=True)
        self.flow, self._first_layout = flow, len(sim.layouts) - LEAST_IP
        sim.pools[PACKETS].reserve = max(int(sim.pools[PACKETS].reserve), int(own["count"].max()) + 2)
        sim.connections[flow].ack_direct = False
        self._sim = sim.replaced(layouts=np.concatenate([sim.layouts, own]).view(np.recarray))
        self._inside: dict[int, tuple[int, int, bool, bytes]] = {}
        self._handed = 0
        self._out: list[Delivery] = []
        self.lost = [0, 0]
        self._advance(0)

    def warm_up(self) -> None:
        """Compile the simulator, by carrying a packet through a copy of the network."""
        kept = self._sim
        self._sim = kept.replaced(**{name: array.copy() for name, array in kept.arrays().items()})
        self.hand_down(bytes(LEAST_IP), backward=False)
        self._sim = kept
        self._inside.clear()

    @property
    def next_event(self) -> int:
        """Time of the next event in the network (ns)."""
        return int(self._sim.timers.due.min())

    @property
    def queued(self) -> int:
        """Baseband packets of all flows that wait in all queues of the network."""
        return int(self._sim.queues.length.sum())

    def hand_down(self, packet: bytes, *, backward: bool) -> None:
        """Let the network carry an IP packet from now on, from the flow's source or, `backward`, target."""
        self._sim = grow(self._sim)
        number = self._handed
        self._handed += 1
        layout = self._first_layout + max(len(packet), LEAST_IP)
        index = int(hand_down(self._sim, self.flow, backward, layout, number))
        now = int(self._sim.clock[0].now)
        self._inside[number] = (index, now, backward, packet)
        self._advance(now)

    def advance(self, until: int) -> list[Delivery]:
        """Simulate until this time (ns) and return the deliveries, in order of time."""
        self._advance(until)
        out, self._out = self._out, []
        return out

    def count_lost(self) -> None:
        """Bring `lost` up to date and forget the packets that were lost."""
        segments = self._sim.segments
        for number, (index, _, backward, _) in list(self._inside.items()):
            segment = segments[index]
            taken_again = segment.number != number or segment.incarnation >= 0
            if taken_again or (segment.damaged and segment.travelling == 0):
                self.lost[backward] += 1
                del self._inside[number]

    def _advance(self, until: int) -> None:
        with np.errstate(over="ignore"):
            while advance(self._sim, until) != REACHED:
                self._read_log()
                self._sim = grow(self._sim)
        self._read_log()

    def _read_log(self) -> None:
        clock = self._sim.clock
        length = int(clock["log_length"][0])
        if length == 0:
            return
        clock["log_length"] = 0
        written = self._sim.log[:length]
        arrived = written[(written["event"] == SEGMENT_RECEIVED) & (written["flow"] == self.flow)]
        for entry in arrived:
            found = self._inside.pop(int(entry.number), None) if entry.incarnation < 0 else None
            if found is not None:
                _, sent_at, backward, packet = found
                self._out.append(Delivery(sent_at, int(entry.time), backward, packet))


def without_traffic(scenario: Scenario, flow: int) -> Scenario:
    """Return the scenario without modelled traffic in one of its active flows (from 0) and in its reverse."""
    flows = list(active_flows(scenario.network))
    flows[flow] = flows[flow].model_copy(update={"start_s": SILENT_S})
    return scenario.with_(network__flows=tuple(flows), network__active_flows="all")


def ends_of(scenario: Scenario, flow: int) -> tuple[str, str]:
    """Return the names of the flow's source and target."""
    plan = topology(scenario)
    return plan.nodes[plan.flows[flow].source], plan.nodes[plan.flows[flow].target]
