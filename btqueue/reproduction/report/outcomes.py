"""The outcome of a claim: both engines' verdicts; and counts of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from btqueue.reproduction.claims.record import (
    IN_PART,
    REPRODUCED,
    TESTBED_ONLY,
    Claim,
    Judged,
    Part,
    is_judged,
)


@dataclass(frozen=True)
class Seen:
    """A claim as one engine sees it.

    Attributes:
        judged: its checks.
        seeds: seeds of the scenarios.
        wall_s: seconds that it took.
    """

    judged: Judged
    seeds: tuple[int, ...] = ()
    wall_s: float = 0.0

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Seen:
        """Return the claim whose plain values `to_plain` gave."""
        parts, seen = content["judged"]
        judged = Judged(tuple(Part(*part) for part in parts), seen)
        return cls(judged, tuple(content["seeds"]), content["wall_s"])


@dataclass(frozen=True)
class Outcome:
    """A claim with both engines' findings."""

    paper: str
    claim: Claim
    simulated: Seen
    solved: Seen

    @property
    def verdict(self) -> str:
        """The verdict of the simulator; the recorded verdict if there is nothing to simulate."""
        return self.simulated.judged.verdict if is_judged(self.claim) else self.claim["verdict"]

    @property
    def as_on_record(self) -> bool:
        """Whether the verdict equals the recorded verdict."""
        return self.verdict == self.claim["verdict"]

    @property
    def kept_back(self) -> bool:
        """Whether the claim was unknown while the scenarios were made, and judged afterwards."""
        return self.claim.get("blind", False)

    @property
    def modelled(self) -> bool:
        """Whether a model has a verdict."""
        return any(part.holds is not None and part.counts for part in self.solved.judged.parts)

    @property
    def name(self) -> str:
        """Publication and id."""
        return f"{self.paper} {self.claim['id']}"


class Counts(NamedTuple):
    """How many claims have each verdict.

    Attributes:
        simulated: by verdict of the simulator.
        solved: by verdict of the models, of the claims on which they have a verdict.
        agree: how many claims have the same verdict by both.
    """

    simulated: Counter[str]
    solved: Counter[str]
    agree: int

    @property
    def total(self) -> int:
        """All claims."""
        return self.simulated.total()

    @property
    def checkable(self) -> int:
        """Number of claims that are not left to the testbed."""
        return self.total - self.simulated[TESTBED_ONLY]

    def shares(self, solved: bool = False) -> tuple[float, float]:
        """Return the shares of claims reproduced, and reproduced at least in part; NaN without claims.

        By the simulator, of all checkable claims; if `solved`, by theory, of the claims with its verdict.
        """
        found, total = (self.solved, self.solved.total()) if solved else (self.simulated, self.checkable)
        met = found[REPRODUCED]
        return (met / total, (met + found[IN_PART]) / total) if total else (math.nan, math.nan)


def counts(outcomes: Iterable[Outcome]) -> Counts:
    """Count verdicts."""
    listed = list(outcomes)
    modelled = [one for one in listed if one.modelled]
    return Counts(
        Counter(one.verdict for one in listed),
        Counter(one.solved.judged.verdict for one in modelled),
        sum(one.verdict == one.solved.judged.verdict for one in modelled),
    )
