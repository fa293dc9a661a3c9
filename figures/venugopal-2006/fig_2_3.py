"""Figure 2.3: queueing model of a piconet with a bridge.

As figure 2.2, with the bridge as a further member: it has an uplink queue for each piconet, and no token
buffer. Drawn from the queues that the simulator sets up for the scatternet; the second piconet is the mirror
image.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.queueing_diagram import queueing_model


def draw(work: Work) -> Iterator[Picture]:
    """Yield the queues of the first piconet of a scatternet."""
    title = f"{work.citation}: queues of a piconet with a bridge"
    yield Picture(queueing_model(work.scenario("scatternet-2"), title))


if __name__ == "__main__":
    run_script(__file__)
