"""Enumeration of the sender's state machine into a transition structure that knows no probability.

Breadth-first search from a recurrent state finds exactly the recurrent states. A state is a micro-step to
come: the fate of one segment. The waits between rounds carry no state of their own; they are noted on the
last micro-step of a round. The arrays are constants of (window, variant): loss probabilities and
times enter later, so one structure serves any number of solutions, and could be closed over by a compiled
JAX program as it stands.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from btqueue.transport.tcp_law import Receiver
from tcp_chains.newreno_chain import (
    Fate,
    Outcome,
    SenderRules,
    State,
    Variant,
    first_state,
    window_lattice,
)

WITHIN_ROUND = 0  # `ending` of a micro-step that others of its round follow
ROUND_END = 1  # `ending` of one that closes its round; larger values: and a timeout follows


@dataclass(frozen=True, eq=False)
class TransitionStructure:
    """The sender's transition graph, N states by F fates (`Fate.ACK_LOST` only where ACKs may be lost).

    States are sorted by the number of segments of the round still open, most first: a round runs through
    them from top to bottom.

    Attributes:
        window: receive window in segments.
        variant: TCP variant.
        open_segments: (N,) segments of the round whose fate is open, non-increasing.
        target: (N, F) next state.
        ending: (N, F) WITHIN_ROUND, ROUND_END, or ROUND_END + 1 + k for a timeout of kind k.
        timeout_kinds: (K, 2) doublings of the timer and its age in rounds, for every kind of timeout.
        delivered: (N, F) segments delivered in order.
        fast_retransmit: (N, F) whether a fast retransmit starts.
        acks: (N, F) ACKs that arrive.
        held_up: (N, F) whether the round ends with the delay of an ACK that nothing else replaces.
        cwnd: (N, F) congestion window afterwards, in segments, before any timeout.
    """

    window: int
    variant: Variant
    open_segments: NDArray[np.int64]
    target: NDArray[np.int64]
    ending: NDArray[np.int64]
    timeout_kinds: NDArray[np.int64]
    delivered: NDArray[np.int64]
    fast_retransmit: NDArray[np.bool_]
    acks: NDArray[np.int64]
    held_up: NDArray[np.bool_]
    cwnd: NDArray[np.float64]

    @property
    def states(self) -> int:
        """Number of states."""
        return self.target.shape[0]

    @property
    def fates(self) -> int:
        """Number of fates of a segment: 2 without, 3 with ACK loss."""
        return self.target.shape[1]


@lru_cache(maxsize=32)
def compile_chain(
    window: int,
    *,
    variant: Variant = Variant.NEWRENO,
    ack_loss: bool = True,
    timestamps: bool = True,
    receiver: Receiver = Receiver.AT_ONCE,
) -> TransitionStructure:
    """Enumerate the recurrent states of one TCP connection.

    Args:
        window: receive window in segments, 1 to 10: every further one doubles the states by its bit.
        variant: TCP variant.
        ack_loss: whether ACKs may be lost; without, the structure is about a third of the size.
        timestamps: whether every new ACK ends a backoff, or (Karn) only one of segments sent but once.
        receiver: when it acknowledges.

    Returns:
        The structure, cached in memory; treat it as read-only.
    """
    variant, receiver = Variant(variant), Receiver(receiver)
    rules = SenderRules(
        window=window,
        variant=variant,
        lattice=window_lattice(window),
        timestamps=timestamps,
        receiver=receiver,
    )
    states, outcomes = _search(rules, tuple(Fate) if ack_loss else (Fate.LOST, Fate.ACKNOWLEDGED))
    open_segments = np.array([len(state[-2]) for state in states])
    order = np.argsort(-open_segments, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))

    index = {state: place[k] for k, state in enumerate(states)}
    kinds = sorted({o.timeout for row in outcomes for o in row if o.timeout is not None})
    ending_of_kind = {kind: ROUND_END + 1 + k for k, kind in enumerate(kinds)}

    def ending(outcome: Outcome) -> int:
        if outcome.timeout is not None:
            return ending_of_kind[outcome.timeout]
        return ROUND_END if outcome.round_ended else WITHIN_ROUND

    rows = [outcomes[k] for k in order]
    return TransitionStructure(
        window=window,
        variant=variant,
        open_segments=open_segments[order],
        target=np.array([[index[o.state] for o in row] for row in rows]),
        ending=np.array([[ending(o) for o in row] for row in rows]),
        timeout_kinds=np.array(kinds, dtype=np.int64).reshape(-1, 2),
        delivered=np.array([[o.delivered for o in row] for row in rows]),
        fast_retransmit=np.array([[o.fast_retransmit for o in row] for row in rows]),
        acks=np.array([[o.acks for o in row] for row in rows]),
        held_up=np.array([[o.held_up for o in row] for row in rows]),
        cwnd=np.array([[o.window for o in row] for row in rows]),
    )


def _search(rules: SenderRules, fates: tuple[Fate, ...]) -> tuple[list[State], list[list[Outcome]]]:
    """Visit every state reachable from the first, breadth first; return them with their outcomes by fate."""
    states = [first_state(rules.window)]
    seen = set(states)
    outcomes: list[list[Outcome]] = []
    for state in states:  # grows while it is read
        row = [rules.step(state, fate) for fate in fates]
        outcomes.append(row)
        for outcome in row:
            if outcome.state not in seen:
                seen.add(outcome.state)
                states.append(outcome.state)
    return states, outcomes
