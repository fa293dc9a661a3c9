"""The outcome of a claim: both engines' verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from btqueue.reproduction.claims.papers import is_judged
from btqueue.reproduction.claims.record import Claim, Judged, Part


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
