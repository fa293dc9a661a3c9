"""Figure 1.1: L2CAP: blocks of the specification, and its flow control as a token bucket.

(a) The blocks of L2CAP as version 1.2 of the specification has them. (b) What is modelled here of it: a
segment is cut into packets, which wait for tokens and then go to the baseband queue of the radio. The
numbers in (b) are read from the standard scenario.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.baseband.packets import packet_types
from btqueue.baseband.segmentation import segment
from btqueue.cli.figures import run_script
from btqueue.plotting import house_style
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.diagrams import arrow, box, clear, queue

SPECIFICATION = (
    "upper layers: TCP/IP", "channel manager", "segmentation and reassembly",
    "retransmission and flow control", "encapsulation and scheduling",
    "fragmentation and recombination", "link manager and baseband",
)  # fmt: skip


def draw(work: Work) -> Iterator[Picture]:
    """Yield both panels."""
    scenario = work.scenario("piconet")
    limits = scenario.flow_control
    size = scenario.transport.mss_bytes + scenario.transport.header_bytes + scenario.link.l2cap_header_bytes
    fragments = [part.packet.name for part in segment(size, packet_types(scenario.link.packets))]
    packets = " and ".join(f"{fragments.count(name)} {name}" for name in dict.fromkeys(fragments))
    with house_style():
        figure = Figure(figsize=(9.0, 5.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        clear(left, 4.2, 4.6)
        for number, name in enumerate(SPECIFICATION):
            fill = "#e8eef3" if 0 < number < len(SPECIFICATION) - 1 else "white"
            box(left, (2.1, 4.25 - 0.64 * number), name, width=2.9, height=0.42, fill=fill)
            if number:
                middle = 4.25 - 0.64 * number
                arrow(left, (2.1, middle + 0.43), (2.1, middle + 0.21), shrink=0)
        left.set_title("(a) specification; L2CAP shaded")
        clear(right, 4.2, 4.6)
        box(right, (2.1, 4.25), "TCP: segments", width=2.0, height=0.42)
        box(
            right,
            (2.1, 3.45),
            f"segmentation\n{size} bytes: {packets}",
            width=2.4,
            height=0.52,
            fill="#e8eef3",
        )
        queue(right, (2.1, 2.55))
        waiting = f"token buffer\nS = {limits.buffer_packets} packets"
        right.text(2.75, 2.55, waiting, va="center", fontsize=8)
        box(right, (2.1, 1.75), "gate: a packet for its bytes", width=2.4, height=0.42, fill="#e8eef3")
        tokens = f"tokens, {limits.token_rate_kbps:g} kbit/s,\nat most {limits.bucket_bytes} bytes"
        right.text(0.05, 2.45, tokens, va="center", fontsize=8)
        arrow(right, (0.55, 2.25), (0.95, 1.85), shrink=0)
        queue(right, (2.1, 0.95))
        right.text(
            2.75, 0.95, f"baseband queue\nL = {limits.baseband_packets} packets", va="center", fontsize=8
        )
        box(right, (2.1, 0.25), "radio", width=2.0, height=0.36)
        for above, below in ((4.04, 3.71), (3.19, 2.74), (2.37, 1.96), (1.54, 1.14), (0.77, 0.43)):
            arrow(right, (2.1, above), (2.1, below), shrink=0)
        right.set_title("(b) flow control as a token bucket")
        figure.suptitle(f"{work.citation}: L2CAP")
        yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
