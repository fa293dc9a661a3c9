"""Losses modulated by a hidden Markov chain: what a segment and its ACK may meet on their way.

The chain moves in continuous time with generator Q; while it is in state s a data segment is lost with
probability p[s] and an ACK with probability q[s]. One state gives independent losses, two a Gilbert-Elliott
channel; independent links in series give the product chain.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LossProcess:
    """A Markov-modulated loss process with m hidden states.

    Attributes:
        data_loss: (m,) probability that a data segment sent in each state is lost.
        ack_loss: (m,) probability that the ACK of a segment received in each state is lost.
        transition: elapsed time in seconds -> (m, m) transition matrix, rows summing to one.
    """

    data_loss: Vector
    ack_loss: Vector
    transition: Callable[[float], Vector]

    @property
    def channel_states(self) -> int:
        """Number m of hidden states."""
        return self.data_loss.size

    @classmethod
    def independent(cls, data_loss: float, ack_loss: float = 0.0) -> Self:
        """Every segment is lost with probability `data_loss`, every ACK with `ack_loss`, independently."""
        return cls(np.array([data_loss]), np.array([ack_loss]), lambda _: np.ones((1, 1)))

    @classmethod
    def markov(cls, data_loss: ArrayLike, ack_loss: ArrayLike, generator: ArrayLike) -> Self:
        """Losses by the state of a continuous-time chain.

        Args:
            data_loss: (m,) loss probability of a data segment by state.
            ack_loss: (m,) loss probability of an ACK by state.
            generator: (m, m) generator matrix Q in 1/s; rows sum to zero.
        """
        q = np.asarray(generator, dtype=np.float64)

        def transition(elapsed: float) -> Vector:
            rows = np.asarray(expm(q * elapsed), np.float64)
            return rows / rows.sum(axis=1, keepdims=True)  # a fast chain loses digits

        return cls(np.asarray(data_loss, float), np.asarray(ack_loss, float), transition)


def in_series(links: Sequence[LossProcess]) -> LossProcess:
    """Independent links one behind the other: a segment or ACK must get through all of them.

    Hidden states are the combinations, the last link's varying fastest.
    """

    def product(factors: Iterable[Vector]) -> Vector:
        return np.asarray(reduce(np.kron, factors), dtype=np.float64)

    return LossProcess(
        1.0 - product(1.0 - link.data_loss for link in links),
        1.0 - product(1.0 - link.ack_loss for link in links),
        lambda dt: product(link.transition(dt) for link in links),
    )


def alike_in_series(link: LossProcess) -> LossProcess:
    """Two independent links that are alike, one behind the other.

    Which of the two is in which state does not matter: the unordered pairs of states are a Markov chain.
    """
    states = link.channel_states
    first, second = np.triu_indices(states)
    pairs = np.zeros((states * states, first.size))
    pairs[first * states + second, np.arange(first.size)] = 1.0
    pairs[second * states + first, np.arange(first.size)] = 1.0
    both, kept = in_series([link, link]), first * states + second
    return LossProcess(
        both.data_loss[kept], both.ack_loss[kept], lambda dt: both.transition(dt)[kept] @ pairs
    )
