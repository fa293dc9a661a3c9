"""Figure 11: CentaurusComm over CDPD session by session, messages of 4 KB (caption) or 8 KB (text).

Caption and text of the paper contradict each other, so both are drawn. As in figure 10, signal strength,
congestion of the cell and ejection from the channel are not in the simulator, and peaks are lost control
messages (the watchdog, 10 s each) and rounds of packets that are sent again, 2 s each.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.avancha_2002 import TIMES, histories, played

CLAIMS = ("5.2.2-peaks-ejection",)


def draw(work: Work) -> Iterator[Picture]:
    """Yield a hundred sessions of either size."""
    longer = {"run.duration_s": 4000}
    columns = {
        f"{size:,} byte": {
            label: played(work, "cdpd-centaurus", size, longer, loss=rate).first(100)
            for label, rate in TIMES.items()
        }
        for size in (4096, 8192)
    }
    yield Picture(histories(columns, title=f"{work.citation}: CentaurusComm, a client at rest"))


if __name__ == "__main__":
    run_script(__file__)
