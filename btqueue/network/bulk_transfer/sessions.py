"""Request-reply sessions that share a path with bulk transfers: request, reply, good-bye, pause."""

from dataclasses import dataclass, field
from typing import NamedTuple

REQUEST, REPLY, GOODBYE, PAUSE = "request", "reply", "good-bye", "pause"


class SessionPath(NamedTuple):
    """What a client and its server say: lengths of the messages (segments), and the pause between (s)."""

    server: int
    request: int
    reply: int
    goodbye: int
    pause_s: float


class Step(NamedTuple):
    """What comes next: an end writes a message, or the next request follows after the pause."""

    flow: int
    segments: int


@dataclass
class Session:
    """One session after the other; `times` are their durations (s), from the request to the whole reply."""

    client: int
    path: SessionPath
    phase: str = PAUSE
    expected: dict[int, int] = field(default_factory=dict)
    began: float = 0.0
    times: list[float] = field(default_factory=list)

    def begin(self, now: float) -> Step:
        """The client asks."""
        self.began = now
        return self._write(REQUEST, self.client, self.path.request)

    def delivered(self, flow: int, received: int, now: float) -> Step | None:
        """A flow has delivered all below `received`; return what the application does, or None."""
        if self.phase == PAUSE or received < self.expected.get(flow, 0):
            return None
        if self.phase == REQUEST and flow == self.client:
            return self._write(REPLY, self.path.server, self.path.reply)
        if self.phase == REPLY and flow == self.path.server:
            self.times.append(now - self.began)
            if self.path.goodbye:
                return self._write(GOODBYE, self.client, self.path.goodbye)
        elif self.phase != GOODBYE or flow != self.client:
            return None
        self.phase = PAUSE
        return Step(self.client, 0)

    def _write(self, phase: str, flow: int, segments: int) -> Step:
        self.phase = phase
        self.expected[flow] = self.expected.get(flow, 0) + segments
        return Step(flow, segments)
