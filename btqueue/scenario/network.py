"""Who is in the network and who talks to whom: the table ``[network]``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import Field

from btqueue.scenario.fields import (
    Bytes,
    Count,
    Name,
    PositiveRate,
    Probability,
    Seconds,
    Table,
    key,
    listed,
    with_own_keys,
)
from btqueue.scenario.link import CLASSIC
from btqueue.scenario.low_energy import LowEnergy, with_headers
from btqueue.scenario.traffic import Traffic
from btqueue.scenario.transport import Transport

MOST_PERIPHERALS = 7
"""Active peripherals of one piconet: the active member address has three bits, and 0 means broadcast."""
MOST_OF_LE = 20
"""Most peripherals of a central of Bluetooth Low Energy, as controllers have them."""

Shape = Literal["piconet", "scatternet", "chain", "custom"]
FlowPattern = Literal["ring", "pairs", "downlink", "uplink", "end-to-end"]


RENAMED: Mapping[str, str] = MappingProxyType({"source": "law"})
"""Keys of ``[traffic]`` that have another name in a flow."""
ENDS = ("source", "target", "name", "group")
"""The keys of a flow that are not keys of ``[traffic]`` or ``[transport]``."""

TableKind = TypeVar("TableKind", bound=Table)


class FlowEnds(Table):
    """Who sends to whom, and how the flow is called."""

    source: Name = key(..., "name of the sending node", alias="from")
    target: Name = key(..., "name of the receiving node", alias="to")
    name: Name | None = key(
        None, "name of this flow in results and expressions", said="its ends, as in `p1.1>c1`"
    )
    group: Name | None = key(None, "name of a group of flows, which results and expressions take together")


# the layers of a host take the same time for all of its flows
_WithOwnKeys: Any = with_own_keys(
    FlowEnds,
    Traffic,
    Transport,
    said="{table}.{name} of this flow",
    but=("tcp_delay_s", "ip_delay_s"),
    renamed=RENAMED,
)


class Flow(_WithOwnKeys):
    """One connection from a sender to a receiver, both named as in :attr:`Network.node_names`.

    The other keys override ``[traffic]`` (its ``source`` is called ``law`` here) and ``[transport]`` for this
    flow alone, in both of its directions. The processing times of the hosts are no keys of a flow.
    """

    CHOICES: ClassVar[tuple[str, ...]] = ("preset",)
    RENAMED: ClassVar[Mapping[str, str]] = RENAMED

    def chosen(self) -> Mapping[str, Any]:
        """Return nothing: a flow takes its preset where it is `resolved`."""
        return {}

    @property
    def label(self) -> str:
        """Its name, by default its ends."""
        return self.name or f"{self.source}>{self.target}"

    @property
    def written(self) -> dict[str, Any]:
        """The keys that this entry sets, by their names in ``[traffic]`` and ``[transport]``."""
        known = type(self).model_fields.keys() - ENDS
        values = {name: value for name, value in vars(self).items() if value is not None and name in known}
        return {"source" if name == "law" else name: value for name, value in values.items()}

    @cached_property
    def own(self) -> dict[str, Any]:
        """The values in which this flow differs from the tables, its preset resolved; named as there."""
        return self.written

    def resolved(self, traffic: Traffic, transport: Transport, le: LowEnergy | None = None) -> Flow:
        """Return this flow in a scenario with these tables, all of its values known; `le`: with this bearer.

        Some defaults follow from another key, as `header_bytes` from `protocol` or any key from `preset`.
        They follow the flow's value of that key; but a value written in the table goes before them.
        """
        differs: dict[str, Any] = {}
        given = self.written
        for common in (traffic, transport):
            kind = type(common)
            own = {name: value for name, value in given.items() if name in kind.model_fields}
            if own:
                written = {name: getattr(common, name) for name in common.model_fields_set}
                table: Any = kind(**written | own)
                if le is not None and isinstance(table, Transport):
                    table = with_headers(le, table)
                differs |= {
                    name: value
                    for name, value in table
                    if value != getattr(common, name) and name not in kind.CHOICES
                }
        flow = self.model_copy()
        vars(flow)["own"] = differs
        return flow

    def _values(self) -> tuple[Any, ...]:
        return *(getattr(self, name) for name in ENDS), frozenset(self.own.items())

    def to_dict(self) -> dict[str, Any]:
        """Return ends, names and the values in which this flow differs from the tables, as plain values."""
        own = {self.RENAMED.get(name, name): value for name, value in self.own.items()}
        kept = {*own, *(name for name in ENDS if getattr(self, name) is not None)}
        return self.model_copy(update=own).model_dump(mode="json", by_alias=True, include=kept)

    def names(self, number: int) -> dict[str, str]:
        """Return where keys that this flow sets stand: for `traffic.source` in `network.flows[2].law`.

        Args:
            number: of the flow.
        """
        tables = {name: "traffic" if name in Traffic.model_fields else "transport" for name in self.own}
        place = f"network.flows[{number}]"
        return {
            f"{table}.{name}": f"{place}.{self.RENAMED.get(name, name)}" for name, table in tables.items()
        }

    def applied_to(self, common: TableKind) -> TableKind:
        """Return a table, ``[traffic]`` or ``[transport]``, with the values of this flow."""
        own = {name: value for name, value in self.own.items() if name in type(common).model_fields}
        return common.model_copy(update=own) if own else common


class Piconet(Table):
    """A piconet of a custom network. A device that is listed in two piconets is a bridge between them."""

    name: Name = key(..., "name of the piconet")
    central: Name = key(..., "name of the central")
    peripherals: Annotated[
        tuple[Name, ...], listed(..., "names of the peripherals", least=1, most=MOST_OF_LE)
    ]


LINK_RATES_KBPS = {"wired": 10_000.0, "wlan": 4_000.0, "cdpd": 19.2, "other": 1_000.0}
"""Default rates of outside links: 10 Mbit/s Ethernet, a practical rate of 802.11b, the raw CDPD channel."""


class OutsideLink(Table):
    """A link between a Bluetooth node and a host outside the piconets (WLAN, wired network, CDPD)."""

    name: Name = key(..., "name of the link")
    source: Name = key(..., "node on one side, for instance a gateway", alias="from")
    target: Name = key(..., "node or host on the other side", alias="to")
    kind: Literal["wired", "wlan", "cdpd", "other"] = key("wired", "kind of link, sets the default rate")
    rate_kbps: PositiveRate = key(
        lambda data: LINK_RATES_KBPS.get(data.get("kind", "other"), 1_000.0),
        "rate of each direction, or of both together when half_duplex",
        said="10,000 (wired), 4,000 (wlan), 19.2 (cdpd), 1,000 (other)",
    )
    medium: Name | None = key(
        None, "links of the same medium share its rate, in both directions; unset: a separate medium"
    )
    half_duplex: bool = key(
        lambda data: data.get("kind") in ("wlan", "cdpd") or data.get("medium") is not None,
        "both directions share the rate",
        said="`true` for wlan, cdpd and a shared medium, else `false`",
    )
    delay_s: Seconds = key(0.0, "propagation and forwarding delay")
    jitter_s: Seconds = key(0.0, "mean of an exponential delay added to delay_s")
    buffer_packets: Count = key(1000, "packets that may wait for the link")
    loss: Probability = key(0.0, "probability that a packet (or block) is lost")
    loss_back: Probability | None = key(None, "loss of the opposite direction, towards from; unset: as loss")
    loss_block_bytes: Bytes | None = key(None, "loss applies to each block of this size; unset: packet")
    header_bytes: int = key(0, "bytes that the link adds to a packet", ge=0, le=10_000)
    up_s: Seconds = key(0.0, "mean time between interruptions; 0: never interrupted")
    down_s: Seconds = key(0.0, "mean length of an interruption")


class PiconetNames(NamedTuple):
    """A piconet by names: its members stand in the order of the polling cycle."""

    name: str
    central: str
    members: tuple[str, ...]


class Network(Table):
    """Topology and flows.

    Nodes of a standard topology have fixed names: ``c1`` is the central of piconet 1, ``p1.2`` its second
    peripheral, ``b1`` the bridge between piconets 1 and 2 (SS), which are joined in a line; with MS bridges
    ``c2`` is a peripheral of piconet 1. Bridges are polled last. A chain of h hops has the nodes ``n0`` to
    ``nh``: with SS bridges peripheral, central, gateway, central, gateway, ...; with MS bridges every node is
    the central of the node before it.
    """

    topology: Shape = key("piconet", "shape of the network")
    peripherals: int = key(
        2,
        f"peripherals of each piconet, bridges not counted; at most {MOST_PERIPHERALS} of Bluetooth Classic",
        ge=1,
        le=MOST_OF_LE,
    )
    piconets: int = key(
        lambda data: 2 if data.get("topology") == "scatternet" else 1,
        "piconets of a scatternet",
        said="1; 2 in a scatternet",
        ge=1,
        le=10_000,
    )
    hops: int = key(2, "hops of a chain", ge=1, le=100)
    bridge: Literal["SS", "MS"] = key("SS", "bridge: peripheral twice (SS), or central and peripheral (MS)")
    flows: FlowPattern | Annotated[tuple[Flow, ...], listed(..., "", least=1, most=100_000)] = key(
        lambda data: {"scatternet": "pairs", "chain": "end-to-end"}.get(data.get("topology"), "ring"),
        "who sends to whom: a pattern, or a list of { from, to }",
        said='`"ring"`; `"pairs"` in a scatternet, `"end-to-end"` in a chain',
    )
    active_flows: Literal["all"] | Annotated[int, Field(ge=1, le=100_000)] = key(
        "all", "how many of the flows carry traffic; the other members are still polled"
    )
    relay: Literal["packet", "segment"] = key(
        "packet",
        "centrals and bridges pass packets on one by one, or put whole segments together and cut them anew",
        CLASSIC,
        said='`"packet"`; `"segment"` in a chain, with outside links, or with `link.adaptation`',
    )
    piconet_list: tuple[Piconet, ...] = listed((), "piconets of a custom network", most=10_000)
    outside_links: tuple[OutsideLink, ...] = listed((), "links to hosts outside the piconets", most=10_000)

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes: centrals first, then peripherals, bridges and outside hosts, each once."""
        piconets = self.piconet_names
        members = [name for p in piconets for name in p.members]
        if self.topology != "custom":
            members.sort(key=lambda name: name.startswith("b"))
        names = [*(p.central for p in piconets), *members]
        if self.topology == "chain":
            names = [f"n{i}" for i in range(self.hops + 1)]
        outside = (end for x in self.outside_links for end in (x.source, x.target))
        return tuple(dict.fromkeys([*names, *outside]))

    @property
    def piconet_names(self) -> tuple[PiconetNames, ...]:
        """Every piconet with its central and its members, the bridges last in a standard topology."""
        if self.topology == "custom":
            return tuple(PiconetNames(p.name, p.central, p.peripherals) for p in self.piconet_list)
        if self.topology == "chain":
            return self._chain()
        return tuple(
            PiconetNames(f"{k}", f"c{k}", (*self.own_peripherals(k), *self._bridges_of(k)))
            for k in range(1, self.piconets + 1)
        )

    def _chain(self) -> tuple[PiconetNames, ...]:
        nodes = [f"n{i}" for i in range(self.hops + 1)]
        if self.bridge == "MS":
            centrals = range(1, self.hops + 1)
            return tuple(PiconetNames(str(i), nodes[i], (nodes[i - 1],)) for i in centrals)
        return tuple(
            PiconetNames(str((i + 1) // 2), nodes[i], (nodes[i - 1], *nodes[i + 1 : i + 2]))
            for i in range(1, self.hops + 1, 2)
        )

    def own_peripherals(self, k: int) -> list[str]:
        """Return the peripherals of piconet *k* of a standard topology, without bridges."""
        return [f"p{k}.{i}" for i in range(1, self.peripherals + 1)]

    def _bridges_of(self, k: int) -> list[str]:
        """Return the bridges that are peripherals in piconet *k* of a standard piconet or scatternet."""
        if self.bridge == "MS":
            return [f"c{k + 1}"] if k < self.piconets else []
        return [f"b{j}" for j in (k - 1, k) if 1 <= j < self.piconets]
