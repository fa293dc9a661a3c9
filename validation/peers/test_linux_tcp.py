"""The simulator's TCP beside the kernel's: 108 transfers over scripted links (README.md)."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from linux_replay import Story, first_difference, records, replay, told_by

RECORDS = {record["id"]: record for record in records()}
RENO = [name for name, record in RECORDS.items() if record["variant"] == "reno"]
LINUX: dict[str, Any] = {"preset": "linux", "receive_window_segments": 2000}
"""The public keys that speak as Linux does."""

VARIANTS = {"reno": "newreno", "cubic": "cubic"}

QUICK = ("01/reno-sack1-rack1", "deep/reno-sack1-rack0", "single/cubic-sack0-rack0", "tail/reno-sack1-rack1")
QUICK += ("09/reno-sack0-rack0", "whole-window/cubic-sack1-rack0")

LATE = "in the record a host or the link was several ms late"
TICK = "a timer fired at another tick, of which phase and rounding are not in the record"
QUEUE = "the queue of the recorded link took one packet more or less"
TIE = "a packet comes when another leaves the full queue, in the simulator at the same nanosecond"
UNKNOWN = "not explained"

MISSES = {
    "01/cubic-sack0-rack0": ("order counts end", TICK),
    "01/reno-sack0-rack0": ("order counts", UNKNOWN),
    "06/cubic-sack0-rack0": ("order", LATE),
    "06/cubic-sack1-rack0": ("order", UNKNOWN),
    "06/cubic-sack1-rack1": ("order", UNKNOWN),
    "06/reno-sack1-rack1": ("order", UNKNOWN),
    "07/cubic-sack1-rack0": ("order counts", QUEUE),
    "07/cubic-sack1-rack1": ("order counts", QUEUE),
    "07/reno-sack0-rack0": ("order counts", LATE),
    "again/cubic-sack0-rack0": ("order", UNKNOWN),
    "again/reno-sack0-rack0": ("order", UNKNOWN),
    "burst/cubic-sack0-rack0": ("order end", UNKNOWN),
    "burst/reno-sack0-rack0": ("order counts end", LATE),
    "burst/reno-sack1-rack0": ("order counts", UNKNOWN),
    "burst/reno-sack1-rack1": ("order counts", UNKNOWN),
    "last-three/reno-sack0-rack0": ("order counts", TIE),
    "last-three/reno-sack1-rack0": ("order counts", TIE),
    "last-three/reno-sack1-rack1": ("order counts", TIE),
    "overflow/cubic-sack0-rack0": ("order", LATE),
    "overflow/cubic-sack1-rack0": ("order", UNKNOWN),
    "overflow/cubic-sack1-rack1": ("order", LATE),
    "overflow/reno-sack1-rack0": ("order", UNKNOWN),
    "overflow/reno-sack1-rack1": ("order", UNKNOWN),
    "random-3/cubic-sack0-rack0": ("order", UNKNOWN),
    "random-3/cubic-sack1-rack0": ("order", UNKNOWN),
    "random-3/cubic-sack1-rack1": ("order", UNKNOWN),
    "random-3/reno-sack0-rack0": ("order counts", UNKNOWN),
    "random-3/reno-sack1-rack0": ("order counts", UNKNOWN),
    "random-3/reno-sack1-rack1": ("order", UNKNOWN),
    "random-8/cubic-sack0-rack0": ("order counts end", TICK),
    "random-8/cubic-sack1-rack0": ("order counts end", TICK),
    "random-8/cubic-sack1-rack1": ("order counts end", TICK),
    "random-8/reno-sack0-rack0": ("order counts end", TICK),
    "random-8/reno-sack1-rack0": ("order", TICK),
    "random-8/reno-sack1-rack1": ("order", TICK),
    "shallow/cubic-sack1-rack0": ("order", UNKNOWN),
    "shallow/reno-sack0-rack0": ("order", UNKNOWN),
    "shallow/reno-sack1-rack0": ("order", UNKNOWN),
    "shallow/reno-sack1-rack1": ("order counts", UNKNOWN),
    "single/reno-sack0-rack0": ("order", UNKNOWN),
    "tail/reno-sack0-rack0": ("order counts", UNKNOWN),
}
"""Records that the simulator misses today, and the first cause: the packets come in another order, counts of
retransmissions, recoveries, probes or timeouts are others, or the last new byte is sent more than 2 % earlier
or later."""

OTHER_START = tuple(
    f"{link}/reno-{rest}"
    for link in ("burst", "random-3")
    for rest in ("sack0-rack0", "sack1-rack0", "sack1-rack1")
)
"""Reno records with another order before a loss shows: the receive buffer grew segments earlier or later.

Recorded again the same links give other times, in `random-3` those of the simulator.
"""


@cache
def played(name: str) -> Story:
    record = RECORDS[name]
    sack = bool(record["sack"])
    keys = {"variant": VARIANTS[record["variant"]], "sack": sack, "loss_probes": bool(record["rack"])}
    return replay(record, {**LINUX, **keys})


def counts(story: Story) -> tuple[int, int, int, int]:
    return story.retransmissions, story.recoveries, story.probes, story.timeouts


def missing(what: str) -> set[str]:
    """Return the records of which this is missed."""
    return {name for name, (missed, _) in MISSES.items() if what in missed.split()}


def judged(known: Iterable[str]) -> list[Any]:
    """Return the records to judge: a miss that is known has to stay one, or to leave its list."""
    return [
        pytest.param(
            name,
            marks=[
                *([] if name in QUICK else [pytest.mark.long]),
                *([pytest.mark.xfail(strict=True)] if name in known else []),
            ],
        )
        for name in RECORDS
    ]


def sent_before_a_loss_shows(record: dict[str, Any]) -> int:
    """Return how many packets the kernel had sent when an ACK came that acknowledged nothing new."""
    acknowledged = [offset for _, offset in (ack[:2] for ack in record["acks"])]
    shows = next(
        (
            time
            for (time, offset, *_), before in zip(record["acks"][1:], acknowledged, strict=False)
            if offset == before
        ),
        record["data"][-1][0] + 1,
    )
    if acknowledged and acknowledged[0] == 0:
        shows = record["acks"][0][0]
    # blocks may have shown it before: at the latest when the kernel sends something again
    offsets = [offset for _, offset, *_ in record["data"]]
    again = next((place for place, offset in enumerate(offsets) if offset in offsets[:place]), len(offsets))
    return min(sum(time < shows for time, *_ in record["data"]), again)


@pytest.mark.parametrize("name", [param for param in judged(OTHER_START) if param.values[0] in RENO])
def test_until_a_loss_shows_the_same_bytes_are_sent_in_the_same_order(name):
    record = RECORDS[name]
    kernel, simulated = told_by(record), played(name)
    difference = first_difference(kernel.ranges, simulated.ranges)
    assert difference is None or difference >= sent_before_a_loss_shows(record)
    assert sum(size for _, size in set(simulated.ranges)) == record["segments"] * record["mss"]


@pytest.mark.parametrize("name", judged(missing("order")))
def test_the_simulator_sends_the_kernels_packets_in_the_kernels_order(name):
    assert played(name).ranges == told_by(RECORDS[name]).ranges


@pytest.mark.parametrize("name", judged(missing("counts")))
def test_the_senders_count_the_same(name):
    assert counts(played(name)) == counts(told_by(RECORDS[name]))


@pytest.mark.parametrize("name", judged(missing("end")))
def test_the_last_new_byte_is_sent_at_the_same_time(name):
    assert played(name).last_new_byte_s == pytest.approx(told_by(RECORDS[name]).last_new_byte_s, rel=0.02)
