"""The journal of a sweep: every finished point on disk at once, whatever happens to the process.

The journal is a file of lines in a folder beside the result, `RESULT.partial/journal`. Each line holds the
length and the CRC-32 of its text, and the text, which is JSON: first what the sweep is, then one line a
finished point. Lines are only ever added. A process that is killed while it writes leaves a last line without
an end, which is dropped. Any other line that does not fit its length or checksum is damage: it is reported
and passed over, and its point is computed again.

The checksum of a point begins from that of the definition. So points are known as those of this sweep even
where the first line is damaged.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from btqueue.study.evaluate import Answer, Failure, PointResult
from btqueue.study.summary import Estimate

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 2
"""Of the journal; one of another format is refused."""

SYNC_EVERY_S = 0.05
"""Least time between two orders to the disk. What was written before one survives the end of the process in
any case, and after it the end of the machine too."""


class StoreError(ValueError):
    """A sweep's files cannot be used; the message says why. Nothing was changed."""


class Unwritten(StoreError):
    """A sweep is complete, and its result cannot be written; it is `dataset`, and in the journal."""

    def __init__(self, message: str, dataset: xr.Dataset) -> None:
        """Keep the result."""
        super().__init__(message)
        self.dataset = dataset


class Journal:
    """The journal of one sweep, open for writing by one process; use it as a context."""

    def __init__(self, folder: Path, definition: Mapping[str, Any], *, anew: bool = False) -> None:
        """Open the journal in *folder*, a new one if there is none.

        Args:
            folder: where it is.
            definition: of the sweep.
            anew: begin a new one in place of a journal that is damaged or of another sweep.

        Raises:
            StoreError: another process writes it, it is damaged or of another sweep, or the disk refuses.
        """
        self.folder, self.path = folder, folder / "journal"
        self.done: set[int] = set()
        self.notes: list[str] = []
        self._start = zlib.crc32(json.dumps(definition, sort_keys=True).encode())
        self._synced = 0.0
        try:
            self._lock = _locked(folder)
        except OSError as error:
            raise StoreError(f"{folder}: cannot be written ({error.strerror or error})") from None
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                try:
                    self._size = self._look_over(definition)
                except StoreError:
                    if not anew:
                        raise
                    self._size, self.done = 0, set()
                os.ftruncate(self._file, self._size)
                os.lseek(self._file, self._size, os.SEEK_SET)
                if not self._size:
                    self._append(_line(definition))
                    self.sync()
            except BaseException:
                os.close(self._file)
                raise
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, OSError):
                raise StoreError(f"{self.path}: cannot be written ({error.strerror or error})") from None
            raise

    def __enter__(self) -> Journal:
        """Return the journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the journal; it stays on disk."""
        with contextlib.suppress(OSError):
            self.sync()
        os.close(self._file)
        os.close(self._lock)

    def add(self, result: PointResult) -> None:
        """Write a finished point.

        Raises:
            StoreError: the disk refuses; all points written before are good.
        """
        try:
            self._append(_line(to_plain(result), self._start))
            if time.monotonic() - self._synced > SYNC_EVERY_S:
                self.sync()
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise StoreError(
                f"{self.path}: cannot be written ({error.strerror or error}); {len(self.done)} finished "
                "points are kept there, and the same sweep goes on from them"
            ) from None
        self.done.add(result.number)

    def sync(self) -> None:
        """Wait until all is on the disk."""
        os.fsync(self._file)
        self._synced = time.monotonic()

    def results(self) -> Iterator[PointResult]:
        """Yield the finished points in the order in which they were finished, one at a time in memory.

        Raises:
            StoreError: a point that was good when the journal was opened is damaged now.
        """
        left = set(self.done)
        with self.path.open("rb") as file:
            next(file)
            for line in file:
                content = _content(line, self._start)
                if content is not None:
                    left.discard(content["number"])
                    yield from_plain(content)
        if left:
            raise StoreError(
                f"{self.path}: {len(left)} points were damaged meanwhile; the same command computes them "
                "again"
            )

    def remove(self) -> None:
        """Delete the journal: the result is complete."""
        shutil.rmtree(self.folder)

    def _append(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._file, left) :]
        self._size += len(line)

    def _look_over(self, definition: Mapping[str, Any]) -> int:
        """Check every line, note the points that are done, and return the length of all complete lines."""
        size, damaged = 0, []
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    self.notes.append(
                        f"{self.path}: its last line was cut off while it was written, and is dropped"
                    )
                    break
                content = _content(line, self._start if number > 1 else 0)
                if content is None:
                    damaged.append(number)
                elif number == 1:
                    _require_same(self.path, content, definition)
                else:
                    self.done.add(content["number"])
                size += len(line)
        if 1 in damaged and not self.done:
            raise StoreError(
                f"{self.path} is damaged in line 1, which says of what sweep it is, and has no point of this "
                f"one: it is left as it is; move {self.folder} away to begin anew"
            )
        if damaged:
            self.notes.append(
                f"{self.path} is damaged in {_numbered(damaged)} (wrong length or checksum): "
                f"{len(self.done):,} good points are kept, and damaged ones are computed again"
            )
        return size


def _numbered(lines: list[int]) -> str:
    shown = ", ".join(map(str, lines[:10])) + (", ..." if len(lines) > 10 else "")
    return f"line {shown}" if len(lines) == 1 else f"{len(lines):,} lines, {shown}"


def journal_folder(target: Path) -> Path:
    """Return the folder beside a result in which its journal lies until the result is complete."""
    return target.with_name(target.name + ".partial")


def _locked(folder: Path) -> int:
    """Return an open lock file in *folder*, made if there is none, that no other process holds.

    The system lets go of a lock when its process ends in whatever way, so none is ever stale.
    """
    while True:
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(lock, 300).decode(errors="replace").strip()
            os.close(lock)
            raise StoreError(
                f"{folder}: another process is writing this sweep ({owner or 'unknown'})"
            ) from None
        try:  # its last owner may have removed the folder between the two steps
            if os.path.samestat(os.fstat(lock), os.stat(folder / "lock")):
                os.ftruncate(lock, 0)
                os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                return lock
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _line(content: Mapping[str, Any], start: int = 0) -> bytes:
    """Return a line; its checksum begins from *start*."""
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %08x %s\n" % (len(text), zlib.crc32(text, start), text)


def _content(line: bytes, start: int = 0) -> Any:
    """Return what a complete line says, None if it is damaged."""
    text = line[18:-1]
    if line[:18] != b"%08x %08x " % (len(text), zlib.crc32(text, start)):
        return None
    return json.loads(text)


def _require_same(path: Path, there: Any, here: Mapping[str, Any]) -> None:
    """Make sure that a journal is of the sweep that is wanted now.

    Raises:
        StoreError: naming what differs.
    """
    differences = what_differs(there, here)
    if differences:
        shown = "; ".join(differences[:5]) + ("; ..." if len(differences) > 5 else "")
        raise StoreError(
            f"{path} is of another sweep: {shown}. Give this one another file, or delete "
            f"{path.parent} to begin anew"
        )


def what_differs(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return in words where two definitions of sweeps differ."""
    old, new = _flat(there), _flat(here)
    return [
        f"{key} is {_short(old.get(key))} there and {_short(new.get(key))} here"
        for key in dict.fromkeys([*new, *old])
        if old.get(key) != new.get(key)
    ]


def _flat(content: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested tables as one, with dotted keys."""
    if not isinstance(content, Mapping):
        return {prefix: content}
    flat: dict[str, Any] = {}
    for key, value in content.items():
        flat |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return flat


def _short(value: Any) -> str:
    text = "unset" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def to_plain(result: PointResult) -> dict[str, Any]:
    """Return a point as plain values that JSON keeps to the bit."""
    return {"number": result.number, "answers": {name: _plain(a) for name, a in result.answers.items()}}


def _plain(answer: Answer) -> dict[str, Any]:
    if answer.failure is not None:
        return {"failure": [answer.failure.kind, answer.failure.message]}
    metrics = {name: [v.mean, v.ci95, v.part, v.means, v.ci95s] for name, v in answer.metrics.items()}
    return {"metrics": metrics, "names": answer.names, "notes": answer.notes}


def from_plain(content: Mapping[str, Any]) -> PointResult:
    """Return the point that `to_plain` was given."""
    return PointResult(content["number"], {name: _answer(a) for name, a in content["answers"].items()})


def _answer(content: Mapping[str, Any]) -> Answer:
    if "failure" in content:
        return Answer(failure=Failure(*content["failure"]))
    metrics = {
        name: Estimate(mean, ci95, part, tuple(means), tuple(ci95s))
        for name, (mean, ci95, part, means, ci95s) in content["metrics"].items()
    }
    names = {part: tuple(labels) for part, labels in content["names"].items()}
    return Answer(metrics, names, content["notes"])
