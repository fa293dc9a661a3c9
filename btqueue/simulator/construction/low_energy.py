"""From a scenario's links of Bluetooth Low Energy to records: PDUs, radio tables, connections."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from btqueue.baseband import low_energy as air
from btqueue.channel import uncoded_error_rate
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.low_energy import SHORT_STEP_S, SHORTEST_USUAL_S, USUAL_STEP_S
from btqueue.scenario.radio import Radio
from btqueue.scenario.topology import Topology
from btqueue.simulator.construction import flows
from btqueue.simulator.construction.network import add_radio_port
from btqueue.simulator.construction.numbering import Draft, from_keys
from btqueue.simulator.construction.radio_tables import NS_A_MICROSECOND, RadioTables, levels_and_channels
from btqueue.simulator.records import nodes
from btqueue.simulator.records.conventions import NOTHING, UNLIMITED, nanoseconds
from btqueue.simulator.records.le_links import FRAME_BEGINS, FRAME_ENDS, le_link_dtype
from btqueue.simulator.records.packets import PACKETS_A_SEGMENT, packet_type_dtype
from btqueue.simulator.records.run import EVENT


class Layouts(flows.Layouts):
    """The sizes of segments, and the PDUs that each is cut into; each length of PDUs is a packet type."""

    def __init__(self, scenario: Scenario) -> None:
        """Begin with the PDU that returns credits."""
        super().__init__(scenario, [])
        self.cut = {}  # each gives its PDUs their numbers
        self.lengths = {air.CREDITS_BYTES: 0}

    def _lay_out(self, application_bytes: int, header_bytes: int) -> tuple[int, bytes]:
        le, size = self.scenario.le, max(application_bytes + header_bytes, 1)  # nothing is a byte, too
        coc = le.transfer == "coc"
        if coc:
            whole, rest = divmod(size, le.sdu_bytes or size)
            sdus = [le.sdu_bytes or size] * whole + ([rest] if rest else [])
            frames = [frame for sdu in sdus for frame in air.k_frames(sdu, le.frame_bytes)]
        else:
            frames = list(air.notifications(size, le.att_mtu_bytes))
        cut = []
        for frame in frames:
            pdus = air.pdus(frame, le.payload_bytes)
            for place, pdu in enumerate(pdus):
                marks = FRAME_BEGINS * (place == 0) + FRAME_ENDS * (place == len(pdus) - 1)
                kind = self.lengths.setdefault(pdu, len(self.lengths))
                cut.append((kind, pdu, marks if coc else 0))
        if len(cut) > PACKETS_A_SEGMENT:
            raise ScenarioError(
                f"a segment of {size} bytes needs {len(cut)} PDUs of {le.payload_bytes} bytes, but at most "
                f"{PACKETS_A_SEGMENT} are possible: choose a smaller mss_bytes or a larger payload_bytes"
            )
        return flows.layout(application_bytes, size, cut)


def tables(scenario: Scenario, lengths: Sequence[int], radios: Sequence[Radio]) -> RadioTables:
    """Return the radio tables for PDUs of these lengths (bytes); rows of channel classes come last."""
    le = scenario.le

    def rates(bers: np.ndarray, radio: Radio) -> np.ndarray:
        if radio.model == "constant" and radio.per is not None:
            return np.array([[radio.per] * len(lengths) + [0.0]])
        on_air = radio.bits == "on-air"
        mic = air.MIC_BYTES if le.encrypted else 0
        hit = [n + (air.ON_AIR_BYTES + mic if on_air else 0) for n in lengths]
        hit.append(air.ON_AIR_BYTES if on_air else 0)
        return np.stack([uncoded_error_rate(8 * n, bers) for n in hit], axis=1)

    common: dict[str, Any] = levels_and_channels(radios, rates)
    by_class = scenario.radio.model_copy(update={"model": "constant", "per": None})
    classes = np.array([one.ber for one in le.channel_classes])
    types = np.zeros(len(lengths), packet_type_dtype).view(np.recarray)
    types.payload = lengths
    types.duration = types.on_air = [
        round(NS_A_MICROSECOND * air.air_time_us(le.phy, n, encrypted=le.encrypted)) for n in lengths
    ]
    common["error_rates"] = np.concatenate([common["error_rates"], rates(classes, by_class)])
    return RadioTables(
        packet_types=types,
        type_for_level=np.zeros(len(common["bers"]), np.int64),
        type_for_quality=np.zeros(256, np.int64),
        **common,
    )


def add_links(draft: Draft, plan: Topology) -> None:
    """Add the nodes' groups, in which nobody is polled, and the connections with their ports and queues."""
    for index, piconet in enumerate(plan.piconets):
        draft.piconets.add(timer=NOTHING, node=piconet.central, bridge=NOTHING, packet=NOTHING, away=True)
        first = len(draft.links)
        for member in piconet.members:
            link = draft.links.add(piconet=index, node=member, bridge=NOTHING)
            ends = {
                "down": add_radio_port(draft, link, piconet.central, member, nodes.DOWNLINK),
                "up": add_radio_port(draft, link, member, piconet.central, nodes.UPLINK),
            }
            draft.links[link].update(ends)
            draft.le_links.add(
                "le link",
                timer=draft.add_timer(EVENT, link, piconet.central),
                stream=draft.add_stream(),
                central=piconet.central,
                peripheral=member,
                ports=list(ends.values()),
                first_of_central=first,
                offset=link,
            )
    rows = draft.le_links.rows
    links_of: dict[int, set[int]] = {}
    for link, row in enumerate(rows):
        for end in (row["central"], row["peripheral"]):
            links_of.setdefault(end, set()).add(link)
    for link, row in enumerate(rows):
        others = sorted((links_of[row["central"]] | links_of[row["peripheral"]]) - {link})
        row |= {"first_neighbour": len(draft.le_neighbours), "neighbours": len(others)}
        draft.le_neighbours.extend(others)


def options(scenario: Scenario, rows: int) -> dict[str, object]:
    """Return the fields that all connections have in common; `rows`: of the table of error rates."""
    le, classes = scenario.le, len(scenario.le.channel_classes)
    full, space_us = le.payload_bytes, 1e6 * le.frame_space_s
    largest = air.exchange_us(le.phy, full, full, frame_space_us=space_us, encrypted=le.encrypted)
    usual = le.interval_s >= SHORTEST_USUAL_S
    found = from_keys(le, le_link_dtype) | from_keys(scenario.energy, le_link_dtype)
    return found | {
        "step": nanoseconds(USUAL_STEP_S if usual else SHORT_STEP_S),
        "length": nanoseconds(le.reserved_s),
        "largest": round(NS_A_MICROSECOND * largest) if le.event_admission == "largest" else 0,
        "most_exchanges": le.event_packets or UNLIMITED,
        "empty": round(NS_A_MICROSECOND * air.air_time_us(le.phy, 0)),
        "buffers": le.acl_buffers or UNLIMITED,
        "returned_every": le.credits_returned_every if le.transfer == "coc" else 0,
        "credits": [le.credits] * 2,
        "anywhere": le.anchors == "random",
        "accuracy": 1e-6 * le.clock_ppm,
        "pace": 1.0,
        "first_class": rows - classes,
        "classes": classes,
    }
