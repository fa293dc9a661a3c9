"""Tables of texts, for a notebook and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

Row = tuple[str, ...]


@dataclass(frozen=True)
class TextTable:
    """A table of texts with a title, and lines below it; a row without cells is a gap.

    A notebook shows it as HTML, `print` as text.
    """

    title: str
    columns: Row
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        widths = [
            max(map(len, column)) for column in zip(self.columns, *filter(None, self.rows), strict=True)
        ]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
            for row in (self.columns, *self.rows)
        ]
        return "\n".join([self.title, "", *lines, "", *self.notes]).rstrip()

    def _repr_html_(self) -> str:
        body = "".join(_html_row(row or ("\N{NO-BREAK SPACE}",), "td") for row in self.rows)
        notes = "".join(f"<div>{escape(note)}</div>" for note in self.notes)
        table = f"<table><thead>{_html_row(self.columns, 'th')}</thead><tbody>{body}</tbody></table>"
        return f"<div><strong>{escape(self.title)}</strong>{table}{notes}</div>"


def _html_row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
