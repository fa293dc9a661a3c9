"""The journal of a sweep: every finished point on disk at once, whatever happens to the process.

The journal is a file of lines beside the result, `RESULT.partial`. The first line is `MAGIC`; whatever else
has that name is left alone. Each further line holds a checksum and a text, which is JSON: first the
definition of the sweep, then one line a finished point. Lines are only ever added. A process that is killed
while it writes leaves a last line without an end, which is dropped. Any other line that does not fit its
checksum is damage: it is reported and passed over, and its point is computed again.

The checksum of a point has the digest of the definition (the resolved scenario, the points, the versions) for
its key. So points are known to be of this sweep even where the definition's own line is damaged.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from btqueue.files import UnusableFile, open_ours, read_bytes, written_whole
from btqueue.scenario import Scenario
from btqueue.study.evaluate import Answer, Engine, Failure, PointResult
from btqueue.study.points import Points
from btqueue.study.provenance import versions
from btqueue.study.summary import Estimate

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 3
"""Of the definition of a sweep; one of another format is another sweep."""
MAGIC = b"btqueue sweep journal 3\n"
"""First line of every journal, by which it is known as ours; the number is the format's."""
SYNC_EVERY_S = 0.05
"""Least time between two flushes to the disk. Written points always survive the end of the process; after a
flush they survive the end of the machine, too."""


class StoreError(ValueError):
    """A sweep's files cannot be used; the message says why. Nothing was changed."""


class Unwritten(StoreError):
    """A sweep is complete, and its result cannot be written; it is `dataset`, and in the journal."""

    def __init__(self, message: str, dataset: xr.Dataset) -> None:
        super().__init__(message)
        self.dataset = dataset


class Memory:
    """The finished points of a sweep without a file."""

    def __init__(self) -> None:
        self.done: dict[int, PointResult] = {}

    def add(self, result: PointResult) -> None:
        """Keep a finished point."""
        self.done[result.number] = result

    def results(self) -> Iterable[PointResult]:
        """Return the finished points in the order in which they were finished."""
        return self.done.values()


class Journal:
    """The journal of one sweep, open for writing by one process; use it as a context."""

    def __init__(self, path: Path, definition: Mapping[str, Any], *, anew: bool = False) -> None:
        """Open the journal at *path*, a new one if there is nothing.

        Args:
            path: where it is.
            definition: definition of the sweep.
            anew: begin a new one in place of a journal that is damaged or of another sweep.

        Raises:
            StoreError: another process writes it, it is damaged, of another sweep or no journal, or the disk
                refuses.
        """
        self.path = path
        self.done: set[int] = set()
        self.notes: list[str] = []
        self._key = hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).digest()
        self._synced = 0.0
        try:
            with contextlib.ExitStack() as on_error:
                self._file = _opened(path)
                on_error.callback(os.close, self._file)
                try:
                    self._size = self._look_over(definition)
                except StoreError:
                    if not anew:
                        raise
                    self._size, self.done = len(MAGIC), set()
                os.ftruncate(self._file, self._size)
                if self._size == len(MAGIC):
                    self._append(_line(definition))
                    self.sync()
                on_error.pop_all()
        except OSError as error:
            raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the journal; it stays on disk."""
        with contextlib.suppress(OSError):
            self.sync()
        os.close(self._file)

    def add(self, result: PointResult) -> None:
        """Write a finished point.

        Raises:
            StoreError: the disk refuses; all points written before are good.
        """
        line, before = _line(to_plain(result), self._key), self._size
        try:
            self._append(line)
            self.done.add(result.number)  # at once: Ctrl-C may come while the disk is waited for
            if time.monotonic() - self._synced > SYNC_EVERY_S:
                self.sync()
        except KeyboardInterrupt:  # it may come between the two, too
            if os.fstat(self._file).st_size == before + len(line):
                self.done.add(result.number)
            raise
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise StoreError(
                f"{self.path}: cannot be written ({error.strerror or error}); {len(self.done)} finished "
                "points are kept there, and the same sweep goes on from them"
            ) from None

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
        for line in self._lines():
            content = _content(line, self._key)
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
        if _is_at(self._file, self.path):
            self.path.unlink()

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines below the magic one, by our own descriptor whatever is at the path by now."""
        with open(self._file, "rb", closefd=False) as file:
            file.seek(len(MAGIC))
            yield from file

    def _append(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._file, left) :]
        self._size += len(line)

    def _look_over(self, definition: Mapping[str, Any]) -> int:
        """Check every line, note the points that are done, and return the length of all complete lines."""
        size, damaged = len(MAGIC), []
        for number, line in enumerate(self._lines(), start=2):
            if not line.endswith(b"\n"):
                self.notes.append(
                    f"{self.path}: its last line was cut off while it was written, and is dropped"
                )
                break
            content = _content(line, self._key if number > 2 else b"")
            if content is None:
                damaged.append(number)
            elif number == 2 and (differences := what_differs(content, definition)):
                shown = "; ".join(differences[:5]) + ("; ..." if len(differences) > 5 else "")
                how = "Give this one another file, or delete that one to begin anew"
                raise StoreError(f"{self.path} is of another sweep: {shown}. {how}")
            elif number > 2:
                self.done.add(content["number"])
            size += len(line)
        if 2 in damaged and not self.done:
            raise StoreError(
                f"{self.path} is damaged in line 2, which names its sweep, and has no point of this "
                "one: it is left as it is; move it away to begin anew"
            )
        if damaged:
            shown = ", ".join(map(str, damaged[:10])) + (", ..." if len(damaged) > 10 else "")
            lines = f"line {shown}" if len(damaged) == 1 else f"{len(damaged):,} lines, {shown}"
            self.notes.append(
                f"{self.path} is damaged in {lines} (wrong checksum): {len(self.done):,} good points are "
                "kept, and damaged ones are computed again"
            )
        return size


def journal_path(target: Path) -> Path:
    """Return the file beside a result that is its journal until the result is complete."""
    return target.with_name(target.name + ".partial")


def _opened(path: Path) -> int:
    """Return the descriptor of a journal, made if there is nothing, that no other process has open.

    The journal itself is locked. The system releases a lock when its process ends in whatever way, so no lock
    is ever stale.

    Raises:
        StoreError: another process writes it, or the file there is no journal.
        OSError: the file system refuses.
    """
    while True:
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError), written_whole(path, replace=False) as part:
                part.write_bytes(MAGIC)
        try:
            file = open_ours(path)
        except FileNotFoundError:  # its last owner has removed it meanwhile
            continue
        except IsADirectoryError:
            raise _not_ours(path, "is a folder, as earlier versions of btqueue made") from None
        except UnusableFile as error:
            raise _not_ours(path, str(error)) from None
        with contextlib.ExitStack() as unless_returned:
            unless_returned.callback(os.close, file)
            if os.pread(file, len(MAGIC), 0) != MAGIC:
                raise _not_ours(path, f'does not begin with "{MAGIC.decode().strip()}", or is damaged there')
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"{path}: another process is writing this sweep") from None
            if _is_at(file, path):
                unless_returned.pop_all()
                return file


def _not_ours(path: Path, what: str) -> StoreError:
    return StoreError(
        f"{path}: {what}; it is left as it is. The sweep keeps its finished points in a file of this name: "
        "move the file away, or give the result another name"
    )


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def _line(content: Mapping[str, Any], key: bytes = b"") -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%s %s\n" % (_checksum(text, key), text)


def _content(line: bytes, key: bytes = b"") -> Any:
    """Return the content of a complete line, None if it is damaged or has another key."""
    checksum, _, text = line[:-1].partition(b" ")
    return json.loads(text) if checksum == _checksum(text, key) else None


def _checksum(text: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(text, key=key, digest_size=16).hexdigest().encode()


def what_differs(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return in words where two definitions of sweeps differ."""

    def short(value: Any) -> str:
        text = "unset" if value is None else json.dumps(value)
        return text if len(text) <= 60 else text[:57] + "..."

    old, new = _flat(there), _flat(here)
    return [
        f"{key} is {short(old.get(key))} there and {short(new.get(key))} here"
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


def to_plain(result: PointResult) -> dict[str, Any]:
    """Return a point as plain values that JSON keeps to the bit."""
    answers: dict[str, Any] = {}
    for engine, one in result.answers.items():
        metrics = {name: [v.mean, v.ci95, v.part, v.means, v.ci95s] for name, v in one.metrics.items()}
        answers[engine] = {"metrics": metrics, "names": one.names, "notes": one.notes}
        if one.failure is not None:
            answers[engine] = {"failure": [one.failure.kind, one.failure.message]}
    return {"number": result.number, "answers": answers}


def from_plain(content: Mapping[str, Any]) -> PointResult:
    """Return the point that `to_plain` was given."""
    answers: dict[Engine, Answer] = {}
    for engine, one in content["answers"].items():
        metrics = {
            name: Estimate(mean, ci95, part, tuple(means), tuple(ci95s))
            for name, (mean, ci95, part, means, ci95s) in one.get("metrics", {}).items()
        }
        names = {part: tuple(labels) for part, labels in one.get("names", {}).items()}
        failure = Failure(*one["failure"]) if "failure" in one else None
        answers[engine] = Answer(metrics, names, one.get("notes", {}), failure)
    return PointResult(content["number"], answers)


def definition(
    scenario: Scenario,
    points: Points,
    engines: Sequence[Engine],
    *,
    checked: bool = False,
    metrics: Sequence[str] = (),
) -> dict[str, Any]:
    """Return everything the numbers of a sweep depend on, as plain values.

    The files that the scenario names are represented by their SHA-256.
    """
    axes = {key: list(values) for key, values in zip(points.keys, points.columns, strict=True)}
    content: dict[str, Any] = {
        "format": FORMAT,
        "scenario": scenario.to_dict(),
        "written": scenario.to_dict(resolved=False),  # a point changes this, and is resolved again
        "points": {"keys": list(points.keys), "grid": axes},  # they are numbered in the order of the keys
        "engines": list(engines),
        "versions": versions(),
    }
    if checked:  # points near those that are not confirmed are simulated
        content["checked"] = True
    if metrics:  # points without one of them are simulated
        content["metrics"] = list(metrics)
    names = {*scenario.files, *axes.get("radio.trace_file", ()), *axes.get("traffic.arrival_file", ())}
    for name in sorted(name for name in names if name is not None):
        with suppress(UnusableFile):  # points that need it fail, and say so
            content.setdefault("files", {})[name] = hashlib.sha256(read_bytes(Path(name))).hexdigest()
    return json.loads(json.dumps(content))  # as it is read back
