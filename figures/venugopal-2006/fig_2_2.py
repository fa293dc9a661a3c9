"""Figure 2.2: queueing model of a piconet.

One server, the central, polls in turn. Each peripheral has an uplink queue, behind its token buffer, and the
central a downlink queue for each peripheral. Drawn from the queues that the simulator sets up for the
scenario.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.queueing_diagram import queueing_model


def draw(work: Work) -> Iterator[Picture]:
    """Yield the queues of a piconet of four."""
    yield Picture(queueing_model(work.scenario("piconet-4"), f"{work.citation}: queues of a piconet"))


if __name__ == "__main__":
    run_script(__file__)
