"""Text, TOML and tables that others wrote: byte order marks, trailing commas, columns of one name."""

from __future__ import annotations

import codecs
import csv
import io
import re
import tomllib
from bisect import bisect_left
from importlib.resources import files
from typing import Any


def table_beside(package: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of ours that lies beside the modules of a package, by column."""
    text = files(package).joinpath(name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

Rows = list[tuple[int, list[str]]]
"""Number of the line, from 1, and one cell for each column."""


MANY_PARTS = re.compile(r"""(?<![\w'"-])(?:[\w'"-]++[ \t]*+\.[ \t]*+){100}""")
"""A dotted key of more parts than any scenario has: tomllib takes time by their square."""


class BadText(ValueError):
    """Bytes are no text, or a text is no table; the message names the line."""


def decoded(content: bytes) -> str:
    """Return bytes as text: as their byte order mark says, else in UTF-8.

    Raises:
        BadText: they are not in that encoding, or hold zero bytes, as no text does.
    """
    encoding = next((known for mark, known in BYTE_ORDER_MARKS if content.startswith(mark)), "utf-8")
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

    Empty lines, and lines that begin with #, are skipped. Columns without a name and without a value, which
    spreadsheets leave behind, are dropped.

    Args:
        text: text of the file.
        delimiters: delimiters of columns; the most frequent in the heading is used.

    Raises:
        BadText: a quotation mark is not closed, a field is too long, a row has more fields than the heading
            or a value in a column without a name, or two columns have one name.
    """
    every = io.StringIO(text, newline="")  # with line ends of any system
    lines = [line if line.strip() and not line.startswith("#") else "\n" for line in every]
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
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        if name and first.setdefault(name, place) != place:
            raise BadText(f'columns {first[name] + 1} and {place + 1} are both called "{name}"')
    for line, row in rows:  # in steps as many as the row has cells: the header may be far longer
        if any(row[len(names) :]):
            raise BadText(f"line {line}: has more fields than the header")
        for place, (name, cell) in enumerate(zip(names, row, strict=False)):
            if cell and not name:
                raise BadText(f'line {line}: "{cell[:40]}" stands in column {place + 1}, which has no name')
    kept = sorted(first.values())
    return [names[place] for place in kept], [
        (line, [row[place] for place in kept[: bisect_left(kept, len(row))]]) for line, row in rows
    ]


class BadToml(ValueError):
    """A text is no TOML of a scenario; the message says why, to be written behind the name of the text."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML text.

    Raises:
        BadToml: it is no TOML (with the line), or nests tables or lists too deeply.
    """
    if found := MANY_PARTS.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise BadToml(f"has a key of more than 100 parts (at line {line})")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadToml(f"is no valid TOML: {error}") from None
    except ValueError:  # Python refuses to read whole numbers of thousands of digits
        raise BadToml("holds a number with too many digits") from None
    except RecursionError:
        raise BadToml("nests lists or tables too deeply") from None
