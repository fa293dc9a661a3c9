"""Figure 4: session time of TCP over Ethernet against the message size.

The paper finds that the time does not depend on the size. It is not printed how long it is, nor the scale.
At 10 Mbit/s and 1 ms one way (left), 8,192 bytes take 6.6 ms, and the curve is not flat. A way that is 50
ms longer hides them (right) but makes Ethernet slower than the WLAN, which the text calls nearly as good.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.avancha_2002 import session_times, size_axis
from btqueue.reproduction.figures.curve_panels import Panel

CLAIMS = ("5.1-ethernet-flat",)
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
WAYS = {"1 ms one way": (0.001, 10), "51 ms one way": (0.051, 125)}


def draw(work: Work) -> Iterator[Picture]:
    """Yield the reading, and a longer way."""
    panels = [
        Panel(
            [session_times(work, "ethernet", SIZES, "TCP", per_s=1000, delay_s=delay_s)],
            "session time (ms)", title, "reply (byte)",
            lambda axes, top=top: size_axis(axes, SIZES, top),
        )
        for title, (delay_s, top) in WAYS.items()
    ]  # fmt: skip
    yield Picture(curves(panels, title=f"{work.citation}: TCP over Ethernet"))


if __name__ == "__main__":
    run_script(__file__)
