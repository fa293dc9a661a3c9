r"""Whole messages with bitmaps: the transfer of one CentaurusComm object as an absorbing chain.

An object of N packets is offered and accepted, its packets are sent without feedback and closed with DONE;
the receiver answers ACK (complete) or PROCEED with the bitmap of what it has, and the sender sends what is
missing. Control messages are never repeated: if one is lost, the session hangs until a watchdog ends it and
the object is offered again; the receiver's bitmap survives. With m packets missing the states are A(m), about
to offer, and R(m), about to send:

.. math::
   A(m) &= \sum_{failures} q_i\,(d_i + A(m)) + \sum_{successes} s_i\,(d_i + R(m)) \\
   R(m) &= \sum_k \binom mk p^k (1-p)^{m-k} \{ c_D\,(w_m + A(k))
           + (1 - c_D)\,[c_A\,(w_m + A(k)) + (1 - c_A)\,(b_m + a + R(k)\,1_{k>0})]\}

where p is the loss of a packet, c_D and c_A that of DONE and of its answer, b_m the time until DONE is there,
a that of the answer, and w_m the time until the watchdog has ended a session that hangs. Upward in m this is
a 2 x 2 system, for means (:func:`mean_time`) and, with :math:`z^d` in place of d, for the generating
function, which gives :func:`variance` and the whole law (:func:`transaction_law`). Exact for independent
losses and fixed times.

Source: Avancha et al., Computer Networks 40 (2002), sections 3.1 and 3.4; the chain is ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from btqueue.transport import binomial

Transform = Callable[[float], np.ndarray]
"""What a step contributes to a generating function, given its duration (s)."""

SMALL = 1e-30
"""Step of the derivative of a generating function along the imaginary axis, which loses no digits."""

NEGLIGIBLE = 1e-12
"""Binomial probabilities below this are left out of the sums."""

FOLDED = 1e-6
"""What part of the law beyond the lattice folds back on it; rounding errors grow by its inverse."""

CIRCLE, NEAR = 16, 0.1
"""Points of the circle of an integral, and its radius times the mean, well within that of convergence."""

ROUNDING = 1e-10
"""What rounding can make of a probability that is 0."""


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
        answer_s: time from there until the sender has the answer.
        hang_s: ``(N + 1,)`` time from the first packet until a session that hangs has been ended.
        data_loss: loss of a data packet.
        done_loss: loss of DONE.
        answer_loss: loss of the answer to DONE.
        until: the transfer is over when the receiver has the object, or when the sender knows.
        repeat: how the offer of an object ends that the receiver has whole already, its ACK having been lost;
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
    value = _generating_function(transaction, lambda duration: np.array([1.0 + 1j * SMALL * duration]))
    return float(np.imag(value)[0] / SMALL)


def variance(transaction: Transaction) -> float:
    """Variance (s2) of the duration: of its moment generating function, by Cauchy's integral about 0.

    Example:
        >>> from btqueue.transport.centaurus_transaction import Branch, Transaction, variance
        >>> offer = (Branch(0.9, 0.1, True), Branch(0.1, 1.0, False))
        >>> object_of_one = Transaction(offer, [0.01, 0.02], 0.01, [0.5, 0.5], 0.0, 0.0, 0.0)
        >>> round(variance(object_of_one), 4)
        0.1235
    """
    mean, turns = mean_time(transaction), np.exp(2j * np.pi * np.arange(CIRCLE) / CIRCLE)
    exponents = NEAR / mean * turns
    about_mean = np.exp(-exponents * mean)
    value = _generating_function(transaction, lambda duration: np.exp(exponents * duration)) * about_mean
    return max(0.0, 2.0 * float(np.mean(value * turns**-2).real) * (mean / NEAR) ** 2)


def transaction_law(
    parts: Sequence[Transaction | Sequence[Branch]], step_s: float, length: int
) -> np.ndarray:
    """Law of the time that transfers and waits take one after the other, on a lattice, ``(length,)``.

    What takes longer is cut off. A duration between two points of the lattice of `step_s` is shared between
    them so that its mean stays. The generating function is inverted on a circle inside the unit circle, so
    that what lies beyond the lattice does not fold back.

    Example:
        >>> from btqueue.transport.centaurus_transaction import Branch, Transaction, transaction_law
        >>> offer = (Branch(0.9, 0.1, True), Branch(0.1, 1.0, False))
        >>> object_of_one = Transaction(offer, [0.01, 0.02], 0.01, [0.5, 0.5], 0.0, 0.0, 0.0)
        >>> law = transaction_law([object_of_one], 0.01, 400)
        >>> round(float(law.sum()), 4)
        0.9999
    """
    radius = FOLDED ** (1.0 / length)
    place = np.arange(length // 2 + 1)
    roots = np.exp(-2j * np.pi * np.arange(length) / length)
    z = radius * roots[place]

    def power(duration: float) -> np.ndarray:
        whole, part = divmod(duration / step_s, 1.0)
        return radius**whole * roots[int(whole) * place % length] * (1.0 - part + part * z)

    product = np.ones_like(z)
    for part in parts:
        transfer = isinstance(part, Transaction)
        product *= _generating_function(part, power) if transfer else sum(_offered(part, power))
    law = np.fft.irfft(product, length) / radius ** np.arange(length)
    return np.where(law > ROUNDING, law, 0.0)


def _generating_function(t: Transaction, step: Transform) -> np.ndarray:
    """Return the generating function of the transfer, from the solution of the chain upward in m.

    Only for those m that are likely to be missing after a round.
    """
    per_offer = _until_accepted(t.offer, step)
    repeated = _until_accepted(t.repeat, step) if t.repeat is not None else None
    offering, sending = (np.zeros((t.packets + 1, per_offer.size), complex) for _ in range(2))
    hung = t.done_loss + (1.0 - t.done_loss) * t.answer_loss
    first = binomial.probability(np.arange(t.packets), t.packets, t.data_loss) > NEGLIGIBLE
    most = int(np.flatnonzero(first)[-1]) if first.any() else -1
    for m in dict.fromkeys((*range(most + 1), t.packets)):
        lost = binomial.probability(np.arange(m + 1), m, t.data_loss)
        likely = np.flatnonzero(lost > NEGLIGIBLE)
        hang, there = step(t.hang_s[m]), step(t.burst_s[m])
        answered = step(t.burst_s[m] + t.answer_s)
        # with all packets there (k = 0)
        if t.until == "delivered":
            arrived = lost[0] * (1.0 - t.done_loss) * there
            unknown, missed = 0.0, t.done_loss
        else:
            arrived = lost[0] * (1.0 - hung) * answered
            unknown, missed = (1.0 - t.done_loss) * t.answer_loss, t.done_loss
        if repeated is not None:
            arrived = arrived + lost[0] * unknown * hang * repeated
            unknown = 0.0
        weights = lost * hung
        weights[0] = lost[0] * (missed + unknown)
        inner = slice(int(likely[0]), min(int(likely[-1]) + 1, m))
        arrived = arrived + hang * _sum(weights[inner], offering[inner])
        rounds = slice(max(1, inner.start), inner.stop)
        arrived = arrived + (1.0 - hung) * answered * _sum(lost[rounds], sending[rounds])
        # R = arrived + again R + anew A, and A = per_offer R
        again = (1.0 - hung) * lost[m] * answered if m > 0 else 0.0
        anew = weights[m] * hang
        sending[m] = arrived / (1.0 - again - anew * per_offer)
        offering[m] = per_offer * sending[m]
    if t.first is None:
        return offering[t.packets]
    refused, accepted = _offered(t.first, step)
    return refused * offering[t.packets] + accepted * sending[t.packets]


def _sum(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the weighted sum of the rows; too small a product for the threads of linear algebra."""
    return np.einsum("k,kz->z", weights, rows)


def _until_accepted(branches: Sequence[Branch], step: Transform) -> np.ndarray:
    """Return the generating function of the time until an offer is accepted."""
    refused, accepted = _offered(branches, step)
    return accepted / (1.0 - refused)


def _offered(branches: Sequence[Branch], step: Transform) -> tuple[np.ndarray, np.ndarray]:
    """Return the generating functions of an offer that is not accepted, and of one that is."""
    sums = [np.zeros_like(step(0.0), dtype=complex) for _ in range(2)]
    for branch in branches:
        sums[branch.accepted] += branch.probability * step(branch.duration_s)
    return sums[0], sums[1]
