"""Figure 7: TCP over CDPD session by session, downtown, messages of 1 KB.

As figure 6, for a client that stays in one place: no outages, at good and at bad times (0.1 and 2 % of the
blocks lost; the paper's error rates stand in its pictures only). Signal strength, of which this figure
shows that it hardly matters, and congestion of the cell are not in the simulator.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.avancha_2002 import TIMES, histories, played

CLAIMS = ("5.2.1-rssi", "5.2.1-bler", "5.2.1-locations")


def draw(work: Work) -> Iterator[Picture]:
    """Yield a hundred sessions at good and at bad times."""
    column = {label: played(work, "cdpd-tcp", 1024, loss=rate).first(100) for label, rate in TIMES.items()}
    yield Picture(histories({"1,024 byte": column}, title=f"{work.citation}: TCP, a client at rest"))


if __name__ == "__main__":
    run_script(__file__)
