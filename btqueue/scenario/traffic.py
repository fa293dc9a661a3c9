"""The applications' messages: the table ``[traffic]``."""

from __future__ import annotations

from typing import Literal

from btqueue.baseband.packets import SLOT_S
from btqueue.scenario.fields import Bytes, Name, PositiveRate, PositiveSeconds, Seconds, Table, key, listed

Source = Literal["poisson", "ibp", "greedy", "periodic", "request-reply", "file"]
Phase = Literal["random", "aligned"]


BY_RATE = {"traffic.source": ("poisson", "ibp", "periodic")}
SESSIONS = {"traffic.source": ("request-reply",)}
RECORDED = {"traffic.source": ("file",)}


class LoadStep(Table):
    """From ``at_s`` on (simulated time, warm-up included) the offered load is ``load_kbps``."""

    at_s: Seconds = key(..., "time of the change")
    load_kbps: PositiveRate = key(
        ..., "offered load of each flow from then on, even if the flow has its own load_kbps", BY_RATE
    )


class Traffic(Table):
    """The source of each flow."""

    source: Source = key("poisson", "law of the message arrivals")
    phase: Phase = key(
        "random",
        "first message of a periodic source: after a random share of its period (anew in every "
        "replication and at every change of the load), or at start_s, all flows at the same time",
        {"traffic.source": ("periodic",)},
    )
    two_way: bool = key(
        False,
        "data both ways over each connection: every flow gets a reverse flow of the same law",
        {"traffic.source": ("poisson", "ibp", "greedy", "periodic", "file")},
    )
    start_s: Seconds = key(0.0, "simulated time at which the sources start")
    load_kbps: PositiveRate = key(
        160.0,
        "offered load of each flow, application bytes; greedy ignores it. The period of a periodic source is "
        "0.008 message_bytes / load_kbps seconds",
        BY_RATE,
    )
    message_bytes: Bytes = key(
        1460,
        "size of a message, of one or several segments",
        (BY_RATE, {"traffic.source": ("greedy",), "single messages": (True,)}),
    )
    scv: float = key(
        10.0,
        "squared coefficient of variation of the gaps of an ibp source",
        {"traffic.source": ("ibp",)},
        gt=0,
        le=1e6,
    )
    load_schedule: tuple[LoadStep, ...] = listed((), "changes of the load over time", when=BY_RATE)
    request_bytes: Bytes = key(32, "request of a request-reply session", SESSIONS)
    reply_bytes: Bytes = key(1024, "reply of a request-reply session", SESSIONS)
    goodbye_bytes: int = key(
        0, "closing message of a request-reply session; 0: none", SESSIONS, ge=0, le=1_000_000_000
    )
    pause_s: Seconds = key(0.0, "time between two request-reply sessions", SESSIONS)
    application_timeout_s: float | None = key(
        None,
        "a request-reply session whose reply has not come by then is given up; unset: never",
        SESSIONS,
        ge=SLOT_S,
        le=1e6,
    )
    arrival_file: Name | None = key(
        None, "file with arrival times and message sizes, the same for every flow and replication", RECORDED
    )
    file_period_s: PositiveSeconds | None = key(
        None, "the arrival file is repeated with this period", RECORDED
    )
