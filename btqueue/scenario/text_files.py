"""Text and tables that other programs wrote: byte order marks, trailing commas, columns of one name."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

Rows = list[tuple[int, list[str]]]
"""Number of the line, from 1, and one cell for each column."""


class BadText(ValueError):
    """Bytes are no text, or a text is no table; the message names the line."""


def decoded(content: bytes, encoding: str = "utf-8") -> str:
    """Return bytes as text: as their byte order mark says, else in *encoding*.

    Raises:
        BadText: they are not in that encoding, or hold zero bytes, as no text does.
    """
    for mark, by_mark in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            encoding = by_mark
            break
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        place = f" (byte {error.start + 1:,})" if isinstance(error, UnicodeDecodeError) else ""
        name = encoding.removesuffix("-sig").upper()
        raise BadText(f"is no text in {name}{place}: save it as UTF-8") from None
    if (zero := text.find("\0")) >= 0:
        raise BadText(f"line {text.count(chr(10), 0, zero) + 1}: has a zero byte, so it is no text")
    return text


def read_table(text: str, delimiters: str = ",") -> tuple[list[str], Rows]:
    """Return the names of the columns of a CSV text, and its rows.

    Lines that are empty or begin with # are none. Columns without a name and without a value, which
    spreadsheets leave behind, are dropped; so is the second of two columns of one name that are equal.

    Args:
        text: of the file.
        delimiters: of columns; the one that the heading has most of is taken.

    Raises:
        BadText: a quotation mark is not closed, a field is too long, a row has more fields than the heading
            or a value in a column without a name, or two columns of one name differ.
    """
    lines = [line if line.strip() and not line.startswith("#") else "\n" for line in _lines(text)]
    heading = next((line for line in lines if line != "\n"), "")
    reader = csv.reader(iter(lines), delimiter=max(delimiters, key=heading.count), strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except csv.Error as error:
        reason = "a quotation mark is not closed" if "unexpected end" in str(error) else str(error)
        if "field limit" in reason:
            reason = f"a field is longer than {csv.field_size_limit():,} characters"
        raise BadText(f"line {reader.line_num}: {reason}") from None
    if not rows:
        return [], []
    names, rows = rows[0][1], [(line, row) for line, row in rows[1:] if any(row)]
    for line, row in rows:
        if any(row[len(names) :]):
            raise BadText(f"line {line}: has more fields than the header")
        for column, (name, cell) in enumerate(zip(names, row, strict=False), start=1):
            if cell and not name:
                raise BadText(f'line {line}: "{cell[:40]}" stands in column {column}, which has no name')
    kept = [place for place, name in enumerate(names) if name and name not in names[:place]]
    for place, name in enumerate(names):
        if name and place not in kept:
            _require_equal(rows, names.index(name), place, name)
    return [names[place] for place in kept], [
        (line, [row[place] for place in kept if place < len(row)]) for line, row in rows
    ]


def _lines(text: str) -> Iterator[str]:
    """Yield lines with their ends, of any system."""
    return iter(io.StringIO(text, newline=""))


def _require_equal(rows: Rows, first: int, second: int, name: str) -> None:
    for line, row in rows:
        cells = [row[place] if place < len(row) else "" for place in (first, second)]
        if cells[0] != cells[1]:
            raise BadText(
                f'columns {first + 1} and {second + 1} are both called "{name}", and differ in line {line}: '
                f'"{cells[0][:40]}" and "{cells[1][:40]}"'
            )
