"""Problems of a scenario, said in plain words.

A wrong input is described by one :class:`Problem` for each key; all problems that were found are reported
together by one :class:`ScenarioError`, so that a user can mend a file in a single round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from btqueue.files import printable

LONGEST_VALUE_SHOWN = 60
"""Characters of a value that a message shows."""


def shown(value: object) -> str:
    """Return *value* as a user would write it in a scenario file, shortened when it is long.

    Never raises: whole numbers too long for Python to print, and objects whose ``repr`` fails, are described
    instead of printed.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a whole number of about {int(value.bit_length() * 0.30103) + 1} digits"
    if isinstance(value, tuple):
        value = list(value)
    try:
        text = f'"{value}"' if isinstance(value, str) else repr(value)
    except Exception:  # a foreign object may fail in any way while it is printed
        return f"an object of type {type(value).__name__}"
    text = printable(text[:1000], kept="")
    if len(text) > LONGEST_VALUE_SHOWN:
        text = text[: LONGEST_VALUE_SHOWN - 3] + "..."
    return text


def bracketed(key: str) -> str:
    """Return ``[table] key`` for a dotted ``table.key``, as the place reads in a TOML file."""
    table, dot, rest = key.partition(".")
    return f"[{table}] {rest}" if dot else key


@dataclass(frozen=True)
class Problem:
    """One problem: key, given value, and a guess at the right one; the message states the allowed values.

    Attributes:
        message: one or two sentences for the user.
        key: dotted key (``polling.limit``), or the file or argument at fault; empty if there is none.
        value: the value that was given, or ``None``.
        guess: the key or value that was probably meant.
    """

    message: str
    key: str = ""
    value: object = None
    guess: str | None = None


def bad_value(key: str, value: object, allowed: str, *, guess: str | None = None) -> Problem:
    """Describe a known key with a value that it does not accept."""
    hint = f'; did you mean "{guess}"?' if guess else ""
    message = f"{bracketed(key)} = {shown(value)}: must be {allowed}{hint}"
    return Problem(message, key=key, value=value, guess=guess)


def conflict(key: str, value: object, why: str) -> Problem:
    """Describe a value that is fine alone and does not go with another key; *why* completes the sentence."""
    return Problem(f"{bracketed(key)} = {shown(value)}: {why}", key=key, value=value)


class ScenarioError(ValueError):
    """A scenario, its file or an override is wrong.

    ``str()`` gives the sentence for the user, or a list of them. The attributes ``key``, ``value`` and
    ``guess`` describe the first of ``problems``.
    """

    def __init__(
        self,
        problems: Problem | str | Iterable[Problem],
        key: str = "",
        value: object = None,
        guess: str | None = None,
    ) -> None:
        """Collect one or several problems; a bare string is the message of one about this key and value."""
        if isinstance(problems, str):
            problems = Problem(problems, key, value, guess=guess)
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        first = self.problems[0]
        self.key, self.value, self.guess = first.key, first.value, first.guess
        super().__init__(str(self))

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return self.problems[0].message
        lines = [f"{len(self.problems)} problems:"]
        return "\n".join(lines + [f"  - {problem.message}" for problem in self.problems])

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[tuple[Problem, ...]]]:
        """Let the error cross process borders with all of its problems."""
        return type(self), (self.problems,)


def all_read(reads: Iterable[Callable[[], Any]]) -> list[Any]:
    """Return the values that are read; a `ScenarioError` has the problems of the others."""
    found, problems = list[Any](), list[Problem]()
    for read in reads:
        try:
            found.append(read())
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return found


class NotBuiltYet(ScenarioError):
    """The scenario is valid, but the present engines cannot run it."""
