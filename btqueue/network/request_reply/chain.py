"""Sessions with losses as a Markov chain of stages: its states are found, weighed, and averaged over.

From a stage all futures are followed to the next stages (`request_reply.exploration`); stages that agree
(`request_reply.keys`) are one state. Which ones are followed is chosen by how often they are visited, as
nominal losses have it; the answer takes the actual ones. Without losses the chain is a cycle, and its
solution exact.
"""

from dataclasses import dataclass

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.exploration import Course, Found, follow, nothing_found
from btqueue.network.request_reply.plan import CLIENT, SERVER, Plan
from btqueue.network.request_reply.records import BEGIN, Net, Sizes, moments, net_of
from btqueue.network.request_reply.stationary import Arrivals, arrivals, estimate, last, substitutes, visit
from btqueue.transport.request_reply_transfer import RULES

FORK, FINEST, FINER = 2e-4, 5e-6, 5.0
"""Least probability of a branch, times that of its stage, that is followed; in steps of `FINER` it becomes
smaller than `FINEST` where there is time."""

FUTURES = 40_000
"""Futures from which on no more stages are followed."""

FEW = 1500
"""Futures up to which there is time for finer branches."""

FLOOR = 1e-5
"""Stages that are visited less often than this branch as if it were this often."""

ROUGH = 3.0
"""How many times rarer the branches that a stage is worth must be, for it to be followed once more."""

STAGES = 6000
"""Most stages whose futures are followed; the rest of the probability goes on from one like them."""

UNEXPLORED = 0.001
"""Visits that may go to stages not followed, in visits of those that begin with an expiry."""

SWEEPS, SWEEPS_OF_TIMES = 100_000, 300
MOST_ROOM = 32
"""How many times the usual room is tried."""

ROUGHLY, PRECISE, PRECISE_TIMES = 1e-6, 1e-12, 1e-9
"""Sweeps at most; and the change at which they stop, of visits at first and at last, and of timeouts."""


@dataclass(frozen=True)
class Solved:
    """The chain in the long run; all arrays are by future.

    Attributes:
        found: states and futures; `net` has the histories of these.
        shares: how often each future happens among all.
        probabilities: that it follows if its stage comes.
        targets: the states to which they lead, stand-ins for those not followed.
        elapsed: how long they last (ns).
        unexplored: share of the visits that go to stages replaced by others like them.
        residual: largest imbalance between the flows into and out of a state.
        stages: stages followed.
    """

    net: Net
    found: Found
    shares: np.ndarray
    probabilities: np.ndarray
    targets: np.ndarray
    elapsed: np.ndarray
    unexplored: float
    residual: float
    rounds: int
    stages: int

    def mean(self, values: np.ndarray) -> float:
        """Return the mean of something over all futures."""
        return float(self.shares @ values)


def course_of(plan: Plan) -> tuple[Course, list, list]:
    """Return what the sessions are made of as arrays, and the forms that these number, nominal ones too."""
    kinds = list(dict.fromkeys([*plan.data[CLIENT], *plan.data[SERVER], plan.small]))
    nominal = [plan.nominal[form] for form in kinds]
    most = max(len(forms) for forms in plan.data)
    forms, user_bytes = np.zeros((2, most), np.int64), np.zeros((2, most), np.int64)
    for flow in (CLIENT, SERVER):
        forms[flow, : len(plan.data[flow])] = [kinds.index(form) for form in plan.data[flow]]
        user_bytes[flow, : len(plan.data[flow])] = plan.user_bytes[flow]
    rules = np.zeros(1, RULES).view(np.recarray)
    for name, value in vars(plan.rules).items():
        rules[name] = value
    course = Course(
        rules, forms, user_bytes, np.array([len(flow) for flow in plan.data]),
        np.array([plan.largest_burst(flow) for flow in (CLIENT, SERVER)], float), kinds.index(plan.small),
        plan.request, plan.reply, plan.goodbye, plan.pause, plan.handshake, plan.lossy,
    )  # fmt: skip
    return course, kinds, nominal


class Search:
    """The states found so far, and the futures of those followed."""

    def __init__(self, plan: Plan, room: int) -> None:
        """Begin with the first session; `room` scales how much can be found."""
        self.plan, self.room = plan, room
        self.course, kinds, nominal = course_of(plan)
        segments = 2 * (plan.request + plan.reply + plan.goodbye) + 4
        sizes = Sizes(entries=3 * segments + 12, segments=segments, queue=2 * segments)
        states = room * (3000 if plan.lossy else 200)
        self.net = net_of(plan.way, kinds, nominal, histories=room * plan.histories)
        self.branches = moments(plan.way, sizes, 32 * room if plan.lossy or plan.way.processing_ns else 2)
        self.examples = moments(plan.way, sizes, states, at_rest=0)
        self.found = nothing_found(states, room * (16_000 if plan.lossy else 1000))
        self.followed, self.rounds, self.fork = 0, 0, FORK
        self.followed_to = np.zeros(states)
        self.follow(np.zeros(0, np.int64), np.zeros(0))  # makes the first state

    @property
    def counts(self) -> np.record:
        """How much has been found."""
        return self.net.counters[0]

    def least(self, weights: np.ndarray) -> np.ndarray:
        """Return the least probability of a branch that is worth it, of stages visited this often."""
        # A single loss is followed from everywhere: else rare stages would close to a cycle without losses.
        return np.minimum(self.fork / np.maximum(weights, FLOOR), self.plan.largest_loss / 2.0)

    def follow(self, chosen: np.ndarray, weights: np.ndarray) -> None:
        """Find all futures of these states, which are visited this often; forget those found before."""
        again = chosen[self.found.states["followed"][chosen]]
        self.futures["weight"][np.isin(self.futures["source"], again)] = 0.0
        least = self.least(weights)
        self.followed_to[chosen] = least
        follow(self.net, self.course, self.branches, self.examples, self.found, chosen, least)
        self.followed += len(chosen) - len(again)

    def too_rough(self, visits: np.ndarray) -> np.ndarray:
        """Return the states whose futures are followed by far less than their visits are worth."""
        followed = np.flatnonzero(visits)
        return followed[ROUGH * self.least(visits[followed]) < self.followed_to[followed]]

    def could_be_finer(self) -> bool:
        """Whether there is time for finer branches, which are followed from now on."""
        if not self.plan.lossy or len(self.futures) > FEW or self.fork <= FINEST:
            return False
        self.fork /= FINER
        return True

    @property
    def futures(self) -> np.ndarray:
        """All futures found so far."""
        return self.found.futures[: self.counts["futures"]]

    def arrivals(self) -> Arrivals:
        """Return the futures in the order of their targets, stand-ins for those not followed."""
        states, futures = int(self.counts["states"]), self.futures
        followed, sources = self.found.states["followed"][:states], np.ascontiguousarray(futures["source"])
        inside = futures["weight"] * followed[futures["target"]]
        closed = np.bincount(sources, inside, states)
        others = substitutes(self.found.keys[:states], followed, closed)
        return arrivals(sources, others[futures["target"]], states)


def solve_chain(plan: Plan) -> Solved:
    """Follow stages until those not followed hardly matter; return the visits in the long run.

    Raises:
        NoConvergence: the chain does not settle, or its branches have no end.
    """
    room = 1
    while (search := explored(plan, room)) is None:
        room *= 2
        if room > MOST_ROOM:
            raise NoConvergence("the futures of sessions branch without end")
    futures, found, arriving = search.futures, search.found, search.arrivals()
    states, sources = int(search.counts["states"]), arriving.sources
    likely = futures["weight"] * futures["ratio"]
    likely /= np.bincount(sources, likely, states)[sources]
    visits = visits_of(arriving, likely, states, PRECISE)
    shares = visits[sources] * likely
    residual = float(abs(np.bincount(arriving.targets, shares, states) - visits).max())
    times, elapsed = found.times[:states].copy(), np.zeros(len(futures))
    if plan.lossy:
        estimate(search.course.rules, found, arriving, shares, times, SWEEPS_OF_TIMES, PRECISE_TIMES)
    last(search.course.rules, found, times, elapsed)
    new = ~found.states["followed"][futures["target"]]
    return Solved(
        search.net, found, shares, likely, arriving.targets, elapsed, float(shares[new].sum()), residual,
        search.rounds, search.followed,
    )  # fmt: skip


def explored(plan: Plan, room: int) -> Search | None:
    """Follow stages until those not followed hardly matter; None if there was too little room."""
    search, visits = Search(plan, room), np.ones(1)
    search.follow(np.array([0]), visits)
    while not search.counts["too_small"]:
        search.rounds += 1
        futures, states, arriving = search.futures, int(search.counts["states"]), search.arrivals()
        weights = np.ascontiguousarray(futures["weight"])
        visits = visits_of(arriving, weights, states, ROUGHLY)
        inflow = np.bincount(futures["target"], visits[arriving.sources] * weights, states)
        inflow[search.found.states["followed"][:states]] = 0.0
        expired = visits[search.found.states["action"][:states] != BEGIN].sum()
        rough = search.too_rough(visits)
        enough = inflow.sum() <= UNEXPLORED * expired and not len(rough)
        left = min(STAGES - search.followed, (FUTURES - len(futures)) * search.followed // len(futures))
        if left <= 0 or (enough and not search.could_be_finer()):
            return search
        chosen = np.argsort(-inflow, kind="stable")[: max(1, min(np.count_nonzero(inflow) // 3, left))]
        search.follow(np.concatenate([chosen, rough]), np.concatenate([5.0 * inflow[chosen], visits[rough]]))
    return None


def visits_of(arriving: Arrivals, likely: np.ndarray, states: int, enough: float) -> np.ndarray:
    """Return how often each state is visited in the long run.

    Raises:
        NoConvergence: the sweeps do not settle.
    """
    visits, sweeps = np.full(states, 1.0 / states), np.zeros(1, np.int64)
    visit(arriving, likely, visits, SWEEPS, enough, sweeps)
    if sweeps[0] == SWEEPS:
        raise NoConvergence(f"the visits of {states} stages of sessions do not settle in {SWEEPS} sweeps")
    return visits
