"""Every claim of Venugopal (2006) that simulations can check: the table of the documentation.

    python validation/published/claims_venugopal_2006.py

runs them (about ten minutes on two cores) and writes docs/explanation/claims-venugopal-2006.md.
"""

import sys
import tomllib
from collections import Counter
from typing import Any

from claims import IN_PART, NOT_REPRODUCED, NOT_SIMULATED, REPRODUCED, ROOT, Claim, Result, judged
from venugopal_procedures import PROCEDURES

from btqueue.scenario.library import models_folder

PAGE = ROOT / "docs" / "explanation" / "claims-venugopal-2006.md"
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


def record() -> dict[str, Claim]:
    """Return the claims, by id."""
    text = (models_folder() / "venugopal-2006" / "published.toml").read_text("utf-8")
    return {claim["id"]: claim for claim in tomllib.loads(text)["claim"]}


def main() -> None:
    """Judge all claims and write the page."""
    claims, rows = record(), []
    for number, claim in enumerate(claims.values(), start=1):
        verdict, found = judged(claim, PROCEDURES, claims)
        print(f"{number}/{len(claims)} {claim['id']}: {verdict}", file=sys.stderr, flush=True)
        for result in found:
            print("    ", result.label, *result.finding, file=sys.stderr, flush=True)
        rows.append((claim, verdict, found))
    PAGE.write_text(page(rows), "utf-8")


def page(rows: list[tuple[Claim, str, list[Result]]]) -> str:
    """Return the page: counts, the table, and why claims are not reproduced."""
    counts = Counter(verdict for _, verdict, _ in rows)
    order = [REPRODUCED, IN_PART, NOT_REPRODUCED, NOT_SIMULATED]
    total = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
    lines = [INTRODUCTION, f"Of {len(rows)} claims: {total}.\n"]
    lines += ["| claim | section | published | simulated | verdict |", "|---|---|---|---|---|"]
    lines += [row(*entry) for entry in rows]
    lines += ["", "## Not reproduced, or in part: why", ""]
    for claim, verdict, _ in rows:
        if verdict != REPRODUCED:
            lines.append(f"{claim['statement']} *({verdict})*\n: {claim['why']}\n")
    return "\n".join(lines)


def row(claim: Claim, verdict: str, found: list[Result]) -> str:
    """Return one line of the table."""
    seen = "<br>".join(map(cell, found)) or "–"
    return f"| {claim['statement']} | {claim['where']} | {claim['published']} | {seen} | {verdict} |"


def cell(result: Result) -> str:
    """Return a check as text: its name, what was seen, and whether it holds."""
    label = f"{result.label}: " if result.label else ""
    mark: Any = "✓" if result.finding.holds else "✗"
    return f"{label}{result.finding.seen} {mark}"


if __name__ == "__main__":
    main()
