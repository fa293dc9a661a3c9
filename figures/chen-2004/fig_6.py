"""Figure 6: goodput in each ten seconds with a bit error rate that alternates every second, 1, 2 and 4 hops.

The bit error rate is 0.0001 for a second, then 0.0005 for a second; ten seconds hold five of each, so only
TCP varies. Markers: a single run of 600 s. Lines: the model's mean. The paper's values are not printed; its
text says that the adaptive link is far better in every case.
"""

from collections.abc import Iterator

from btqueue.reproduction.figures.chen_2004 import over_time
from btqueue.reproduction.figures.work import Picture, Work

CLAIMS = ("alternating",)


def draw(work: Work) -> Iterator[Picture]:
    """Yield a panel for each number of hops."""
    yield Picture(
        over_time(
            work,
            lambda link, hops: work.scenario(f"alternating-{link}", {"network.hops": hops}),
            note="Markers: every 10 s of one simulated run. Lines: mean by the model.",
        )
    )
