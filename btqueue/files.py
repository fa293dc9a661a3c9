"""Files: input files are read and shown with care, output files are written whole or not at all."""

from __future__ import annotations

import csv
import errno
import os
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LARGEST_BYTES = 50_000_000
"""Of a file of numbers that a scenario or a command names; some ten million of them."""

UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that steer a terminal, or that nobody sees: control and format
characters, halves of surrogate pairs, separators of lines and paragraphs."""

_unfinished: set[Path] = set()
"""Files that are being written."""


class UnusableFile(ValueError):
    """A file cannot be read. The message completes a sentence about it and holds nothing of its content."""


def require_regular(path: Path, most_bytes: int = LARGEST_BYTES) -> None:
    """Make sure that a file can be opened without waiting for ever, and read without filling the memory.

    Raises:
        UnusableFile: it is missing, a folder, a pipe or a device, or too large.
    """
    try:
        _require_regular(os.stat(path), most_bytes)
    except (OSError, ValueError) as error:
        raise _unreadable(error) from None


def read_bytes(path: Path, most_bytes: int = LARGEST_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        UnusableFile: it is missing, no regular file, too large, or may not be read.
    """
    try:
        with open(_opened(path, os.O_RDONLY, most_bytes), "rb") as file:
            content = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(error) from None
    if len(content) > most_bytes:  # some systems tell no size beforehand
        raise _too_large(most_bytes)
    return content


def open_ours(path: Path) -> int:
    """Return the descriptor of a regular file, open to read it and to add to it; no link is followed.

    Raises:
        UnusableFile: there is a link, a pipe or a device.
        OSError: there is nothing, or a folder (`IsADirectoryError`), or the file system refuses.
    """
    return _opened(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW, sys.maxsize)


def _opened(path: Path, flags: int, most_bytes: int) -> int:
    """Open a regular file: one is there before, for opening a device may do something, and it was opened."""
    _require_regular(os.stat(path, follow_symlinks=not flags & os.O_NOFOLLOW), most_bytes)
    file = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # it may have become a pipe since
    try:
        _require_regular(os.fstat(file), most_bytes)
    except BaseException:
        os.close(file)
        raise
    return file


def _require_regular(found: os.stat_result, most_bytes: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISLNK(found.st_mode):
        raise UnusableFile("is a link, which is not followed")
    if not stat.S_ISREG(found.st_mode):
        raise UnusableFile("is no regular file: pipes and devices are not read")
    if found.st_size > most_bytes:
        raise _too_large(most_bytes)


def _too_large(most_bytes: int) -> UnusableFile:
    return UnusableFile(f"is too large: more than {most_bytes:,} bytes")


def _unreadable(error: OSError | ValueError) -> UnusableFile:
    if isinstance(error, UnusableFile):
        return error
    return UnusableFile(f"cannot be read ({getattr(error, 'strerror', None) or error})")


def require_writable(path: Path, *, replace: bool) -> None:
    """Make sure that a file can be written at *path*, as far as can be told beforehand.

    Args:
        path: where; its name may be anything.
        replace: whether a regular file may be there already.

    Raises:
        FileExistsError: there is one, and *replace* is false.
        OSError: there is a folder, a link, a pipe or a device; the folder is missing or read-only; the name
            is none.
    """
    folder = path.parent
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, f"the folder {folder} cannot be written to")
    try:
        there = path.lstat().st_mode
    except FileNotFoundError:
        return
    except ValueError as error:  # a zero byte in the name
        raise OSError(errno.EINVAL, str(error)) from None
    if stat.S_ISDIR(there):
        raise IsADirectoryError(errno.EISDIR, "is a folder, give a file")
    if not stat.S_ISREG(there):
        what = "link" if stat.S_ISLNK(there) else "pipe or a device"
        raise OSError(errno.EINVAL, f"is a {what}, which is not replaced; give another name")
    if not replace:
        raise FileExistsError(errno.EEXIST, "exists already")


def printable(text: str, *, kept: str = "\n\t") -> str:
    r"""Return *text* with escapes such as ``\x1b`` in place of all unseen characters but *kept*.

    Text from a file may otherwise move a terminal's cursor, change its title, or hide earlier lines.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c in kept or unicodedata.category(c) not in UNSEEN else c.encode("unicode_escape").decode()
        for c in text
    )


@contextmanager
def written_whole(path: Path, *, replace: bool) -> Iterator[Path]:
    """Yield a path beside *path* to write a file to; move it there when the block has ended.

    After an exception the new file is removed, and *path* is as it was before.

    Args:
        path: where the file shall be in the end.
        replace: whether a regular file may be there already; a folder, a link, a pipe or a device never.

    Raises:
        OSError: the file system refuses, or there is something by now that may not be replaced.
    """
    # Nobody else knows the name, so no link can have been put there.
    part = path.with_name(f".btqueue-{os.urandom(8).hex()}.part")
    _unfinished.add(part)
    try:
        yield part
        _sync(part)
        if replace:
            require_writable(path, replace=True)
            os.replace(part, path)
        else:
            _move_to_free_place(part, path)
        _sync(path.parent)
    finally:
        _remove(part)
        _unfinished.discard(part)


def write_rows(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Write a table as CSV, its heading first; an empty field stands for NaN.

    Raises:
        OSError: the file system refuses.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(["" if cell != cell else cell for cell in row] for row in rows)


def discard_unfinished() -> None:
    """Remove all unfinished files, for a process that ends at once."""
    for part in list(_unfinished):
        _remove(part)


def _remove(part: Path) -> None:
    with suppress(OSError):
        part.unlink(missing_ok=True)


def _move_to_free_place(part: Path, path: Path) -> None:
    """Give *part* the name *path* if nothing has it.

    Raises:
        FileExistsError: something has it.
    """
    try:
        os.link(part, path)  # unlike a renaming, it fails if something is there
    except OSError as error:
        if isinstance(error, FileExistsError) or os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "something of that name has appeared meanwhile") from None
        os.rename(part, path)  # a file system without links


def _sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
