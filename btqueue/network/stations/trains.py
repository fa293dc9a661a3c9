"""The packets of a segment on the radio: their transmissions, losses and states, in means."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S, PacketType
from btqueue.channel import Bits, ber_from_link_quality, link_quality, packet_error_rate
from btqueue.channel.error_rates import reply_error_rate
from btqueue.channel.interference import spared_by_neighbour
from btqueue.network.repetition import HARDLY_EVER, kinds_of
from btqueue.network.stations.network import NO_TRAIN, Matrix, Train, Vector
from btqueue.scenario.link import Link
from btqueue.scenario.radio import Radio
from btqueue.scenario.recordings import read_trace

REPLY_US = 126.0
"""Time on the air of POLL and NULL: access code and header only."""


class State(NamedTuple):
    """A state of a radio: share of the time, bit error rate, link quality, and mean stay (s)."""

    share: float
    ber: float | None
    quality: float
    stay_s: float


def states_of(radio: Radio) -> tuple[State, ...]:
    """Return the states of a radio.

    The halves of an alternating radio last for a fixed time. The backlog of a state grows with the square of
    its stay; an exponential stay of half the mean has the same mean square.
    """
    if radio.model in ("perfect", "constant"):
        ber = 0.0 if radio.model == "perfect" else radio.ber
        return (State(1.0, ber, _quality(ber or 0.0), inf),)
    if radio.model == "trace":
        return _trace_states(radio)
    stays = (radio.good_s, radio.bad_s)
    if radio.model == "alternating":
        stays = (radio.period_s / 2.0, radio.period_s / 2.0)
    return tuple(
        State(stay / sum(stays), ber, _quality(ber), stay)
        for stay, ber in zip(stays, (radio.ber_good, radio.ber_bad), strict=True)
    )


@lru_cache(maxsize=256)
def _quality(ber: float) -> float:
    return float(link_quality(ber))


def _trace_states(radio: Radio) -> tuple[State, ...]:
    values = read_trace(radio)
    if radio.trace_quantity == "ber":
        bers, qualities = values, link_quality(values)
    else:
        bers, qualities = ber_from_link_quality(values), values
    poor = bers > bers.mean()
    runs = max(int((poor & ~np.roll(poor, 1)).sum()), 1)
    stay = radio.trace_step_s * float(poor.sum()) / runs
    order = np.array_split(np.argsort(bers), min(20, len(bers)))
    return tuple(
        State(len(part) / len(bers), float(bers[part].mean()), float(qualities[part].mean()), stay)
        for part in order
        if len(part)
    )


@lru_cache(maxsize=4096)
def train_of(
    link: Link, bits: Bits, radio: Radio, states: tuple[State, ...], size: float, beside: float = 0.0
) -> Train:
    """Return the packets of a segment of `size` bytes above L2CAP on a hop with this radio and its states.

    With repetition a link that always has segments sends in each state as fast as it can. So means over
    segments weigh a state by its share of the time and its speed, with the `beside` bytes of the
    acknowledgement in the other halves of the frames. Without repetition the states of successive packets of
    a segment are correlated, one frame apart.
    """
    pdu = size + link.l2cap_header_bytes
    if pdu == 0:
        return NO_TRAIN

    def packets(pdu: float, state: State) -> tuple[Sequence[PacketType], Vector]:
        """Return the packets of a PDU (bytes) in a state of the radio, and their error rates."""
        kinds = kinds_of(link, bits, int(pdu), state.ber or 0.0, state.quality)
        errors = {kind: packet_error(link, radio, kind, state.ber) for kind in set(kinds)}
        return kinds, np.array([errors[kind] for kind in kinds])

    trains, through, kinds = [], [], ()
    for state in states:
        kinds, errors = packets(pdu, state)
        trains.append(_tried(link, kinds, errors))
        through.append(1.0 - errors)
    share = np.array([state.share for state in states])
    each = np.array([train.air + train.frames for train in trains])
    weight = share
    if link.arq == "unlimited":
        there = beside + link.l2cap_header_bytes  # slots of the answer in the other halves, by state
        others = [_tried(link, *packets(there, state)) for state in states if beside and len(states) > 1]
        more = [
            other.air - other.frames + 2.0 * max(other.frames - train.frames, 0.0)
            for other, train in zip(others, trains, strict=False)
        ]
        weight = share / (each + (more or 0.0))
    found = NO_TRAIN
    for train, part in zip(trains, weight / weight.sum(), strict=True):
        found = found.plus(train, float(part))
    if len(states) == 1:
        return found
    worse = (
        (each > each.mean()) if link.arq == "unlimited" else np.array([t.loss for t in trains]) > found.loss
    )
    if not worse.any() or worse.all():
        return found
    stay = states[int(np.flatnonzero(worse)[0])].stay_s
    scheduled = radio.model in ("alternating", "trace")
    lost = np.array([train.loss for train in trains])

    def mean(values: Vector, where: NDArray[np.bool_]) -> float:
        return float(values[where] @ share[where] / share[where].sum())

    loss, arrives, crossing_s = found.loss, np.diag([1.0 - mean(lost, ~worse), 1.0 - mean(lost, worse)]), 0.0
    if link.arq == "none":
        loss = float(share @ lost)
        if len(states) == 2 and len({len(one) for one in through}) == 1:
            order = np.argsort(worse)
            gaps_s = np.array([kind.slots + 1.0 for kind in kinds[:-1]]) * SLOT_S
            arrives = _across(np.array(through)[order], share[order], stay, gaps_s)
            loss, crossing_s = 1.0 - float(share[order] @ arrives.sum(axis=1)), float(gaps_s.sum())

    return found._replace(
        spread=found.frames * (found.frames / found.packets - 1.0) if link.arq != "none" else 0.0,
        loss=loss,
        fast=1.0 / mean(1.0 / each, ~worse),
        slow=1.0 / mean(1.0 / each, worse),
        worse=float(share[worse].sum()),
        stay_s=stay,
        together=float(scheduled or radio.fading == "per-piconet"),
        scheduled=float(scheduled),
        **dict(zip(Train._fields[-5:], (*arrives.ravel().tolist(), crossing_s), strict=True)),
    )


def _across(through: Matrix, share: Vector, stay_s: float, gaps_s: Vector) -> Matrix:
    """Return the chances that a segment arrives, by the states at its first and its last packet, (2, 2).

    Args:
        through: chance of each packet in the better and the worse state, shape (2, packets).
        share: share of the time in each state.
        stay_s: mean stay in the worse state.
        gaps_s: time from each packet to the next one.
    """
    whole = np.diag(through[:, 0])
    for kept, chances in zip(np.exp(-gaps_s / (stay_s * share[0])), through[:, 1:].T, strict=True):
        whole = (kept * whole + (1.0 - kept) * whole.sum(axis=1, keepdims=True) * share) * chances
    return whole


def _tried(link: Any, kinds: Sequence[PacketType], errors: Vector) -> Train:
    """Return the train of packets with these error rates, repeated by the rule of the link.

    If a packet is given up, the rest of its segment is not sent.
    """
    slots = np.array([float(kind.slots) for kind in kinds])
    count, once = float(len(slots)), float(slots.sum())
    if link.arq == "none":
        return Train(count, once, count, once, 1.0 - float(np.prod(1.0 - errors)), float(slots[0]))
    errors = np.minimum(errors, 1.0 - HARDLY_EVER)
    lost = np.zeros_like(errors) if link.arq == "unlimited" else errors**link.arq
    reached = np.concatenate([[1.0], np.cumprod(1.0 - lost)])
    tries = reached[:-1] * (1.0 - lost) / (1.0 - errors)
    spread = float((errors / (1.0 - errors) ** 2).sum())
    frames, air, loss = float(tries.sum()), float(tries @ slots), 1.0 - float(reached[-1])
    return Train(count, once, frames, air, loss, float(slots[0]), spread)


def packet_error(link: Link, radio: Radio, kind: PacketType, ber: float | None) -> float:
    """Return the share of the transmissions of a packet that fail, or whose acknowledgement fails."""
    through, answered = intact(radio, kind, ber)
    if link.arq != "none" and link.arq_feedback == "lossy":
        through *= answered
    return 1.0 - through


def intact(radio: Radio, kind: PacketType, ber: float | None) -> tuple[float, float]:
    """Return the chances that a packet arrives, and that POLL or NULL does."""
    neighbours = radio.interferers
    through, answered = 1.0, 1.0
    if radio.model == "constant" and radio.per is not None:
        through = answered = 1.0 - radio.per
    elif ber:
        through = 1.0 - float(packet_error_rate(kind, ber, bits=radio.bits))
        answered = 1.0 - float(reply_error_rate(ber)) if radio.bits == "on-air" else 1.0
    if neighbours:
        through *= float(spared_by_neighbour(kind.air_time_us)) ** neighbours
        answered *= float(spared_by_neighbour(REPLY_US)) ** neighbours
    return through, answered
