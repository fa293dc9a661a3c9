"""What a class of flows can carry at most, and what its windows make of that.

Saturated stations use all M frames of their visits. The others have an empty frame in every cycle, and the
slots that their traffic takes. So the cycle, and what a saturated flow sends in it, follow in closed form. A
window that is bounded by a full buffer goes up and down between half of what fits and all of it.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from btqueue.network.piconet.lone import EMPTY_FRAME
from btqueue.network.piconet.ports import Piconet, Port, Sender
from btqueue.network.piconet.trains import Transmissions

LEAST_LEFT = 1e-3
"""Share of the slots, or of the tokens, that the others leave at least."""
ALIKE = 1e-9
"""Relative difference of the frames of two stations that are equally busy."""


class Window(NamedTuple):
    """How many segments a flow has under way when nothing else limits it.

    Attributes:
        mean: on average.
        loss: share of the segments that a full buffer damages; 0 if the window fits into it.
    """

    mean: float
    loss: float


def window(receive_window: int, room: float) -> Window:
    """Return the window of a greedy flow with room for so many segments.

    Between two losses it grows by one a round trip, from half to all of what fits (M. Mathis et al., 1997);
    one segment more is lost, and a window of segments passes while that is found and repaired.
    """
    if receive_window <= room:
        return Window(float(receive_window), 0.0)
    room = max(room, 1.0)
    largest = room + 1.0
    return Window(max(0.75 * room, 1.0), 1.0 / (0.375 * largest**2 + largest))


def room_of(piconet: Piconet, sender: Sender, *, by_tokens: bool) -> float:
    """Return the segments for which there is room where they pile up: before the tokens, or in the queue."""
    places = piconet.buffer if by_tokens else piconet.places[sender.port.way]  # scarce tokens are not saved
    return places / len(piconet.data.packets)


class Slots(NamedTuple):
    """A piconet with some saturated flows.

    Attributes:
        capacity: segments a second of each of them.
        cycle_s: mean polling cycle (s).
    """

    capacity: float
    cycle_s: float


def saturated_slots(
    piconet: Piconet,
    shares: np.ndarray,
    others: np.ndarray,
    data: Transmissions,
    ack: Transmissions,
) -> Slots:
    """Return what the slots carry of a flow with share 1 when all flows that have a share are saturated.

    The fullest station uses all M frames of its visits; packets of its two ports share frames. The other
    stations have an empty frame in every cycle in which the limit does not end their visit.

    Args:
        piconet: whose slots they are.
        shares: (flows,) of what a saturated port sends; 0 for flows that are not saturated.
        others: (flows,) segments a second of those.
        data: transmissions of a segment.
        ack: transmissions of an acknowledgement.
    """

    def excess(rate: float) -> tuple[float, float]:
        """Return the slots wanted in a slot, less one, and the cycle in slots."""
        frames, slots = _carried(piconet, (rate * shares + others) * piconet.slot_s, data, ack)
        busiest = frames.max()
        cycle = piconet.limit / busiest
        empty = EMPTY_FRAME * int((frames < busiest * (1.0 - ALIKE)).sum())
        return float(slots.sum()) + empty / cycle - 1.0, cycle

    _, slots = _carried(piconet, shares, data, ack)
    most = 1.0 / float(slots.sum()) / piconet.slot_s
    if excess(LEAST_LEFT * most)[0] >= 0.0:  # the others leave nothing
        return Slots(LEAST_LEFT * most, excess(LEAST_LEFT * most)[1] * piconet.slot_s)
    found = root_scalar(
        lambda tried: excess(tried)[0], bracket=(LEAST_LEFT * most, most * (1.0 + ALIKE)), xtol=1e-12 * most
    )
    rate = float(found.root)
    return Slots(rate, excess(rate)[1] * piconet.slot_s)


def _carried(
    piconet: Piconet, rates: np.ndarray, data: Transmissions, ack: Transmissions
) -> tuple[np.ndarray, np.ndarray]:
    """Return frames and slots of each station, (stations,), for (flows,) segments: packets share frames."""
    frames, slots = np.zeros((2, piconet.stations, 2))
    for sender, rate in zip(piconet.senders, rates.tolist(), strict=True):
        answers = sender.back if piconet.ack is not None else ()
        for ports, train in ((sender.data, data), (answers, ack)):
            for port in ports:
                frames[port] += rate * train.mean
                slots[port] += rate * train.mean * train.mean_slots
    return frames.max(axis=1), slots.sum(axis=1) + np.abs(frames[:, 0] - frames[:, 1])


def token_capacity(piconet: Piconet, own: np.ndarray, others: np.ndarray, port: Port) -> float:
    """Return the segments a second of each flow of a class that the tokens of its port pay for.

    Args:
        piconet: whose tokens they are.
        own: (flows,) which flows are of the class.
        others: (flows,) segments a second of the others.
        port: first port of a flow of the class.
    """
    if np.isinf(piconet.token_rate):
        return np.inf
    data = np.array([sender.port == port for sender in piconet.senders])
    tokens = data * float(piconet.data.tokens)
    if piconet.ack is not None:
        answers = np.array([sender.back[0] == port for sender in piconet.senders])
        tokens += answers * float(piconet.ack.tokens)
    left = max(piconet.token_rate - float(tokens @ others), LEAST_LEFT * piconet.token_rate)
    return left / float(tokens @ own)


def closed_rate(population: float, bottleneck_s: float, elsewhere_s: float) -> float:
    """Return the throughput of so many customers, one station and a delay, by mean value analysis.

    Not whole numbers are interpolated (Reiser and Lavenberg, J. ACM 27, 1980; exact for exponential service,
    a lower bound for more regular service).
    """
    queue, last, rate = 0.0, 0.0, 0.0
    for customers in range(1, int(np.ceil(population)) + 1):
        last = rate
        rate = customers / (elsewhere_s + bottleneck_s * (1.0 + queue))
        queue = customers - rate * elsewhere_s
    share = population - np.floor(population)
    return float(rate if share == 0.0 else (1.0 - share) * last + share * rate)
