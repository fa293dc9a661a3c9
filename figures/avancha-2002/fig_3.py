"""Figure 3: messages of one exchange of CentaurusComm, from traces of the simulator, and its state machine.

Each arrow is a message of a trace, from the moment when an end sends it until the other receives it; a
cross ends one that the channel lost. The first run over CDPD at bad times whose first exchange loses one
data packet shows that this packet alone is sent again; the first that loses one control message shows the
session hang until the watchdog (10 s), and the next one go on from there: no data packet is sent twice.

Requests have 256 bytes here, four packets, so that all of them can be seen. POLL does not occur: the link
is peer to peer, and an end with an object begins the session itself.

The state machine is taken from `btqueue.simulator.centaurus`. States that the paper leaves as soon as Level
I has taken a message (send command, proceed sent, proceed received) take no time and have no name there.
Where the paper contradicts itself (after ACK or REJ) or says nothing (a NOPE of an end with nothing to
send), its README tells the reading.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from btqueue.cli.figures import run_script
from btqueue.plotting import PALETTE, house_style
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.avancha_2002 import NOISY, network
from btqueue.reproduction.figures.diagrams import Transition, arrow, blank, state_machine
from btqueue.reproduction.figures.runs import Events, events
from btqueue.simulator.centaurus import ends

CLAIMS = ("3.4-two-messages", "3.1-data-loss", "3.1-control-loss")
PLACES = {"palm": 2.0, "server": 6.0}
INCHES_PER_S = 0.42
TRANSITIONS = [
    Transition(*one)
    for one in (
        ("IDLE", "CONNECTED", "master: turn\nof a slave"),
        ("IDLE", "WAIT", "joins a\nsession"),
        ("CONNECTED", "WAIT", "send POLL"),
        ("WAIT", "POLL_RECEIVED", "POLL, or\nown object"),
        ("POLL_RECEIVED", "WAIT", "send OBJ\nor NOPE"),
        ("WAIT", "OBJ_RECEIVED", "OBJ"),
        ("OBJ_RECEIVED", "WAIT", "old: send REJ"),
        ("OBJ_RECEIVED", "PACKET_RECEIVE", "new: send\nPROCEED"),
        ("PACKET_RECEIVE", "PACKET_RECEIVE", "data:\nset bit"),
        ("PACKET_RECEIVE", "DONE_RECEIVED", "DONE"),
        ("DONE_RECEIVED", "PACKET_RECEIVE", "bits missing:\nsend PROCEED"),
        ("DONE_RECEIVED", "WAIT", "whole: send ACK"),
        ("WAIT", "ACK_REJ_RECEIVED", "ACK, REJ"),
        ("ACK_REJ_RECEIVED", "WAIT", "send NOPE;\nserver: close"),
        ("WAIT", "PACKET_TRANSMIT", "PROCEED"),
        ("PACKET_TRANSMIT", "WAIT", "all sent:\nsend DONE"),
        ("PACKET_TRANSMIT", "WAIT_PACKET_SEND", "send data"),
        ("WAIT_PACKET_SEND", "PACKET_TRANSMIT", "worker"),
        ("WAIT", "NOPE_RECEIVED", "NOPE"),
        ("NOPE_RECEIVED", "WAIT", "send OBJ,\nor close"),
    )
]
PLACED = {
    "WAIT": (0.0, 0.0), "POLL_RECEIVED": (-0.3, 4.2), "OBJ_RECEIVED": (4.4, 2.6),
    "PACKET_RECEIVE": (7.2, 1.2), "DONE_RECEIVED": (4.6, -1.4), "ACK_REJ_RECEIVED": (2.2, -3.8),
    "NOPE_RECEIVED": (-1.8, -3.8), "PACKET_TRANSMIT": (-4.4, -1.6), "WAIT_PACKET_SEND": (-7.0, -3.4),
    "IDLE": (-6.2, 2.2), "CONNECTED": (-3.4, 4.0),
}  # fmt: skip
"""Centres of the states."""


def states() -> set[str]:
    """Return the states that the implementation has, the constants that `centaurus.ends` defines itself."""
    source = vars(ends)
    numbered = {name for name, value in source.items() if name.isupper() and isinstance(value, int)}
    return numbered - {"CLIENT", "SERVER", "NEXT_POLL", "WATCHDOG", "WORKER", "NOTHING"}


def exchange(work: Work, wanted: str) -> Events:
    """Return the first exchange, good-bye included, of the first run that loses one packet of a kind."""
    scenario = network(work, "cdpd-centaurus", 256, {"run.duration_s": 40, "run.warmup_s": 0}, loss=NOISY)
    for replication in range(200):
        log = events(scenario, replication, only=("segment sent", "segment received", "packet lost outside"))
        begins = log.time_s[(log.message == "OBJ") & (log.segment == 4)]
        if not len(begins):
            continue
        log = log.where(log.time_s < begins[0])
        lost = log.of("packet lost outside")
        if len(lost.time_s) == 1 and (lost.message[0] != "") == (wanted == "control"):
            return log
    raise RuntimeError(f"no run of 200 loses exactly one {wanted} packet in its first exchange")


def sequence(work: Work, log: Events, title: str) -> Picture:
    """Return the message sequence of a trace: time downward, an arrow for each message."""
    last = float(log.time_s[-1])
    top = INCHES_PER_S * last + 0.5
    figure, axes = blank(7.6, top + 0.4, f"{work.citation}: {title}")
    for node, x in PLACES.items():
        axes.plot([x, x], [0.15, top + 0.1], color="#333333", linewidth=1.2)
        axes.text(x, top + 0.17, node, ha="center", fontsize=9, weight="bold")
    for second in range(0, int(last) + 1, 2):
        axes.text(0.1, top - INCHES_PER_S * second, f"{second} s", va="center", fontsize=7.5)
    sent = log.of("segment sent")
    arrivals = [arrival_s(log, sent, one) for one in range(len(sent.time_s))]
    for one, arrived in enumerate(arrivals):
        draw_message(axes, sent, one, arrived, top)
    for together in bursts(sent):
        at_server = sent.node[together[0]] == "server"
        x = PLACES[sent.node[together[0]]] + (0.1 if at_server else -0.1)
        y = top - INCHES_PER_S * float(np.mean(sent.time_s[together]))
        side = "left" if at_server else "right"
        axes.text(x, y, words(sent, together, arrivals), ha=side, va="center", fontsize=7.5)
    return Picture(figure, title.replace(" ", "-").removeprefix("a-").removesuffix("-is-lost"))


def arrival_s(log: Events, sent: Events, one: int) -> float:
    """Return when a message arrived; NaN if nothing like it arrives before the next one leaves."""

    def alike(some: Events) -> np.ndarray:
        same = (some.flow == sent.flow[one]) & (some.message == sent.message[one])
        return same & (some.segment == sent.segment[one]) & (some.time_s > sent.time_s[one])

    later = sent.time_s[alike(sent)]
    found = log.time_s[alike(log) & (log.event == "segment received")]
    if not len(found) or (len(later) and found[0] > later[0]):
        return np.nan
    return float(found[0])


def draw_message(axes: Axes, sent: Events, one: int, arrived: float, top: float) -> None:
    """Draw an arrow from one end to the other, or half of it with a cross."""
    start = PLACES[sent.node[one]]
    (end,) = (x for node, x in PLACES.items() if node != sent.node[one])
    y = top - INCHES_PER_S * sent.time_s[one]
    if np.isfinite(arrived):
        colour = PALETTE[0] if sent.message[one] == "" else "#333333"
        arrow(axes, (start, y), (end, top - INCHES_PER_S * arrived), colour=colour, shrink=0)
        return
    half = ((start + end) / 2, y - INCHES_PER_S * 0.5)
    arrow(axes, (start, y), half, colour=PALETTE[1], shrink=0)
    axes.plot(*half, "x", color=PALETTE[1], markersize=8, markeredgewidth=2, zorder=5)


def bursts(sent: Events) -> Iterator[list[int]]:
    """Yield messages that an end sends right after each other, by place."""
    together = [0]
    for one in range(1, len(sent.time_s)):
        gap_s = sent.time_s[one] - sent.time_s[together[-1]]
        if sent.node[one] != sent.node[together[-1]] or gap_s > 0.3:
            yield together
            together = []
        together.append(one)
    yield together


def words(sent: Events, together: list[int], arrivals: list[float]) -> str:
    """Return what is sent: data packets by number, and control messages."""
    data = [str(sent.segment[one]) for one in together if sent.message[one] == ""]
    parts = [f"data {', '.join(data)}"] if data else []
    parts += [str(sent.message[one]) for one in together if sent.message[one]]
    lost = [str(sent.message[one] or sent.segment[one]) for one in together if np.isnan(arrivals[one])]
    return ", ".join(parts) + (f"\n({', '.join(lost)} is lost)" if lost else "")


def machine(work: Work) -> Picture:
    """Return the state diagram; it must have the states of the implementation."""
    drawn = {name for one in TRANSITIONS for name in (one.source, one.target)}
    if drawn != states():
        raise RuntimeError(f"the state diagram is out of date: {sorted(drawn ^ states())}")
    named = {name: name.lower().replace("_", "\n") for name in drawn}
    with house_style():
        figure = Figure(figsize=(11.0, 6.6), layout="constrained")
        axes = figure.subplots()
        state_machine(
            axes,
            [Transition(named[one.source], named[one.target], one.label) for one in TRANSITIONS],
            {named[name]: place for name, place in PLACED.items()},
            radius=0.66,
            bend=0.27,
        )
        figure.suptitle(f"{work.citation}: state machine of Level II")
    return Picture(
        figure, "states", "In any state the watchdog closes the session; bitmaps and objects stay."
    )


def draw(work: Work) -> Iterator[Picture]:
    """Yield two message sequences and the state machine."""
    yield sequence(work, exchange(work, "data"), "a data packet is lost")
    yield sequence(work, exchange(work, "control"), "a control message is lost")
    yield machine(work)


if __name__ == "__main__":
    run_script(__file__)
