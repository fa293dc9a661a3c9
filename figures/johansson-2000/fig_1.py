"""Figure 1: protocol layers and buffers of the two nodes.

What the simulator puts between the two ends of a connection, with the delays and limits of the scenario
`smooth`. Data go down on the left and up on the right; the other node's data, and separate acknowledgements,
take the same way in the other direction.

TCP and the baseband hold every segment or packet for their delay, IP and L2CAP take one segment at a time.
The limit of the baseband's buffer holds for all that a node has to send.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.diagrams import arrow, blank, box, queue
from btqueue.scenario import Scenario

TOP, STEP, LEFT, RIGHT = 4.6, 0.95, 2.6, 6.4
"""Height of the first layer, distance of layers, and abscissae of the sender and the receiver (inches)."""


def time(delay_s: float) -> str:
    """Return a delay in words."""
    return f"{1000 * delay_s:g} ms" if delay_s >= 1e-3 else f"{1e6 * delay_s:g} µs"


def layers(scenario: Scenario) -> list[tuple[str, str]]:
    """Return what each layer, from the top, does for the sender and for the receiver of a segment."""
    tcp, link, traffic = scenario.transport, scenario.link, scenario.traffic
    ip, l2cap = f"IP\none each {time(tcp.ip_delay_s)}", f"L2CAP\none each {time(link.l2cap_delay_s)}"
    window = f"window: {tcp.receive_window_segments} segments at most, {time(tcp.tcp_delay_s)}"
    answer = f"ACK: {tcp.ack_every_segments} segments or {tcp.ack_clock} of {time(tcp.ack_delay_s)}"
    baseband = f"baseband\n{', '.join(link.packets)}"
    return [
        (f"application\n{traffic.source.upper()}, {traffic.message_bytes:,} byte", "application"),
        (f"TCP {tcp.variant.capitalize()}\n{window}", f"TCP\n{answer}"),
        (ip, ip),
        (f"{l2cap}, cuts into packets", f"{l2cap}, puts together"),
        (
            f"{baseband}, after {time(link.baseband_delay_s)}",
            f"baseband\nafter {time(link.baseband_delay_s)}",
        ),
    ]


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    scenario = work.scenario("smooth")
    figure, axes = blank(9.0, 5.3, f"{work.citation}: layers and buffers")
    for x, text in ((LEFT, "sender"), (RIGHT, "receiver")):
        axes.text(x, 5.1, text, ha="center", fontsize=9)
    for place, (down, up) in enumerate(layers(scenario)):
        y = TOP - place * STEP
        box(axes, (LEFT, y), down, width=2.7, height=0.55, size=7.5)
        box(axes, (RIGHT, y), up, width=2.7, height=0.55, size=7.5)
        if place:
            arrow(axes, (LEFT, y + STEP - 0.28), (LEFT, y + 0.28))
            arrow(axes, (RIGHT, y + 0.28), (RIGHT, y + STEP - 0.28))
            limit = f"{scenario.link.node_buffer_bytes:,} byte" if place == 4 else ""
            queue(axes, (0.75, y), limit)
            queue(axes, (8.25, y))
    air = TOP - 4 * STEP
    arrow(axes, (LEFT + 1.36, air), (RIGHT - 1.36, air), f"packets,\nPEP {scenario.radio.per:g}", aside=0.28)
    yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
