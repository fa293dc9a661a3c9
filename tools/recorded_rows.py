"""Rows of recorded comparisons in CSV files."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from btqueue.files import written_whole


def read(path: Path, kind: Any) -> list[Any]:
    """Return the rows of a file as named tuples of this kind; none if it is missing, or has other columns."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        columns, *rows = csv.reader(file)
    if tuple(columns) != kind._fields:
        return []
    types = kind.__annotations__.values()
    return [kind(*(of(cell) for of, cell in zip(types, row, strict=True))) for row in rows]


def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], digits: int = 6) -> None:
    """Write rows to a file, which a killed run leaves as it was."""
    with written_whole(path, replace=True) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([f"{x:.{digits}g}" if isinstance(x, float) else x for x in row] for row in rows)
