"""Sessions of single runs, one by one: histories over the session number, and box plots of session times.

The table of a figure has entries of `picture`. A picture with entries of `column` has the first hundred
sessions of one run for each `case`, in a column each. Columns have a `title` and cases a `label`, both the
keys `scenario` and `set`, of which the innermost holds. Any other picture has entries of `panel`: of kind
"sessions" panels of curves (see `curve_tables`), of kind "boxes" box plots, with the keys

* `key` and `values`: a box each; or `case`: entries with `label`, `scenario`, `set`, `grey = true` for shade
* `model`: lines of the model's means, with `label`, `scenario`, `times`; with `band` dashed, and the shares
  between which it is shaded
* `published`: a level for the box number `box`: `times` (least, middle, most) the mean of the box number `of`

"Good times" and "bad times" of CDPD are block error rates of 0.1 and 2 %: the values of the publication stand
only in its pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from btqueue.plotting import PALETTE, Figure, house_style
from btqueue.reproduction.figures import curve_tables
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.curve_tables import GREY, Table, table_curve, within
from btqueue.reproduction.figures.runs import Events, events
from btqueue.reproduction.figures.work import Picture, Work
from btqueue.scenario import Scenario

RECENT = 10
"""Sessions over which the range of session times is taken."""
FIRST = 100
"""Sessions that a history shows."""
QUICK_CDPD_S = 400.0
"""Length of a run with single sessions in a quick figure (s): sessions on CDPD take 2 to 50 s."""
SESSION_EVENTS = ("message written", "message delivered", "segment sent", "packet lost outside")


def draw(work: Work, table: Table) -> Iterator[Picture]:
    """Yield the pictures of a figure."""
    for picture in table["picture"]:
        title = picture["title"].format(citation=work.citation)
        if table["kind"] == "boxes":
            yield Picture(_box_plots(work, within(table, picture), title))
        elif "column" in picture:
            common = within(table, picture)
            columns = {
                column["title"]: {
                    case["label"]: _played(work, within(within(common, column), case)).first(FIRST)
                    for case in picture["case"]
                }
                for column in picture["column"]
            }
            yield Picture(histories(columns, title))
        else:
            yield from curve_tables.draw(work, {**table, "picture": [picture]})


def _played(work: Work, wanted: Table) -> Sessions:
    """Return the sessions of one run; a quick run on CDPD lasts `QUICK_CDPD_S`."""
    scenario = work.scenario(wanted["scenario"], wanted["set"])
    if work.settings.quick and wanted["scenario"].startswith("cdpd"):
        scenario = scenario.with_(run__duration_s=QUICK_CDPD_S)
    return sessions(scenario)


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


def histories(columns: Mapping[str, Mapping[str, Sessions]], title: str) -> Figure:
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
    panels = [
        Panel(
            [
                Curve(label, np.arange(1, len(found.time_s) + 1), getattr(found, name))
                for label, found in column.items()
            ],
            ylabel,
            heading if name == "time_s" else "",
            "session number" if name == "lost" else "",
            partial(_finish, name=name, column=column),
        )
        for name, ylabel in names.items()
        for heading, column in columns.items()
    ]
    found = [one for column in columns.values() for one in column.values()]
    dropped = Line2D([], [], color="black", marker="D", linestyle="", label="dropped")
    more = [dropped] if any(np.isnan(one.time_s).any() for one in found) else []
    return curves(panels, title=title, columns=len(columns), size=(5.2, 2.0), zero=False, more=more)


def _finish(axes: Axes, *, name: str, column: Mapping[str, Sessions]) -> None:
    """Set the vertical axis of a panel, and mark sessions that were given up."""
    if name != "time_s":
        axes.set_ylim(bottom=0)
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    for found in column.values():
        dropped = 1 + np.flatnonzero(np.isnan(found.time_s))
        axes.plot(
            dropped, np.full(len(dropped), 0.97), "D", color="black", markersize=6,
            transform=axes.get_xaxis_transform(), zorder=5,
        )  # fmt: skip


def _box_plots(work: Work, picture: Table, title: str) -> Figure:
    """Return panels of box plots of session times (ms), on one vertical axis."""
    with house_style():
        figure = Figure(figsize=tuple(picture["size"]), layout="constrained")
        panels = figure.subplots(1, len(picture["panel"]), sharey=True, squeeze=False)[0]
        for axes, panel in zip(panels, picture["panel"], strict=True):
            _box_panel(axes, work, within(picture, panel))
            axes.set(title=panel.get("title", ""), xlabel=picture.get("xlabel", ""))
            axes.set_ylabel("session time (ms)")
        panels[0].set_ylim(bottom=0)
        figure.suptitle(title)
    return figure


def _box_panel(axes: Axes, work: Work, panel: Table) -> None:
    cases: Sequence[Table] = panel.get("case") or [
        {"label": f"{value:,}", "set": {panel["key"]: value}} for value in work.some(panel["values"])
    ]
    times = [1000 * _played(work, within(panel, case)).time_s for case in cases]
    boxes(axes, times, [case["label"] for case in cases])
    for place, case in enumerate(cases):
        if case.get("grey"):
            axes.axvspan(place + 0.5, place + 1.5, color=GREY, alpha=0.2, zorder=0, lw=0)
    places = np.arange(1, len(cases) + 1)
    for line, colour in zip(panel.get("model", ()), PALETTE[1:], strict=False):
        wanted = within(panel, line) | {"metric": "session_time_s", "engines": ["solve"]}
        curve = table_curve(work, wanted)
        model, doubted = 1000 * np.asarray(curve.model), curve.doubted
        axes.plot(places[doubted], model[doubted], "x", color=GREY, label="in doubt" if doubted else None)
        if "band" not in line:
            axes.plot(places, model, color=colour, label=line["label"])
            continue
        axes.plot(places, model, color="#444444", linestyle="--", label=line["label"])
        low, high = (share * model for share in line["band"])
        axes.fill_between(places, low, high, color=GREY, alpha=0.2, linewidth=0)
    if "model" in panel:
        axes.legend(loc="upper left")
    if "published" in panel:
        stated = panel["published"]
        mean = float(times[stated["of"] - 1].mean())
        low, middle, high = (mean * factor for factor in stated["times"])
        span = [stated["box"] - 0.45, stated["box"] + 0.45]
        axes.fill_between(span, low, high, color=GREY, alpha=0.2, linewidth=0)
        axes.plot(span, [middle, middle], color="#444444", linestyle="--", linewidth=1.0)
        axes.text(span[0] + 0.02, 1.016 * middle, stated["text"], fontsize=8, color="#444444")


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
