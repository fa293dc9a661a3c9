"""The pages of docs/explanation about the claims of each publication, and what other readings would change.

    btqueue validate --out FOLDER
    python validation/published/write_pages.py FOLDER

The first command judges all claims (a quarter of an hour on two cores) and writes FOLDER/report.md, which is
copied to docs/explanation/reproduction.md; what it found is known to this script, which writes
docs/explanation/claims-<paper>.md in a minute or two.
"""

import shutil
import sys
from pathlib import Path

from btqueue.cli.engines import keep_compiled_models
from btqueue.cli.validate_report import report_of
from btqueue.reproduction.claims.chen_2004 import readings as chen
from btqueue.reproduction.claims.engines import Engine, Model, Simulator
from btqueue.reproduction.claims.johansson_2000 import readings as johansson
from btqueue.reproduction.claims.record import PAPERS, claims_of
from btqueue.reproduction.report.judging import judge_all
from btqueue.reproduction.report.markdown import section, table
from btqueue.reproduction.report.store import Store
from btqueue.reproduction.report.words import citation

PAGES = Path(__file__).parents[2] / "docs" / "explanation"


def chen_readings(engine: Engine) -> list[str]:
    """Return the sections about the trace and about other readings."""
    headings = ("1 hop", "2 hops", "4 hops")
    return [
        "## A trace of link quality",
        "",
        "Mean goodput over 600 s, kbit/s, with the synthetic trace of `models/chen-2004/link-quality.txt`:",
        "",
        *table(("link", *headings), chen.trace(engine)),
        "",
        "## Readings",
        "",
        "Goodput at a bit error rate of 5e-4, kbit/s, regular / adaptive:",
        "",
        *table(("reading", *headings), chen.readings(engine)),
        "",
    ]


def johansson_readings(engine: Engine) -> list[str]:
    """Return the section about other readings."""
    return [
        "## Readings",
        "",
        "Saturated goodput (kbit/s, each way) and delay at a load of 82 kbit/s each way (ms), PEP 0.3:",
        "",
        *table(("reading", "asymmetric", "symmetric", "delay"), johansson.readings(engine)),
        "",
        "A link whose return packets have one slot only cannot be said with the scenario's keys: packet",
        "types hold for both directions. A separate acknowledgement is one DH3 here; there it would be",
        "three DH1, which ride in the one-slot answers at no cost: 653 kbit/s by the count of slots in",
        "place of 630.",
        "",
    ]


READINGS = {"chen-2004": chen_readings, "johansson-2000": johansson_readings}


def main(folder: Path) -> None:
    """Write all pages."""
    shutil.copyfile(folder / "report.md", PAGES / "reproduction.md")
    keep_compiled_models()
    simulator = Simulator()
    store = Store(quick=False)
    wanted = [(paper, claim) for paper in PAPERS for claim in claims_of(paper).values()]
    report = report_of(judge_all(wanted, simulator, Model(), store), {}, quick=False, wall_s=0.0)
    for paper, outcomes in report.papers().items():
        more = READINGS[paper](simulator) if paper in READINGS else []
        lines = [
            f"# Claims of {citation(paper)}",
            "",
            "Written by `validation/published/write_pages.py` after `btqueue validate`. How to read it is",
            "said in [the report on all publications](reproduction.md).",
            "",
            *section(report, paper, outcomes),
            *more,
        ]
        path = PAGES / f"claims-{paper}.md"
        path.write_text("\n".join(lines).rstrip("\n").replace("\n### ", "\n## ") + "\n", "utf-8")
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
