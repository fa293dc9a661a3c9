"""How commands print and end: 0 done, 2 bad input, 3 no answer, 130 interrupted; a message, never a trace."""

import atexit
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from btqueue.files import discard_unfinished, printable
from btqueue.interrupts import compiling

BAD_INPUT, NO_ANSWER, INTERRUPTED = 2, 3, 130
OTHER_INTERRUPTS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command as Ctrl-C does, with the exit code 128 + number that shells give them."""
PATIENCE_S = 3.0
"""Time that a command gets to notice these. A compiler may not return to Python for a minute."""
SCHEMA = 3
"""Version of the JSON objects that commands print: it grows when a key changes its meaning or goes."""
EXIT_CODES = (
    ("btqueue.cli.errors", "BadInput", BAD_INPUT),
    ("btqueue.cli.errors", "OutputLost", BAD_INPUT),
    ("btqueue.scenario", "ScenarioError", BAD_INPUT),
    ("btqueue.network", "NoConvergence", NO_ANSWER),
    ("btqueue.network", "ImpossibleAnswer", NO_ANSWER),
    ("btqueue.simulator", "InvariantViolated", NO_ANSWER),
    ("btqueue.simulator.gpu.runs", "GpuUnavailable", BAD_INPUT),
    ("btqueue.explorer.server", "PortTaken", BAD_INPUT),
    ("btqueue.emulation.namespaces", "EmulationUnavailable", BAD_INPUT),
    ("btqueue.simulator.traces.extras", "MissingPackage", BAD_INPUT),
    ("btqueue.study.check.results", "BadResults", BAD_INPUT),
    ("btqueue.study.many_points", "ClusterError", BAD_INPUT),
    ("btqueue.study.sensitivity.over_ranges", "TooFewPoints", NO_ANSWER),
    ("btqueue.reproduction.figures.catalogue", "NoSuchFigure", BAD_INPUT),
    ("btqueue.reproduction.figures.catalogue", "BadFiles", BAD_INPUT),
    ("btqueue.reproduction.figures.points", "ComputationFailed", NO_ANSWER),
)
"""Module, name and exit code of the exceptions that a user can meet."""


class BadInput(ValueError):
    """An argument of the command line cannot be used; the message says why."""


def exit_code(error: Exception) -> int | None:
    """Return the exit code of *error*, or None for one that nobody expected.

    Looks only into modules that were imported: the others cannot have raised it.
    """
    for module, name, code in EXIT_CODES:
        if module in sys.modules and isinstance(error, getattr(sys.modules[module], name)):
            return code
    return None


def say(message: object) -> None:
    """Print a message to standard error."""
    typer.echo(printable(f"btqueue: {message}"), err=True)


def put(text: object, *, end: str = "\n") -> None:
    """Print a text to standard output; tables go there by `btqueue.cli.tables.Screen`."""
    typer.echo(printable(f"{text}{end}"), nl=False)


def put_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object to standard output, the version of its form first."""
    put(json.dumps({"schema": SCHEMA, **content}, allow_nan=False))


def duration(seconds: float) -> str:
    """Return a time in whole seconds, or minutes."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def put_titles(titles: Mapping[str, str]) -> None:
    """Print names and titles in two columns; a table of rich would double the time of the command."""
    width = max(map(len, titles), default=0)
    for name, title in titles.items():
        put(f"{name:<{width}}  {' '.join(title.split())}")


class OutputLost(Exception):
    """Standard output takes nothing more: its reader has gone, or the disk is full."""


class Output(io.FileIO):
    """The file behind a standard stream: a failed write raises once, later output is dropped.

    Otherwise Python would try to write the rest again when it ends, and fail once more.
    """

    def __init__(self, number: int, *, raises: bool) -> None:
        """Write to an open file; raise the first failure, or swallow it, for there is nobody to be told."""
        super().__init__(number, "w", closefd=False)
        self.raises, self.lost = raises, False

    def write(self, data: Any, /) -> int:
        """Write; after a failure drop everything.

        Raises:
            OutputLost: the first write that fails, if `raises`.
        """
        if not self.lost:
            try:
                return super().write(data)
            except OSError as error:
                self.lost = True
                if self.raises:
                    raise OutputLost(f"standard output takes nothing more ({error.strerror})") from None
        return len(data)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Let the block print to standard streams that may be full or closed, or lack some characters."""
    before = sys.stdout, sys.stderr
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        # A standard stream is closed. No file that is opened later may get its number.
        os.set_inheritable(number, True)
    os.close(number)
    try:
        if sys.stdout is not None and sys.stdout is sys.__stdout__:  # nobody has put another there
            sys.stdout = _guarded(sys.stdout, raises=True)
        if sys.stderr is None or sys.stderr is sys.__stderr__:
            sys.stderr = _guarded(sys.stderr, raises=False)
        yield
    finally:
        sys.stdout, sys.stderr = before


def _guarded(stream: TextIO | None, *, raises: bool) -> TextIO:
    """Return a guarded stream to the same file; for a closed standard error, to file descriptor 2."""
    number, encoding = (stream.fileno(), stream.encoding) if stream else (2, "utf-8")
    lines = stream is None or getattr(stream, "line_buffering", True)
    raw = io.BufferedWriter(Output(number, raises=raises))
    return io.TextIOWrapper(raw, encoding, "replace", line_buffering=lines)  # ± may become ?, and not fail


_signal = signal.SIGINT
"""That interrupted the command, if any did."""


def interrupt_code() -> int:
    """Return the exit code of an interrupted command: 128 and the number of the signal, as shells have it."""
    return 128 + _signal


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and `OTHER_INTERRUPTS` end the block as an exception, and a second one the process at once.

    So the results so far are kept, and no half-written file is left. `OTHER_INTERRUPTS` do not wait for a
    compiler: while code is compiled, or if Python does not notice the signal, the process ends at once.
    """
    global _signal
    _signal = signal.SIGINT
    stopping, noticed = threading.Event(), threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            end_at_once(interrupt_code())
        stopping.set()
        if sys.stderr.isatty():
            say("stopping; Ctrl-C again stops at once")
        raise KeyboardInterrupt

    def pass_on(number: int, frame: FrameType | None) -> None:
        global _signal
        _signal = signal.Signals(number)
        if compiling():
            end_at_once(interrupt_code())
        noticed.set()
        ctrl_c = signal.getsignal(signal.SIGINT)  # of the simulator, while it keeps its measurements
        (ctrl_c if callable(ctrl_c) else stop)(signal.SIGINT, frame)

    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *OTHER_INTERRUPTS)}
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    wakened = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_see_to_the_end, args=(reader, noticed), daemon=True).start()
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # by nohup, or by a shell in what it starts in the background
                signal.signal(number, stop if number == signal.SIGINT else pass_on)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakened)
        os.close(writer)


def _see_to_the_end(reader: int, noticed: threading.Event) -> None:
    """End the process if Python does not notice a signal; the signal's number comes through a pipe."""
    while number := os.read(reader, 1):
        if number[0] in OTHER_INTERRUPTS and not noticed.wait(PATIENCE_S):
            end_at_once(128 + number[0])
    os.close(reader)


def end_at_once(code: int) -> NoReturn:
    """End the process, whatever its threads do; unfinished files are removed."""
    show_cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a progress bar has hidden it
    with suppress(OSError):
        os.write(2, show_cursor + b"btqueue: interrupted\n")
    discard_unfinished()
    os._exit(code)


def end_interrupted(end: SystemExit) -> None:
    """End a process whose command was interrupted; of another command the end goes its usual way.

    Python would wait for its threads, and JAX for the code that its own threads compile: up to minutes.
    """
    if end.code in {128 + number for number in (signal.SIGINT, *OTHER_INTERRUPTS)}:
        code = int(end.code)
        last = threading.Timer(PATIENCE_S, os._exit, [code])
        last.daemon = True
        last.start()
        atexit._run_exitfuncs()
        os._exit(code)


class Commands(TyperGroup):
    """The commands, with expected errors turned into messages and exit codes."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Be the program, its help included, whatever the standard streams are."""
        with guarded_streams():
            try:
                if sys.stdout is None:
                    raise OutputLost("standard output is closed (> /dev/null discards the output)")
                try:
                    return super().main(*arguments, **settings)
                finally:
                    sys.stdout.flush()
            except OutputLost as error:
                say(error)
                sys.exit(BAD_INPUT)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            with ended_by_signals():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(interrupt_code()) from None
        except typer.Exit as end:
            raise typer.Exit(interrupt_code() if end.exit_code == INTERRUPTED else end.exit_code) from None
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            for words in (error, *getattr(error, "__notes__", ())):
                say(words)
            raise typer.Exit(code) from None
