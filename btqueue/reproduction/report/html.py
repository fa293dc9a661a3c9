"""The report as one HTML page that needs no other file: the Markdown report with style."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import count

from markdown_it import MarkdownIt

from btqueue.reproduction.claims.record import NO_MODEL, VERDICTS
from btqueue.reproduction.report.markdown import claim_row, markdown
from btqueue.reproduction.report.sentences import TITLE, Report, citation

VERDICT = re.compile(rf"<td>({'|'.join((*VERDICTS, NO_MODEL))})(.*?)</td>")
HEADING = re.compile(r"<h2>(.*?)</h2>")


def page(report: Report) -> str:
    """Return the whole page."""
    setter = MarkdownIt("commonmark", {"html": False}).enable("table")
    body = setter.render(markdown(report)).replace("&lt;br&gt;", "<br>")
    body = VERDICT.sub(_marked, body)
    for paper, outcomes in reversed(report.papers().items()):  # two publications may share the id of a claim
        before, heading, section = body.partition(f"<h2>{citation(paper)}</h2>")
        for one in outcomes:
            name, cell = one.claim["id"], setter.renderInline(claim_row(one)[1])
            row = f"{paper}-{name}"
            section = section.replace(f"<td>{cell}", f'<td id="{row}">{cell}', 1)
            section = section.replace(f"<strong>{name}</strong>", f'<a href="#{row}"><b>{name}</b></a>', 1)
        body = before + heading + section
    parts = enumerate(HEADING.findall(body))
    links = "".join(f'<li><a href="#part-{place}">{text}</a></li>' for place, text in parts)
    places = count()
    body = HEADING.sub(lambda found: f'<h2 id="part-{next(places)}">{found[1]}</h2>', body)
    body = body.replace("<h2", f'<nav aria-label="Contents"><ul>{links}</ul></nav><h2', 1)
    shell = files("btqueue.reproduction.report").joinpath("page.html").read_text("utf-8")
    return shell.replace("<!-- title -->", TITLE).replace("<!-- body -->", body)


def _marked(found: re.Match[str]) -> str:
    """Return a cell that begins with a verdict, with the verdict's style."""
    return f'<td><b class="{found[1].replace(" ", "-")}">{found[1]}</b>{found[2]}</td>'
