"""Ctrl-C while code is compiled: handled once the compilation is done."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_compiling = 0


def compiling() -> bool:
    """Return whether the process is within `interrupt_held`, where it can end without leaving half a file."""
    return _compiling > 0


@contextmanager
def interrupt_held() -> Iterator[None]:
    """Hold Ctrl-C back until the block, which compiles, has ended; then handle it as usual.

    LLVM calls back into Python while it compiles, and an exception in a callback is lost: without this, the
    work would go on as if nobody had interrupted it.
    """
    global _compiling
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        logging.getLogger("btqueue").warning("btqueue: stopping as soon as the compilation is done")

    if callable(before):  # not where a shell ignores it in what it starts in the background
        signal.signal(signal.SIGINT, hold)
    _compiling += 1
    try:
        yield
    finally:
        _compiling -= 1
        signal.signal(signal.SIGINT, before)
        if held and callable(before):
            before(*held[0])
