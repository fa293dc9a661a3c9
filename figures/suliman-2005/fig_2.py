"""Figure 2: the testbed: a host on a WLAN, the gateway, and seven peripherals of its piconet.

Drawn from the network of the scenario `connections`. The host sends to the peripherals over a TCP connection
each; the gateway is on the WLAN and is the central of the piconet.
"""

from collections.abc import Iterator
from math import cos, radians, sin

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.diagrams import blank, draw_network, network_key
from btqueue.scenario.topology import topology


def draw(work: Work) -> Iterator[Picture]:
    """Yield the picture."""
    scenario = work.scenario("connections")
    plan = topology(scenario)
    (piconet,), (wlan,) = plan.piconets, plan.outside
    places = {plan.nodes[wlan.source]: (1.0, 2.1), plan.nodes[piconet.central]: (3.2, 2.1)}
    for place, member in enumerate(piconet.members):
        angle = radians(75 - 150 * place / (len(piconet.members) - 1))
        places[plan.nodes[member]] = (3.2 + 1.9 * cos(angle), 2.1 + 1.75 * sin(angle))

    figure, axes = blank(6.2, 4.4, f"{work.citation}: the testbed")
    draw_network(axes, scenario, places, flows=False, size=1250)
    rate, delay = f"{wlan.link.rate_kbps / 1000:g} Mbit/s", f"{1000 * wlan.link.delay_s:g} ms"
    axes.text(2.1, 2.2, f"{wlan.link.kind.upper()}\n{rate}, {delay}", ha="center", fontsize=8)
    axes.text(5.4, 4.0, f"piconet\n{', '.join(scenario.link.packets)}", ha="center", fontsize=8)
    roles = network_key(("host", "central", "peripheral"), flows=False)
    axes.legend(handles=roles, loc="lower left", fontsize=8, frameon=False)
    axes.set(xlim=(0.4, 6.0), ylim=(0, 4.4))
    yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
