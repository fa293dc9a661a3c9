"""Bulk transfers without random loss: the orbit of their windows and queues, segment by segment.

With greedy sources and no loss but overflow nothing is random: windows grow until a buffer overflows, fall,
and grow again, or stay at the receive window. The orbit is followed until two halves of it have the same
averages. A host's processing jitter is a golden-ratio sequence with the right mean, which also keeps flows
from locking to each other's phase for ever.
"""

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.bulk_transfer.path import Paths
from btqueue.network.bulk_transfer.records import State, at_rest, chain
from btqueue.network.bulk_transfer.rules import rules_of
from btqueue.network.bulk_transfer.steps import play
from btqueue.scenario.transport import Transport

SAMPLES = 4096
"""Samples of each kind and flow that there is room for at first."""


class Orbit:
    """Flows on their paths; `state` is where they are, in larger arrays whenever those there are full."""

    def __init__(self, paths: Paths, transport: Transport, phase: float = 0.0) -> None:
        """Every flow starts at its time with empty queues; `phase` begins the sequence of the jitter."""
        self.paths, self.rules = paths, rules_of(paths, phase)
        places = self.rules.burst + 2 * sum(path.window for path in paths.flows)
        self.state = at_rest(self.rules, transport, places, SAMPLES)

    @property
    def now(self) -> float:
        """The time (s)."""
        return float(self.state.clock["now"][0])

    @property
    def ended(self) -> int:
        """Segments at the end of their way."""
        return int(self.state.clock["ended"][0])

    @property
    def has_sessions(self) -> bool:
        """Whether request-reply sessions run beside the transfers."""
        return any(path.session is not None for path in self.paths.flows)

    @property
    def visits(self) -> int:
        """Visits of the central so far, those of an idle one included."""
        central = self.state.piconet[0]
        asleep = central["time"] == np.inf
        return int(central["visits"]) + (
            int((self.now - central["idle_since"]) / (2 * SLOT_S)) if asleep else 0
        )

    def samples(self, kind: int, flow: int) -> np.ndarray:
        """Return the samples of a kind that a flow has so far (s)."""
        return self.state.samples[flow, kind, : self.state.counts[flow, kind]]

    def play(self, segments: int, longest_s: float) -> None:
        """Play until so many more segments have ended their way, or so much time has gone."""
        self._play(segments, longest_s, -1)

    def play_to_loss(self, segments: int, longest_s: float) -> None:
        """Likewise, or until the first flow takes a loss for congestion."""
        first = self.state.senders[0]
        self.state.clock["looked_at"] = self.state.clock["ended"]
        self._play(segments, longest_s, int(first["timeouts"] + first["fast_retransmits"]))

    def _play(self, segments: int, longest_s: float, congested: int) -> None:
        target, end = self.ended + segments, self.now + longest_s
        play(self.state, self.rules, target, end, congested)
        while self.state.clock["cramped"][0]:
            self.state = _enlarged(self.state)
            play(self.state, self.rules, target, end, congested)


def _enlarged(state: State) -> State:
    """Return a state that goes on from this one, with room for twice as much."""
    state.clock["cramped"] = False
    return state._replace(
        events=_doubled(state.events),
        items=chain(_doubled(state.items), len(state.items)),
        packets=chain(_doubled(state.packets), len(state.packets)),
        reports=_doubled(state.reports),
        samples=np.concatenate([state.samples, np.zeros_like(state.samples)], axis=2),
    )


def _doubled(places: np.ndarray) -> np.ndarray:
    """Return an array with twice as many rows."""
    return np.concatenate([places, np.zeros_like(places)]).view(type(places))
