"""Figure 15: session time of CentaurusComm over an undisturbed WLAN.

Boxes as in figure 13, with the model's mean. Dashed: half as long again as TCP with a window of 32 KB, the
paper's statement for all sizes (shaded: 1.3 to 1.8 times).

Agrees for large messages only, 1.7 times at 8,192 bytes: packets of 64 bytes with 34 of headers take 1.5
times the air of full segments. Small messages take up to 3.6 times as long, for the state machine spends
eight one-way trips on a session and TCP two.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from btqueue.plotting import PALETTE, house_style
from btqueue.reproduction.figures.avancha_2002 import boxes, played, session_times
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("5.4.2-plus-50",)
SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)


def draw(work: Work) -> Iterator[Picture]:
    """Yield the boxes, the model, and 1.5 times TCP."""
    sizes = work.some(SIZES)
    found = [1000 * played(work, "wlan-centaurus", size).time_s for size in sizes]
    model, tcp = (
        np.asarray(session_times(work, name, SIZES, name, engines=("solve",), per_s=1000).model)
        for name in ("wlan-centaurus", "wlan-tcp")
    )
    places = np.arange(1, len(sizes) + 1)
    with house_style():
        figure = Figure(figsize=(6.0, 4.0), layout="constrained")
        axes = figure.subplots()
        boxes(axes, found, [f"{size:,}" for size in sizes])
        axes.plot(places, model, color=PALETTE[1], label="CentaurusComm, mean by the model")
        axes.plot(places, tcp, color=PALETTE[2], label="TCP, mean by the model")
        axes.plot(places, 1.5 * tcp, color="#444444", linestyle="--", label="published: 1.5 times TCP")
        axes.fill_between(places, 1.3 * tcp, 1.8 * tcp, color="#999999", alpha=0.2, linewidth=0)
        axes.set(xlabel="reply (byte)", ylabel="session time (ms)", ylim=(0, None))
        axes.legend(loc="upper left")
        figure.suptitle(f"{work.citation}: CentaurusComm over a WLAN, sessions of a run")
    yield Picture(figure)
