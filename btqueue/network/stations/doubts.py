"""What makes an answer uncertain: each doubt is a sentence with the size of the error that has been found.

A doubt is about the mechanism that a law knows only roughly, and not about a scenario. The sizes are those of
random scenarios beside the simulator (`docs/explanation/model-against-simulation.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.stations import air, buffers, fading, sessions, transport
from btqueue.network.stations.network import Flow, Network
from btqueue.network.stations.point import CARRIED, Point
from btqueue.scenario.errors import bracketed, shown

Vector = NDArray[np.float64]

SMALL = 0.03
"""Share of a round trip that a rough part may have without a doubt: it is known to a third or better."""
BUSY, BUSY_ALONE = 0.45, 0.6
"""Use of a resource by sources at random, beyond which their waits are rough: by several links, by one."""
BUSY_LINK = 0.8
"""The same of the air of a lone link: round trips of 24 random ones were within 5 % up to there."""
PAIRED_WINDOW = 4
"""Initial window from which on data both ways are acknowledged in pairs, if the window is even."""
CYCLIC = ("e-limited", "1-limited", "round-robin")
RARE = 1e-3
"""Overflows of a buffer, or segments of a source, that make no difference."""

IN_RECOVERY: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "transport.limited_transmit": (False, True),
        "transport.window_limited_growth": (False, True),
        "transport.hold_ssthresh": (False, True),
        "transport.timestamps": (True,),
        "transport.sack_blocks": (3, 4),
        "transport.retransmit_only_lost": (False,),
        "transport.forward_ack": (False,),
        "transport.loss_detection": ("duplicates",),
        "transport.loss_probes": (False,),
        "transport.frto": (False,),
        "transport.rto_variation": ("smoothed",),
        "transport.rate_reduction": (False,),
        "transport.ssthresh_rule": ("flight",),
        "transport.byte_counting": (False,),
        "transport.recovery_exit_grows": (False,),
        "transport.timeout_exit_holds": (False,),
        "transport.inflate_by_one": (False,),
        "transport.ack_ends_backoff": (False,),
        "transport.impatient_timer": (False,),
        "transport.clock_granularity_s": (0.0,),
        "transport.timer_tick_s": (0.0,),
        "transport.hystart": (False,),
        "transport.buffers": ("fixed",),
        "flow_control.drop": ("packet",),
    }
)
"""Keys that no law reads, and that matter where segments are lost; with the values that the laws are for."""
UNREAD: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "traffic.phase": ("random",),
        "transport.quick_acks": (0,),
        "transport.vegas_on_srtt": (False,),
        "transport.vegas_adjustment": ("per-ack",),
        "transport.buffers": ("fixed",),
        "link.flush_timeout_s": (None,),
        "link.quality_memory_s": (0.0,),
        "traffic.application_timeout_s": (None,),
    }
)
"""Keys that no law reads, and that matter anywhere; with the values that the laws are for."""


class Asked(NamedTuple):
    """A network, its point, and the round trips of the answer (s)."""

    network: Network
    point: Point
    rtt: Vector

    @property
    def used(self) -> Vector:
        """Use of each resource, shape (resources,)."""
        return self.point.rate @ self.point.service

    @property
    def by_chance(self) -> Vector:
        """Use of each resource by sources at random, shape (resources,): neither greedy ones nor sessions."""
        session = np.array([bool(flow.messages) for flow in self.network.flows])
        rate = np.where(self.point.links.links.endless | session, 0.0, self.point.rate)
        return rate @ self.point.service

    def flows(self) -> Iterator[tuple[int, Flow, bool]]:
        """Yield number, flow, and whether it always has data to send, of the flows that send at all."""
        for f, flow in enumerate(self.network.flows):
            if not flow.messages and (self.point.rate[f] > 0.0 or flow.load > 0.0):
                yield f, flow, bool(self.point.links.links.endless[f])


def doubts(network: Network, point: Point, rtt: Vector) -> list[str]:
    """Return why the answer does not stand; nothing if it does."""
    asked = Asked(network, point, rtt)
    found = [found for rule in RULES for found in rule(asked)]
    found += air.doubts(network, point)
    found += fading.doubts(network, point)
    found += transport.doubts(network, point)
    found += buffers.doubts(network, point)
    found += sessions.doubts(network, point.sessions)
    return list(dict.fromkeys(found))


def of_busy_resources(asked: Asked) -> Iterator[str]:
    """Yield resources that sources at random use much: waits there depend on more than the means."""
    links = asked.point.links.links
    several = len(links.names) > 1
    fades = any(visit.train.worse > 0.0 for flow in asked.network.flows for visit in flow.forth)
    ports = len(asked.network.ports)
    air = np.zeros(len(asked.network.piconets))
    if len(links.names):
        open_load = np.minimum(links.open_load, links.load)  # both ways in one frame
        np.add.at(air, links.piconet, np.minimum(open_load, links.plain_load))
    most = BUSY if several else BUSY_ALONE if fades else BUSY_LINK
    if (load := float(air.max(initial=0.0))) > most:
        found = f"sources at random fill {load:.0%} of the air"
        yield f"{found}: above {most:.0%} round trips were up to 15 % off"
    for r in range(ports, len(asked.used)):
        users = int((asked.point.service[:, r] > 0.0).sum())
        if asked.by_chance[r] > BUSY_ALONE and users:
            name, _ = asked.point.links.names[r]
            yield (
                f"sources at random use {asked.by_chance[r]:.0%} of a {name}: above {BUSY_ALONE:.0%} round "
                "trips were up to 20 % off"
            )
            return


def of_the_knee(asked: Asked) -> Iterator[str]:
    """Yield windows that neither fill a resource nor leave it free: there it matters how bursts meet."""
    links = asked.point.links.links
    rate = np.where(links.endless, asked.point.rate, 0.0)
    senders = int((rate > 0.0).sum())
    if senders < 1:
        return
    used = asked.used
    full = asked.point.wait > 0.0
    ports = len(asked.network.ports)
    for f, flow, endless in asked.flows():
        if not endless or not np.isfinite(flow.window):
            continue
        mine = asked.point.service[f] > 0.0
        if flow.window < 2.0 and senders > 1:
            yield "windows of one segment take turns in an order of their own: goodput was up to 25 % off"
            return
        if (full & mine).any():
            share = asked.point.wait[mine].sum() / max(asked.rtt[f], 1e-12)
            if senders > 1 and share < 0.15:
                yield (
                    f"windows of {flow.window:g} segments just fill a resource together: bursts meet there, "
                    "and goodput was up to 20 % too high"
                )
                return
            continue
        others = used[mine] - asked.point.rate[f] * asked.point.service[f][mine]
        air = sum(
            links.load[links.piconet == p].sum()
            for p in set(links.piconet[links.port_link[np.flatnonzero(mine[:ports])]])
        )
        own = float(links.load.sum()) if senders == 1 else 0.0
        if senders > 1 and (float(others.max(initial=0.0)) > 0.1 or air - own > 0.3):
            yield (
                f"windows of {flow.window:g} segments do not fill what they share: it depends on how bursts "
                "meet, and goodput was up to 25 % off"
            )
            return
        near = float(used[mine].max(initial=0.0))
        if senders == 1 and near > 0.6:
            found = f"a window of {flow.window:g} segments just does not fill its path"
            yield f"{found}: goodput was up to 10 % off"
            return


def of_disciplines(asked: Asked) -> Iterator[str]:
    """Yield piconets whose central does not visit its links in turn, where several have data."""
    links = asked.point.links.links
    for number, piconet in enumerate(asked.network.piconets):
        here = links.piconet == number
        busy = links.load[here]
        several = int((busy > 0.0).sum()) > 1
        if not several or not here.any():
            continue
        if piconet.discipline in ("exhaustive", "gated") and links.full_link[here].sum() > 1:
            yield (
                f'[polling] discipline = "{piconet.discipline}": a visit lasts as long as there are '
                "segments: of "
                "several links that always have some, one keeps the central to itself"
            )
        elif piconet.discipline not in CYCLIC and busy.sum() - busy.max() > SMALL:
            yield (
                f'[polling] discipline = "{piconet.discipline}": which link is next is known on average '
                "only: round "
                "trips were up to 25 % off"
            )


def of_bursts(asked: Asked) -> Iterator[str]:
    """Yield sources whose segments come several at once."""
    for f, flow, endless in asked.flows():
        if endless or not flow.load:
            continue
        ahead = transport.ahead(flow)
        if flow.more > 0.0 and both_ways(asked):
            yield (
                "an interrupted Bernoulli process writes messages in bursts, and several links have data both "
                "ways: their frames meet, which is known roughly, and round trips were up to 40 % off"
            )
            return
        slowest = float((asked.point.service[f]).max(initial=0.0))
        if ahead * slowest > SMALL * asked.rtt[f] and flow.protocol == "tcp":
            yield (
                f"messages of {flow.batch:g} segments come at once: how a window lets them out is known "
                "roughly, and round trips were up to 30 % off"
            )
            return


def of_nagle(asked: Asked) -> Iterator[str]:
    """Yield short messages that wait for each other's acknowledgement."""
    for f, flow, _ in asked.flows():
        if flow.short and asked.point.rate[f] * asked.rtt[f] > 0.1:
            yield (
                "short messages wait for the acknowledgement of an earlier one (Nagle's algorithm): how "
                "many share a segment is known on average only, and round trips were up to 25 % off"
            )
            return


def of_acknowledgements(asked: Asked) -> Iterator[str]:
    """Yield delayed acknowledgements that wait for the next message."""
    for f, flow, endless in asked.flows():
        if endless or flow.short:
            continue
        wait = asked.point.links.answers[f].wait_s
        if transport.has_law(flow):
            continue
        if wait > SMALL * asked.rtt[f] and flow.acks < 1.0:
            yield (
                "acknowledgements wait for the next message or their timer: which of them is known on "
                "average only, and round trips were up to 20 % off"
            )
            return


def both_ways(asked: Asked) -> bool:
    """Return whether several links of a piconet have data, one of them both ways."""
    links = asked.point.links.links
    data = (asked.point.rate @ links.frames[0]) > 0.0
    several = links.members[links.port_link] > 1.0
    return bool((several & data & (links.opposite >= 0) & data[links.opposite]).any())


def of_carried_acknowledgements(asked: Asked) -> Iterator[str]:
    """Yield data both ways whose segments carry acknowledgements in an order that depends on the beginning."""
    for _, flow, endless in asked.flows():
        transports = flow.transport
        if flow.protocol != "tcp" or flow.reverse is None or not transports.piggyback:
            continue
        if not transports.delayed_ack or transports.ack_every_segments <= 1:
            continue
        paired = transports.initial_window_segments >= PAIRED_WINDOW and flow.window % 2 == 0
        if not transport.has_law(flow) and (not endless or flow.window <= 2.0 or paired):
            yield (
                "segments carry acknowledgements, or these go alone: which of both depends on how connections "
                "begin; goodput was up to 8 %, of windows of one and two up to 80 % off"
            )
            return


def of_layers(asked: Asked) -> Iterator[str]:
    """Yield layers of the hosts that take long: they serve one segment after the other."""
    for f, flow, _ in asked.flows():
        if flow.host_s > float(asked.point.service[f].max(initial=0.0)) > 0.0:
            yield (
                f"the layers of a host take {flow.host_s:.3g} s for a segment, more than the slowest station: "
                "they are taken for delays, and goodput was up to 93 % too high"
            )
            return


def of_losses(asked: Asked) -> Iterator[str]:
    """Yield connections that lose segments."""
    connections = sum(flow.protocol == "tcp" for flow in asked.network.flows)
    for f, flow, endless in asked.flows():
        if flow.protocol != "tcp" or (flow.loss < RARE and flow.ack_loss < RARE):
            continue
        if flow.loss * asked.point.rate[f] < RARE and not endless:
            continue
        law = asked.point.found.get(f)
        if not endless:
            yield (
                f"{flow.loss:.1%} of the segments are lost at random, and the source does not always have "
                "data: segments pile up behind a timeout, and round trips were up to 35 % short"
            )
            return
        known = flow.transport.variant in ("tahoe", "reno", "newreno", "sack")
        if (
            not known
            or flow.acks < 1.0
            or flow.loss > 0.05
            or connections > 1
            or flow.window < 4.0
            or law is None
        ):
            yield (
                f"{flow.loss:.1%} of the segments are lost at random: TCP's law for them was up to 20 % off "
                "for this sender, loss or load"
            )
            return
        if float(asked.used.max(initial=0.0)) > 0.5:
            found = f"{flow.loss:.1%} of the segments are lost on a path that is busy"
            yield f"{found}: goodput was up to 15 % off"
            return


def of_phases(asked: Asked) -> Iterator[str]:
    """Yield periodic sources that meet others: in a run their phases stay as they are."""
    for f, flow, endless in asked.flows():
        alone = flow.source != "periodic" or endless or len(asked.network.flows) < 2
        if not alone and asked.point.stray[f] > SMALL * asked.rtt[f]:
            yield (
                "round trips depend on the phases in which periodic sources meet others, which stay as "
                "they are in a run; this is a mean, and was up to 40 % off"
            )
            return


def of_vegas(asked: Asked) -> Iterator[str]:
    """Yield connections by TCP Vegas that do not rest at the receive window."""
    for f, flow, endless in asked.flows():
        if flow.protocol == "tcp" and flow.transport.variant == "vegas":
            rests = asked.point.links.rests[f].window
            if endless and rests < flow.window:
                yield "TCP Vegas rests at a window that depends on the least round trip seen: up to 40 % off"
                return
            if not endless and asked.point.own_stray[f] > SMALL * asked.rtt[f]:
                yield "TCP Vegas holds bursts back by what it takes for waits: round trips up to 30 % off"
                return


def of_voice(asked: Asked) -> Iterator[str]:
    """Yield voice links, whose slots cut the time for data into pieces."""
    if any(piconet.data_share < 1.0 for piconet in asked.network.piconets) and len(asked.network.ports):
        yield (
            "voice links cut the time for data into pieces that a frame must fit into, which is known on "
            "average only: near what is carried round trips were ten times as long"
        )


def of_tokens(asked: Asked) -> Iterator[str]:
    """Yield waits for tokens that are a large part of the round trip of a source at random."""
    start = len(asked.network.ports) + len(asked.network.wires)
    for f, _flow, endless in asked.flows():
        used = float(asked.by_chance[start:][asked.point.service[f, start:] > 0.0].max(initial=0.0))
        if not endless and used > BUSY and asked.point.own_stray[f] > 0.1 * asked.rtt[f]:
            yield f"sources at random use {used:.0%} of the tokens: waits for them were up to 20 % off"
            return


def of_the_edge(asked: Asked) -> Iterator[str]:
    """Yield loads close to what is carried."""
    for f, flow, endless in asked.flows():
        if endless and np.isfinite(flow.load) and asked.point.rate[f] > 0.9 * flow.load:
            yield "the load is within 10 % of what is carried: the source has nothing to send at times"
            return
        if not endless and np.isfinite(flow.load) and asked.point.rate[f] < CARRIED * flow.load:
            yield "windows hold a source back that has nothing to send at times: goodput was up to 10 % off"
            return


def of_unread_keys(asked: Asked) -> Iterator[str]:
    """Yield keys that make a difference and that no law reads."""
    losing = any(flow.loss > 0.0 or flow.ack_loss > 0.0 for flow in asked.network.flows)
    losing = losing or bool(buffers.doubts(asked.network, asked.point))
    only_sessions = all(flow.messages for flow in asked.network.flows if flow.protocol == "tcp")
    for trait in asked.network.traits:
        known = UNREAD.get(trait.kind, IN_RECOVERY.get(trait.kind) if losing else None)
        if trait.kind in sessions.READ and only_sessions:
            continue
        if known is not None and trait.value not in known:
            key = f"{bracketed(trait.key)} = {shown(trait.value)}"
            yield f"{key}: no law reads it; what it changes is not in the answer"


RULES = (
    of_busy_resources, of_the_knee, of_disciplines, of_bursts, of_nagle, of_acknowledgements, of_losses,
    of_phases, of_carried_acknowledgements, of_layers, of_vegas, of_voice, of_tokens, of_the_edge, of_unread_keys,
)  # fmt: skip
