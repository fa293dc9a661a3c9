"""The doubts about an answer: each is a sentence with the size of the error that was measured.

A doubt is about a mechanism that a law describes only roughly, and not about a scenario. The sizes are errors
of random scenarios against the simulator (`docs/explanation/model-against-simulation.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from btqueue.network.stations import bridges, buffers, fading, sessions, transport
from btqueue.network.stations.asked import FEW, HALF, RARE, SMALL, TOLERATED, Asked, Vector, both_ways
from btqueue.network.stations.doubts_of_stations import (
    of_bursts,
    of_busy_resources,
    of_datagrams,
    of_disciplines,
    of_hosts,
    of_jitter,
    of_phases,
    of_relays,
    of_sessions,
    of_the_knee,
    of_tokens,
    of_turns,
    of_voice,
)
from btqueue.network.stations.doubts_of_transport import (
    of_acknowledgements,
    of_carried_acknowledgements,
    of_losses,
    of_nagle,
    of_room,
    of_vegas,
)
from btqueue.network.stations.laws import CROWDED
from btqueue.network.stations.network import Network
from btqueue.network.stations.point import CARRIED, Point
from btqueue.scenario.errors import bracketed, shown
from btqueue.scenario.recordings import read_arrivals
from btqueue.scenario.traits import neutral_values

HARDLY_ROOM = 0.8
"""Share of a window under way, above which it holds segments of a random source back; from one scenario."""
GROWING = 0.03
"""Part by which round trips of a growing window are too short in the mean of a run, from which on they are in
doubt: four windows over rings were off by 1.4 to 1.6 times this part."""
ROUND_TRIPS = 10.0
"""Least round trips in a run for which the answer for an endless run holds."""
REFUSED = 0.01
"""Chance that a message finds a full send buffer up to which its loss hardly matters."""
SURELY_LATER = 1.5
"""Round trips in the least timeout of a lone connection with selective acknowledgements, from which on it
hardly matters that timers measure one segment of a window, without timestamps. The bound was chosen on 225
random connections; of 100 that were drawn afterwards all were right."""
IN_RECOVERY = neutral_values(
    *("transport.timestamps", "transport.retransmit_only_lost", "transport.loss_detection"),
    *("transport.loss_probes", "transport.frto", "transport.rto_variation", "transport.rate_reduction"),
    *("transport.ssthresh_rule", "transport.byte_counting", "transport.recovery_exit_grows"),
    *("transport.timeout_exit_holds", "transport.inflate_by_one", "transport.ack_ends_backoff"),
    *("transport.impatient_timer", "transport.clock_granularity_s", "transport.timer_tick_s"),
    *("transport.hystart", "transport.buffers", "transport.sack_blocks", "flow_control.drop"),
)
"""Keys that no law reads, and that matter where segments are lost; with the values that the laws assume."""
PARTLY = ("transport.timestamps", "transport.ack_ends_backoff")
"""Keys among these that the law of repeated timeouts reads (`btqueue.transport.recovery`)."""
UNREAD = neutral_values(
    *("traffic.phase", "transport.quick_acks", "transport.vegas_on_srtt", "transport.vegas_adjustment"),
    *("transport.buffers", "traffic.application_timeout_s"),
) | {"transport.ack_clock": ("timer", "tick")}
"""Keys that no law reads, and that matter always; with the values that the laws assume."""


def doubts(network: Network, point: Point, rtt: Vector, timed: NDArray[np.bool_]) -> list[str]:
    """Return the doubts about an answer; none if it stands.

    Args:
        network: the stations and classes.
        point: point of the answer.
        rtt: round trips (s), (flows,).
        timed: whether round trips or delays of a flow are answered, (flows,).
    """
    asked = Asked(network, point, rtt, timed)
    if not point.rate.any() and not point.sessions:
        return [*of_room(asked), *of_unread_keys(asked)]  # nothing comes through, whatever the waits
    certain = all(asked.certain(f) for f in range(len(network.flows)))
    rules = OF_GOODPUT if certain else RULES
    found = [one for rule in rules for one in islice(rule(asked), None if rule in SEVERAL else 1)]
    found += bridges.doubts(network, point)
    found += fading.doubts(network, point, timed)
    found += transport.doubts(network, point)
    found += buffers.doubts(network, point)
    found += sessions.doubts(network, point.sessions)
    return list(dict.fromkeys(found))


def of_edges(asked: Asked) -> Iterator[str]:
    """Doubt packets that come back from a wire as their link is polled, between long visits of full links."""
    for f, _, _ in asked.flows():
        if asked.point.links.edges_s.get(f, 0.0) / 2.0 > TOLERATED * asked.rtt[f]:
            yield (
                "packets come back from a wire about as their link is polled, and full links take the time "
                "until the next poll: round trips were up to 18 % off"
            )


def of_the_edge(asked: Asked) -> Iterator[str]:
    """Doubt loads close to the capacity."""
    for f, flow, endless in asked.flows():
        under_way = float(asked.point.rate[f] * asked.rtt[f])
        more = flow.load - float(asked.point.rate[f])
        spare = float(ROUND_TRIPS * flow.window)
        if flow.load < np.inf and flow.source != "periodic" and not flow.messages:
            # a run brings fewer random messages at times: by two standard deviations of their number
            number = flow.traffic.load_kbps * 125.0 / flow.traffic.message_bytes * asked.network.run_s
            spare = max(spare, 2.0 * flow.load * asked.network.run_s / max(number, 1.0) ** 0.5)
        fills = flow.protocol == "tcp" and more * asked.network.run_s < spare
        if endless and more > 0.0 and fills:
            yield "the load is hardly above the capacity, so that the window takes most of a run to fill"
        buffer = flow.transport.send_buffer_segments if flow.protocol == "tcp" else None
        if buffer and np.isfinite(flow.load):
            size = max(flow.batch, 1.0)
            more = max(under_way / (size + under_way), flow.more)  # messages in the buffer: geometric
            if endless or more ** (buffer / size) > REFUSED:
                yield "[transport] send_buffer_segments: messages are refused: goodput was 118 % too high"
        tight = asked.point.rate[f] < CARRIED * flow.load
        tight = tight or under_way > HARDLY_ROOM * flow.window
        # a window that sends most segments at once holds back a part of a wait that is known well
        plain = asked.by_one(f) and flow.loss < RARE and under_way < HALF * flow.window
        few = flow.window < FEW and not plain
        tight = tight or (few and asked.point.own_stray[f] > SMALL * asked.rtt[f])
        if not endless and np.isfinite(flow.load) and tight:
            yield (
                "the window limits a source that has nothing to send at times: goodput was up to 10 % off, "
                "round trips 9 % too short to 20 % too long, with delayed acknowledgements 120 %"
            )


def of_the_run(asked: Asked) -> Iterator[str]:
    """Doubt large windows that are not open before a run ends: they grow by a segment a round trip.

    A window that grows from half of its size is open by a time t. Until then its round trips are too short:
    with measurements from w to w + r by (t - w)^2 / 4 t r in the mean.
    """
    for f, flow, endless in asked.flows():
        rtt_s, run_s, warmup_s = float(asked.rtt[f]), asked.network.run_s, asked.network.warmup_s
        growing_s = min(max(asked.opens_s(f) - warmup_s, 0.0), run_s)
        short = growing_s**2 / (4.0 * max(asked.opens_s(f), 1e-9) * run_s)
        slow = len(flow.forth) > 1 and asked.filled(f) and short > GROWING
        if endless and flow.protocol == "tcp" and slow and rtt_s * ROUND_TRIPS <= run_s:
            yield (
                f"a window of {flow.window:g} segments takes {asked.opens_s(f):.3g} s to open after an early "
                f"timeout, and a run lasts {run_s:.5g} s: theory's round trips were up to 30 % too long"
            )
        answers = any(visit.kind == "port" and visit.train.frames > 1.0 for visit in flow.back)
        against = answers and both_ways(asked, alone=True)
        if endless and flow.protocol == "tcp" and against and rtt_s > flow.transport.min_rto_s:
            yield (
                "data in both directions fill a link, and acknowledgements of several frames vary round "
                "trips, which timers follow closely: with spurious timeouts goodput was up to 16 % too high"
            )
        if endless and flow.protocol == "tcp" and rtt_s * ROUND_TRIPS > run_s:
            yield (
                f"a full window has a round trip of {rtt_s:.3g} s, and a run lasts {run_s:.5g} s: it ends "
                "before windows are open, and theory's round trips were up to 40 times too long"
            )


def of_recordings(asked: Asked) -> Iterator[str]:
    """Doubt recorded arrivals that end before the run: theory takes the mean rate until they end."""
    for flow in asked.network.flows:
        traffic = flow.traffic
        if traffic.source != "file" or traffic.file_period_s is not None:
            continue
        last_s, end_s = read_arrivals(traffic.arrival_file or "")[0][-1], asked.network.run_s
        if last_s < (1.0 - SMALL) * end_s:
            yield (
                f"[traffic] arrival_file: the last message comes at {last_s:.5g} s, and a run ends at "
                f"{end_s:.5g} s: theory takes the arrivals as if they went on at their mean rate"
            )
            return


def of_jumps(asked: Asked) -> Iterator[str]:
    """Doubt fixed points that were not fully found: laws jump where a station fills."""
    filled = all(asked.filled(f) for f, _, _ in asked.flows())
    # waits before stations that are not full are inconsistent
    filled = filled and bool((asked.used[asked.point.wait > 0.0] > CROWDED).all())
    if asked.point.between and not filled:
        yield (
            "a law jumps where a station is just filled, and the answer lies between the two sides of the "
            "jump: goodput was up to 60 % off in eight networks of this kind"
        )


def of_lost_feedback(asked: Asked) -> Iterator[str]:
    """Doubt data packets that are lost together with the acknowledgement bit of the other direction.

    Theory loses this bit with POLL and NULL only, as if no data came back over the link. With a fixed error
    rate of every packet, `radio.per`, there is no difference.
    """
    read = {one.kind: one.value for one in asked.network.traits}
    alike = read.get("radio.per") is not None and "radio.links" not in read
    if read.get("link.arq_feedback") != "lossy" or alike:
        return
    answered = [flow for flow in asked.network.flows if flow.back or flow.reverse is not None]
    visits = [visit for flow in answered for visit in (*flow.forth, *flow.back)]
    trains = [visit.train for visit in visits if visit.kind == "port" and visit.train.frames > 0.0]
    lost = max((1.0 - train.packets / train.frames for train in trains), default=0.0)
    if lost > SMALL:
        yield (
            f"[link] arq_feedback = lossy: {lost:.0%} of the acknowledgement bits are lost with data packets "
            "of the other direction, which theory leaves out: goodput was up to 170 % too high"
        )


def of_unread_keys(asked: Asked) -> Iterator[str]:
    """Doubt keys that matter and that no law reads."""
    losing = any(flow.loss > 0.0 or flow.ack_loss > 0.0 for flow in asked.network.flows)
    losing = losing or bool(buffers.doubts(asked.network, asked.point))
    only_sessions = all(flow.messages for flow in asked.network.flows if flow.protocol == "tcp")
    for trait in asked.network.traits:
        if trait.kind == "transport.timestamps" and (only_sessions or _repairs_without_timers(asked)):
            continue  # rare losses leave timers their samples
        known = UNREAD.get(trait.kind, IN_RECOVERY.get(trait.kind) if losing else None)
        if known is not None and trait.value not in known:
            key = f"{bracketed(trait.key)} = {shown(trait.value)}"
            if trait.kind in PARTLY:
                yield f"{key}: theory uses this key for repeated timeouts only, without its other effects"
            else:
                yield f"{key}: theory does not use this key, so the answer is without its effect"


def _repairs_without_timers(asked: Asked) -> bool:
    """Return whether a lone connection hardly needs timers: selective acknowledgements name lost segments.

    Its least timeout is longer than its round trips, so that it hardly depends on how these are measured.
    """
    point, flow = asked.point, asked.network.flows[0]
    fades = any(visit.train.worse > 0.0 for visit in flow.forth)
    lone = len(asked.network.flows) == 1 and bool(point.links.links.endless[0]) and 0 in point.found
    tcp = flow.transport
    selective = tcp.sack or tcp.variant == "sack"
    return lone and not fades and selective and tcp.min_rto_s > SURELY_LATER * float(asked.rtt[0])


SEVERAL = (of_busy_resources, of_disciplines, of_unread_keys)
"""Rules of which all sentences are doubts; of each other rule the first one is."""
OF_GOODPUT = (of_datagrams, of_recordings, of_jumps, of_lost_feedback, of_unread_keys)
"""Rules about more than waits."""
RULES = (
    of_busy_resources, of_the_knee, of_disciplines, of_bursts, of_nagle, of_acknowledgements, of_losses,
    of_phases, of_edges, of_carried_acknowledgements, of_vegas, of_relays, of_voice, of_tokens, of_the_edge,
    of_datagrams, of_recordings, of_jumps, of_turns, of_sessions, of_the_run,
    of_hosts, of_jitter, of_lost_feedback, of_room, of_unread_keys,
)  # fmt: skip
