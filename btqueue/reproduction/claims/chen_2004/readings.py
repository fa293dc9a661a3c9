"""What other readings of open points would change."""

from __future__ import annotations

from btqueue.reproduction.claims.chen_2004.systems import HOPS, LINKS, goodput, series, traced
from btqueue.reproduction.claims.engines import Engine


def trace(engine: Engine) -> list[list[str]]:
    """Return mean goodputs (kbit/s) under a made-up trace: the measured one was not published."""
    return [[link, *(f"{series(engine, traced(link, hops)).mean():.0f}" for hops in HOPS)] for link in LINKS]


READINGS: dict[str, dict] = {
    "as in the scenarios": {},
    "500 bytes with headers": {"traffic__message_bytes": 460, "transport__mss_bytes": 460},
    "receive window 8 segments": {"transport__receive_window_segments": 8},
    "receive window 64 segments": {"transport__receive_window_segments": 64},
    "least timeout 0.2 s in place of 1 s": {"transport__min_rto_s": 0.2},
    "Tahoe": {"transport__variant": "tahoe"},
    "Reno": {"transport__variant": "reno"},
    "estimate from the link quality": {"link__adaptation_estimate": "link-quality"},
    "acknowledgement bit lost with its packet": {"link__arq_feedback": "lossy"},
    "errors also in access code, headers, CRC": {"radio__bits": "on-air"},
    "one exchange a visit": {"polling__discipline": "1-limited"},
    "central/peripheral as bridge": {"network__bridge": "MS"},
}
"""Other readings of open points, as changes of the scenarios."""


def reading(engine: Engine, changes: dict) -> list[str]:
    """Return regular / adaptive goodput (kbit/s) over each number of hops, at a bit error rate of 5e-4."""
    pairs = ([goodput(engine, link, hops, 5e-4, **changes) for link in LINKS] for hops in HOPS)
    return [" / ".join(f"{one.mean():.0f}" for one in pair) for pair in pairs]


def readings(engine: Engine) -> list[list[str]]:
    """Return what other readings would change."""
    return [[name, *reading(engine, changes)] for name, changes in READINGS.items()]
