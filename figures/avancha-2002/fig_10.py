"""Figure 10: CentaurusComm over CDPD session by session, messages of 1 KB (caption) or 128 bytes (text).

Caption and text of the paper contradict each other, so both are drawn. Signal strength and congestion of
the cell, which the paper plots as well, are not in the simulator; nor is the ejection of a modem from its
channel, which the paper makes responsible for most peaks. Here peaks are lost control messages, after which
a session hangs until the watchdog (10 s, our reading), and data packets that are sent again.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.avancha_2002 import TIMES, histories, played

CLAIMS = ("5.2.2-peaks-ejection",)


def draw(work: Work) -> Iterator[Picture]:
    """Yield a hundred sessions of either size."""
    longer = {"run.duration_s": 3000}
    columns = {
        f"{size:,} byte": {
            label: played(work, "cdpd-centaurus", size, longer, loss=rate).first(100)
            for label, rate in TIMES.items()
        }
        for size in (1024, 128)
    }
    yield Picture(histories(columns, title=f"{work.citation}: CentaurusComm, a client at rest"))


if __name__ == "__main__":
    run_script(__file__)
