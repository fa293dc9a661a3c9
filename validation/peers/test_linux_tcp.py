"""The simulator's TCP beside the kernel's: 108 transfers over scripted links (README.md)."""

from typing import Any

import linux_machine
import pytest
from linux_replay import Story, first_difference, records, replay, told_by
from linux_sender import follow

RECORDS = {record["id"]: record for record in records()}
RENO = [name for name, record in RECORDS.items() if record["variant"] == "reno"]
LATE_US = 1000
"""A link in real time may find a packet still on its way out that has left by the script, or the reverse."""

LINUX: dict[str, Any] = {
    "preset": "linux",
    "receive_window_segments": 2000,
    # with the kernel's first receive buffer the window grows for so long, and is acknowledged at once
    "quick_acks": 22,
}
"""The public keys that speak as Linux does. README.md lists the rules that they lack."""

VARIANTS = {"reno": "newreno", "cubic": "cubic"}

QUICK = ("01/reno-sack0-rack0", "deep/reno-sack1-rack0", "single/reno-sack0-rack0", "tail/reno-sack1-rack1")
QUICK += ("single/cubic-sack1-rack0", "deep/cubic-sack1-rack0")
AGREEING = (
    "01/reno-sack0-rack0",
    "01/reno-sack1-rack0",
    "01/reno-sack1-rack1",
    "03/reno-sack0-rack0",
    "03/reno-sack1-rack0",
    "03/reno-sack1-rack1",
    "04/reno-sack1-rack0",
    "04/reno-sack1-rack1",
    "07/reno-sack1-rack0",
    "07/reno-sack1-rack1",
    "09/reno-sack1-rack0",
    "09/reno-sack1-rack1",
    "deep/reno-sack0-rack0",
    "deep/reno-sack1-rack0",
    "deep/reno-sack1-rack1",
    "first/reno-sack1-rack0",
    "first/reno-sack1-rack1",
    "overflow/reno-sack0-rack0",
    "random-3/reno-sack1-rack1",
    "random-8/reno-sack1-rack0",
    "random-8/reno-sack1-rack1",
    "shallow/reno-sack0-rack0",
    "single/reno-sack0-rack0",
    "single/reno-sack1-rack0",
    "single/reno-sack1-rack1",
    "whole-window/reno-sack0-rack0",
    "whole-window/reno-sack1-rack0",
    "whole-window/reno-sack1-rack1",
    "01/cubic-sack1-rack0",
    "01/cubic-sack1-rack1",
    "03/cubic-sack0-rack0",
    "03/cubic-sack1-rack0",
    "03/cubic-sack1-rack1",
    "04/cubic-sack1-rack0",
    "04/cubic-sack1-rack1",
    "09/cubic-sack1-rack0",
    "09/cubic-sack1-rack1",
    "again/cubic-sack0-rack0",
    "again/cubic-sack1-rack0",
    "again/cubic-sack1-rack1",
    "burst/cubic-sack0-rack0",
    "burst/cubic-sack1-rack0",
    "burst/cubic-sack1-rack1",
    "deep/cubic-sack0-rack0",
    "deep/cubic-sack1-rack0",
    "deep/cubic-sack1-rack1",
    "first/cubic-sack1-rack0",
    "first/cubic-sack1-rack1",
    "last-three/cubic-sack0-rack0",
    "last-three/cubic-sack1-rack0",
    "overflow/cubic-sack1-rack0",
    "overflow/cubic-sack1-rack1",
    "random-3/cubic-sack1-rack0",
    "random-3/cubic-sack1-rack1",
    "shallow/cubic-sack1-rack0",
    "shallow/cubic-sack1-rack1",
    "single/cubic-sack0-rack0",
    "single/cubic-sack1-rack0",
    "single/cubic-sack1-rack1",
    "tail/cubic-sack1-rack0",
    "tail/cubic-sack1-rack1",
    "whole-window/cubic-sack0-rack0",
    "whole-window/cubic-sack1-rack0",
    "whole-window/cubic-sack1-rack1",
)
"""Records with the kernel's counts of retransmissions, recoveries, probes and timeouts today."""

SAME = (
    "01/reno-sack1-rack0",
    "01/reno-sack1-rack1",
    "04/reno-sack1-rack0",
    "04/reno-sack1-rack1",
    "07/reno-sack1-rack0",
    "07/reno-sack1-rack1",
    "first/reno-sack1-rack0",
    "first/reno-sack1-rack1",
    "whole-window/reno-sack1-rack0",
    "whole-window/reno-sack1-rack1",
    "again/cubic-sack1-rack0",
    "again/cubic-sack1-rack1",
    "deep/cubic-sack0-rack0",
    "deep/cubic-sack1-rack0",
    "deep/cubic-sack1-rack1",
    "first/cubic-sack1-rack0",
    "first/cubic-sack1-rack1",
    "last-three/cubic-sack0-rack0",
    "last-three/cubic-sack1-rack0",
    "single/cubic-sack0-rack0",
    "single/cubic-sack1-rack0",
    "single/cubic-sack1-rack1",
    "whole-window/cubic-sack1-rack0",
    "whole-window/cubic-sack1-rack1",
)
"""Records of which the simulator sends all packets in the kernel's order today."""

FOLLOWED_APART = {
    "06/reno-sack1-rack1": "cwnd opens later by one acknowledgement: the sender waited for its application",
    "burst/reno-sack1-rack1": "the sender waits for its application, then sends four at once",
    "overflow/reno-sack1-rack0": "cwnd opens later by one acknowledgement",
    "overflow/reno-sack1-rack1": "cwnd opens later by one acknowledgement",
    "random-3/reno-sack1-rack0": "not explained",
    "shallow/reno-sack1-rack0": "cwnd opens later by one acknowledgement",
    "shallow/reno-sack1-rack1": "cwnd opens later by one acknowledgement",
}
"""Records with SACK whose packets neither `linux_sender` nor the simulator gives, and what differs first."""
WHOLE = [
    name
    for name in RENO
    if RECORDS[name]["sack"]
    and all(offset % RECORDS[name]["mss"] == 0 for _, offset, *_ in RECORDS[name]["data"])
]
"""Records with SACK in which the kernel cut no segment in two."""


def played(name: str) -> Story:
    record = RECORDS[name]
    return replay(record, {**LINUX, "variant": VARIANTS[record["variant"]], "sack": bool(record["sack"])})


def counts(story: Story) -> tuple[int, int, int, int]:
    return story.retransmissions, story.recoveries, story.probes, story.timeouts


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


@pytest.mark.parametrize("name", RECORDS)
def test_the_recorded_link_was_the_scripted_one(name):
    record = RECORDS[name]
    us_a_byte = 8000 / record["rate_kbps"]
    busy, leaves = 0.0, []
    for place, (time, _, size, fate) in enumerate(record["data"], 1):
        assert (fate == "dropped") == (place in record["lost"])
        surely = sum(moment > time + LATE_US for moment in leaves)
        perhaps = sum(moment > time - LATE_US for moment in leaves)
        if fate == "overflow":
            assert perhaps >= record["buffer_packets"]
        elif fate == "sent":
            assert surely < record["buffer_packets"]
            busy = max(busy, time) + (size + 52) * us_a_byte
            leaves.append(busy)
    carried = {offset for _, offset, _, fate in record["data"] if fate == "sent"}
    assert len(carried) >= record["segments"]
    assert record["acks"][-1][1] >= record["segments"] * record["mss"] - 2 * record["mss"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in RENO]
)
def test_until_a_loss_shows_the_same_bytes_are_sent_in_the_same_order(name):
    record = RECORDS[name]
    kernel, simulated = told_by(record), played(name)
    difference = first_difference(kernel.ranges, simulated.ranges)
    assert difference is None or difference >= sent_before_a_loss_shows(record)
    assert sum(size for _, size in set(simulated.ranges)) == record["segments"] * record["mss"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in AGREEING]
)
def test_the_senders_count_the_same(name):
    simulated, kernel = played(name), told_by(RECORDS[name])
    assert counts(simulated) == counts(kernel)
    assert name not in SAME or simulated.ranges == kernel.ranges


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK or "04/" in name else pytest.mark.long)
        for name in WHOLE
        if name.endswith("rack0") and name not in FOLLOWED_APART
    ],
)
def test_on_the_kernels_acknowledgements_the_sender_sends_the_kernels_packets(plain, name):
    kernel, sent = (
        told_by(RECORDS[name]),
        linux_machine.follow(plain, RECORDS[name], {**LINUX, "variant": "newreno", "sack": True}),
    )
    assert sent.ranges == kernel.ranges
    assert counts(sent) == counts(kernel)
    assert sent.last_new_byte_s == pytest.approx(kernel.last_new_byte_s, rel=0.02)


@pytest.mark.parametrize("name", [name for name in WHOLE if name not in FOLLOWED_APART])
def test_the_rules_of_linux_send_what_the_kernel_sent(name):
    kernel, followed = told_by(RECORDS[name]), follow(RECORDS[name])
    assert followed.ranges == kernel.ranges
    assert followed.last_new_byte_s == pytest.approx(kernel.last_new_byte_s, rel=0.02)
    assert (followed.recoveries, followed.probes, followed.timeouts) == (
        kernel.recoveries,
        kernel.probes,
        kernel.timeouts,
    )
