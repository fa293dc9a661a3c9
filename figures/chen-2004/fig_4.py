"""Figure 4: topologies with 1, 2 and 4 hops.

Drawn from the scenarios `regular-1`, `-2` and `-4`. Centrals are black, peripherals white; the gateway of
the four hops is a peripheral of both piconets (orange here, white in the paper). One TCP connection goes
from end to end.

Over one hop it is not said who sends; here it is the peripheral.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.cli.figures import run_script
from btqueue.plotting import house_style
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.chen_2004 import HOPS
from btqueue.reproduction.figures.diagrams import draw_network, network_key
from btqueue.scenario.topology import topology


def draw(work: Work) -> Iterator[Picture]:
    """Yield the three networks, one below the other."""
    with house_style():
        figure = Figure(figsize=(6.4, 5.2), layout="constrained")
        panels = figure.subplots(len(HOPS), 1)
        for letter, hops, axes in zip("abc", HOPS, panels, strict=True):
            scenario = work.scenario(f"regular-{hops}")
            graph = topology(scenario).graph()
            places = {
                node: (place - hops / 2, 0.25 if graph.nodes[node]["role"] == "central" else 0.0)
                for place, node in enumerate(graph)
            }
            draw_network(axes, scenario, places)
            axes.set(xlim=(-2.5, 2.5), ylim=(-0.75, 0.6))
            axes.set_title(f"({letter}) {hops} hop{'s' if hops > 1 else ''}", loc="left")
        figure.legend(handles=network_key(), loc="outside lower center", ncols=4, fontsize=8)
        figure.suptitle(work.citation)
    yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
