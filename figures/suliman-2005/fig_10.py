"""Figure 10: mean throughput of a receiving peripheral over packet size and number of connections.

All seven peripherals are polled; some of them receive at the same time, windows of 64 KB each. The text says
that each gets less as connections are added. The numbers of connections and the packet sizes are ours.

The model lies up to 8 % higher. It answers for long runs (of 600 s, at 1,500 byte, it agrees to 2 %); a
transfer of 30 s begins with slow starts that overshoot together.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.claims.suliman_2005.systems import WINDOWS_KB
from btqueue.reproduction.figures import Picture, Work, curves
from btqueue.reproduction.figures.curve_panels import metric_panel
from btqueue.reproduction.figures.suliman_2005 import sizes, through
from btqueue.reproduction.figures.work import runs_note

CLAIMS = ("III.E-per-slave-vs-connections",)
PACKETS = (256, 512, 768, 1024, 1500)


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    packets = work.some(PACKETS)
    drawn = []
    for count in (2, 7) if work.settings.quick else range(2, 8):
        points = [
            work.scenario("connections", sizes(max(WINDOWS_KB), packet) | {"network.active_flows": count})
            for packet in packets
        ]
        drawn.append(through(work, f"{count} connections", packets, points, "goodput_kbps"))
    panel = metric_panel("goodput_kbps", drawn, xlabel="packet size (byte)")
    note = f"Simulated: {runs_note(work.scenario('connections'))}."
    title = f"{work.citation}: mean of the receiving peripherals"
    yield Picture(curves([panel], title=title, size=(6.2, 4.4), note=note))


if __name__ == "__main__":
    run_script(__file__)
