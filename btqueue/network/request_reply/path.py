"""From the scenario to the way between client and server, and to the sizes of what travels on it."""

from math import prod

from btqueue.baseband import PACKET_TYPES, SLOT_NS, segment
from btqueue.network.answers import NoConvergence
from btqueue.network.repetition import error_rate
from btqueue.network.request_reply.timetable import NS, Form, Hop, Way
from btqueue.scenario import Scenario
from btqueue.scenario.topology import Hop as Step
from btqueue.scenario.topology import Topology, topology

NO_LIMIT = 2**60
"""Places of a queue without limit."""
LONGEST_NS = 2**60
"""Transmission that can be counted with room for what is added to it: 36 years."""


class Path:
    """The way of the scenario's only connection, and the forms of segments on it."""

    def __init__(self, scenario: Scenario) -> None:
        """Lay out media and ports in the order in which the scenario names them."""
        self.scenario = scenario
        self.topology = plan = topology(scenario)
        flow = plan.flows[0]
        self.steps = plan.route(flow.source, flow.target), plan.route(flow.target, flow.source)
        self.media: dict[str, int] = {}
        self.ports: dict[tuple[int, int], int] = {}
        self.rates: list[tuple[float, int]] = []
        self.turns: list[list[int]] = []
        self.polled: int | None = None
        self.pause_slots = 0
        for step in sorted(self.steps[0], key=lambda step: (step.kind, step.index)):
            self._add(step, plan)

    @property
    def way(self) -> Way:
        """The way, as a timetable needs it."""
        forth, back = (tuple(self._hop(step) for step in steps) for steps in self.steps)
        return Way(
            (forth, back), tuple(tuple(ports) for ports in self.turns), self.polled,
            SLOT_NS, self.pause_slots, round(self.scenario.run.jitter_s / 2 * NS),
        )  # fmt: skip

    def form(self, size: int) -> Form:
        """Return the form of a segment of `size` bytes, its headers down to IP included."""
        times = tuple(
            0 if medium == self.polled else int(8 * (size + header) * NS / rate + 0.5)
            for medium, (rate, header) in enumerate(self.rates)
        )
        if max(times) > LONGEST_NS:
            raise NoConvergence(f"a packet takes {max(times) / NS:.3g} s on a link: sessions take years")
        fragments = self._fragments(size) if self.polled is not None else ()
        broken = 1.0 - prod(1.0 - failing for _, failing in fragments)
        if self.scenario.link.arq == "none":
            fragments = tuple((slots, 0.0) for slots, _ in fragments)
        else:
            broken = 0.0
        forth, back = (
            1.0
            - prod(1.0 - (broken if step.kind == "bluetooth" else self._loss(step, size)) for step in steps)
            for steps in self.steps
        )
        return Form(times, fragments, (forth, back))

    def _add(self, step: Step, plan: Topology) -> None:
        ends = (step.source, step.target)
        if step.kind == "bluetooth":
            piconet = plan.piconets[step.index]
            up = ends if ends[1] == piconet.central else (ends[1], ends[0])
            self.polled = self._medium("piconet", 0.0, 0)
            self.pause_slots = 2 * (len(piconet.members) - 1)
            for port in ((up[1], up[0]), up):
                self._port(self.polled, port)
            return
        outside = plan.outside[step.index]
        link = outside.link
        for back, port in enumerate(((outside.source, outside.target), (outside.target, outside.source))):
            shared = f"medium {link.medium}" if link.medium else f"link {link.name}"
            name = shared if link.half_duplex else f"{shared}, direction {back}"
            self._port(self._medium(name, link.rate_kbps * 1000, link.header_bytes), port)

    def _medium(self, name: str, rate: float, header: int) -> int:
        if name not in self.media:
            self.media[name] = len(self.media)
            self.rates.append((rate, header))
            self.turns.append([])
        return self.media[name]

    def _port(self, medium: int, ends: tuple[int, int]) -> None:
        self.ports[ends] = len(self.ports)
        self.turns[medium].append(self.ports[ends])

    def _hop(self, step: Step) -> Hop:
        port = self.ports[step.source, step.target]
        medium = next(number for number, ports in enumerate(self.turns) if port in ports)
        if step.kind == "bluetooth":
            return Hop(medium, port, self.scenario.flow_control.baseband_packets or NO_LIMIT, 0)
        link = self.topology.outside[step.index].link
        return Hop(medium, port, link.buffer_packets, round(link.delay_s * NS))

    def _loss(self, step: Step, size: int) -> float:
        """Return the probability that a segment is lost on a link: one of its blocks, or as a whole."""
        outside = self.topology.outside[step.index]
        link = outside.link
        back = step.source != outside.source
        loss = link.loss_back if back and link.loss_back is not None else link.loss
        if link.loss_block_bytes is None:
            return loss
        return 1.0 - (1.0 - loss) ** -(-(size + link.header_bytes) // link.loss_block_bytes)

    def _fragments(self, size: int) -> tuple[tuple[int, float], ...]:
        """Return slots and error probability of each packet that the segment is cut into."""
        link, radio = self.scenario.link, self.scenario.radio
        types = [PACKET_TYPES[name] for name in link.packets]
        pieces = segment(size + link.l2cap_header_bytes, types, link.segmentation)
        return tuple((piece.packet.slots, error_rate(radio, piece.packet, radio.ber)) for piece in pieces)
