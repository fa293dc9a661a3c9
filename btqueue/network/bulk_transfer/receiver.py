"""The receiver of a bulk transfer as a deterministic machine: when it acknowledges, and what it reports.

Rules: RFC 5681, section 4.2 (delayed acknowledgements), RFC 2018 (blocks, the most recent first) and RFC
7323, section 4.3 (the time stamp that is echoed).
"""

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple


class Acknowledgement(NamedTuple):
    """All below `number` has arrived; `echo` is a time of sending (s), `blocks` what came out of order."""

    number: int
    echo: float
    blocks: tuple[tuple[int, int], ...]


@dataclass
class Receiver:
    """State of the receiver; `deadline` is when a delayed acknowledgement has to leave (s).

    Attributes:
        every: segments in order that are acknowledged together; 1: each at once.
        delay_s: longest that the first of them waits.
        most_blocks: blocks in an acknowledgement; 0 without SACK.
    """

    every: int
    delay_s: float
    most_blocks: int
    expected: int = 0
    waiting: int = 0
    acknowledged: int = 0
    echo: float = 0.0
    deadline: float = inf
    blocks: list[tuple[int, int]] = field(default_factory=list)

    def take(self, number: int, sent_at: float, now: float) -> Acknowledgement | None:
        """Take a segment; return the acknowledgement if one has to leave at once."""
        if number <= self.acknowledged and sent_at >= self.echo:
            self.echo = sent_at
        if number != self.expected:
            if number > self.expected:
                self._keep(number)
            return self.acknowledge()
        gap = bool(self.blocks)
        self.expected += 1
        for start, end in self.blocks:
            if start == self.expected:
                self.expected = end
                self.blocks.remove((start, end))
                break
        self.waiting += 1
        if gap or self.waiting >= self.every:
            return self.acknowledge()
        self.deadline = min(self.deadline, now + self.delay_s)
        return None

    def acknowledge(self) -> Acknowledgement:
        """Acknowledge all that is there."""
        self.waiting, self.deadline, self.acknowledged = 0, inf, self.expected
        return Acknowledgement(self.expected, self.echo, tuple(self.blocks[: self.most_blocks]))

    def _keep(self, number: int) -> None:
        """Enter a segment out of order; its block, joined with its neighbours, becomes the first."""
        start, end, others = number, number + 1, []
        for block in self.blocks:
            if block[0] <= number < block[1]:
                start, end = block
            elif block[1] == start:
                start = block[0]
            elif block[0] == end:
                end = block[1]
            else:
                others.append(block)
        self.blocks = [(start, end), *others]
