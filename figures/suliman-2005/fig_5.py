"""Figure 5: round-trip time of each segment of a transfer.

Window 64 KB, packets of 1,500 bytes, one peripheral. The text says that round trips range from 37 to 680 ms,
277.7 ms in the mean, and that the queue before the Bluetooth hop makes them long.

The simulated mean is higher (about 470 ms): behind a WLAN without losses the gateway's buffer, which was
chosen for the greatest round trip, stays more than half full. Round trips that long cannot fire a timer of at
least 1 s, so that the unnecessary retransmissions of the paper do not occur. Segments behind a hole are left
out.
"""

from collections.abc import Iterator

from btqueue.plotting import PALETTE
from btqueue.reproduction.claims.suliman_2005 import round_trips
from btqueue.reproduction.figures.curve_panels import Panel, curves
from btqueue.reproduction.figures.published import mark_level
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("III.C-rtt-range", "III.C-rtt-mean", "III.C-rtt-grows-with-queue", "III.C-spurious-rto")


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    scenario = work.scenario("round-trips")
    left, times = round_trips(scenario)

    def finish(axes):
        axes.plot(left, 1000 * times, ".", markersize=2.5, color=PALETTE[0])
        for value, text in ((37, "paper: least 37"), (277.7, "paper: mean 277.7"), (680, "paper: most 680")):
            mark_level(axes, value, text, at=0.76)
        axes.set(xlim=(0, scenario.run.duration_s), ylim=(0, 760))

    panel = Panel([], "round-trip time (ms)", xlabel="time (s)", finish=finish)
    title = f"{work.citation}: one transfer"
    least, mean, most = (1000 * value for value in (times.min(), times.mean(), times.max()))
    note = f"Simulated, one run: mean {mean:.0f} ms, {least:.0f} to {most:.0f} ms."
    yield Picture(curves([panel], title=title, size=(6.8, 3.8), note=note))
