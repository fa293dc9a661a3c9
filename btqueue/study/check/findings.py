"""Findings of the checks of internal consistency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "doubtful", "failed"]


@dataclass(frozen=True)
class Finding:
    """One check: its name, how it ended, and why in a sentence."""

    check: str
    status: Status
    sentence: str


def passed(check: str, sentence: str) -> Finding:
    """Return a check that found nothing wrong."""
    return Finding(check, "passed", sentence)


def failed(check: str, sentence: str) -> Finding:
    """Return a check that shows an error."""
    return Finding(check, "failed", sentence)


def doubtful(check: str, sentence: str) -> Finding:
    """Return a check with a suspicious result, which need not be an error."""
    return Finding(check, "doubtful", sentence)
