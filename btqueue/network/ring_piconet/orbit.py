"""The long run of connections: an exact recursion, followed until its averages settle.

Irregular are the times at which messages come, processing delays and radio errors; all else follows. Without
them connections go round in a limit cycle. They decide which of several cycles the connections fall into, how
often a buffer overflows, and how often a recovery fails. They are taken from fixed sequences
(`ring_piconet.sequences`) that have the right laws. So this is an integral over them, worked out by sampling,
like a simulation that is stripped to what matters here; its sampling error is what is left (see
`Orbit.standard_error`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.orbit_averages import Orbit
from btqueue.network.ring_piconet.air import play
from btqueue.network.ring_piconet.network import RingNetwork
from btqueue.network.ring_piconet.records import SUMMED, State, at_rest, begin, rules_of
from btqueue.transport.newreno_sender import Sender

RUNS = 4
"""Runs, each with other sequences and other offsets between the connections."""
MOST_RUNS = 6
"""Runs where goodput is less certain than `CERTAIN` after fewer."""
CERTAIN = 0.01
"""Relative standard error of goodput that is sought."""
SETTLING_SEGMENTS = 700
"""Segments of all flows that are sent in a run before anything is counted."""
HORIZON_SEGMENTS = 7_500
"""Segments of all flows that are then counted."""
MOST_FRAMES = 300_000
"""An orbit is followed for at most so many frames, where segments take many packets or find no way."""
LONGEST_S = 1e6
"""An orbit that moves hardly anything is followed for at most this long (s)."""
CARRIED = 0.99
"""Share of the messages written that are delivered if the network carries the load."""
PLACES = 256
"""Places that a queue begins with."""


@dataclass(frozen=True)
class Run:
    """What one run counted, over `elapsed` seconds."""

    elapsed: float
    delivered: int
    written: int
    cycles: int
    data_slots: int
    sums: dict[str, float]
    rtts: np.ndarray


def follow(net: RingNetwork, new_sender: Callable[[], Sender], window: int, interval: float) -> Orbit:
    """Follow connections whose messages come `interval` seconds apart on average; 0: always data."""
    runs: list[Run] = []
    while len(runs) < RUNS or (
        len(runs) < MOST_RUNS and average(net, runs, interval).standard_error > CERTAIN
    ):
        runs.append(run(net, new_sender(), window, interval, len(runs)))
    return average(net, runs, interval)


def run(net: RingNetwork, sender: Sender, window: int, interval: float, number: int) -> Run:
    """Let the connections settle, then follow them; with larger queues, if they need them."""
    places = PLACES
    while True:
        state = at_rest(net, window, places, 2 * HORIZON_SEGMENTS)
        begin(state, sender, interval, number)
        found = _counted(net, state)
        if found is not None:
            return found
        places *= 4


def _counted(net: RingNetwork, state: State) -> Run | None:
    """Follow the connections; None if a queue has too few places."""
    clock, rules = state.clock[0], rules_of(net.ring)
    play(state, rules, net.radio, net.voice, SETTLING_SEGMENTS, MOST_FRAMES // 4, LONGEST_S / 4)
    if clock.too_small:
        return None
    before, written = state.clock.copy()[0], int(state.peripherals["messages"].sum())
    for name in SUMMED:
        state.peripherals[name] = 0
    frames, end = int(before.frames) + MOST_FRAMES, float(before.now) + LONGEST_S
    play(state, rules, net.radio, net.voice, HORIZON_SEGMENTS, frames, end)
    if clock.too_small:
        return None
    gained = int(clock.round_trips - before.round_trips)
    known = np.arange(clock.round_trips - min(gained, len(state.rtts)), clock.round_trips) % len(state.rtts)
    return Run(
        elapsed=float(clock.now - before.now),
        delivered=int(clock.delivered - before.delivered),
        written=int(state.peripherals["messages"].sum()) - written,
        cycles=int(clock.cycles - before.cycles),
        data_slots=int(clock.data_slots - before.data_slots),
        sums={name: float(state.peripherals[name].sum()) for name in SUMMED},
        rtts=state.rtts[known],
    )


def average(net: RingNetwork, runs: list[Run], interval: float) -> Orbit:
    """Average over the time and the flows of all runs.

    If the network carried what was written, goodput is the load, and other rates are scaled by what the
    sample of messages had too many or too few.
    """
    elapsed = sum(run.elapsed for run in runs)
    delivered, written = (sum(getattr(run, name) for run in runs) for name in ("delivered", "written"))
    if interval > 0.0 and delivered > CARRIED * written:
        elapsed = delivered * interval / net.flows
    sums = {name: sum(run.sums[name] for run in runs) for name in SUMMED}

    def share(part: str, whole: str) -> float:
        return sums[part] / max(sums[whole], 1.0)

    per_flow = 1.0 / (elapsed * net.flows)
    return Orbit(
        goodput=delivered * per_flow,
        sends=sums["sent"] * per_flow,
        rtts=np.concatenate([run.rtts for run in runs]),
        window=share("window_sum", "samples"),
        cwnd=share("cwnd_sum", "samples"),
        timeouts=sums["timeouts"] * per_flow,
        fast_retransmits=sums["fast_retransmits"] * per_flow,
        segment_loss=share("lost", "sent") if delivered else 1.0,
        loss_radio=share("damaged", "received"),
        loss_token_buffer=share("refused_at_buffer", "offered_to_buffer"),
        loss_baseband_buffer=share("refused_at_baseband", "offered_to_baseband"),
        queues={
            "token_buffer": sums["time_in_buffer"] * per_flow,
            "uplink": sums["time_in_uplink"] * per_flow,
            "downlink": sums["time_in_downlink"] * per_flow,
        },
        cycle=elapsed / sum(run.cycles for run in runs),
        slot_utilisation=sum(run.data_slots for run in runs) * SLOT_S / elapsed,
        goodputs=tuple(run.delivered / run.elapsed / net.flows for run in runs),
    )
