"""Figure 13: session time of TCP over an undisturbed WLAN, with windows of 32 KB and 2 KB.

Boxes: quartiles of the sessions of a run, whiskers from 5 to 95 %, dots beyond. Line: the model's mean. The
caption has the windows of the panels the wrong way round; this is the order of the text. A window of 2 KB
is read as one segment of 1,460 bytes.

The order of the networks agrees (wired, WLAN, Bluetooth, CDPD). The few sessions that take clearly longer,
which the paper puts down to congestion of the access point, have no cause here: sessions differ by the
processing delay of the sender alone, at most 1 ms a segment.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from btqueue.plotting import PALETTE, house_style
from btqueue.reproduction.figures.avancha_2002 import boxes, played, session_times
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("5.4.1-wlan-like-wired", "5.4.1-outliers")
SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
WINDOWS = {"(a) window of 32 KB": 22, "(b) window of 2 KB": 1}


def draw(work: Work) -> Iterator[Picture]:
    """Yield a panel for each window."""
    with house_style():
        figure = Figure(figsize=(9.2, 3.8), layout="constrained")
        for axes, (title, segments) in zip(figure.subplots(1, 2, sharey=True), WINDOWS.items(), strict=True):
            changes = {"transport.receive_window_segments": segments}
            sizes = work.some(SIZES)
            found = [1000 * played(work, "wlan-tcp", size, changes).time_s for size in sizes]
            model = session_times(
                work, "wlan-tcp", SIZES, title, changes=changes, engines=("solve",), per_s=1000
            )
            boxes(axes, found, [f"{size:,}" for size in sizes])
            axes.plot(
                np.arange(1, len(sizes) + 1),
                np.asarray(model.model),
                color=PALETTE[1],
                label="mean by the model",
            )
            axes.set(title=title, xlabel="reply (byte)", ylabel="session time (ms)")
            axes.legend(loc="upper left")
        figure.axes[0].set_ylim(bottom=0)
        figure.suptitle(f"{work.citation}: TCP over a WLAN, sessions of a run")
    yield Picture(figure)
