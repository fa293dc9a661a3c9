"""Where the answer for a piconet is less certain: a warning for each regime, with what was measured there."""

import numpy as np

from btqueue.network.piconet.coupling import LOAD, WINDOW
from btqueue.network.piconet.covers import not_in_law, unknown_if_lost
from btqueue.network.piconet.disciplines import CYCLIC
from btqueue.network.piconet.metrics import ENDLESSLY, RARE, Findings
from btqueue.network.piconet.plan import Plan
from btqueue.network.piconet.ports import Piconet, stays
from btqueue.scenario import Scenario
from btqueue.scenario.errors import bracketed, shown

NEAR = 0.9
"""Share of the carried load above which a flow's round trip is least certain."""
NEAR_RELAYED = 0.7
"""The same for flows between two stations whose windows outgrow a buffer."""
SHORT_FADE_S = 0.005
"""Mean bad state, about a segment's time on the air: with shorter ones round trips are those of the mean."""
MANY_EXPIRIES = 0.01
"""Timeouts a second, of bad states that outlast the timer, from which round trips are less certain."""
SELDOM = 0.005
"""Share of the segments that buffers damage up to which connections are those that lose nothing."""
HALF_FILLED = 0.35
"""Share of the capacity from which visits that cut a segment make round trips uncertain: with limits of 2 to
4 and 3 or 5 packets they were within 6 % up to 0.4, at 0.6 to 0.8 up to 9 % short and 22 % long."""
FEW = 5
"""Packets of a segment up to which that holds; with a limit of 5 and 13 packets round trips were right."""
MANY, LONG_VISITS = 5, 0.55
"""Stations, and share of the capacity, from which visits longer than segments make round trips uncertain."""
BESIDE_BOTH_WAYS = 0.3
"""Share of the capacity from which flows beside a link with data both ways are less certain; in light traffic
they were right."""
FANNED_OUT = 0.1
"""Share of the capacity from which flows of one station to several others are less certain."""
HALF_A_WINDOW = 0.4
"""The same for messages of half a window or more."""
UP_TO = {"slq": (0.3, "25 %"), "ldq": (0.3, "12 %"), "lwrr": (0.6, "8 %"), "prc-lwrr": (0.4, "11 %")}
"""Largest measured errors of round trips of disciplines above a share of the capacity."""


def warnings_of(plan: Plan, findings: Findings) -> list[str]:
    """Return a warning for each regime, and for each key, in which the answer is less certain."""
    scenario, net = plan.scenario, plan.piconet
    control, weak = scenario.flow_control, []
    by_load, full = findings.limited == LOAD, findings.limited == WINDOW
    answered = net.ack is not None
    if answered and findings.success.min() < 1.0 - RARE:
        weak.append(
            "segments are lost on the radio: messages come in bursts after timeouts; round trips come out "
            "3 % off in the median, 11 % in 95 of 100 cases, 21 % at the worst; timeouts of light flows 8 % "
            "in the median and 16 % at the worst"
        )
    lasting = [np.isinf(net.places[sender.port.way]) for sender in net.senders]
    if not answered and findings.overload.any() and (any(lasting) or control.enabled):
        weak.append("more is offered than the piconet carries: queues grow without end or overflow")
    weak += _of_sources(plan, findings) + _of_polling(plan, findings)
    if (by_load & findings.relayed & findings.outgrown & (findings.room > NEAR_RELAYED)).any():
        weak.append(
            f"the load is above {NEAR_RELAYED} of the rate at which windows overflow a buffer: goodput may "
            "be half of the load, and round trips several times as long"
        )
    if (by_load & (findings.room > NEAR)).any() and not is_queue(net):
        weak.append("the load is close to what the piconet carries: round trips are least certain there")
    fades = net.fading in ENDLESSLY and by_load.any()
    # with shorter visits, or a lone station, round trips were 1.5 % off in the median, and 5 % at the worst
    long_visits = net.stations > 1 and net.limit >= len(net.data.packets)
    if fades and long_visits and (bad_s := stays(scenario.radio)[1]) > SHORT_FADE_S:
        weak.append(
            f"the radio fades for {bad_s:g} s at a time, and visits send whole segments: on 36 fresh points "
            "round trips were 4.1 % off in the median, 9.2 % at the 95th percentile"
        )
    if fades and not _as_measured(net, scenario):
        weak.append(
            "the radio fades: together with bursts of a source, delayed acknowledgements or polling that is "
            "not cyclic that has not been measured"
        )
    if by_load.any() and (findings.expiries > MANY_EXPIRIES).any():
        weak.append(
            f"senders fall silent in long bad states of the radio, {findings.expiries.max():.2g} timeouts a "
            "second: round trips come out up to 15 % off, timeouts up to twice too many"
        )
    if net.fading == "links" and findings.relayed.any():
        weak.append(
            "links fade on their own: what piles up for the second hop of flows through the central is "
            "not in their round trips"
        )
    if net.fading == "tries" and answered:
        weak.append(
            "packets are given up in bad states of the radio: segments are lost in bursts, which TCP's law "
            "does not know"
        )
    if scenario.radio.model == "alternating":
        weak.append(
            'radio.model = "alternating": its fixed stays are taken for random ones that let as much pile up'
        )
    short = sum(packet.slots == 1 for packet in net.data.packets)
    if net.fills_gaps and short % 2 and not by_load.all():
        weak.append(
            "link.packets: a short packet leaves a rest of its gap between voice links, which another one "
            "may use: goodput comes out up to 17 % low"
        )
    weak += _of_gaps(net, findings) + _of_both_ways(net, findings) + _of_ports(plan, findings)
    if not answered:
        return weak
    weak += _of_growth(plan, findings)
    weak += [
        f"{bracketed(one.key)} = {shown(one.value)} is not in TCP's law where the radio loses segments: "
        f"taken for {one.available}"
        for one in not_in_law(scenario)
        if findings.success.min() < 1.0 - RARE
    ]
    if findings.lost.max() > SELDOM and (unknown := unknown_losses(plan, findings)):
        weak.append(unknown)
    if control.enabled and control.bucket_bytes < net.data.tokens:
        weak.append(
            f"flow_control.bucket_bytes = {control.bucket_bytes} is less than a segment is charged, "
            f"{net.data.tokens} bytes: its packets wait for tokens one by one; round trips come out up to "
            "32 % long"
        )
    if net.stations == 1 and findings.relayed.any():
        weak.append(
            "network.flows: a lone station sends to itself through the central, in step with its own polls; "
            "round trips come out up to 17 % short"
        )
    if min(sender.window for sender in net.senders) < net.ack_every and by_load.any():
        weak.append(
            "transport.receive_window_segments: a window of fewer segments than are acknowledged together "
            "waits for the timer of each acknowledgement: round trips come out up to 20 % short"
        )
    if net.ack_clock == "tick" and net.ack_every > 1 and full.any():
        weak.append(
            f"transport.ack_clock: a tick breaks the rhythm in which {net.ack_every} segments are answered "
            "and a full window is sent: round trips come out up to 8 % short, goodput up to 4 % high"
        )
    small = min(sender.window for sender in net.senders) <= net.ack_every
    if (
        small
        and net.stations > 1
        and full.any()
        and (by_load.any() or findings.relayed.any() or net.ack_clock or net.layers_s)
    ):
        weak.append(
            "transport.receive_window_segments: a window that is answered as a whole leaves slots unused; "
            "goodput comes out up to 16 % off, and round trips of other flows up to 39 % long"
        )
    return weak


def _of_gaps(net: Piconet, findings: Findings) -> list[str]:
    """Return a warning if stations may find no gap between voice links that is whole at their turn.

    The poll of an idle station takes a part of a gap: a station behind it can be locked out for ever.
    """
    served = {port.station for sender in net.senders for port in sender.data}
    alike = len(served) == net.stations and (findings.limited == WINDOW).all()
    if not net.fills_gaps or net.stations == 1 or alike:
        return []
    return [
        "a packet and its answer fill a gap between voice links, and polls of other stations take a part of "
        "it: a station may never get a turn, with no goodput at all"
    ]


def _of_both_ways(net: Piconet, findings: Findings) -> list[str]:
    """Return a warning if a link has data both ways, and others beside it have not."""
    ways = [{port.way for sender in net.senders for port in sender.data if port.station == station}
            for station in range(net.stations)]  # fmt: skip
    rates = {sender.rate for sender in net.senders}
    uneven = any(len(way) < 2 for way in ways) or len(rates) > 1
    if not uneven or all(len(way) < 2 for way in ways) or findings.room.max() < BESIDE_BOTH_WAYS:
        return []
    return [
        "a link has data both ways, and others beside it do not have as many: round trips of single flows "
        "were up to 12 % off, goodput of greedy ones up to 13 %"
    ]


def _of_ports(plan: Plan, findings: Findings) -> list[str]:
    """Return warnings about flows that share a port."""
    net, of_flow = plan.piconet, np.array(plan.layout.class_of)
    limited = findings.limited[of_flow]
    ports = [sender.port for sender in net.senders]
    weak = []
    if {p for p, why in zip(ports, limited, strict=True) if why == LOAD} & {
        p for p, why in zip(ports, limited, strict=True) if why == WINDOW
    }:
        weak.append(
            "a flow whose load is carried shares a queue with one whose window is full: it waits behind the "
            "whole window, which is not in the model; its round trips come out up to four times as long"
        )
    targets = {sender.data for sender in net.senders if len(sender.data) > 1}  # first and second hop
    fans_out = len({first for first, _ in targets}) < len(targets)
    use = float(findings.room[findings.limited == LOAD].max(initial=0.0))
    if fans_out and use > FANNED_OUT:
        weak.append(
            "a station sends to several others through the central: its first hop spaces out what waits for "
            "the second; round trips come out 9 to 16 % long"
        )
    return weak


def unknown_losses(plan: Plan, findings: Findings) -> str:
    """Return what is not known of connections that overflow a buffer; empty if all is."""
    unknown = next(unknown_if_lost(plan.scenario), None)
    if unknown is None:
        return ""
    return (
        f"buffers damage {findings.lost.max():.2g} of the segments; what connections make of that is not "
        f"known with {bracketed(unknown.key)} = {shown(unknown.value)}; available: {unknown.available}"
    )


def is_queue(net: Piconet) -> bool:
    """Whether the network is one queue, exact at any load: Poisson, one way, on a link that loses nothing."""
    plain = all(sender.law == "poisson" for sender in net.senders) and net.segments == 1
    alone = net.stations == 1 and len({sender.data for sender in net.senders}) == 1
    return (
        plain and alone and np.isinf(net.token_rate) and np.isinf(net.most_transmissions) and not net.fading
    )


def _as_measured(net: Piconet, scenario: Scenario) -> bool:
    """Return whether sources, acknowledgements and polling are those of the points with a fading radio."""
    plain = all(sender.law in ("poisson", "greedy") for sender in net.senders)
    cyclic = scenario.polling.discipline in CYCLIC or net.stations == 1
    return plain and cyclic and net.segments == 1 and not net.ack_clock


def _of_growth(plan: Plan, findings: Findings) -> list[str]:
    """Return a warning if windows are still growing when a measurement begins.

    Beyond the threshold of slow start a window w grows by a segment in the time of w segments.
    """
    scenario, limited = plan.scenario, findings.limited == WINDOW
    begins, warmup_s = scenario.transport.initial_ssthresh_segments, scenario.run.warmup_s
    grown = np.maximum(findings.window**2 - begins**2, 0.0) / (2.0 * findings.rates) * plan.piconet.ack_every
    longest = float(np.where(limited, grown, 0.0).max())
    if warmup_s == "auto" or longest <= warmup_s:
        return []
    return [
        f"transport.initial_ssthresh_segments = {begins}: windows take about {longest:.3g} s to grow to "
        f"their size, longer than run.warmup_s = {warmup_s:g}; round trips are those after that"
    ]


def _of_sources(plan: Plan, findings: Findings) -> list[str]:
    """Return warnings about laws of sources."""
    net, weak = plan.piconet, []
    laws = [sender.law for sender in net.senders]
    if laws.count("periodic") > 1:
        weak.append(
            "traffic.phase: round trips depend on the phases that periodic sources happen to have, which "
            "stay as they are in a run; this is their mean, and single runs differ by up to half of it"
        )
    if "ibp" in laws and findings.relayed.any():
        weak.append(
            "bursts that go from station to station pile up at both: round trips come out up to 33 % short"
        )
    windows = min(sender.window for sender in net.senders)
    # without acknowledgements nothing limits how much of a burst comes at once
    most = max(sender.window for sender in net.senders) if net.ack is not None else np.inf
    filled = any(net.places[sender.port.way] < most * len(net.data.packets) for sender in net.senders)
    if (net.segments > 1 or "ibp" in laws) and (np.isfinite(net.token_rate) or filled):
        weak.append(
            "messages come several segments at a time: how a burst waits for tokens, and overflows a queue "
            "with fewer places than a window, is not in the model; round trips were 36 % short to 70 % long, "
            "goodput of datagrams up to three times as high"
        )
    if "ibp" in laws and net.ack_clock:
        weak.append(
            "bursts answer each other's segments, and single ones wait for the timer of delayed "
            "acknowledgements: round trips come out 18 to 55 % long"
        )
    if len(laws) > 1 and any(sender.vegas and sender.law == "greedy" for sender in net.senders):
        weak.append(
            "greedy connections by TCP Vegas settle at windows of their own, by the order in which they "
            "began; this is the same one for all: round trips of single flows come out up to twice or half "
            "as long"
        )
    if net.segments > max(1, windows // 2) and findings.room.max() > HALF_A_WINDOW:
        weak.append("messages of half a window or more: round trips come out up to 11 % long")
    return weak


def _of_polling(plan: Plan, findings: Findings) -> list[str]:
    """Return warnings about the polling discipline."""
    name, net = plan.scenario.polling.discipline, plan.piconet
    packets, by_load = len(net.data.packets), findings.limited == LOAD
    # beside a flow whose window is full the capacity is used, whatever the others send
    full = by_load.any() and (findings.limited == WINDOW).any()
    use = 1.0 if full else float(findings.room[by_load].max(initial=0.0))
    if name in CYCLIC and net.stations >= MANY and net.limit > packets and use > LONG_VISITS:
        return [
            f"polling.limit = {net.limit}: visits of more packets than a segment has, to {net.stations} "
            f"stations; above {LONG_VISITS} of the capacity round trips come out up to 25 % long"
        ]
    beyond, cut = packets < net.limit < 2 * packets, net.limit < packets <= FEW and packets % net.limit > 0
    if net.stations > 1 and (beyond or cut) and use > HALF_FILLED:
        taken = "a part of a segment" if cut else "a segment and a part of the next one"
        return [
            f"polling.limit = {net.limit}: a visit takes {taken}, of {packets} packets; above {HALF_FILLED} "
            f"of the capacity round trips come out up to {'22' if cut else '10'} % off"
        ]
    if plan.scenario.voice.packet != "none" and name == "exhaustive" and net.stations > 1 and use > 0.0:
        return ['polling.discipline = "exhaustive" beside voice: round trips come out up to 16 % long']
    if net.stations == 1 or name in CYCLIC:
        return []
    if findings.relayed.any():
        return [f'polling.discipline = "{name}": round trips through the central come out up to 13 % short']
    if name in ("lwrr", "prc-lwrr") and plan.piconet.limit < len(plan.piconet.data.packets):
        return [
            f'polling.discipline = "{name}" with fewer frames a visit than packets a segment: up to 16 % off'
        ]
    share, most = UP_TO.get(name, (1.0, ""))
    if findings.room.max() > share:
        return [
            f'polling.discipline = "{name}": above {share} of the capacity round trips are up to {most} off'
        ]
    return []
