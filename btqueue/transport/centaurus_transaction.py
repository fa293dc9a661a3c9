r"""Whole messages with bitmaps: the transfer of one CentaurusComm object as an absorbing chain.

An object of N packets is offered and accepted, its packets are sent without feedback and closed with DONE;
the receiver answers ACK (complete) or PROCEED with the bitmap of the packets received, and the sender sends
the missing packets. Control messages are never repeated: if one is lost, the session hangs until a watchdog
ends it and the object is offered again; the receiver's bitmap survives. With m packets missing the states are
A(m), about to offer, and R(m), about to send:

.. math::
   A(m) &= \sum_{failures} q_i\,(d_i + A(m)) + \sum_{successes} s_i\,(d_i + R(m)) \\
   R(m) &= \sum_k \binom mk p^k (1-p)^{m-k} \{ c_D\,(w_m + A(k))
           + (1 - c_D)\,[c_A\,(w_m + A(k)) + (1 - c_A)\,(b_m + a + R(k)\,1_{k>0})]\}

where p is the loss probability of a packet, c_D and c_A the loss probabilities of DONE and of its answer, b_m
the time until DONE arrives, a the time until its answer arrives, and w_m the time until the watchdog has
ended a session that hangs. Upward in m this is a 2 x 2 system. Exact for independent losses and fixed times.

Source: Avancha et al., Computer Networks 40 (2002), sections 3.1 and 3.4; the chain is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from btqueue.transport import binomial

NEGLIGIBLE = 1e-12
"""Binomial probabilities below this are left out of the sums."""


class Branch(NamedTuple):
    """One way in which an offer can end: its probability, how long it takes (s), whether it is accepted."""

    probability: float
    duration_s: float
    accepted: bool


@dataclass(frozen=True)
class Transaction:
    """The transfer of one object.

    Attributes:
        offer: how an offer can end; the probabilities add up to 1.
        burst_s: ``(N + 1,)`` time from the first packet until DONE has arrived, with 0 to N packets to send.
        answer_s: time from the arrival of DONE until the sender has the answer.
        hang_s: ``(N + 1,)`` time from the first packet until a session that hangs has been ended.
        data_loss: loss of a data packet.
        done_loss: loss of DONE.
        answer_loss: loss of the answer to DONE.
        until: the transfer is over when the receiver has the object, or when the sender knows.
        repeat: how an offer ends when the receiver has the whole object already because its ACK was lost;
            acceptance ends the transfer. Unset: as any offer, followed by DONE and its answer.
        first: how the very first offer ends, if it differs from later ones (data sent along with it).
    """

    offer: tuple[Branch, ...]
    burst_s: Sequence[float]
    answer_s: float
    hang_s: Sequence[float]
    data_loss: float
    done_loss: float
    answer_loss: float
    until: Literal["delivered", "acknowledged"] = "acknowledged"
    repeat: tuple[Branch, ...] | None = None
    first: tuple[Branch, ...] | None = None

    @property
    def packets(self) -> int:
        """N, the packets of the object."""
        return len(self.burst_s) - 1


def mean_time(transaction: Transaction) -> float:
    """Mean duration (s) of the transfer.

    Example:
        >>> from btqueue.transport.centaurus_transaction import Branch, Transaction, mean_time
        >>> offer = (Branch(0.9, 0.1, True), Branch(0.1, 1.0, False))
        >>> object_of_one = Transaction(offer, [0.01, 0.02], 0.01, [0.5, 0.5], 0.0, 0.0, 0.0)
        >>> round(mean_time(object_of_one), 4)
        0.2411
    """
    t = transaction
    offer_s = _until_accepted(t.offer)
    hung = t.done_loss + (1.0 - t.done_loss) * t.answer_loss
    unknown = 0.0 if t.until == "delivered" else (1.0 - t.done_loss) * t.answer_loss
    sending = np.zeros(t.packets + 1)
    first = binomial.probability(np.arange(t.packets), t.packets, t.data_loss) > NEGLIGIBLE
    most = int(np.flatnonzero(first)[-1]) if first.any() else -1
    for m in dict.fromkeys((*range(most + 1), t.packets)):
        lost = binomial.probability(np.arange(m + 1), m, t.data_loss)
        lost = np.where(lost > NEGLIGIBLE, lost, 0.0)
        anew, again = lost * hung, lost * (1.0 - hung)
        hang_s, answered_s = t.hang_s[m], t.burst_s[m] + t.answer_s
        anew[0], again[0] = lost[0] * (t.done_loss + unknown), 0.0
        if t.until == "delivered":
            time = lost[0] * (1.0 - t.done_loss) * t.burst_s[m]
        else:
            time = lost[0] * (1.0 - hung) * answered_s
        if t.repeat is not None:
            anew[0] = lost[0] * t.done_loss
            time += lost[0] * unknown * (hang_s + _until_accepted(t.repeat))
        time += anew.sum() * (hang_s + offer_s) + again.sum() * answered_s
        after = anew + again
        sending[m] = (time + float(after[:m] @ sending[:m])) / (lost.sum() - after[m])
    if t.first is None:
        return float(offer_s + sending[-1])
    refused = sum(one.probability for one in t.first if not one.accepted)
    return float(sum(one.probability * one.duration_s for one in t.first) + refused * offer_s + sending[-1])


def _until_accepted(branches: Sequence[Branch]) -> float:
    """Return the mean time until an offer is accepted (s)."""
    accepted = sum(one.probability for one in branches if one.accepted)
    return sum(one.probability * one.duration_s for one in branches) / accepted
