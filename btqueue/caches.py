"""The cache folders: compiled code, answers of figures and judged claims that later runs find again.

All lie in `$BTQUEUE_CACHE_DIR/btqueue-cache` or in the user's cache folder, as `KIND/NAME`. Compiled code is
run when it is loaded, and numba's index of it is a pickle. So a cache folder is private to the user: one that
somebody else owns, or may write to, is not used. A private temporary folder takes its place, for this process
and its child processes, as it does where the disk is full or read-only. A message says so once.

A folder is removed only if its name ends in a digest, it holds the mark that was written when it was made,
and it was not used for `KEEP_S`. No link is followed.
"""

import atexit
import logging
import os
import re
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from btqueue.files import written_whole

VARIABLE = "BTQUEUE_CACHE_DIR"
"""The environment variable that names another place."""

NAME = "btqueue-cache"
"""The folder there: no folder of the user has this name, as a checkout has `btqueue`."""

KEEP_S = 30 * 24 * 3600
"""Folders that were not used for this long (s) are removed."""

TAG = "CACHEDIR.TAG"
MARK = (
    b"Signature: 8a477f597d28d172789f06e28a8cef5c\n"
    b"# This folder was made by btqueue, which removes it when it was not used for 30 days.\n"
    b"# Backups may leave it out: https://bford.info/cachedir/\n"
)
"""Content of the file `TAG` in every folder that may be removed; its time is the time of the last use."""

ENDS_IN_DIGEST = re.compile(r"(.+-)?[0-9a-f]{16}")
"""Names of folders that may be removed."""


class UnusableCache(OSError):
    """A cache folder cannot be used; the message says why."""


def cache_folder(*names: str) -> Path:
    """Return a cache folder, made if it is not there, marked as used now; remove its unused neighbours.

    If neither this folder nor a temporary one can be used, or `$BTQUEUE_CACHE_DIR` is the null device, the
    path lies in the null device: nothing is found there, and nothing can be kept.

    Args:
        names: kind and name, as "simulator" and a digest of the sources; none for the folder of all caches.
    """
    if os.environ.get(VARIABLE) == os.devnull:
        return Path(os.devnull, *names)
    try:
        return _opened(_root(), names)
    except (OSError, RuntimeError) as error:  # a RuntimeError of platformdirs: there is no home
        why = f"the cache folder cannot be used: {_words(error)}"
    try:
        temporary = tempfile.mkdtemp(prefix="btqueue-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        folder = _opened(Path(temporary, NAME), names)
    except OSError as error:
        say_once(f"{why}; nor a temporary one: {_words(error)}; compiled code and answers are not kept")
        os.environ[VARIABLE] = os.devnull
        return Path(os.devnull, *names)
    say_once(f"{why}; compiled code and answers are kept for this run only")
    os.environ[VARIABLE] = temporary
    return folder


def keep(file: Path, content: bytes) -> None:
    """Write a file of a cache folder, all of it or nothing; if that fails, say so and go on without."""
    if file.is_relative_to(os.devnull):
        return  # as was said, or wished
    try:
        with written_whole(file, replace=True) as part:
            part.write_bytes(content)
    except OSError as error:
        not_kept(file.parent, error)


def not_kept(folder: Path, error: Exception) -> None:
    """Say that new files of a cache folder cannot be written."""
    say_once(f"the cache folder {folder}: {_words(error)}; new compiled code and answers are not kept")


@cache
def say_once(text: str) -> None:
    """Say a sentence to the user: a line on standard error, unless logging is set up otherwise."""
    logging.getLogger("btqueue").warning("btqueue: %s", text)


def interpreted() -> bool:
    """Return whether compilation is switched off, so that no code is kept; numba reads a whole number."""
    with suppress(ValueError):
        return int(os.environ.get("NUMBA_DISABLE_JIT", "0")) != 0
    return False


def _root() -> Path:
    if given := os.environ.get(VARIABLE):
        return Path(os.path.abspath(os.path.expanduser(given)), NAME)
    return user_cache_path("btqueue", appauthor=False)


def _opened(root: Path, names: tuple[str, ...]) -> Path:
    if not root.is_absolute():
        raise UnusableCache(f"{root} is no absolute path")
    root.parent.mkdir(parents=True, exist_ok=True)
    there = root.parent.resolve()
    for above in {*root.parents, there, *there.parents}:
        mode = above.stat().st_mode
        if os.name == "posix" and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise UnusableCache(f"everybody may replace the folders in {above}")
    folder = root
    _make_private(folder)
    for name in names:
        folder = folder / name
        _make_private(folder)
    with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
        probe.write(bytes(4096))
    if names:
        _mark(folder)
        _remove_unused(folder.parent)
    return folder


def _make_private(folder: Path) -> None:
    """Make a folder that only this user can enter, or check that the folder there is private.

    Raises:
        UnusableCache: others own it or may write to it, or it is a link.
        OSError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700)
        return
    except FileExistsError:
        found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise UnusableCache(f"{folder} is a link or a file")
    if os.name != "posix":
        return  # the user's folders are private by their access lists
    if found.st_uid != os.geteuid():
        raise UnusableCache(f"{folder} belongs to somebody else")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnusableCache(f"others may write to {folder} (remove it, or chmod -R go-w)")
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def _mark(folder: Path) -> None:
    """Mark a folder as used now; if it is empty, also as made by btqueue."""
    if _last_used(folder) is not None:
        os.utime(folder / TAG)
    elif not any(folder.iterdir()):
        with suppress(FileExistsError), (folder / TAG).open("xb") as tag:
            tag.write(MARK)


def _last_used(folder: Path) -> float | None:
    """Return when a folder was last used (s since the epoch); None if it has no mark of ours."""
    tag = folder / TAG
    try:
        found = tag.lstat()
        return found.st_mtime if stat.S_ISREG(found.st_mode) and tag.read_bytes() == MARK else None
    except OSError:
        return None


def _remove_unused(kind: Path) -> None:
    """Delete the folders of a kind that no process has used for `KEEP_S`."""
    for folder in kind.iterdir():
        used = _last_used(folder) if ENDS_IN_DIGEST.fullmatch(folder.name) else None
        if used is not None and time.time() - used > KEEP_S:
            # It refuses links. Another process may be removing the folder, too.
            shutil.rmtree(folder, ignore_errors=True)


def _words(error: Exception) -> str:
    """Return the text of an error without its number, with its file."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
