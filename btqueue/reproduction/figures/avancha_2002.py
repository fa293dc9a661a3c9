"""Shared by several figures of Avancha and others (2002): message sizes, sessions one by one, box plots.

`models/avancha-2002/README.md` says how we read their networks. "Good times" and "bad times" of CDPD are
block error rates of 0.1 and 2 %; the paper's own values stand only in its pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from btqueue.plotting import MARKERS, PALETTE, house_style
from btqueue.reproduction.claims.avancha_2002.systems import NOISY, QUIET
from btqueue.reproduction.figures.curve_panels import Curve, curve_of
from btqueue.reproduction.figures.runs import Events, events
from btqueue.reproduction.figures.work import Picture, Work
from btqueue.scenario import Scenario
from btqueue.study.evaluate import ENGINES, Engine

TIMES = {"good times": QUIET, "bad times": NOISY}
RECENT = 10
"""Sessions over which the range of session times is taken."""
QUICK_CDPD_S = 400.0
"""Length of a run with single sessions in a quick figure: sessions on CDPD take 2 to 50 s."""
SESSION_EVENTS = ("message written", "message delivered", "segment sent", "packet lost outside")


def network(
    work: Work, name: str, size: int | None = None, changes: Mapping[str, Any] | None = None, **link: Any
) -> Scenario:
    """Return a scenario with another swept message (byte), other keys, other values of outside links."""
    scenario = work.scenario(name, changes)
    wanted: dict[str, Any] = {} if size is None else {swept_key(name): size}
    if link:
        links = scenario.to_dict(resolved=False)["network"]["outside_links"]
        wanted["network.outside_links"] = [one | link for one in links]
    return scenario.changed(wanted) if wanted else scenario


def swept_key(name: str) -> str:
    """Return the key of the swept message: the request on CDPD, the reply elsewhere."""
    return "traffic.request_bytes" if name.startswith("cdpd") else "traffic.reply_bytes"


def engines_of(work: Work, name: str) -> tuple[Engine, ...]:
    """Return the engines of a figure; a quick figure leaves out the slow model, TCP with losses."""
    if work.settings.quick and name == "cdpd-tcp":
        work.note("A quick figure leaves out the model of TCP over CDPD.")
        return ("simulate",)
    return ENGINES


def session_times(
    work: Work,
    name: str,
    sizes: Sequence[int],
    label: str,
    *,
    changes: Mapping[str, Any] | None = None,
    engines: Sequence[Engine] | None = None,
    per_s: float = 1.0,
    **link: Any,
) -> Curve:
    """Return the mean session time (s, times `per_s`) over the message size; other arguments as `network`."""
    base = network(work, name, None, changes, **link)
    found = work.sweep(base, {swept_key(name): sizes}, engines=engines or engines_of(work, name), what=label)
    return scaled(curve_of(found, "session_time_s", label), per_s)


def scaled(curve: Curve, factor: float) -> Curve:
    """Return a curve in another unit."""
    parts = {name: getattr(curve, name) for name in ("mean", "ci95", "model")}
    return replace(curve, **{name: None if one is None else factor * one for name, one in parts.items()})


def size_axis(axes: Axes, sizes: Sequence[int], top: float | None = None) -> None:
    """Make the horizontal axis one of message sizes, a doubling at each tick."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7.5)
    axes.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
    axes.minorticks_off()
    if top is not None:
        axes.set_ylim(0, top)


# -------------------------------------------------------------------------------------------- single sessions


@dataclass(frozen=True)
class Sessions:
    """Sessions of a run one by one; every array has shape (sessions,).

    Attributes:
        time_s: from the request until the client has the whole reply; NaN if it was given up.
        lost: data packets and segments that the link lost meanwhile and until the next session.
        efficiency: packets needed for all messages over packets sent for them.
    """

    time_s: np.ndarray
    lost: np.ndarray
    efficiency: np.ndarray

    def first(self, count: int) -> Sessions:
        """Return the first sessions."""
        return Sessions(*(getattr(self, name)[:count] for name in self.__dataclass_fields__))

    @property
    def range_s(self) -> np.ndarray:
        """Longest less shortest of the last `RECENT` session times; NaN where none ended."""
        found = np.full(len(self.time_s), np.nan)
        for place in range(len(found)):
            recent = self.time_s[max(0, place + 1 - RECENT) : place + 1]
            if np.isfinite(recent).any():
                found[place] = np.nanmax(recent) - np.nanmin(recent)
        return found


def sessions(scenario: Scenario, replication: int = 0) -> Sessions:
    """Play one replication from the empty network on, and return the sessions of its first flow."""
    log = events(scenario, replication, only=SESSION_EVENTS)
    responder = int(log.flow.max())
    if scenario.transport.protocol == "tcp":
        started, ended = _of_tcp(log, responder)
    else:
        started, ended = _of_centaurus(log)
    edges = np.append(started, np.inf)
    ours = np.isin(log.flow, (1, responder)) & ~log.backward & (log.segment >= 0) & (log.message == "")

    def counted(event: str) -> np.ndarray:
        return np.histogram(log.time_s[ours & (log.event == event)], edges)[0]

    whole = slice(None, -1)  # the last session may not be over
    size = (scenario.transport.mss_bytes if scenario.transport.protocol == "tcp"
            else scenario.transport.centaurus_packet_bytes)  # fmt: skip
    traffic = scenario.traffic
    needed = sum(
        -(-one // size) for one in (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes)
    )
    return Sessions(
        (ended - started)[whole],
        counted("packet lost outside")[whole],
        np.where(np.isfinite(ended), needed / np.maximum(counted("segment sent"), 1), np.nan)[whole],
    )


def played(
    work: Work, name: str, size: int | None = None, changes: Mapping[str, Any] | None = None, **link: Any
) -> Sessions:
    """Return the sessions of one run; a quick run on CDPD lasts `QUICK_CDPD_S`; arguments as `network`."""
    scenario = network(work, name, size, changes, **link)
    if work.settings.quick and name.startswith("cdpd"):
        scenario = scenario.with_(run__duration_s=QUICK_CDPD_S)
    return sessions(scenario)


def _of_tcp(log: Events, responder: int) -> tuple[np.ndarray, np.ndarray]:
    """Return when requests were written and their replies had arrived (s); a good-bye follows each reply."""
    started: list[float] = []
    ended: list[float] = []
    waiting = answered = False
    for time_s, event, flow in zip(log.time_s, log.event, log.flow, strict=True):
        if event == "message delivered" and flow == responder and waiting:
            ended[-1], waiting, answered = time_s, False, True
        elif event == "message written" and flow == 1 and answered:
            answered = False
        elif event == "message written" and flow == 1:
            started.append(time_s)
            ended.append(np.nan)
            waiting = True
    return np.array(started), np.array(ended)


def _of_centaurus(log: Events) -> tuple[np.ndarray, np.ndarray]:
    """Return when requests were first offered, and when the client accepted their replies (s).

    Request and reply of exchange k are object 2k, the good-bye is 2k + 1.
    """
    client = log.of("segment sent", flow=1)
    started: dict[int, float] = {}
    ended: dict[int, float] = {}
    for time_s, message, number in zip(client.time_s, client.message, client.segment, strict=True):
        if message == "OBJ" and number % 2 == 0:
            started.setdefault(int(number), float(time_s))
        elif message == "ACK":
            ended.setdefault(int(number), float(time_s))
    return np.array(list(started.values())), np.array([ended.get(one, np.nan) for one in started])


def at_rest(
    name: str, sizes: Sequence[int], who: str, duration_s: float | None = None
) -> Callable[[Work], Iterator[Picture]]:
    """Return the function that draws a hundred sessions on CDPD at good and at bad times: figures 7 to 11.

    Args:
        name: of the scenario.
        sizes: of the swept message (byte), a column each.
        who: protocol, for the title.
        duration_s: of the run, if it has to be longer than the scenario's.
    """
    longer = {} if duration_s is None else {"run.duration_s": duration_s}

    def draw(work: Work) -> Iterator[Picture]:
        """Yield the sessions."""
        columns = {
            f"{size:,} byte": {
                label: played(work, name, size, longer, loss=rate).first(100) for label, rate in TIMES.items()
            }
            for size in sizes
        }
        yield Picture(histories(columns, title=f"{work.citation}: {who}, a client at rest"))

    return draw


def histories(columns: Mapping[str, Mapping[str, Sessions]], *, title: str) -> Figure:
    """Return session times, their range, efficiency and losses over the session number.

    Args:
        columns: by title of the column, sessions by label.
        title: heading.
    """
    names = {
        "time_s": "session time (s)",
        "range_s": f"range of the\nlast {RECENT} (s)",
        "efficiency": "efficiency",
        "lost": "data packets\nlost on the air",
    }
    labels = list(dict.fromkeys(label for column in columns.values() for label in column))
    with house_style():
        figure = Figure(figsize=(5.2 * len(columns) + 1.0, 6.6), layout="constrained")
        grid = figure.subplots(
            len(names), len(columns), sharex="col", squeeze=False, height_ratios=(2, 1, 1, 1)
        )
        for heading, column, panels in zip(columns, columns.values(), grid.T, strict=True):
            panels[0].set_title(heading)
            panels[-1].set_xlabel("session number")
            for label, found in column.items():
                place = labels.index(label)
                _history(panels, list(names), found, PALETTE[place], MARKERS[place])
            for axes, name in zip(panels, names, strict=True):
                axes.set_ylabel(names[name])
                if name == "time_s":
                    axes.set_yscale("log")
                    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                    axes.yaxis.set_major_formatter("{x:g}")
                    axes.yaxis.set_minor_formatter(NullFormatter())
                else:
                    axes.set_ylim(bottom=0)
        handles = [
            Line2D([], [], color=PALETTE[k], marker=MARKERS[k], markersize=4, label=label)
            for k, label in enumerate(labels)
        ]
        if any(np.isnan(found.time_s).any() for column in columns.values() for found in column.values()):
            handles.append(Line2D([], [], color="black", marker="D", linestyle="", label="dropped"))
        figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
        figure.suptitle(title)
    return figure


def _history(panels: np.ndarray, names: Sequence[str], found: Sessions, colour: str, marker: str) -> None:
    numbers = np.arange(1, len(found.time_s) + 1)
    for axes, name in zip(panels, names, strict=True):
        values = getattr(found, name)
        if name == "lost":
            axes.vlines(numbers, 0, values, color=colour, linewidth=1.3)
        else:
            axes.plot(numbers, values, color=colour, marker=marker, markersize=2.5, linewidth=0.8)
    dropped = numbers[np.isnan(found.time_s)]
    panels[0].plot(
        dropped, np.full(len(dropped), 0.97), "D", color="black", markersize=6, linestyle="",
        transform=panels[0].get_xaxis_transform(), zorder=5,
    )  # fmt: skip


def boxes(
    axes: Axes, samples: Sequence[np.ndarray], labels: Sequence[str], *, colour: str = PALETTE[0]
) -> None:
    """Draw a box plot for each sample: quartiles, whiskers from 5 to 95 %, single sessions beyond them."""
    axes.boxplot(
        [one[np.isfinite(one)] for one in samples], tick_labels=labels, whis=(5, 95), widths=0.5,
        boxprops={"color": colour}, whiskerprops={"color": colour}, capprops={"color": colour},
        medianprops={"color": colour, "linewidth": 2.0},
        flierprops={"marker": ".", "markersize": 2.5, "markeredgecolor": colour, "alpha": 0.4},
    )  # fmt: skip
