"""Sessions with losses as a Markov chain of stages: its states are found, weighed, and averaged over.

From a stage all futures are followed to the next stages: where a packet may be lost the future forks, as long
as the probability of a branch is worth it; below that the branches are taken in proportion, one here and one
there, by a rule without chance. Stages that agree (`Sessions.key`) are one state. Without losses
the chain is a cycle, and its solution exact.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.plan import Plan, Record
from btqueue.network.request_reply.sessions import Sessions

FORK = 2e-4
"""Least probability of a branch, times that of its stage, that is followed."""

FLOOR = 0.02
"""Stages that are visited less often than this branch as if it were this often."""

STAGES = 500
"""Most stages whose futures are followed; the rest of the probability goes on from one like them."""

RELIABLE = 0.5
"""Share of a stage's futures that must lead to stages followed, before it stands in for others."""

CLOSE = 0.15
"""Difference of logarithms of timeouts up to which a stage may stand in for another."""

OF_EACH_END = np.array([1.0, 0.25])
"""Weights of the client's and of the server's timeout in this difference."""

UNEXPLORED = 2e-3
"""Share of the visits that may go to stages not followed."""


PROBABILITY = attrgetter("probability")


class Transition(NamedTuple):
    """One future of a stage: its probability, the next state, and what happens."""

    probability: float
    target: int
    record: Record


@dataclass
class Chain:
    """The states found so far, and the transitions from those followed."""

    plan: Plan
    numbers: dict[tuple, int] = field(default_factory=dict)
    examples: list[Sessions] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    transitions: dict[int, list[Transition]] = field(default_factory=dict)
    alike: dict[tuple, tuple[np.ndarray, list[int]]] = field(default_factory=dict)
    known: dict[int, tuple[list[tuple], tuple[float, float]]] = field(default_factory=dict)
    chosen: dict[int, int] = field(default_factory=dict)

    def state(self, sessions: Sessions, weight: float) -> int:
        """Return the number of the state that the sessions are in; the weightiest is the state's example."""
        key = sessions.key()
        if key not in self.numbers:
            self.numbers[key] = len(self.examples)
            self.examples.append(sessions)
            self.weights.append(weight)
        number = self.numbers[key]
        if weight > self.weights[number] and number not in self.transitions:
            self.examples[number], self.weights[number] = sessions, weight
            self.known.pop(number, None)
        return number

    def choose_stand_ins(self) -> None:
        """Choose the stages that stand in for others: such as lead on to others mostly by themselves."""
        alike: dict[tuple, list[tuple[tuple[float, float], int]]] = defaultdict(list)
        self.chosen = {}
        for state, transitions in self.transitions.items():
            if sum(t.probability for t in transitions if t.target in self.transitions) >= RELIABLE:
                keys, patience = self.coarse(state)
                for key in keys:
                    alike[key].append((patience, state))
        self.alike = {
            key: (np.array([patience for patience, _ in those]), [state for _, state in those])
            for key, those in alike.items()
        }

    def coarse(self, state: int) -> tuple[list[tuple], tuple[float, float]]:
        """Return the coarse keys of a state and its timeouts, computed once."""
        if state not in self.known:
            example = self.examples[state]
            self.known[state] = example.coarse_keys(), example.patience()
        return self.known[state]

    def stand_in(self, state: int) -> int:
        """Return the state, or if it has not been followed one like it that has; at worst the first.

        The more alike, the better, as long as the timeouts, which decide how long a loss takes, are close.
        """
        if state in self.transitions:
            return state
        if state not in self.chosen:
            self.chosen[state] = self._most_alike(state)
        return self.chosen[state]

    def _most_alike(self, state: int) -> int:
        keys, patience = self.coarse(state)
        best, least = 0, inf
        for key in keys:
            if key not in self.alike:
                continue
            others, candidates = self.alike[key]
            distances = abs(others - patience) @ OF_EACH_END
            nearest = int(distances.argmin())
            if distances[nearest] < least:
                best, least = candidates[nearest], distances[nearest]
            if least <= CLOSE:
                break
        return best

    def follow(self, state: int, weight: float) -> None:
        """Find all transitions from a state that is visited with this probability."""
        start = self.examples[state].copy()
        start.begin_stage()
        found, open_ends = [], [(start, 1.0)]
        # A single loss is followed from everywhere: else rare stages would close to a cycle without losses.
        least, owed = min(FORK / max(weight, FLOOR), self.plan.largest_loss / 2.0), 0.0
        while open_ends:
            sessions, probability = open_ends.pop()
            while (options := sessions.run()) is not None:
                likely, *others = sorted(options, key=PROBABILITY, reverse=True)
                all_of_it = probability
                for option in others:
                    share = all_of_it * option.probability
                    if share > least:
                        other = sessions.copy()
                        other.take(option)
                        open_ends.append((other, share))
                        probability -= share
                        continue
                    owed += share
                    if owed >= all_of_it / 2:
                        owed -= all_of_it
                        likely = option
                sessions.take(likely)
            found.append(
                Transition(probability, self.state(sessions, weight * probability), sessions.record())
            )
        self.transitions[state] = found


class Stationary(NamedTuple):
    """The chain in the long run: visits of each state (they add up to 1).

    Attributes:
        unexplored: share of the visits that go to stages replaced by others like them.
        residual: largest imbalance between the flows into and out of a state.
    """

    chain: Chain
    visits: np.ndarray
    unexplored: float
    residual: float
    rounds: int

    def weighted(self) -> Iterator[tuple[float, Record]]:
        """Yield the share of each transition among all, and its record."""
        for state, transitions in self.chain.transitions.items():
            for t in transitions:
                yield self.visits[state] * t.probability, t.record

    def mean(self, reward: Callable[[Record], float]) -> float:
        """Return the mean of a reward over all transitions."""
        return sum(share * reward(record) for share, record in self.weighted())


def solve_chain(plan: Plan) -> Stationary:
    """Follow stages until those not followed hardly matter; return the visits in the long run."""
    chain = Chain(plan)
    chain.state(Sessions(plan), 1.0)
    chain.follow(0, 1.0)
    rounds = 0
    while True:
        rounds += 1
        visits, inflow, residual = visits_of(chain)
        unexplored = sum(inflow.values())
        if unexplored <= UNEXPLORED or len(chain.transitions) >= STAGES:
            return Stationary(chain, visits, unexplored, residual, rounds)
        ranked = sorted(inflow, key=inflow.__getitem__, reverse=True)
        for state in ranked[: max(1, len(ranked) // 3)]:
            chain.follow(state, min(1.0, 5.0 * inflow[state]))


def visits_of(chain: Chain) -> tuple[np.ndarray, dict[int, float], float]:
    """Return how often each state is visited, what flows to states not followed, and the imbalance.

    That probability goes on from a state that is alike.
    """
    states = list(chain.transitions)
    chain.choose_stand_ins()
    place = {state: index for index, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    leaks: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for state, transitions in chain.transitions.items():
        for t in transitions:
            if t.target in place:
                matrix[place[state], place[t.target]] += t.probability
            else:
                matrix[place[state], place[chain.stand_in(t.target)]] += t.probability
                leaks[t.target].append((place[state], t.probability))
    balance = matrix.T - np.eye(len(states))
    balance[-1] = 1.0
    right = np.zeros(len(states))
    right[-1] = 1.0
    try:
        stationary = np.maximum(np.linalg.solve(balance, right), 0.0)
    except np.linalg.LinAlgError as error:
        raise NoConvergence(f"the {len(states)} stages of sessions fall into separate cycles") from error
    residual = float(abs(stationary @ matrix - stationary).max())
    visits = np.zeros(len(chain.examples))
    visits[states] = stationary
    inflow = {
        target: float(sum(stationary[source] * p for source, p in sources))
        for target, sources in leaks.items()
    }
    return visits, inflow, residual
