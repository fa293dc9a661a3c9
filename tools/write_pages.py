"""The pages of docs/explanation about the claims of each publication, and what other readings would change.

    btqueue validate --out FOLDER
    python tools/write_pages.py FOLDER

The first command judges all claims (a quarter of an hour on two cores) and writes FOLDER/report.md.
Its summary goes to docs/explanation/reproduction.md. The verdicts are kept, so that this
script writes docs/explanation/claims-<paper>.md in a minute or two.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from btqueue.cli.engines import keep_compiled_models
from btqueue.cli.validate_report import report_of
from btqueue.reproduction.answer_cache import Store
from btqueue.reproduction.claims.engines import Engine, Model, Simulator
from btqueue.reproduction.claims.judgement import interval, shown
from btqueue.reproduction.claims.record import PAPERS, VERDICTS, claims_of
from btqueue.reproduction.report.judging import judge_all
from btqueue.reproduction.report.markdown import section, table
from btqueue.reproduction.report.sentences import CLAIM_HEADINGS, citation
from btqueue.scenario import load

PAGES = Path(__file__).parents[1] / "docs" / "explanation"

LINKS = ("regular", "adaptive")
AS_SHIPPED = "as in the scenarios"

CHEN: dict[str, dict] = {
    AS_SHIPPED: {},
    "500 bytes with headers": {"traffic__message_bytes": 460, "transport__mss_bytes": 460},
    "receive window 8 segments": {"transport__receive_window_segments": 8},
    "receive window 64 segments": {"transport__receive_window_segments": 64},
    "least timeout 0.2 s in place of 1 s": {"transport__min_rto_s": 0.2},
    "Tahoe": {"transport__variant": "tahoe"},
    "Reno": {"transport__variant": "reno"},
    "estimate from the link quality": {"link__adaptation_estimate": "link-quality"},
    "acknowledgement bit lost with its packet": {"link__arq_feedback": "lossy"},
    "errors also in access code, headers, CRC": {"radio__bits": "on-air"},
    "one exchange a visit": {"polling__discipline": "1-limited"},
    "central/peripheral as bridge": {"network__bridge": "MS"},
}
"""Other readings of open points, as changes of the scenarios."""

JOHANSSON: dict[str, dict] = {
    AS_SHIPPED: {},
    "DH1 only, as section 4.2 says": {"link__packets": ("DH1",)},
    "DH5 only": {"link__packets": ("DH5",)},
    "acknowledgement bit lost with its packet": {"link__arq_feedback": "lossy"},
    "TCP and IP delays of 1 ms": {"transport__tcp_delay_s": 1e-3, "transport__ip_delay_s": 1e-3},
    "least timeout 0.2 s in place of 1 s": {"transport__min_rto_s": 0.2},
    "Vegas once in a round trip (Linux)": {"transport__vegas_adjustment": "per-rtt"},
}
"""The same of the other paper."""


def chen_reading(engine: Engine, changes: dict) -> list[str]:
    """Return regular / adaptive goodput (kbit/s) over each number of hops, at a bit error rate of 5e-4."""
    at = {"radio__ber": 5e-4, "run__replications": 5, **changes}
    pairs = (
        [engine.sample(load(f"chen-2004/{link}-{hops}"), "goodput_kbps", **at) for link in LINKS]
        for hops in (1, 2, 4)
    )
    return [" / ".join(f"{one.mean():.0f}" for one in pair) for pair in pairs]


def johansson_reading(engine: Engine, changes: dict) -> list[str]:
    """Return saturated goodputs (kbit/s, one way and both ways) and the delay (ms) at load 0.3, PEP 0.3."""
    at = {"radio__per": 0.3, **changes}
    asymmetric, symmetric, smooth = (
        load(f"johansson-2000/{name}") for name in ("asymmetric", "symmetric", "smooth")
    )
    kbps = 0.3 * float(engine.sample(symmetric, "goodput_kbps", radio__per=0.3).mean())
    one_way = engine.sample(asymmetric, "goodput_kbps", **at)
    both = engine.sample(symmetric, "goodput_kbps", **at)
    delay = engine.sample(smooth, "acknowledged_delay_s", **at, traffic__load_kbps=kbps)
    overloaded = kbps > 0.9 * interval(both)[0]
    return [shown(one_way, 4), shown(both, 4), "overload" if overloaded else shown(1000 * delay, 4)]


READINGS = {
    "chen-2004": (
        "Goodput at a bit error rate of 5e-4, kbit/s, regular / adaptive:",
        ("1 hop", "2 hops", "4 hops"), chen_reading, CHEN, "",
    ),
    "johansson-2000": (
        "Saturated goodput (kbit/s, each way) and delay at a load of 82 kbit/s each way (ms), PEP 0.3:",
        ("asymmetric", "symmetric", "delay"), johansson_reading, JOHANSSON,
        "No key gives a link whose return packets have one slot only: packet types hold for both\n"
        "directions. A separate acknowledgement is one DH3 here. On such a link it would be three DH1,\n"
        "which the one-slot answers carry at no cost: 653 kbit/s by the count of slots in place of 630.\n",
    ),
}  # fmt: skip
"""What a table of other readings shows, its columns, the cells of a reading, the readings, and a remark."""


def readings(paper: str, engine: Engine) -> list[str]:
    """Return the section about other readings, if there is one."""
    if paper not in READINGS:
        return []
    about, columns, cells, changes_of, remark = READINGS[paper]
    rows = [[name, *cells(engine, changes)] for name, changes in changes_of.items()]
    return ["## Readings", "", about, "", *table(("reading", *columns), rows), "", *remark.splitlines(), ""]


def summary(report: str) -> str:
    """Return a report with links to the pages of the publications in place of their sections."""
    for paper in PAPERS:
        own = re.compile(rf"^## {re.escape(citation(paper))}$.*?^(?=## )", re.MULTILINE | re.DOTALL)
        report = own.sub("", report)
    links = [f"* [Claims of {citation(paper)}](claims-{paper}.md)" for paper in PAPERS]
    return report.replace("## Made with", "\n".join(["## Claim by claim", "", *links, "", "## Made with"]))


def folded(lines: Iterable[str]) -> Iterator[str]:
    """Yield a page's lines with the table of claims in blocks that open, one for each verdict."""
    columns = len(CLAIM_HEADINGS)
    for is_claims, part in groupby(
        lines, lambda line: line.startswith("|") and line.count("|") == columns + 1
    ):
        if not is_claims:
            yield from part
            continue
        heading, rule, *rows = part
        of_verdict: dict[str, list[str]] = {}
        for row in rows:
            of_verdict.setdefault(row[2:].partition(" |")[0], []).append(row)
        for verdict in sorted(of_verdict, key=VERDICTS.index):
            yield from (
                f":::{{dropdown}} {len(of_verdict[verdict])} {verdict}",
                ":class-container: claims",
                "",
            )
            yield from (heading, rule, *of_verdict[verdict], ":::", "")


def main(folder: Path) -> None:
    """Write all pages."""
    report_of_all = (folder / "report.md").read_text("utf-8")
    (PAGES / "reproduction.md").write_text(summary(report_of_all), "utf-8")
    keep_compiled_models()
    simulator = Simulator()
    store = Store()
    wanted = [(paper, claim) for paper in PAPERS for claim in claims_of(paper).values()]
    report = report_of(judge_all(wanted, simulator, Model(), store), wall_s=0.0)
    for paper, outcomes in report.papers().items():
        lines = [
            f"# Claims of {citation(paper)}",
            "",
            "Written by `tools/write_pages.py` after `btqueue validate`.",
            "[The report on all publications](reproduction.md) says how to read it.",
            "",
            *section(paper, outcomes),
            *readings(paper, simulator),
        ]
        path = PAGES / f"claims-{paper}.md"
        page = "\n".join(folded(lines)).rstrip("\n").replace("\n### ", "\n## ")
        path.write_text(f"{page}\n", "utf-8")
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
