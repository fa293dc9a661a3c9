"""Figure 6.16: scatternets of 2, 4 and 6 peripherals a piconet, bit errors, over load and token buffer.

Goodput, round-trip time, congestion window, timeouts and fast retransmits over the offered load of each
connection and the size S of the token buffer (M = 5, L = 20; token rates 120, 70 and 50 kbit/s; bit error
rates of chapter 6).

The text of the thesis leads to less than half of the goodput that it reports. The pictures "fitted" show the
scenarios that were fitted to its numbers: no doubling of the timer, one fading process for all links of a
piconet, whole segments refused at S.
"""

from collections.abc import Iterator

from btqueue.cli.figures import run_script
from btqueue.reproduction.figures import Picture, Work
from btqueue.reproduction.figures.venugopal_2006 import BUFFERS, SCATTERNET_LOADS, pages

CLAIMS = ("errors-timeouts-dominate", "rtt-with-hops")


def draw(work: Work) -> Iterator[Picture]:
    """Yield curves and surfaces."""
    return pages(
        work,
        "scatternet-errors-{n}",
        SCATTERNET_LOADS,
        BUFFERS,
        numbers=(2, 4, 6),
        claims=CLAIMS,
        fitted="scatternet-errors-as-reported-{n}",
    )


if __name__ == "__main__":
    run_script(__file__)
