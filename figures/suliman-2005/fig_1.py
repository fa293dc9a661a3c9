"""Figure 1: a personal area network attached to a wireless local one.

The concept, with the quantities of the scenario `one-of-seven`: what arrives over the fast WLAN waits in the
gateway, which polls the peripherals of the slow piconet in turn, whether they have traffic or not.
"""

from collections.abc import Iterator

from matplotlib.patches import Ellipse

from btqueue.cli.figures import run_script
from btqueue.plotting import PALETTE
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.diagrams import arrow, blank, box, queue
from btqueue.scenario.topology import topology


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    scenario = work.scenario("one-of-seven")
    plan = topology(scenario)
    (piconet,), (wlan,), (flow,) = plan.piconets, plan.outside, plan.flows
    central, receiver = plan.nodes[piconet.central], plan.nodes[flow.target]
    tcp = scenario.transport
    figure, axes = blank(8.4, 3.9, f"{work.citation}: WPAN and WLAN")
    clouds = {"WLAN": (2.05, 4.0, PALETTE[5]), "WPAN: a Bluetooth piconet": (6.0, 4.7, PALETTE[6])}
    for name, (x, width, colour) in clouds.items():
        axes.add_patch(Ellipse((x, 1.85), width, 3.45, facecolor=colour, alpha=0.18, zorder=0))
        axes.text(x, 3.6, name, ha="center", fontsize=9)

    sender = f"{plan.nodes[flow.source]}\nTCP with {tcp.variant.upper()},"
    words = f"{sender}\nwindow of {tcp.receive_window_segments} segments"
    host = box(axes, (1.15, 1.85), words, width=1.6, height=0.8)
    gateway = box(axes, (3.85, 1.85), f"{central}\n(central)", width=0.9, height=0.8)
    speed = f"{wlan.link.rate_kbps / 1000:g} Mbit/s,\n{1000 * wlan.link.delay_s:g} ms"
    arrow(axes, (host[0] + 0.8, 1.85), (gateway[0] - 0.45, 1.85), speed, aside=0.22)
    waiting = queue(axes, (5.0, 1.85), f"buffer:\n{scenario.link.node_buffer_bytes:,} byte", width=0.9)
    axes.plot([gateway[0] + 0.45, waiting[0] - 0.45], [1.85, 1.85], color="#333333", linewidth=1.1)
    for place, name in enumerate(plan.nodes[member] for member in piconet.members):
        y = 3.05 - 0.4 * place
        fill = PALETTE[6] if name == receiver else "white"
        box(axes, (7.2, y), name, width=0.6, height=0.3, fill=fill)
        arrow(axes, (waiting[0] + 0.47, 1.85), (6.88, y), dashed=name != receiver)
    axes.text(6.0, 0.06, f"polling: {scenario.polling.discipline}; solid: data, dashed: polled in vain",
              ha="center", fontsize=7.5)  # fmt: skip
    yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
