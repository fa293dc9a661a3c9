"""Figure 12: session time over Bluetooth against the message size, TCP and CentaurusComm.

(a) TCP over PPP. The paper sees two plateaus, from 64 to 1,024 and from 2,048 to 4,096 bytes, a buffer
effect that it does not explain; here the time grows with the packets of the reply. (b) CentaurusComm,
linear up to 4,096 bytes as published, but a third as long: the stars are 0.6 s at 4,096 bytes and 3.5 s at
8,192, a leap that the authors do not explain either. A worker that is called every 10 ms, the tick of
Linux, gives about 0.7 s at 4,096 bytes. (c) The difference, around 50 ms up to 512 bytes in the paper
(dashed, 40 % either way): 23 to 36 ms, or 38 to 103 ms with that worker.
"""

from collections.abc import Iterator

import numpy as np

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.avancha_2002 import session_times, size_axis
from btqueue.reproduction.figures.curve_panels import Curve, Panel
from btqueue.reproduction.figures.published import mark_level

CLAIMS = (
    "5.3.1-plateaus", "5.3.1-no-collapse", "5.3.2-linear", "5.3.2-diff-small", "5.3.2-tcp-better",
    "5.3.2-8192-anomaly",
)  # fmt: skip
SIZES = (64, 128, 512, 1024, 2048, 4096, 8192)
SMALL = 1024
PUBLISHED_MS = {4096: 600, 8192: 3500}


def less(curve: Curve, other: Curve) -> Curve:
    """Return the difference of two curves up to `SMALL` bytes; their replications are independent."""
    assert curve.mean is not None and curve.model is not None and curve.ci95 is not None
    assert other.mean is not None and other.model is not None and other.ci95 is not None
    few = curve.x <= SMALL
    return Curve(
        curve.label,
        curve.x[few],
        (curve.mean - other.mean)[few],
        np.hypot(curve.ci95, other.ci95)[few],
        (curve.model - other.model)[few],
    )


def draw(work: Work) -> Iterator[Picture]:
    """Yield both protocols and their difference."""
    tcp = session_times(work, "bluetooth-tcp", SIZES, "TCP", per_s=1000)
    usual = session_times(work, "bluetooth-centaurus", SIZES, "CentaurusComm", per_s=1000)
    changes = {"transport.centaurus_worker_s": 0.01}
    label = "CentaurusComm, worker every 10 ms"
    slow = session_times(work, "bluetooth-centaurus", SIZES, label, changes=changes, per_s=1000)

    def plain(axes):
        size_axis(axes, SIZES)

    def published(axes):
        axes.set_yscale("log")
        size_axis(axes, SIZES)
        axes.set_ylim(20, 6000)
        axes.plot(list(PUBLISHED_MS), list(PUBLISHED_MS.values()), "k*", markersize=11, zorder=5)
        axes.annotate("published", (8192, 3500), (-8, 0), textcoords="offset points", ha="right", va="center")

    def difference(axes):
        size_axis(axes, [size for size in SIZES if size <= SMALL], 190)
        mark_level(axes, 50, "", tolerance=20)
        axes.text(
            0.03,
            0.95,
            "dashed: paper, around 50 up to 512 byte",
            transform=axes.transAxes,
            va="top",
            fontsize=8,
        )

    panels = [
        Panel([tcp], "session time (ms)", "(a) TCP", "reply (byte)", plain),
        Panel([usual, slow], "session time (ms)", "(b) CentaurusComm", "reply (byte)", published),
        Panel(
            [less(usual, tcp), less(slow, tcp)],
            "difference (ms)", "(c) CentaurusComm less TCP", "reply (byte)", difference,
        ),
    ]  # fmt: skip
    yield Picture(curves(panels, columns=3, size=(3.9, 3.3), title=f"{work.citation}: Bluetooth"))


if __name__ == "__main__":
    run_script(__file__)
