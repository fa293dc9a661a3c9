"""Every claim of Venugopal (2006) that simulations can check: the table of the documentation.

    python validation/published/claims_venugopal_2006.py

runs them (about ten minutes on two cores) and writes docs/explanation/claims-venugopal-2006.md.
"""

from collections import Counter
from functools import partial

from claim_pages import table, write
from claims import IN_PART, NOT_REPRODUCED, NOT_SIMULATED, REPRODUCED, Claim, Result, claims_of, judged, run
from venugopal_procedures import PROCEDURES

PAPER = "venugopal-2006"
HEADINGS = ("claim", "section", "published", "simulated", "verdict")
INTRODUCTION = """\
# The claims of Venugopal 2006

Each statement of the thesis that a simulation can check, beside what the simulation says. Written by
`python validation/published/claims_venugopal_2006.py` from `models/venugopal-2006/published.toml`, where
the scenarios, sweeps and tolerances of each claim stand. The scenarios follow the text of the thesis;
what it leaves open is in `models/venugopal-2006/README.md`. Goodput in kbit/s for each connection, times
in s, windows in segments, timeouts and fast retransmits per second and connection, losses as shares of
the packets offered.

* Simulated are 10 replications of 480 s after 60 s of warm-up, more where `published.toml` says so (20 to
  100 with bit errors); ± is the 95 % interval of the mean. A list is a sweep, in the order of
  `published.toml`.
* A value is reproduced if the interval touches the published value with its tolerance, which comes from
  the wording ("about", "roughly"): 10 % for goodputs, 15 to 25 % for round trips and windows, 20 % for
  goodputs with bit errors.
* A trend is reproduced if its slope is significant and no step goes significantly backward by more than 5
  % of the range; an order if each step is significant. Each test has a false-alarm rate of 0.1 %
  (one-sided t-test, paired replications).
* On a perfect radio each check runs twice: as it is, and with *jitter*, up to 2 ms of random processing
  at each sender, because a saturated piconet has several limit cycles and a run shows one of them. Both
  must hold.
* *fit* is the scenario fitted to the reported numbers (`…-errors-as-reported`). It is shown, and does not
  count.
* *in part*: some of the checks hold. ✓ and ✗ mark them. The name of a unit test stands for a mechanism
  that it checks.

Tolerances of values were fixed before any comparison. The set-up of a check was not always right at
first. These were changed after their first results were seen: Reno against NewReno moved to four
peripherals, where windows lose several segments; the bridge's absence is judged by delay and goodput, not
by the round trip, which lost segments shorten; the unfairness of the longest queue first is looked for
with a busy central; the poll of an absent bridge is counted together with the bridge's answer on arrival;
the dip of the window and the best token rate are compared with the means farthest off on either side, not
with the ends of the sweep, and the dip has 40 replications; the runs behind the 15 percent are longer,
because short runs overrate failures.

"""


Row = tuple[Claim, str, list[Result]]
"""A claim, its verdict and its checks."""


def main() -> None:
    """Judge all claims and write the page."""
    claims = claims_of(PAPER)
    found = run({name: partial(judged, claim, PROCEDURES, claims) for name, claim in claims.items()})
    write(PAPER, page([(claims[name], *outcome) for name, outcome in found.items()]))


def page(rows: list[Row]) -> list[str]:
    """Return the lines of the page: counts, the table, and why claims are not reproduced."""
    return [
        INTRODUCTION,
        f"Of {len(rows)} claims: {total(rows)}.",
        "",
        *table(HEADINGS, (cells(*row) for row in rows)),
        "",
        "## Not reproduced, or in part: why",
        *(
            f"\n{claim['statement']} *({verdict})*\n: {claim['why']}"
            for claim, verdict, _ in rows
            if verdict != REPRODUCED
        ),
    ]


def total(rows: list[Row]) -> str:
    """Return how many claims have each verdict."""
    counts = Counter(verdict for _, verdict, _ in rows)
    order = [REPRODUCED, IN_PART, NOT_REPRODUCED, NOT_SIMULATED]
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])


def cells(claim: Claim, verdict: str, found: list[Result]) -> list[str]:
    """Return one line of the table."""
    seen = "<br>".join(map(cell, found)) or "–"
    return [claim["statement"], claim["where"], claim["published"], seen, verdict]


def cell(result: Result) -> str:
    """Return a check as text: its name, what was seen, and whether it holds."""
    label = f"{result.label}: " if result.label else ""
    return f"{label}{result.finding.seen} {'✓' if result.finding.holds else '✗'}"


if __name__ == "__main__":
    main()
