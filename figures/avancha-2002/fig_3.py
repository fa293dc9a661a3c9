"""Figure 3: messages of one exchange of CentaurusComm, from traces of the simulator.

Each arrow is a message of a trace, from the moment when an end sends it until the other receives it; a
cross ends one that the channel lost. The first run over CDPD at bad times whose first exchange loses one
data packet shows that this packet alone is sent again; the first that loses one control message shows the
session hang until the watchdog (10 s), and the next one go on from there: no data packet is sent twice.

Requests have 256 bytes here, four packets, so that all of them can be seen. POLL does not occur: the link
is peer to peer, and an end with an object begins the session itself.

The paper's state machine is a drawing and is not drawn again. Its states are the constants of
`btqueue.simulator.centaurus.ends`.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from btqueue.plotting import PALETTE, house_style
from btqueue.reproduction.claims.avancha_2002 import NOISY
from btqueue.reproduction.figures.runs import Events, events
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("3.4-two-messages", "3.1-data-loss", "3.1-control-loss")
PLACES = {"palm": 2.0, "server": 6.0}
INCHES_PER_S = 0.42


def exchange(work: Work, wanted: str) -> Events:
    """Return the first exchange, good-bye included, of the first run that loses one packet of a kind."""
    keys = {"run.duration_s": 40, "run.warmup_s": 0, "traffic.request_bytes": 256}
    scenario = work.scenario("cdpd-centaurus", keys | {"network.outside_links[1].loss": NOISY})
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
    height = top + 0.4
    with house_style():
        figure = Figure(figsize=(7.6, height + 0.3))
        axes = figure.add_axes((0.0, 0.0, 1.0, height / (height + 0.3)), xlim=(0, 7.6), ylim=(0, height))
        axes.axis("off")
        figure.suptitle(f"{work.citation}: {title}", y=0.985, fontsize=10)
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


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    """Draw an arrow."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=style)


def draw_message(axes: Axes, sent: Events, one: int, arrived: float, top: float) -> None:
    """Draw an arrow from one end to the other, or half of it with a cross."""
    start = PLACES[sent.node[one]]
    (end,) = (x for node, x in PLACES.items() if node != sent.node[one])
    y = top - INCHES_PER_S * sent.time_s[one]
    if np.isfinite(arrived):
        colour = PALETTE[0] if sent.message[one] == "" else "#333333"
        arrow(axes, (start, y), (end, top - INCHES_PER_S * arrived), colour)
        return
    half = ((start + end) / 2, y - INCHES_PER_S * 0.5)
    arrow(axes, (start, y), half, PALETTE[1])
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


def draw(work: Work) -> Iterator[Picture]:
    """Yield two message sequences."""
    yield sequence(work, exchange(work, "data"), "a data packet is lost")
    yield sequence(work, exchange(work, "control"), "a control message is lost")
