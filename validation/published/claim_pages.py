"""The pages of docs/explanation that show claims of publications beside what was simulated."""

from collections.abc import Callable, Iterable, Mapping

from claims import NOT_SIMULATED, ROOT, Claim, Comparison, claims_of, run, verdict
from judgement import Finding

PAGES = ROOT / "docs" / "explanation"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    names = list(headings)
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def write(paper: str, lines: Iterable[str]) -> None:
    """Write the page of a paper and say where it is."""
    path = PAGES / f"claims-{paper}.md"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    print(path)


def comparisons(found: Mapping[str, Comparison]) -> list[str]:
    """Return the table of claims that the paper's module words, with their verdicts."""
    rows = ([f"`{name}`", c.published, c.simulated, c.verdict] for name, c in found.items())
    return table(("claim", "published", "simulated", "verdict"), rows)


def write_recorded(
    paper: str, title: str, introduction: str, checks: Mapping[str, Callable[[], Finding]]
) -> None:
    """Run the checks, write the page with the verdicts on record and say which of them are others now."""
    claims, found = claims_of(paper), run(checks)
    write(
        paper,
        [
            f"# {title}",
            "",
            introduction,
            "",
            *recorded(claims, found),
            "",
            "## Where the simulation does not agree, and remarks",
            "",
            *remarks(claims),
        ],
    )
    changed = [name for name, finding in found.items() if verdict([finding.holds]) != claims[name]["verdict"]]
    print("not as on record:", ", ".join(changed) or "none")


def recorded(claims: Mapping[str, Claim], found: Mapping[str, Finding]) -> list[str]:
    """Return the table of claims that the record words, with the verdicts on record."""
    rows = (
        [
            f"{claim['where']}: {claim['statement']}",
            claim["published"],
            found[name].seen if name in found else NOT_SIMULATED,
            claim["verdict"],
        ]
        for name, claim in claims.items()
    )
    return table(("claim", "published", "simulated", "verdict"), rows)


def remarks(claims: Mapping[str, Claim]) -> list[str]:
    """Return the list of reasons on record."""
    return [
        f"* **{name}** ({claim['verdict']}): {claim['reason']}"
        for name, claim in claims.items()
        if "reason" in claim
    ]
