"""Record what the TCP of this machine's kernel sends over a scripted link (Linux, root).

    python validation/peers/linux/record.py NEW.jsonl [--pcap FOLDER] [--again | NAME ...]

appends a line to NEW.jsonl for each of `LINKS` (or of those named) and each of `SENDERS`; with `--again` for
each transfer of `records.jsonl.gz`. Two namespaces, a TUN device in each; this process is the link between
them. README.md says what a record holds. With `--pcap` each sender is also recorded without timestamps, and
seen by a packet socket at its device: FOLDER/NAME.pcap has the first 100 bytes of each packet, in front of
the link's queue.
"""

import gzip
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import deque
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from btqueue.emulation.namespaces import DEVICE, Namespace, namespace, require_namespaces

MSS = 1448
LATE_MS = 0.3
"""A record whose link was later than this, at the 99th percentile, is thrown away and made again."""
ATTEMPTS = 4
COUNTERS = (
    *("TCPTimeouts", "TCPSackRecovery", "TCPRenoRecovery", "TCPLossProbes", "TCPLossProbeRecovery"),
    *("TCPFastRetrans", "TCPSlowStartRetrans", "TCPLostRetransmit", "TCPSpuriousRTOs", "TCPDSACKUndo"),
    *("TCPFullUndo", "TCPPartialUndo", "TCPHystartTrainDetect", "TCPHystartDelayDetect", "TCPDSACKRecv"),
    "RetransSegs",
)
SERVER = """
import socket
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("10.77.0.2", 5001))
listener.listen(1)
print(flush=True)
connection, _ = listener.accept()
left = {0}
while left > 0:
    left -= len(connection.recv(65536)) or left
print(flush=True)
input()
"""
CLIENT = """
import socket
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"{1}")
connection.connect(("10.77.0.2", 5001))
connection.sendall(bytes({0}))
input()
"""
CAPTURE = """
import select, socket, struct, sys, time
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.bind(("{1}", 0))
with open("{0}", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 100, 101))
    print(flush=True)
    while True:
        ready, _, _ = select.select([tap, sys.stdin], [], [])
        if sys.stdin in ready:
            break
        packet, now = tap.recv(65536), time.time_ns() // 1000
        head = struct.pack("<IIII", now // 10**6, now % 10**6, min(len(packet), 100), len(packet))
        file.write(head + packet[:100])
"""


class Link(NamedTuple):
    """A scripted link: rate (kbit/s), delay (ms), places, segments to carry, ordinals of lost packets."""

    rate_kbps: float
    delay_ms: float
    buffer_packets: int
    segments: int
    lost: list[int]


def at_random(seed: int, probability: float) -> list[int]:
    """Return the ordinals of packets that a random loss takes, of the first thousand."""
    draw = random.Random(seed).random
    return [ordinal for ordinal in range(1, 1001) if draw() < probability]


LINKS = {
    "overflow": Link(1000, 10, 10, 300, []),
    "shallow": Link(1500, 3, 6, 400, []),
    "deep": Link(400, 40, 60, 220, []),
    "single": Link(500, 50, 30, 200, [45]),
    "tail": Link(350, 30, 15, 100, [100]),
    "last-three": Link(600, 70, 40, 120, [118, 119, 120]),
    "first": Link(300, 20, 40, 120, [1]),
    "whole-window": Link(450, 60, 25, 150, list(range(11, 21))),
    "burst": Link(700, 60, 60, 240, list(range(70, 80))),
    "again": Link(800, 25, 40, 240, [50, 90, 91, 92, 93, 94, 95, 96]),
    "random-3": Link(800, 5, 50, 360, at_random(7, 0.03)),
    "random-8": Link(450, 80, 12, 140, at_random(11, 0.08)),
}
SENDERS = [(variant, *rest) for variant in ("reno", "cubic") for rest in ((0, 0), (1, 0), (1, 1))]
"""Congestion control, SACK, RACK with tail loss probes."""


def record(
    link: Link, variant: str, sack: int, rack: int, stamps: int = 1, pcap: Path | None = None
) -> dict[str, object]:
    """Play one transfer in real time and return its record."""
    kernel = {"tcp_sack": sack, "tcp_recovery": rack, "tcp_early_retrans": 3 * rack}
    kernel |= {"tcp_timestamps": stamps, "tcp_no_metrics_save": 1}
    with namespace("10.77.0.1") as near, namespace("10.77.0.2") as far:
        for name, value in kernel.items():
            near.set_kernel(f"net/ipv4/{name}", value)
            far.set_kernel(f"net/ipv4/{name}", value)
        size = link.segments * MSS
        server = start(far, SERVER.format(size))
        programs = [server] + ([start(near, CAPTURE.format(pcap.resolve(), DEVICE))] if pcap else [])
        for program in programs:
            assert program.stdout is not None
            program.stdout.readline()
        programs.insert(0, start(near, CLIENT.format(size, variant)))
        try:
            assert server.stdout is not None
            data, acks, late = play(link, near, far, server.stdout.fileno())
            counters = counters_of(near)
        finally:
            for program in programs:
                program.communicate("\n")
    late.sort()
    return {
        "kernel": "Linux " + ".".join(os.uname().release.split(".")[:2]),
        "variant": variant,
        "sack": sack,
        "rack": rack,
        "ts": stamps,
        **link._asdict(),
        "mss": MSS,
        "lateness_ms": [round(1e3 * late[int(share * (len(late) - 1))], 3) for share in (0.5, 0.99, 1)],
        "counters": {name: counters[name] for name in COUNTERS if counters.get(name)},
        "data": data,
        "acks": acks,
    }


def start(end: Namespace, script: str) -> subprocess.Popen[str]:
    """Start a program inside; a line on its standard input ends it."""
    words = end.command([sys.executable, "-c", script])
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def counters_of(end: Namespace) -> dict[str, int]:
    """Return the kernel's own counters of TCP."""
    files = ["cat", "/proc/net/netstat", "/proc/net/snmp"]
    rows = [row.split()[1:] for row in end.run(files).splitlines()]
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return {name: int(value) for names, values in pairs for name, value in zip(names, values, strict=True)}


def play(
    link: Link, near: Namespace, far: Namespace, finished: int
) -> tuple[list[list[object]], list[list[int]], list[float]]:
    """Be the link until the server says that it has all, and the ways are empty.

    Returns:
        The data packets at the entrance (us since the first, offset, bytes, fate), the acknowledgements at
        the sender (us, offset, window field), and how late (s) each packet was handed over.
    """
    data: list[list[object]] = []
    acks: list[list[int]] = []
    late: list[float] = []
    there: deque[tuple[float, bytes]] = deque()
    back: deque[tuple[float, bytes]] = deque()
    leaves: deque[float] = deque()
    busy, first, base, done = 0.0, 0.0, 0, False
    lost = set(link.lost)
    while not done or there or back:
        now = time.monotonic()
        for way, end in ((there, far), (back, near)):
            while way and way[0][0] <= now:
                due, packet = way.popleft()
                os.write(end.descriptor, packet)
                late.append(now - due)
                if end is near and data:
                    header = 4 * (packet[0] & 15)
                    offset = (struct.unpack_from("!I", packet, header + 8)[0] - base) & 0xFFFFFFFF
                    acks.append([us(now - first), offset, struct.unpack_from("!H", packet, header + 14)[0]])
        due = min([way[0][0] for way in (there, back) if way], default=now + 0.01)
        descriptors = [near.descriptor, far.descriptor] + ([] if done else [finished])
        ready, _, _ = select.select(descriptors, [], [], max(0.0, due - time.monotonic()))
        done = done or finished in ready
        if far.descriptor in ready:
            for packet in packets(far):
                back.append((time.monotonic() + link.delay_ms / 1000, packet))
        if near.descriptor in ready:
            for packet in packets(near):
                now = time.monotonic()
                header = 4 * (packet[0] & 15)
                payload = len(packet) - header - 4 * (packet[header + 12] >> 4)
                if payload:
                    number = struct.unpack_from("!I", packet, header + 4)[0]
                    if not data:
                        first, base = now, number
                    while leaves and leaves[0] <= now:
                        leaves.popleft()
                    fate = "sent"
                    if len(data) + 1 in lost:
                        fate = "dropped"
                    elif len(leaves) >= link.buffer_packets:
                        fate = "overflow"
                    data.append([us(now - first), (number - base) & 0xFFFFFFFF, payload, fate])
                    if fate != "sent":
                        continue
                busy = max(busy, now) + len(packet) * 8 / (link.rate_kbps * 1000)
                if payload:
                    leaves.append(busy)
                there.append((busy + link.delay_ms / 1000, packet))
    return data, acks, late


def packets(end: Namespace) -> list[bytes]:
    """Return the IPv4 packets that the namespace has sent."""
    found = []
    while True:
        try:
            packet = os.read(end.descriptor, 2048)
        except BlockingIOError:
            return found
        if packet[0] >> 4 == 4:
            found.append(packet)


def us(seconds: float) -> int:
    """Return whole microseconds."""
    return round(1e6 * seconds)


def planned(words: list[str], both: bool) -> list[tuple[Any, ...]]:
    """Return what to record: name, link, congestion control, SACK, RACK, time stamps (*both*: or none)."""
    if words == ["--again"]:
        with gzip.open(Path(__file__).with_name("records.jsonl.gz"), "rt") as lines:
            known = [json.loads(line) for line in lines]
        of_sender = ("variant", "sack", "rack")
        return [(one["id"], Link(*map(one.get, Link._fields)), *map(one.get, of_sender), 1) for one in known]
    return [
        ("{}/{}-sack{}-rack{}".format(name, *sender) + f"-ts{stamps}" * both, LINKS[name], *sender, stamps)
        for name, sender, stamps in product(words or LINKS, SENDERS, (1, 0) if both else (1,))
    ]


def main(out: Path, words: list[str]) -> None:
    """Record, and append to the file."""
    folder = None
    if words[:1] == ["--pcap"]:
        folder, words = Path(words[1]), words[2:]
    require_namespaces()
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
    for identity, link, *sender in planned(words, folder is not None):
        for _ in range(ATTEMPTS):
            pcap = folder / f"{identity.replace('/', '-')}.pcap" if folder else None
            made = record(link, *sender, pcap=pcap)
            lateness = made["lateness_ms"]
            assert isinstance(lateness, list)
            print(identity, lateness, "too late" * (lateness[1] >= LATE_MS), flush=True)
            if lateness[1] < LATE_MS:
                with out.open("a") as file:
                    file.write(json.dumps({"id": identity, **made}, separators=(",", ":")) + "\n")
                break


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
