"""Doubts about stations: the air and its disciplines, ports, wires, tokens, hosts, and messages that meet.

Each rule yields a sentence with the size of the error that was measured (`doubts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.stations import bridges, buffers, sessions, transport
from btqueue.network.stations.asked import (
    BUSY,
    BUSY_ALONE,
    BUSY_QUEUE,
    DUPLICATES,
    FEW,
    HALF,
    MET,
    MOST_BURSTS,
    PAIR,
    RARE,
    SMALL,
    SMALL_OPEN,
    TOLERATED,
    VISITED,
    Asked,
    beyond_visits,
    both_ways,
)
from btqueue.network.stations.network import EMPTY, Flow, Visit
from btqueue.network.stations.point import CARRIED
from btqueue.network.stations.queues import CYCLIC

LONG_DELAYS = 0.25
"""Largest random delay of hosts in a round trip of a window: of 200 random lone windows all were right below
0.32, and 42 of 72 above 0.2 were wrong (chosen after these)."""
BUNCHED = 0.08
"""Part of a round trip that a window may wait at its slowest station because of jitter: a third of it, to
which it is known, is less than 3 %."""
JUST_FILLED = 0.4
"""Share of a round trip that a relayed window waits at full stations, up to which delays leave them idle at
times: with 0.33 goodput was 7 % too high, with 0.42 it was right."""
SELDOM_NEAR = 0.15
"""Utilisation of the slowest station by a window of few segments, up to which polls are a small part of its
round trip; from fewer than ten random scenarios."""
NEAR_FULL = 0.95
"""Utilisation of a station by a window that does not fill it, above which it fills it at times; and of a lone
link by a random source: below it 92 of 94 were right (0.8 % off in the median)."""
SELDOM_CUT = 0.35
"""Utilisation by random sources beside voice, up to which it hardly matters how their frames of up to three
slots fit into the gaps: 32 of 32 random piconets were right, and 46 of 51 above it. Of 20 more, drawn after
the bound was chosen, two with frames of five slots were wrong, which are in doubt since."""
IN_A_GAP = 1.0
"""Packets of a segment, and slots of one, beyond which the visits to several links beside voice depend on the
gaps: round trips of 7 of 80 random piconets that stood were 6 to 18 % too short, all of two links."""
POLLED_EARLY = 1.5
"""Slots for each member of a piconet by which a random segment is polled earlier beside voice than theory
has it: measured with two and four members."""
GAP_MISSED = 6.0
"""Slots by which round trips of frames of several slots that go up beside voice may be wrong: the period of
HV3."""
IN_STEP = 0.55
"""Utilisation of the air by periodic sources of several links, above which their phases matter: below it 13
of 13 random scenarios were right, above it 6 of 15."""
IN_ANY_ORDER, ENDS_ANYWHERE = 0.25, 0.3
"""Utilisation of the air up to which it hardly matters which link is polled next (35 of 38 random piconets),
and where visits end: of messages on their way up 65 of 71 were right, and the others at most 6.3 % off."""
SELDOM_MET = 0.2
"""Utilisation of the air by windows of one segment, up to which they hardly meet: 6 of 7 random scenarios."""
LET_OUT = 0.05
"""Chance that a burst is longer than the window, up to which the law of bursts was right (24 random
sources)."""
FIFTH = 0.2
"""Wait behind own data at a half-duplex wire, over a round trip, up to which acknowledgements were right."""
UNEVEN = 1.25
"""Time of a full segment over the mean one, up to which short ends of messages hardly matter to the wait of a
shared acknowledgement: above it 2 of 14 random networks were wrong."""
LATE = 2e-3
"""Share of segments that wait for tokens longer than their timer, up to which round trips are right without
their timeouts: those of seven random rings were too short by some ten times this share, and the bound was
chosen from these."""


def of_busy_resources(asked: Asked) -> Iterator[str]:
    """Doubt resources with much use by random sources: waits there depend on more than the means."""
    links = asked.point.links.links
    several = len(links.names) > 1
    fades = any(visit.train.worse > 0.0 for flow in asked.network.flows for visit in flow.forth)
    ports = len(asked.network.ports)
    bridged = {p for bridge in asked.network.bridges for p in bridge.piconets}
    sent = [(f, flow) for f, flow in enumerate(asked.network.flows) if flow.load]
    relayed = any(asked.relayed(f) for f, _ in sent)
    one_by_one = bool(sent) and not fades and all(asked.by_one(f) for f, _ in sent)
    direct = all(len(flow.forth) == 1 for _, flow in sent)
    for p, load in enumerate(asked.of_the_air.tolist()):
        most = BUSY if several or relayed else BUSY_ALONE if fades else BUSY_QUEUE
        if one_by_one and direct and not several and not both_ways(asked, alone=True):
            load, most = float(asked.by_chance[:ports].max(initial=0.0)), NEAR_FULL  # one queue, M/G/1
        if p not in bridged and asked.network.piconets[p].members > 1:
            late = asked.point.links.polled.answers_late(p)
            short = any(flow.short for _, flow in sent)  # how many segments they share depends on waits
            most = BUSY if late or both_ways(asked, alone=False) else BUSY_ALONE if short else VISITED
            longer = all(asked.longer_than_answer(flow, 1.0) for _, flow in sent)
            if not late and longer and all(asked.relayed(f) and asked.fits(f) for f, _ in sent):
                most = max(most, BUSY_ALONE)
            if most == VISITED and asked.conserved(p):
                most = BUSY_QUEUE
            if (found := asked.beyond_ports(p)) is not None:
                if found:
                    yield (
                        f"{found} round trips were up to 50 % off, and near 100 %, or of relayed segments, "
                        "five times too long to a tenth"
                    )
                    break
                continue
        if load > most:
            found = f"sources at random fill {load:.0%} of the air"
            yield f"{found}: above {most:.0%} round trips were up to 26 % off"
            break
    for r in range(ports, len(asked.used)):
        alike = all(asked.by_one(f) for f in np.flatnonzero(asked.point.service[:, r]).tolist())
        most = BUSY_QUEUE if alike else BUSY_ALONE
        if asked.by_chance[r] > most:
            yield (
                f"sources at random use {asked.by_chance[r]:.0%} of a {asked.point.links.names[r][0]}: above "
                f"{most:.0%} round trips were up to 20 % off"
            )
            return


def of_the_knee(asked: Asked) -> Iterator[str]:
    """Doubt windows that neither fill a resource nor leave it free: there it matters which bursts meet."""
    links = asked.point.links.links
    rate = np.where(links.endless, asked.point.rate, 0.0)
    senders = int((rate > 0.0).sum())
    used = asked.used
    full = asked.point.wait > 0.0
    ports = len(asked.network.ports)
    for f, flow, endless in asked.flows():
        if not endless or not np.isfinite(flow.window):
            continue
        mine = asked.point.service[f] > 0.0
        ports_of = [asked.network.ports[v.index] for v in flow.forth if v.kind == "port"]
        short = senders > 1 and bool((full & mine).any()) and beyond_visits(asked, flow) < 0.0
        wires = [visit.index for visit in (*flow.forth, *flow.back) if visit.kind == "wire"]
        # acknowledgements and segments wait for each other at a half-duplex link, in a phase that stays
        meets = len(set(wires)) < len(wires) and float(used[mine].max(initial=0.0)) >= HALF
        if asked.small(f) and not flow.cut and not short and not (meets and senders == 1):
            continue
        if f in asked.point.found and asked.hardly_lost(f):
            continue
        if flow.window < 2.0 and (senders > 1 or asked.relayed(f)):
            in_turn = asked.disciplines(f) == {"1-limited"} and len(ports_of) == len(flow.forth)
            meet = asked.air(f, regular=True) > SELDOM_MET and not in_turn
            held = asked.network.relay == "segment" and flow.host_s > 0.0
            if flow.transport.delayed_ack or meet or held:  # timers and hosts keep in phase with polls
                yield (
                    "several windows of one segment share the medium, and the order in which they are served "
                    "is not known: goodput was up to 56 % off"
                )
            continue
        if (full & mine).any() or asked.point.turns_s[f] > 0.0:
            share = asked.point.waits[f] / max(asked.rtt[f], 1e-12)
            # a full link has a full visit in each cycle
            in_turn = asked.disciplines(f) <= set(CYCLIC) and len(flow.forth) == 1
            in_turn = in_turn and not (full & mine)[ports:].any()
            if short or (senders > 1 and share < 0.15 and not in_turn):
                yield (
                    f"windows of {flow.window:g} segments together just fill a station, where bursts of "
                    "different flows meet: goodput was up to 20 % too high"
                )
            sharing = asked.point.service[:, mine].any(axis=1)
            waiting = (asked.point.rate * (asked.rtt - asked.point.base))[sharing]
            if meets and waiting.sum() < 1.0:
                yield (
                    f"windows of {flow.window:g} segments hardly fill a half-duplex link, where packets "
                    "of both ways wait for each other: goodput was up to 24 % too high"
                )
            continue
        others = used[mine] - asked.point.rate[f] * asked.point.service[f][mine]
        air = sum(
            links.load[links.piconet == p].sum()
            for p in set(links.piconet[links.port_link[np.flatnonzero(mine[:ports])]])
        )
        own = float(links.load.sum()) if senders == 1 else 0.0
        if senders > 1 and (float(others.max(initial=0.0)) > 0.1 or air - own > 0.3):
            yield (
                f"windows of {flow.window:g} segments do not fill the stations that they share, and goodput "
                "depends on how bursts of different flows meet: it was up to 70 % off"
            )
        near = float(used[mine].max(initial=0.0))
        if senders == 1 and _is_rough(asked, f, flow, near):
            found = f"a window of {flow.window:g} segments does not fill its path"
            yield f"{found}: goodput was up to 10 % off"


def _is_rough(asked: Asked, f: int, flow: Flow, near: float) -> bool:
    """Return whether the round trips of a lone window depend on phases; `near`: use of its slowest station.

    Of 100 windows over wires and a piconet goodput was up to 20 % off where a condition here holds; of the
    others 95 were within 3 %.
    """
    wires = [visit for visit in (*flow.forth, *flow.back) if visit.kind == "wire"]
    on_air = any(visit.kind == "port" for visit in flow.forth)
    # jitter mixes acknowledgements of several segments, and the few duplicates of a small window
    crowded = any(asked.point.rate[f] * visit.jitter_s > 0.05 for visit in wires)
    crowded = crowded and (flow.acks < 1.0 or (f in asked.point.found and flow.window <= DUPLICATES))
    if f in asked.point.found:  # the law of losses covers every window
        return crowded or (bool(wires) and on_air and 1.0 < flow.window <= FEW and near > BUSY_ALONE)
    # with one acknowledgement under way no segments meet
    repeated = any(visit.train.spread > 0.0 for visit in flow.forth) and flow.window * flow.acks > 1.0
    if not wires:
        return repeated and near > BUSY_ALONE
    # few acknowledgements under way keep in phase with polls
    few = on_air and flow.window > 1.0 and flow.window * min(flow.acks, 1.0) <= FEW and near > SELDOM_NEAR
    both_ways = len({visit.index for visit in wires}) < len(wires) and near > 0.5
    known = f in asked.point.links.held_s  # how far jitter keeps a window from filling its station
    return few or crowded or both_ways or (repeated and near > BUSY_ALONE) or (near > NEAR_FULL and not known)


def of_disciplines(asked: Asked) -> Iterator[str]:
    """Doubt piconets whose central does not visit its links in turn, where several have data."""
    links = asked.point.links.links
    for number, piconet in enumerate(asked.network.piconets):
        here = links.piconet == number
        busy = links.load[here]
        several = int((busy > 0.0).sum()) > 1
        crossing = [
            (f, flow, always) for f, flow, always in asked.flows(every=True) if number in asked.piconets(f)
        ]
        rough = any(
            not always
            and (
                busy.sum() > VISITED
                or flow.window < FEW
                or ((flow.more > 0.0 or flow.batch > 1.0) and asked.point.own_stray[f] > SMALL * asked.rtt[f])
                or (
                    flow.source == "periodic"
                    and asked.point.stray[f] + asked.point.own_stray[f] > SMALL * asked.rtt[f]
                )
            )
            for f, flow, always in crossing
        )
        if piconet.discipline == "gated" and piconet.members > 1 and rough:
            yield (
                '[polling] discipline = "gated": a visit serves the segments present at its start, and the '
                "phase between arrivals and visits is known on average only: round trips were 12 % too short "
                "to 30 % too long"
            )
        # after an empty visit a link is left out for as many rounds of polls as its weight has lost steps; a
        # single segment, whose round trips hardly vary otherwise, may then come later than its timer expects
        weight = 1.0 / piconet.idle_polls if piconet.discipline == "prc-lwrr" else 1.0
        absent_s = (weight - 1.0) * EMPTY * piconet.members * SLOT_S
        polls_idle = busy.sum() > BUSY_ALONE and int((busy > 0.0).sum()) < piconet.members
        pauses = piconet.members > 1 and any(
            polls_idle if asked.filled(f) else absent_s > SMALL * asked.rtt[f] or flow.window < 2.0
            for f, flow, _ in crossing
        )
        if piconet.discipline == "prc-lwrr" and pauses:
            yield (
                '[polling] discipline = "prc-lwrr": a link without data is left out of some cycles, and how '
                "often it is polled is known on average only: goodput was up to 7 % too high"
            )
        if piconet.discipline == "fep" and _in_groups(asked, [f for f, _, always in crossing if always]):
            yield (
                '[polling] discipline = "fep": a link that once had no data is not polled while others have '
                "some, and of several pairs that always have data one may hold the central: round trips were "
                "up to twice as long"
            )
        delayed = any(
            always and flow.host_s + flow.layer_s + flow.jitter_s > 0.0 for _, flow, always in crossing
        )
        if piconet.discipline == "fep" and several and delayed:
            yield (
                '[polling] discipline = "fep": while hosts hold the segments of a link, it has no data, and '
                "it is not polled until the others have none: one connection had a third of its goodput"
            )
        up = any(
            asked.network.ports[visit.index].up
            for f, flow, always in crossing
            for visit in flow.forth
            if always and visit.kind == "port" and not (asked.relayed(f) and asked.network.relay == "packet")
        )
        if piconet.discipline == "ldq" and up and piconet.members > 1:
            yield (
                '[polling] discipline = "ldq": while the central holds no packets all links are polled in '
                "turn, and how often this happens beside data that go up is not known: goodput was up to "
                "14 % too high"
            )
        if not several or not here.any() or _one_connection(asked, number):
            continue
        endless = [f for f, _, always in crossing if always]
        bursts = any(not always and (flow.more > 0.0 or flow.batch > 1.0) for _, flow, always in crossing)
        relayed = any(asked.relayed(f) for f, _, _ in crossing)
        polls = relayed or not (piconet.discipline == "gated" and asked.airless({number}))
        polls = polls or any(asked.network.flows[f].window == np.inf for f in endless)  # long visits grow
        shared = len(endless) > 1 and busy.sum() > BUSY and polls
        # links that have had data last are visited in turn
        nearly_in_turn = piconet.discipline == "fep" and not relayed
        most = SELDOM_MET if bursts else HALF if nearly_in_turn else IN_ANY_ORDER
        if piconet.discipline == "lwrr" and relayed:
            most = 0.0  # a link that was idle is left out of cycles, and its next segment waits for them
        if piconet.discipline in ("exhaustive", "gated", "slq", "ldq") and shared:
            yield (
                f'[polling] discipline = "{piconet.discipline}": several links always have segments: they '
                "share the air unevenly, or one of them keeps the central to itself: goodput was up to 10 % "
                "off, or one connection gets all"
            )
        elif (
            piconet.discipline not in (*CYCLIC, "gated")
            and busy.sum() > most
            and not all(asked.has_its_share(f) for f, _, _ in crossing)
        ):
            yield (
                f'[polling] discipline = "{piconet.discipline}": which link is next in the polling order is '
                "known on average only: round trips were up to 25 % off"
            )


def _in_groups(asked: Asked, flows: list[int]) -> bool:
    """Return whether relayed flows fall into groups that have no link in common."""
    ports = asked.network.ports
    groups: list[set[int]] = []
    for f in filter(asked.relayed, flows):
        links = {ports[v.index].link for v in asked.network.flows[f].forth if v.kind == "port"}
        met = [group for group in groups if group & links]
        groups = [group for group in groups if not group & links] + [links.union(*met)]
    return len(groups) > 1


def _one_connection(asked: Asked, piconet: int) -> bool:
    """Return whether only one connection uses a piconet: its segments pass the links one by one."""
    ports = asked.network.ports
    users = [
        flow
        for flow in asked.network.flows
        if any(v.kind == "port" and ports[v.index].piconet == piconet for v in (*flow.forth, *flow.back))
    ]
    return len(users) == 1 and users[0].load == np.inf


def of_bursts(asked: Asked) -> Iterator[str]:
    """Doubt sources whose segments come several at once."""
    for f, flow, endless in asked.flows():
        if endless or not flow.load:
            continue
        wires = any(visit.kind == "wire" for visit in flow.forth)
        on_air_s = max(
            (float(asked.point.service[f, v.index]) for v in flow.forth if v.kind == "port"), default=0.0
        )
        # lone messages meet the rest of another segment as often as the air is used
        met_s = 0.5 * on_air_s * float(asked.point.rate[f]) * on_air_s
        alone = flow.loss + flow.ack_loss == 0.0 and len(asked.network.flows) == 1
        seldom = asked.point.rate[f] * asked.rtt[f] < MET or (alone and met_s < TOLERATED * asked.rtt[f])
        known = flow.batch <= 1.0 and not flow.more and seldom
        if flow.uneven > 1.0 + SMALL and wires and on_air_s > SMALL * asked.rtt[f] and not known:
            yield (
                "short segments of a message catch up on the air with long ones that came before them over a "
                "wire: round trips were up to 10 % too short"
            )
        ahead = transport.ahead(flow)
        several = transport.before(flow) > 1.0
        fades = several and any(visit.train.worse > 0.0 for visit in flow.forth)
        met = asked.air(f, regular=True) > BUSY_ALONE or asked.point.stray[f] > MET * asked.rtt[f]
        # a burst waits at both in series, and messages of several segments wait at each end
        met = met or flow.batch > 1.0 or asked.relayed(f) or any(visit.kind == "wire" for visit in flow.forth)
        if flow.more > 0.0 and met and (fades or both_ways(asked, alone=several) or asked.several(f)):
            yield (
                "the source is an interrupted Bernoulli process, and its bursts meet other traffic (several "
                "links, data in both directions, or a radio that fades): round trips were up to 16 % off, "
                "with several links 40 %"
            )
        queues, first = asked.point.links.polled, flow.forth[0]
        ends_within = any(
            queues.up[c] and queues.sent_before(c) - queues.sent_before(c, 1) > RARE
            for c in queues.at_hosts(f)
        )
        if ends_within and flow.batch > 1.0 and asked.air(f, regular=True) > ENDS_ANYWHERE:
            yield (
                "visits end within segments of messages on their way up, whose acknowledgements wait for the "
                "next visit: round trips were up to 15 % off"
            )
        if found := _ends_of_messages(asked, f, flow):
            yield f"messages of several segments {found}"
        if (
            flow.more ** (flow.window / max(flow.batch, 1.0)) > LET_OUT
            and asked.point.own_stray[f] > MET * asked.rtt[f]
        ):
            yield (
                "bursts of a source are longer than its window, which lets their ends out later: round trips "
                "were 10 % too short to 8 % too long"
            )
        # segments of a burst leave at once, in a geometric number
        spills = flow.more ** (first.places + 1.0) > RARE and flow.window > first.places
        if first.kind == "wire" and spills:
            yield (
                f"bursts of a source overflow a buffer of {first.places:.3g} segments: round trips were up "
                "to 50 % too long"
            )
        if flow.more > 0.0 and flow.batch <= 1.0:
            continue
        slowest = float((asked.point.service[f]).max(initial=0.0))
        most = MOST_BURSTS if flow.acks >= 1.0 else SELDOM_MET
        near = asked.air(f, regular=True)
        relayed = asked.relayed(f) and not (asked.in_step(f) and near < SELDOM_MET)
        crowded = near > most or relayed or flow.batch > flow.window
        crowded = crowded or (flow.acks < 1.0 and flow.source == "periodic")
        # jitter delays the segments of a message beyond each other
        jitter_s = sum(visit.jitter_s for visit in (*flow.forth, *flow.back) if visit.kind == "wire")
        crowded = crowded or jitter_s > MET * asked.rtt[f]
        if ahead * slowest > SMALL * asked.rtt[f] and flow.protocol == "tcp" and crowded:
            yield (
                f"messages of {flow.batch:g} segments arrive at once, and the path is busy, relays them, or "
                "has a smaller window: round trips were 4 % off in the median and up to 30 %"
            )


def _ends_of_messages(asked: Asked, f: int, flow: Flow) -> str:
    """Return why it matters where the visits to a link, or messages, end; or ""."""
    if flow.batch <= 1.0 or not asked.several(f) or asked.relayed(f):
        return ""
    visits = [visit for visit in flow.forth if visit.kind == "port"]
    frames = [visit.train.frames for *_, kind in flow.kinds for visit in kind if visit.kind == "port"]
    frames = frames or [visit.train.frames for visit in visits]
    if flow.acks < 1.0:
        short = flow.uneven > UNEVEN
        return (
            "have a short end, and share acknowledgements: round trips were up to 14 % too long"
            if short
            else ""
        )
    ports = [asked.network.ports[visit.index] for visit in visits]
    if not any(port.up for port in ports):
        return ""
    if max(frames) < 1.0 + SMALL:
        return (
            "of one frame go up, and their acknowledgements go down in the same visit: round trips were up "
            "to 20 % too long"
        )
    total = flow.batch * sum(visit.train.frames for visit in visits)
    cycle_s = max(asked.network.piconets[port.piconet].members for port in ports) * EMPTY * SLOT_S
    if flow.host_s > 0.0 and total < min(port.limit for port in ports) and cycle_s > MET * asked.rtt[f]:
        return "go up in one visit, and are acknowledged after its end: round trips were up to 17 % too short"
    within = any(port.limit < total + SMALL and port.limit % max(frames) > SMALL for port in ports)
    if flow.uneven > 1.0 + SMALL and within:
        return (
            "go up in visits that end within them, or with their short ends: round trips were 12 % too short "
            "to 12 % too long"
        )
    return ""


def of_hosts(asked: Asked) -> Iterator[str]:
    """Doubt acknowledgements, tokens and random delays at hosts, where their laws are rough."""
    count = len(asked.network.ports) + len(asked.network.wires)
    for f, flow in enumerate(asked.network.flows):
        relayed, tcp = asked.relayed(f), flow.protocol == "tcp"
        several = flow.batch > 1.0 and asked.several(f)
        if tcp and flow.transport.ack_path == "direct" and (relayed or flow.messages or several):
            yield (
                "[transport] ack_path = direct: over relays and in sessions round trips were 20 to 60 % too "
                "long, and of messages of several segments to one of several members 25 % too short"
            )
        endless = bool(asked.point.links.links.endless[f])
        if relayed and endless and flow.jitter_s > SMALL * asked.rtt[f] > 0.0:
            yield (
                "[run] jitter_s: segments of full windows over a relay bunch together behind random times: "
                "goodput was 13 % too high"
            )
        tokens = float(asked.used[count:][asked.point.service[f, count:] > 0.0].max(initial=0.0))
        depth = min(
            (asked.network.buckets[v.index].depth for v in flow.forth if v.kind == "bucket"), default=0.0
        )
        bits = flow.kilobits * 1000.0
        long = asked.point.token_s[f] > SMALL * asked.rtt[f] or flow.batch * bits > depth
        several = tcp and not endless and flow.batch > 1.0 and tokens > 0.0 and long
        other = endless and relayed and tokens > CARRIED  # another order than at their senders
        apart = any(
            visit.train.packets > 1.0 and asked.network.ports[visit.index].limit > visit.train.frames
            for visit in flow.forth
            if visit.kind == "port"
        )
        several = several or (apart and not endless and asked.point.token_s[f] > SMALL * asked.rtt[f])
        if several or other or (flow.messages and tokens > SMALL_OPEN) or (tcp and 0.0 < depth < bits):
            yield (
                "packets of sessions, of messages of several segments, of relayed windows, or of segments "
                "that share a visit or are larger than a bucket wait for tokens one by one: goodput was up "
                "to 25 % too high, round trips 65 % too long to half as long"
            )


def of_phases(asked: Asked) -> Iterator[str]:
    """Doubt periodic sources that meet others: their phases are constant in a run."""
    for f, flow, endless in asked.flows():
        ports = [v for v in flow.forth if v.kind == "port"]
        few = len(asked.network.flows) < 2
        most = float(asked.used[asked.point.service[f] > 0.0].max(initial=0.0))
        # its own packets, and its acknowledgements, take turns
        wires = [v.index for v in (*flow.forth, *flow.back) if v.kind == "wire"]
        turns = any(asked.network.ports[v.index].limit == 1 < v.train.frames for v in ports)
        turns = few and (turns or len(set(wires)) < len(wires))
        # a segment that is acknowledged before the next one comes meets none of its flow
        meets = not few or float(asked.point.rate[f] * asked.rtt[f]) > 1.0
        nearly = most > (HALF if few else BUSY_QUEUE)
        others = asked.point.stray[f] > MET * asked.rtt[f] or asked.air(f, regular=True) > IN_STEP
        periodic = flow.source == "periodic" and not endless and meets and (turns or not asked.small(f))
        if periodic and (nearly or (not few and others)):
            yield (
                "round trips depend on the phases of periodic sources, which stay constant in a run; theory "
                "gives the mean over phases, and round trips of single runs were up to 40 % off"
            )


def of_relays(asked: Asked) -> Iterator[str]:
    """Doubt flows between two peripherals whose segments meet each other at the second link."""
    for f, flow, endless in asked.flows():
        if not asked.relayed(f) or flow.protocol != "tcp":
            continue
        if endless and asked.point.waits[f] > 0.0 and _left_idle(asked, flow) > TOLERATED:
            yield (
                f"whole segments are relayed, and windows of {flow.window:g} leave directions of links idle "
                "at times: goodput was up to 32 % too high"
            )
        rate = np.where(asked.point.links.links.endless, 0.0, asked.point.rate)
        against = [visit.index for visit in flow.back if visit.kind == "port"]
        used = rate @ asked.point.service[:, against]
        if endless and float(used.max(initial=0.0)) > SMALL:
            yield "random segments go against a relayed window: round trips were up to 13 % too long"
        delayed = flow.host_s + flow.layer_s + sum(visit.delay_s for visit in (*flow.forth, *flow.back)) > 0.0
        if endless and delayed and 0.0 < asked.point.waits[f] < JUST_FILLED * asked.rtt[f]:
            yield (
                f"windows of {flow.window:g} relayed segments just fill a station, although hosts or wires "
                "hold segments for a time: goodput was up to 20 % too high"
            )
        if not endless and "gated" in asked.disciplines(f) and asked.air(f, regular=True) > TOLERATED:
            yield (
                '[polling] discipline = "gated": the acknowledgement of a relayed segment meets gates that '
                "depend on other segments: round trips were up to 19 % too short"
            )
        whole = asked.network.relay == "segment" and not asked.network.bridges
        if not endless and (whole or (flow.window <= PAIR and asked.air(f) > BUSY)):
            yield (
                f"a window of {flow.window:g} segments is relayed on busy air, or whole segments are: round "
                "trips were 8 % too short to 16 % too long"
            )
        visits = [v for v in flow.forth if v.kind == "port"]
        if asked.network.relay == "packet" and flow.relays_s > SMALL * asked.rtt[f] and not asked.filled(f):
            yield (
                "[link] baseband_delay_s: packets of a relayed segment wait in the baseband side by side, "
                "and some are passed on meanwhile: round trips were up to 15 % too long"
            )
        if not endless and asked.network.relay == "packet" and _between_packets(asked, f, visits[1:]):
            yield (
                "packets of relayed segments come one by one, and shorter segments of others between them: "
                "round trips were 9 % too short to 15 % too long"
            )
        full, piconets = asked.fills_alone(f), asked.network.piconets
        cyclic = all(piconets[asked.network.ports[v.index].piconet].discipline in CYCLIC for v in visits)
        repeated = any(visit.train.frames > visit.train.packets for visit in visits)
        lone = not asked.network.bridges or bridges.one_by_one(asked.network)
        in_step = endless and len(asked.point.links.links.row) == 1
        known = full or in_step or (asked.by_one(f) and cyclic and not repeated and lone)
        if not known and (not asked.fits(f) or (endless and flow.acks < 1.0)):
            why = "share acknowledgements" if asked.fits(f) else "need several visits"
            yield (
                f"relayed segments {why}, and the order of visits is known on average only: round trips were "
                "20 % off in the median"
            )


def _between_packets(asked: Asked, f: int, stops: list[Visit]) -> bool:
    """Return whether others have shorter segments at these ports, beyond the first one of a relayed flow."""
    others = [flow for g, flow in enumerate(asked.network.flows) if g != f and asked.point.rate[g] > 0.0]
    return any(
        one[:2] == stop[:2] and one.train.packets < stop.train.packets - SMALL
        for stop in stops
        for flow in others
        for one in flow.forth
    )


def _left_idle(asked: Asked, flow: Flow) -> float:
    """Return the goodput that windows relayed by whole segments may lose to directions that are empty.

    An acknowledgement waits behind the segments of another flow. So W segments pass two queues as a segment
    and two as an acknowledgement, and mean value analysis (with half a service left of the segment ahead)
    gives W / (W + 1) as the utilisation of each. A frame with data one way lasts one slot longer than these,
    so that with packets of one slot an empty direction saves no time.

    With packets of one slot goodput was lost in simulations by 22, 16, 11, 8 and 5 % for 3, 4, 6, 8 and 12
    segments, somewhat less than by this law.
    """
    visits = [visit for visit in flow.forth if visit.kind == "port" and visit.train.frames > 1.0]
    air = min((visit.train.air / visit.train.frames for visit in visits), default=1.0)
    if asked.network.relay == "packet":  # of packets of one slot a visit may pass most of a segment on
        limits = [asked.network.ports[visit.index].limit if air < 2.0 else 0 for visit in visits]
        visits = [v for v, limit in zip(visits, limits, strict=True) if limit > HALF * v.train.frames]
    if len(visits) < 2 or asked.network.bridges:
        return 0.0
    used = flow.window / (flow.window + 1.0)
    slots = used**2 * 2.0 * air + 2.0 * used * (1.0 - used) * (air + 1.0) + 2.0 * (1.0 - used) ** 2
    return 1.0 - used * 2.0 * air / slots


def of_voice(asked: Asked) -> Iterator[str]:
    """Doubt voice links whose slots cut the time for data into gaps that frames may not fill.

    Gaps are an even number of slots, and packets of one slot with their answers fill them: of 80 random
    networks with these packets 79 were right. The frames of windows that fill a station have a known order:
    of 80 random networks that stand 79 were right. Random segments meet the gaps at random. Acknowledgements
    that do not fit beside data wait until there are none: goodput of 14 of 23 random downlinks was too high,
    and 131 of 135 random networks that stand were right.
    """
    piconets = asked.network.piconets
    for f, flow, endless in asked.flows():
        stops = [visit for visit in (*flow.forth, *flow.back) if visit.kind == "port"]
        beside = [v for v in stops if piconets[asked.network.ports[v.index].piconet].data_share < 1.0]
        used = float(asked.used[asked.point.service[f] > 0.0].max(initial=0.0))
        row = asked.several(f) and any(visit.train.packets > IN_A_GAP < visit.train.first for visit in beside)
        short = all(visit.train.first <= 3.0 for visit in beside) and not row
        # frames of several slots that go up, after a poll, fill a gap
        fills = any(v.train.first > 1.0 and asked.network.ports[v.index].up for v in beside)
        short = short and not (fills and TOLERATED * asked.rtt[f] < GAP_MISSED * SLOT_S)
        known = bool(asked.point.waits[f] > 0.0) if endless else short and used < SELDOM_CUT
        # frames with data both ways do not fit where frames with data one way do
        known = known and not (
            endless and any(v.train.first > 1.0 for v in beside) and both_ways(asked, alone=True)
        )
        members = max((piconets[asked.network.ports[v.index].piconet].members for v in beside), default=0)
        early = members > 1 and TOLERATED * asked.rtt[f] < POLLED_EARLY * members * SLOT_S
        cut = any(visit.train.air > visit.train.frames for visit in beside)
        if (cut and not known) or (early and not endless):
            yield (
                "voice links cut the time for data into gaps, and a frame that does not fit waits for the "
                "next gap; theory knows this wait on average only: round trips were up to 20 % too long, of "
                "short messages of several links 80 %, and near saturation two to ten times too short"
            )
        ports = [asked.network.ports[visit.index] for visit in flow.forth if visit.kind == "port"]
        apart = any(piconets[port.piconet].apart and not port.up for port in ports)  # acknowledgements go up
        way = (*flow.forth, *flow.back)
        away = 2.0 * flow.host_s + sum(v.delay_s + v.service_s * (v.kind == "wire") for v in way)
        if endless and apart and away > SMALL_OPEN * asked.rtt[f]:
            yield (
                "acknowledgements do not fit beside data into the gaps between voice packets, and wait until "
                "the central has no data: a window comes in one burst, and goodput was up to 70 % too high"
            )


def of_tokens(asked: Asked) -> Iterator[str]:
    """Doubt waits for tokens that are a large part of the round trip of a random source."""
    for f, _, endless in asked.flows():
        waits = not endless and asked.point.own_stray[f] > 0.1 * asked.rtt[f]
        late = asked.expired(f) if waits else 0.0
        if late > LATE or late * asked.point.rate[f] > sessions.TIMEOUTS:
            yield (
                f"{late:.1%} of the segments wait for tokens longer than their timer: their repetitions "
                "are not counted, and round trips were up to 15 % too short"
            )


def of_datagrams(asked: Asked) -> Iterator[str]:
    """Doubt datagrams in bursts beyond a buffer."""
    for f, flow in enumerate(asked.network.flows):
        if flow.protocol != "none" or flow.messages or not flow.load:
            continue
        first, messages = flow.forth[0], max(flow.forth[0].places / max(flow.batch, 1.0), 0.0)
        used = float(asked.used[asked.point.links.number[first[:2]]])
        # theory takes these as unlimited
        large = (first.places + 0.5) * max(first.train.packets, 1.0) > buffers.MOST_PLACES - 1.0
        spills = max(flow.more, used if large else 0.0) ** messages > RARE
        if spills and not asked.point.links.links.endless[f]:
            yield (
                f"bursts or messages of {flow.batch:g} datagrams overflow a buffer of {first.places:.3g} "
                "segments: goodput was up to three times too high"
            )


def of_turns(asked: Asked) -> Iterator[str]:
    """Doubt random sources that wait for the turns of others at a medium for much of a round trip.

    For 90 flows of 50 random cells these waits were 10 % off where no flow passes the medium twice and it is
    not full; for other flows a third.
    """
    laws = asked.point.links
    for f, flow, endless in asked.flows():
        single = len(asked.network.flows) == 1 and flow.batch <= 1.0
        # the acknowledgement of a single segment at once is known while the link is not full
        most = inf if single and flow.acks == 1.0 else FIFTH if single else MET
        if not endless and (waits := _at_half_duplex(asked, f)) > most:
            yield (
                f"acknowledgements wait behind data at a half-duplex link, for about {waits:.0%} of a round "
                "trip, and theory counts the packet in service only: round trips were up to 30 % too short"
            )
        visits = [visit for visit in asked.network.flows[f].forth if visit.turn in laws.turns.number]
        if endless or not visits:
            continue
        use = max(float(asked.used[laws.number[visit[:2]]]) for visit in visits)
        # acknowledgements wait for the other segments of a message
        known = 0.1 if len(visits) == 1 and use < BUSY_ALONE and flow.batch <= 1.0 else 1.0 / 3.0
        share = float(asked.point.stray[f] + asked.point.own_stray[f]) / max(float(asked.rtt[f]), 1e-12)
        if share * known > TOLERATED:
            yield (
                f"packets wait for the turns of other stations at a shared medium for {share:.0%} of a round "
                "trip: round trips were up to 50 % off"
            )


def _at_half_duplex(asked: Asked, f: int) -> float:
    """Return the mean wait behind data at a wire that carries acknowledgements, over a round trip."""
    flow, laws, found = asked.network.flows[f], asked.point.links, 0.0
    for visit in flow.back:
        if visit.kind != "wire":
            continue
        r = laws.number[visit[:2]]
        each = asked.point.service[:, r] * (asked.point.rate > 0.0)
        forth = any(one[:2] == visit[:2] for other in asked.network.flows for one in other.forth)
        used = min(float(asked.by_chance[r]), NEAR_FULL)
        behind = used / (2.0 * (1.0 - used)) + max(1.0 - 1.0 / max(flow.batch, 1.0), 0.0)  # of its message
        found = max(found, forth * behind * float(each.max(initial=0.0)))
    return found / max(float(asked.rtt[f]), 1e-12)


def of_jitter(asked: Asked) -> Iterator[str]:
    """Doubt segments that random delays hold back: behind others of their flow, or before a full station.

    Delays up to J at a host keep the order of segments, so that a segment waits for an earlier one with a
    longer delay. At a low rate x this adds x J^2 / 24 to the mean, and as much again where the segments leave
    together, on each way.

    The wait at the slowest station because of jitter on wires is known to a third. Of 135 random lone windows
    with this doubt alone 12 were wrong. The bound was chosen on 200 windows: 86 of them have no doubt, and
    all of these are right. Of 450 windows that were drawn afterwards 206 have no doubt, and 205 of these are
    right.
    """
    for f, flow, endless in asked.flows():
        if not endless and asked.point.rate[f] * flow.jitter_s**2 / 6.0 > SMALL * asked.rtt[f] > 0.0:
            yield (
                "[run] jitter_s: random times at hosts hold segments behind each other: round trips were up "
                "to 20 % and delays up to 26 % too short"
            )
        if endless and flow.jitter_s > LONG_DELAYS * asked.rtt[f] > 0.0:
            yield (
                "[run] jitter_s: random times at hosts hold segments of a window behind each other: goodput "
                "was up to 49 % too high"
            )
        if asked.point.links.held_share[f] > BUNCHED:
            yield (
                "[network] jitter_s: segments of a window wait for each other behind random delays, for "
                f"{asked.point.links.held_share[f]:.0%} of the round trip: goodput was up to 11 % off"
            )


def of_sessions(asked: Asked) -> Iterator[str]:
    """Doubt sessions that share a station with other flows: their interaction is known on average only.

    For five sessions beside a flow of 100 to 1,300 kbit/s over a cell, times of sessions were up to 9 % off,
    their round trips 17 %, and the round trips of the other flow 54 %. Of 100 lone clients in piconets whose
    other links are used for 5 to 50 % of the time, 52 were right, and the median error was 6 %.
    """
    session = np.array([bool(flow.messages) for flow in asked.network.flows])
    here = {p for f in np.flatnonzero(session).tolist() for p in asked.piconets(f)}
    beside = max(map(asked.point.links.plain_load, here), default=0.0)
    by = [(np.where(kind, asked.point.rate, 0.0)) @ asked.point.service for kind in (session, ~session)]
    shared = asked.used[(by[0] > 0.0) & (by[1] > 0.0)].max(initial=0.0)
    if max(beside, shared) > SMALL:
        yield (
            f"sessions share stations with other flows, or wait for polls while these use {beside:.0%} of "
            "the time: times of sessions were 16 % too short to 26 % too long, and round trips up to 54 % off"
        )
