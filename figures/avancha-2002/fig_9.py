"""Figure 9: session time of CentaurusComm over CDPD against the message size, beside TCP.

Left at good times (0.1 % of the blocks lost), right at bad ones (2 %); the paper does not print its error
rates. To compare protocols the paper adds the time of opening a connection to TCP's, about 2 s (1.98 here,
by choice of the latency). The star: CentaurusComm takes a fifth of TCP's time at 4,096 bytes, within 40 %.

Does not agree. Taken literally, the state machine spends eight one-way trips on a session and TCP two: a
penalty of 6 s where the paper says 2, and twice TCP's time for small messages where it says the same. At
good times TCP is then still faster at 4,096 bytes; at bad ones CentaurusComm is, about twice as fast, and
more so for 8,192 bytes. With data before PROCEED, which the authors propose, two of the three round trips
go (dotted). The model of TCP at bad times falls short from 4,096 bytes on: there are too many ways to lose
segments to follow all of them.
"""

import math
from collections.abc import Iterator

from btqueue.reproduction.figures.avancha_2002 import TIMES, network, session_times, size_axis
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = (
    "5.2.2-penalty", "5.2.2-small-comparable", "5.2.2-factor-5", "5.2.2-early-data", "5.2.2-connect-time",
    "6-tcp-poor-cdpd",
)  # fmt: skip
SIZES = (128, 1024, 2048, 4096, 8192)


def connection_s(work: Work) -> float:
    """Return how much longer an exchange without losses takes by TCP with a new connection (s)."""
    own = {"transport.handshake": True, "transport.connection_per_session": True}
    asked = [network(work, "cdpd-tcp", 128, changes, loss=0.0) for changes in (own, {})]
    with_own, without = work.answers(asked, ("simulate",), what="connection time")
    return 1 / with_own["simulate"].means["sessions_per_s"] - 1 / without["simulate"].means["sessions_per_s"]


def draw(work: Work) -> Iterator[Picture]:
    """Yield good and bad times."""
    opening = connection_s(work)
    work.note(f"Opening a connection takes {opening:.2f} s in the simulation; about 2 s in the paper.")
    early = {"transport.centaurus_early_data": True}
    panels = []
    for title, rate in TIMES.items():
        centaurus = session_times(work, "cdpd-centaurus", SIZES, "CentaurusComm", loss=rate)
        proposed = session_times(
            work, "cdpd-centaurus", SIZES, "with early data", changes=early, engines=("simulate",), loss=rate
        )
        tcp = session_times(work, "cdpd-tcp", SIZES, "TCP", changes={"run.replications": 20}, loss=rate)
        assert tcp.mean is not None
        model = None if tcp.model is None else tcp.model + opening
        opened = Curve("TCP and its connection", tcp.x, tcp.mean + opening, tcp.ci95, model)
        published = float(tcp.mean[tcp.x == 4096][0]) / 5 if 4096 in tcp.x else math.nan

        def finish(axes, published=published):
            size_axis(axes, SIZES)
            between = [[published - published * 5 / 7], [published * 5 / 3 - published]]
            axes.errorbar([4096], [published], between, fmt="k*", markersize=11, capsize=3, zorder=5)
            if math.isfinite(published):
                axes.annotate(
                    "paper: a fifth\nof TCP's time", (4096, published), (9, -2), textcoords="offset points",
                    ha="left", va="center", fontsize=8,
                )  # fmt: skip

        panels.append(
            Panel([centaurus, tcp, opened, proposed], "session time (s)", title, "request (byte)", finish)
        )
    yield Picture(curves(panels, title=f"{work.citation}: CentaurusComm and TCP over CDPD"))
