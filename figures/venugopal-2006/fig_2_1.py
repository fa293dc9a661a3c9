"""Figure 2.1: three piconets, joined by a master/slave bridge and by a slave/slave bridge.

Drawn from the topology of a scenario. The second central is a peripheral of the first piconet, too: a
master/slave bridge, with a ring. The device between the second and the third piconet is a peripheral of
both: a slave/slave bridge.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from btqueue.cli.figures import run_script
from btqueue.plotting import house_style
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.diagrams import draw_network, network_key
from btqueue.scenario import Scenario

PICONETS = [
    {"name": "1", "central": "c1", "peripherals": ["p1.1", "p1.2", "p1.3", "c2"]},
    {"name": "2", "central": "c2", "peripherals": ["p2.1", "p2.2", "b"]},
    {"name": "3", "central": "c3", "peripherals": ["b", "p3.1", "p3.2", "p3.3"]},
]
PLACES = {
    "c1": (0, 0), "p1.1": (-0.8, 0.9), "p1.2": (-1.2, 0), "p1.3": (-0.8, -0.9),
    "c2": (1.6, 0.3), "p2.1": (1.5, 1.4), "p2.2": (1.9, -0.9), "b": (3.0, 0.1),
    "c3": (4.4, 0.1), "p3.1": (5.2, 1.0), "p3.2": (5.6, 0.1), "p3.3": (5.2, -0.8),
}  # fmt: skip


def draw(work: Work) -> Iterator[Picture]:
    """Yield the network."""
    flows = [{"from": "p1.1", "to": "p3.1"}]
    scenario = Scenario.from_dict(
        {"network": {"topology": "custom", "piconet_list": PICONETS, "flows": flows}}
    )
    with house_style():
        figure = Figure(figsize=(8.0, 3.6), layout="constrained")
        axes = figure.subplots()
        draw_network(axes, scenario, PLACES, flows=False)
        figure.legend(handles=network_key(flows=False), loc="outside lower center", ncols=3)
        figure.suptitle(f"{work.citation}: piconets joined by bridges")
        yield Picture(figure)


if __name__ == "__main__":
    run_script(__file__)
