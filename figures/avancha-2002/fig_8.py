"""Figure 8: TCP over CDPD session by session, messages of 4,096 bytes, beside those of 1,024.

As figure 7. The paper finds that large messages suffer more than small ones, and so does this: at bad times
a session of 4,096 bytes takes five times as long as at good ones, one of 1,024 bytes three times. At 4,096
bytes the modem's buffer refuses packets at good times, too, so that the efficiency is below 1 without any
loss on the air.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.avancha_2002 import TIMES, histories, played

CLAIMS = ("5.2.1-large-prone", "5.2.1-rssi")


def draw(work: Work) -> Iterator[Picture]:
    """Yield a hundred sessions of either size."""
    longer = {"run.duration_s": 6000}
    columns = {
        f"{size:,} byte": {
            label: played(work, "cdpd-tcp", size, longer, loss=rate).first(100)
            for label, rate in TIMES.items()
        }
        for size in (4096, 1024)
    }
    yield Picture(histories(columns, title=f"{work.citation}: TCP, a client at rest"))


if __name__ == "__main__":
    run_script(__file__)
