"""Figure 6: TCP over CDPD session by session, mobile client, messages of 1 KB.

The paper plots session time, its range, efficiency, signal strength, block error rate and cell congestion
over the session, all scaled, without units; diamonds are dropped sessions. The simulator has block errors
and outages. Signal strength, changes of the cell and congestion are not in it; of signal strength the paper
says that it matters only at zero, which is an outage.

Read as bad times (2 % of the blocks lost) with outages of 20 s in every 320 s; the application gives up
after 30 s. All three numbers are ours. Losses raise the session time and lower the efficiency, as
published; outages drop sessions, if not in rows as in the paper's tunnel.

The second picture has the means over the block error rate: time rising, efficiency falling. The model's
efficiency is too high, for it counts all segments that are sent again as of mean size, and long ones are
lost more often.
"""

from collections.abc import Iterator

import numpy as np

from btqueue.reproduction.claims.avancha_2002.systems import APPLICATION_TIMEOUT_S
from btqueue.reproduction.figures.avancha_2002 import NOISY, engines_of, histories, network, played
from btqueue.reproduction.figures.curve_panels import Curve, Panel, axis_label, curves
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("5.2.1-bler", "5.2.1-rssi", "5.2.1-handoff-aborts")
RATES = (0.001, 0.005, 0.01, 0.02)


def means(work: Work) -> Picture:
    """Return session time and efficiency over the block error rate, without outages."""
    scenarios = [network(work, "cdpd-tcp", 1024, loss=rate) for rate in RATES]
    found = work.answers(scenarios, engines_of(work, "cdpd-tcp"), what="block errors")
    percent = 100 * np.array(RATES)

    def curve(value, interval=None):
        drawn = {engine: np.array([value(one[engine].means) for one in found]) for engine in found[0]}
        half = (
            None
            if interval is None
            else np.array([one["simulate"].ci95.get(interval, np.nan) for one in found])
        )
        return Curve("1,024 byte", percent, drawn["simulate"], half, drawn.get("solve"))

    def finish(axes):
        axes.set_xlim(0, 2.1)

    time_s = curve(lambda m: m.get("session_time_s", np.nan), "session_time_s")
    useful = curve(lambda m: m.get("goodput_kbps", np.nan) / m.get("throughput_kbps", np.nan))
    axis = "block error rate (%)"
    panels = [
        Panel([time_s], axis_label("session_time_s"), "", axis, finish),
        Panel([useful], "efficiency", "", axis, finish),
    ]
    return Picture(curves(panels, title=f"{work.citation}: means over the block error rate"), "means")


def draw(work: Work) -> Iterator[Picture]:
    """Yield sessions one by one, and means."""
    changes = {"traffic.application_timeout_s": APPLICATION_TIMEOUT_S}
    found = played(work, "cdpd-tcp", 1024, changes, loss=NOISY, up_s=300, down_s=20)
    column = {"bad times and outages": found.first(100)}
    yield Picture(histories({"1,024 byte": column}, title=f"{work.citation}: TCP, for a mobile client"))
    yield means(work)
