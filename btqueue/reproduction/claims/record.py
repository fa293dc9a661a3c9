"""The record of a publication, and the form of a judged claim.

`models/<paper>/published.toml` holds the publication, its misprints and its claims. A claim has an id, its
place in the publication, the statement in our words, the published values (with the tolerance that the
wording allows), the verdict of the simulation and, unless that is "reproduced", the reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from btqueue.scenario.loading import models_folder

PAPERS = ("venugopal-2006", "johansson-2000", "chen-2004", "suliman-2005", "avancha-2002")
"""Publications with claims on record, the main source first."""

REPRODUCED, IN_PART, NOT_REPRODUCED = "reproduced", "in part", "not reproduced"
TESTBED_ONLY = "testbed-only"
"""No simulation can decide it: the statement is about the equipment, or has no number."""
NOT_SIMULATED = "not simulated"
"""A simulation could decide it, and ours was not asked."""
NO_MODEL = "theory has no answer"

VERDICTS = (REPRODUCED, IN_PART, NOT_REPRODUCED, NOT_SIMULATED, TESTBED_ONLY)
"""On record, in the order of tables."""

Claim = dict[str, Any]


@cache
def publication_record(paper: str) -> dict[str, Any]:
    """Return the record of a publication."""
    return tomllib.loads((models_folder() / paper / "published.toml").read_text("utf-8"))


def claims_of(paper: str) -> dict[str, Claim]:
    """Return the claims on record, by id, with the keys that all claims have in common."""
    record = publication_record(paper)
    return {claim["id"]: record.get("check", {}) | claim for claim in record["claim"]}


def is_judged(claim: Claim) -> bool:
    """Whether a claim can be judged by simulation."""
    return claim["verdict"] not in (TESTBED_ONLY, NOT_SIMULATED)


def is_tested(claim: Claim) -> bool:
    """Whether a claim is checked by unit tests, which an installed package does not have."""
    return "tests" in claim


class Part(NamedTuple):
    """One check of a claim.

    Attributes:
        label: name of the check; empty if the claim has no other check.
        holds: whether the check passed; None if the engine has no answer.
        seen: the finding, or why there is no answer.
        counts: whether the check counts for the verdict.
    """

    label: str
    holds: bool | None
    seen: str
    counts: bool = True


class Judged(NamedTuple):
    """A claim as an engine sees it: its checks, and one finding for all checks without separate findings."""

    parts: tuple[Part, ...]
    seen: str = ""

    @property
    def failed(self) -> list[str]:
        """Labels of the checks that count and do not hold."""
        return [part.label for part in self.parts if part.counts and part.holds is False]

    @property
    def unanswered(self) -> list[str]:
        """Why the checks without an answer have none."""
        return list(dict.fromkeys(part.seen for part in self.parts if part.holds is None))

    @property
    def verdict(self) -> str:
        """The verdict of all checks that count and have an answer."""
        if self.parts and all(part.holds is None for part in self.parts if part.counts):
            return NO_MODEL
        return verdict([part.holds for part in self.parts if part.counts and part.holds is not None])


def verdict(holds: Collection[bool]) -> str:
    """Return the verdict on a claim from whether each of its checks holds."""
    if not holds:
        return NOT_SIMULATED
    return REPRODUCED if all(holds) else IN_PART if any(holds) else NOT_REPRODUCED


def compared(seen: str, parts: Mapping[str, bool]) -> Judged:
    """Return a claim of several checks with one finding for all of them."""
    return Judged(tuple(Part(name, bool(holds), "") for name, holds in parts.items()), seen)
