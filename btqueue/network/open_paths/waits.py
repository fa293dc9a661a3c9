r"""Waits of segments and acknowledgements for the media outside.

**One medium.** A visit finds the work of all streams and what that begets: with loads :math:`\rho_j`,
constant services :math:`s_j` and batches of which :math:`a_j` segments are ahead of a segment, it waits

.. math:: \sum_j \rho_j \frac{s_j (2 a_j + 1)}{2}\, g + a s

with :math:`g = 1/(1-\rho)` for Poisson streams, and that of `piconet.sources.growth` for periodic ones, each
without itself (Pollaczek & Khinchine; Burke 1975; Eckberg 1979). Ports that take turns share these waits as
:math:`1 - \rho + \rho_p`, with the load :math:`\rho_p` of the own port, so that their mean by work stays what
it is (O. J. Boxma and B. Meister, Performance Evaluation 7, 1987, without switching).

**Several in a row.** What passes constant servers one after the other waits as long in all as it would wait
at the slowest alone, whatever the arrivals (H. D. Friedman, Oper. Res. 13, 1965): the others only space out
what would have waited there. So the longest wait of a path counts in full, and of the other waits what comes
from flows that do not pass there. Both ends of this interpolation are exact: all flows in common, and none.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from btqueue.network.open_paths.reduced import on_air, routes_of
from btqueue.network.paths.routes import AIR, medium_of, reverse, wire_s
from btqueue.network.piconet.sources import growth
from btqueue.scenario import Scenario
from btqueue.scenario.bounds import segments_of
from btqueue.scenario.topology import topology

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Visits:
    """The visits of all flows to media outside, in the order of flows and routes; shape (visits,) each.

    Attributes:
        flow: number of the flow.
        medium: name.
        port: its queue before the medium.
        service_s: time on the wire.
        back: whether acknowledgements visit.
        places: packets that may wait there.
        delay_s: of the link behind it, with the mean of its random part.
    """

    flow: NDArray[np.int64]
    medium: NDArray[np.str_]
    port: NDArray[np.str_]
    service_s: Vector
    back: Flags
    places: Vector
    delay_s: Vector

    def lone_s(self, flows: int, *, back: bool | None = None) -> Vector:
        """Return the time of a lone segment, its acknowledgement, or both outside, shape (flows,)."""
        used = np.ones_like(self.back) if back is None else self.back == back
        return np.bincount(
            self.flow[used], weights=(self.service_s + self.delay_s)[used], minlength=flows
        ).astype(float)


def visits_of(scenario: Scenario) -> Visits:
    """Read the visits to media outside off a scenario."""
    plan, answered = topology(scenario), scenario.transport.protocol == "tcp"
    rows = []
    for number, (flow, route) in enumerate(zip(plan.flows, routes_of(plan), strict=True)):
        ((size, _),) = segments_of(scenario, flow).sizes
        ways = [(route, size, False), *([(reverse(route), 0, True)] if answered else [])]
        for way, bytes_, back in ways:
            for hop in way:
                if hop.kind == "outside":
                    link = plan.outside[hop.index].link
                    where = (medium_of(plan, hop, False), f"{hop.index} from {hop.source}")
                    times = (wire_s(scenario, link, bytes_), link.delay_s + link.jitter_s)
                    rows.append((number, *where, *times, back, link.buffer_packets))
    flow, medium, port, service, delay, back, places = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    return Visits(flow, medium, port, service, back, places.astype(float), delay)


@dataclass(frozen=True)
class Streams:
    """What flows send; shape (flows,) each.

    Attributes:
        rate: segments a second.
        answers: acknowledgements a segment.
        ahead: segments of the own batch that are ahead of a segment, on average.
        regular: 1 for a periodic source.
    """

    rate: Vector
    answers: Vector
    ahead: Vector
    regular: Vector


def loads(visits: Visits, streams: Streams) -> Vector:
    """Return the load that each visit brings to its medium, shape (visits,)."""
    share = np.where(visits.back, streams.answers[visits.flow], 1.0)
    return streams.rate[visits.flow] * share * visits.service_s


def waits(visits: Visits, streams: Streams) -> Vector:
    """Return by how much each stream makes each visit wait (s), shape (visits, visits).

    Rows are visits that wait; what they wait for their own batch is on the diagonal.
    """
    rho = loads(visits, streams)
    ahead = np.where(visits.back, 0.0, streams.ahead[visits.flow])  # acknowledgements come spaced out
    regular = streams.regular[visits.flow]
    found = visits.medium[:, None] == visits.medium
    itself = np.eye(len(rho)) * regular  # a periodic stream never meets itself
    met = found * (1.0 - itself)
    grown = np.array([float(growth(jnp.array(row * rho), jnp.array(regular))) for row in met])
    work = rho * visits.service_s * (2.0 * ahead + 1.0) / 2.0
    at_port = (visits.port[:, None] == visits.port) @ rho
    at_medium = found @ rho
    turns = 1.0 - at_medium + at_port
    turns = turns * at_medium / (found @ (rho * turns))
    return met * work * (grown * turns)[:, None] + np.diag(ahead * visits.service_s)


def within_windows(
    visits: Visits, streams: Streams, by_stream: Vector, windows: Vector, lone_s: Vector
) -> Vector:
    """Return the waits in the network, of which windows keep a part at the senders, (visits, visits).

    Of a flow no more than a window is before a visit, and of the own flow what is not on the way of a lone
    segment (s, `lone_s`), or half of a window that comes at once. Waits are taken for exponential, if there
    is one: as often as a medium is busy, or a segment is not the first of its batch.
    """
    rho = loads(visits, streams)
    busy = (visits.medium[:, None] == visits.medium) @ rho
    flow, own = visits.flow, visits.flow[:, None] == visits.flow
    waits_at_all = np.where(own, 1.0 - (1.0 - busy) / (1.0 + 2.0 * streams.ahead[flow]), busy[:, None])
    window, service = windows[flow], visits.service_s
    beside = np.maximum(window * service - lone_s[flow], (window - 1.0) / 2.0 * service)
    most = np.where(own, beside, window * service)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = -np.expm1(-most * waits_at_all / by_stream)
    return np.where(by_stream > 0.0, by_stream * kept, 0.0)


def crossed(scenario: Scenario, visits: Visits) -> dict[str, set[int]]:
    """Return the flows that pass each medium, and the air."""
    passing = {str(name): set(visits.flow[visits.medium == name].tolist()) for name in visits.medium}
    plan = topology(scenario)
    return passing | {AIR: {number for number, route in enumerate(routes_of(plan)) if on_air(route)}}


def in_a_row(
    visits: Visits, by_stream: Vector, mine: Flags, air_s: float, passing: dict[str, set[int]]
) -> float:
    """Return what a path waits for its media outside (s), beside its waits on the air.

    Args:
        visits: of all flows.
        by_stream: see `waits`.
        mine: those of the path, shape (visits,).
        air_s: what it waits on the air.
        passing: see `crossed`.
    """
    numbers = np.flatnonzero(mine)
    each = by_stream[numbers].sum(axis=1)
    longest = int(numbers[np.argmax(each)]) if len(numbers) else -1
    outside = each.max(initial=0.0) > air_s
    common = passing[str(visits.medium[longest])] if outside else passing[AIR]
    spaced = np.isin(visits.flow, list(common))
    total = 0.0
    for number in numbers:
        if outside and number == longest:
            total += by_stream[number].sum() - air_s
            continue
        # what goes the other way on the same medium meets it at any time
        total += by_stream[number, ~(spaced & (visits.back == visits.back[number]))].sum()
    return float(total)
