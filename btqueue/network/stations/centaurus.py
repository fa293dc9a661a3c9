"""Request-reply sessions over CentaurusComm: objects between control messages (Avancha et al. 2002, 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from btqueue.network.stations.messages import End, Sessions
from btqueue.network.stations.network import Piece
from btqueue.transport.centaurus_transaction import Branch, Transaction, mean_time


def centaurus_sessions(client: End, server: End) -> Sessions:
    """Return sessions over CentaurusComm: objects and control messages, each sent after an answer.

    OBJ, PROCEED, data and DONE, ACK carry the request; NOPE hands the turn to the server; OBJ, PROCEED, data
    and DONE carry the reply. The client acknowledges it while it goes on.
    """
    traffic = client.flow.traffic
    early = client.flow.transport.centaurus_early_data
    control = {client.f: server.flow.back, server.f: client.flow.back}
    request, goodbye = client.flow.messages
    place, lead, cycle, session = None, False, 0.0, 0.0

    def send(end: End, pieces: Sequence[Piece], place: Any, extra: int = 0) -> tuple[float, Any]:
        """Return the time of a train of data with further control messages, and where it ends."""
        visits = control[end.f]
        seconds, ends = end.lone(visits, place)
        before = (*pieces, *([Piece(extra, 0.0, visits)] if extra else []))
        worker = end.flow.transport.centaurus_worker_s
        for piece in before:
            each = max(end.pace(piece.visits, 0.0), worker if piece.share else 0.0)
            seconds += piece.count * each
        return seconds, ends

    def carry(end: End, pieces: Sequence[Piece], place: Any, ahead: int) -> tuple[float, Any]:
        """Return the time from the offer of an object until its DONE arrives, and where it ends."""
        other = server if end is client else client
        if early:
            return send(end, pieces, place, ahead + 1)
        offer, place = send(end, (), place, ahead)
        proceed, place = other.lone(control[other.f], place)
        train, place = send(end, pieces, place)
        return offer + proceed + train, place

    for _ in range(2):
        asking, place = carry(client, request, place, int(lead))
        ack, place = server.lone(control[server.f], place)
        nope, place = client.lone(control[client.f], place)
        answering, place = carry(server, server.flow.messages[0], place, 0)
        session = cycle = asking + ack + nope + answering
        lead = not goodbye and traffic.pause_s == 0.0
        if goodbye:
            leaving, place = carry(client, goodbye, place, 1)
            done, place = server.lone(control[server.f], place)
            cycle += leaving + done
            lead = traffic.pause_s == 0.0  # a last NOPE
        if traffic.pause_s:
            place = None
        cycle += traffic.pause_s
    losses = [client.flow.loss, client.flow.ack_loss, server.flow.loss, server.flow.ack_loss]
    if any(losses):
        objects = [(client, server, request), (server, client, server.flow.messages[0])]
        objects += [(client, server, goodbye)] if goodbye else []
        costs = [_object_cost(*one, control, send, until=n != 1) for n, one in enumerate(objects)]
        turn = client.flow.transport.centaurus_watchdog_s * server.flow.ack_loss
        session += costs[0] + turn + costs[1]
        cycle += sum(costs) + turn
    return Sessions(cycle, session, 0.0)


def _object_cost(
    end: End, other: End, pieces: Sequence[Piece], control: Any, send: Any, *, until: bool
) -> float:
    """Return the mean time that losses add to the transfer of an object (s)."""
    transport = end.flow.transport
    count = sum(piece.count for piece in pieces)
    alone, back = end.lone(control[end.f], None)[0], other.lone(control[other.f], None)[0]
    whole = send(end, pieces, None)[0]
    burst = alone + (whole - alone) / max(count, 1) * np.arange(count + 1)
    hang = transport.centaurus_watchdog_s + transport.centaurus_worker_s * np.arange(count + 1)
    lost = sum(
        piece.count * (1.0 - float(np.prod([1.0 - visit.loss for visit in piece.visits]))) for piece in pieces
    ) / max(count, 1)

    def mean(data: float, forth: float, behind: float) -> float:
        # data that come with an offer do not wait for its answer
        through = (1.0 - forth) * (1.0 if transport.centaurus_early_data else 1.0 - behind)
        offer = (
            Branch(1.0 - through, transport.centaurus_watchdog_s, accepted=False),
            Branch(through, alone + back, accepted=True),
        )
        return mean_time(
            Transaction(
                offer,
                tuple(burst),
                back,
                tuple(hang),
                data,
                forth,
                behind,
                "acknowledged" if until else "delivered",
                offer,
            )
        )

    return mean(lost, other.flow.ack_loss, end.flow.ack_loss) - mean(0.0, 0.0, 0.0)
