"""What a class of flows can carry at most, and what its windows make of that.

Saturated stations use all M frames of their visits. The others have an empty frame in every cycle, and the
slots that their traffic takes. So the cycle, and what a saturated flow sends in it, follow in closed form. A
window that is bounded by a full buffer goes up and down between half of what fits and all of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.star_piconet.air import EMPTY_FRAME
from btqueue.network.star_piconet.piconet import Piconet, Sender
from btqueue.network.star_piconet.trains import Transmissions

LEAST_LEFT = 1e-3
"""Share of the slots that the others leave at least."""


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
    saturated: Sequence[Sender],
    others: float,
    data: Transmissions,
    ack: Transmissions,
) -> Slots:
    """Return what the slots carry of the saturated flows; the others send `others` segments a second."""
    segment = data.mean * (data.mean_slots + 1.0) + ack.mean * (ack.mean_slots - 1.0)
    busy = len({sender.port.station for sender in saturated})
    visit = segment / data.mean * piconet.limit
    empty = EMPTY_FRAME * (piconet.stations - busy)
    cycle = (busy * visit + empty) / max(1.0 - others * segment * SLOT_S, LEAST_LEFT) * SLOT_S
    return Slots(piconet.limit / data.mean / cycle * busy / len(saturated), cycle)


def token_capacity(piconet: Piconet, sender: Sender, entering_acks: float) -> float:
    """Return the segments a second that the tokens of a flow's port pay for, after its acknowledgements."""
    if np.isinf(piconet.token_rate):
        return np.inf
    acks = 0.0 if piconet.ack is None else entering_acks * piconet.ack.tokens
    return max(piconet.token_rate - acks, LEAST_LEFT * piconet.token_rate) / piconet.data.tokens


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
