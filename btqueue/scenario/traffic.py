"""The applications' messages: the table ``[traffic]``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from btqueue.scenario.fields import Bytes, Name, PositiveRate, PositiveSeconds, Seconds, Table, listed

Source = Literal["poisson", "ibp", "greedy", "periodic", "request-reply", "file"]
Phase = Literal["random", "aligned"]


class LoadStep(Table):
    """From ``at_s`` on (simulated time, warm-up included) the offered load is ``load_kbps``."""

    at_s: Seconds = Field(description="time of the change")
    load_kbps: PositiveRate = Field(
        description="offered load of each flow from then on, even if the flow has its own load_kbps"
    )


class Traffic(Table):
    """The source of each flow."""

    source: Source = Field(default="poisson", description="law of the message arrivals")
    phase: Phase = Field(
        default="random",
        description="first message of a periodic source: after a random share of its period (anew in every "
        "replication and at every change of the load), or at start_s, all flows at the same time",
    )
    two_way: bool = Field(
        default=False,
        description="data both ways over each connection: every flow gets a reverse flow of the same law",
    )
    start_s: Seconds = Field(default=0.0, description="simulated time at which the sources start")
    load_kbps: PositiveRate = Field(
        default=160.0, description="offered load of each flow, application bytes; greedy ignores it"
    )
    message_bytes: Bytes = Field(default=1460, description="size of a message, of one or several segments")
    scv: float = Field(
        default=10.0,
        gt=0,
        le=1e6,
        description="squared coefficient of variation of the gaps of an ibp source",
    )
    load_schedule: tuple[LoadStep, ...] = listed((), "changes of the load over time")
    request_bytes: Bytes = Field(default=32, description="request of a request-reply session")
    reply_bytes: Bytes = Field(default=1024, description="reply of a request-reply session")
    goodbye_bytes: int = Field(
        default=0, ge=0, le=1_000_000_000, description="closing message of a request-reply session; 0: none"
    )
    pause_s: Seconds = Field(default=0.0, description="time between two request-reply sessions")
    application_timeout_s: PositiveSeconds | None = Field(
        default=None,
        description="a request-reply session whose reply has not come by then is given up; unset: never",
    )
    arrival_file: Name | None = Field(
        default=None,
        description="file with arrival times and message sizes, the same for every flow and replication",
    )
    file_period_s: PositiveSeconds | None = Field(
        default=None, description="the arrival file is repeated with this period"
    )
