"""Real time: packets of two namespaces cross a simulated network, whose clock is this machine's."""

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import numpy as np

from btqueue.captures.files import CaptureWriter
from btqueue.emulation.carrier import MTU, Carrier
from btqueue.emulation.namespaces import Namespace, ask_to_end, namespace
from btqueue.simulator.records.conventions import SECOND

ADDRESSES = ("10.77.0.1", "10.77.0.2")
LATENESS_BIN = 10_000
LATENESS_BINS = 100_000
"""Lateness is counted in steps of 10 us, up to a second."""
LONGEST_SLEEP_S = 0.05
"""Longest time between two looks at the programs."""
PRIORITY = 10
IPV4 = 4
PATIENCE_S = 2.0
"""Seconds that a server gets to open its socket, and a program to end when it is asked to."""

Report = Callable[["Account"], None]


@dataclass
class Way:
    """IP packets that one end has sent to the other since the start; `delay_s` is the sum of their delays."""

    sent: int = 0
    delivered: int = 0
    lost: int = 0
    delivered_bytes: int = 0
    delay_s: float = 0.0

    def told(self, elapsed_s: float) -> dict[str, float]:
        """Return the numbers after this time, as JSON has them; the mean delay is NaN without packets."""
        return {
            "sent": self.sent,
            "delivered": self.delivered,
            "lost": self.lost,
            "delivered_kbps": self.delivered_bytes * 8e-3 / elapsed_s if elapsed_s > 0 else 0.0,
            "mean_delay_s": self.delay_s / self.delivered if self.delivered else float("nan"),
        }


@dataclass
class Account:
    """Counts of packets and delays since the start.

    Attributes:
        elapsed_s: seconds since the start.
        ways: from the first end to the second, and back.
        queued: baseband packets that wait in the whole network.
        first_in_line: whether this process has real-time priority over ordinary processes.
        exit_codes: of the programs, in the order in which they were given; None: ended by the emulation.
    """

    elapsed_s: float = 0.0
    ways: tuple[Way, Way] = field(default_factory=lambda: (Way(), Way()))
    queued: int = 0
    first_in_line: bool = False
    exit_codes: list[int | None] = field(default_factory=list)
    lateness: np.ndarray = field(default_factory=lambda: np.zeros(LATENESS_BINS + 1, np.int64))

    def late(self, lateness_ns: int) -> None:
        """Count how late a packet was handed over."""
        self.lateness[min(lateness_ns // LATENESS_BIN, LATENESS_BINS)] += 1

    def lateness_ms(self, share: float) -> float:
        """Return the lateness that this share of the packets did not exceed (ms), NaN without packets."""
        sums = self.lateness.cumsum()
        if sums[-1] == 0:
            return float("nan")
        place = int(np.searchsorted(sums, share * sums[-1]))
        return min(place + 1, LATENESS_BINS) * LATENESS_BIN / 1e6


class Emulation:
    """Two namespaces, a carrier between them, and the programs in them; a context.

    Attributes:
        ends: the namespaces at the flow's source and target.
        account: counts of packets and delays since the start.
    """

    def __init__(self, carrier: Carrier, pcap: CaptureWriter | None = None) -> None:
        """Keep the parts; the namespaces are made when the context is entered."""
        self.carrier, self.pcap = carrier, pcap
        self.account = Account()
        self.ends: list[Namespace] = []
        self._programs: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()

    def __enter__(self) -> "Emulation":
        """Make the namespaces.

        Raises:
            EmulationUnavailable: this machine cannot have them.
        """
        with self._stack:
            self.ends = [self._stack.enter_context(namespace(address)) for address in ADDRESSES]
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Ask running programs to end, then close the namespaces, which ends the remaining programs."""
        with self._stack:
            for program in self._programs:
                ask_to_end(program)
            for program in self._programs:
                with suppress(subprocess.TimeoutExpired):
                    program.wait(PATIENCE_S)
        for program in self._programs:
            program.wait()

    def start(self, end: int, words: Sequence[str], output: int | None = None) -> None:
        """Start a program at an end (0 or 1); its standard output goes to `output`, or where ours goes."""
        # Only a program at the first end may read what the user types.
        own = None if end == 0 else subprocess.DEVNULL
        self._programs.append(subprocess.Popen(self.ends[end].command(words), stdin=own, stdout=output))
        self.account.exit_codes.append(None)

    def listening(self, end: int) -> bool:
        """Whether a program at this end waits for connections or datagrams; gives it some time to begin."""
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit and self._programs[-1].poll() is None:
            tables = "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6"
            # a table has a line of titles; a socket of TCP that listens is in the state 0A
            script = f"{tables} | grep -Eq '^ *[0-9]+: .* (0A|07) '"
            if subprocess.run(self.ends[end].command(["sh", "-c", script]), check=False).returncode == 0:
                return True
            time.sleep(0.05)
        return False

    def run(
        self, *, until_ended: int | None = None, duration_s: float | None = None, report: Report | None = None
    ) -> None:
        """Carry packets until a program has ended or a time has passed, whichever is first; else for ever.

        Args:
            until_ended: number of the program, in order of their starts.
            duration_s: the time.
            report: called about once a second.
        """
        account, carrier = self.account, self.carrier
        descriptors = [end.descriptor for end in self.ends]
        with first_in_line() as account.first_in_line:
            origin = time.monotonic_ns()
            end_ns = None if duration_s is None else round(duration_s * SECOND)
            told = 0
            while True:
                now = time.monotonic_ns() - origin
                account.elapsed_s = now / SECOND
                if now - told >= SECOND:
                    told = now
                    self._tell(report)
                if end_ns is not None and now >= end_ns:
                    break
                if until_ended is not None and self._programs[until_ended].poll() is not None:
                    break
                self._hand_over(now, origin)
                wait = (carrier.next_event - (time.monotonic_ns() - origin)) / SECOND
                ready, _, _ = select.select(descriptors, [], [], min(max(wait, 0.0), LONGEST_SLEEP_S))
                for descriptor in ready:
                    self._take(descriptors.index(descriptor), origin)
            account.exit_codes = [program.poll() for program in self._programs]
            self._tell(None)

    def _hand_over(self, now: int, origin: int) -> None:
        """Simulate the network until `now`, and give the ends the packets that it has delivered."""
        for delivery in self.carrier.advance(now):
            way = self.account.ways[delivery.backward]
            os.write(self.ends[not delivery.backward].descriptor, delivery.packet)
            self.account.late(time.monotonic_ns() - origin - delivery.at)
            way.delivered += 1
            way.delivered_bytes += len(delivery.packet)
            way.delay_s += (delivery.at - delivery.sent_at) / SECOND
            if delivery.backward and self.pcap is not None:
                self.pcap.write(delivery.packet, time.time_ns())

    def _take(self, end: int, origin: int) -> None:
        """Take the packets that an end has sent, and let them enter the network now."""
        while True:
            try:
                packet = os.read(self.ends[end].descriptor, MTU)
            except BlockingIOError:
                return
            if packet[0] >> 4 != IPV4:
                continue
            if end == 0 and self.pcap is not None:
                self.pcap.write(packet, time.time_ns())
            self._hand_over(time.monotonic_ns() - origin, origin)  # the packet enters at the time that it is
            self.carrier.hand_down(packet, backward=end == 1)
            self.account.ways[end].sent += 1

    def _tell(self, report: Report | None) -> None:
        self.carrier.count_lost()
        for way, lost in zip(self.account.ways, self.carrier.lost, strict=True):
            way.lost = lost
        self.account.queued = self.carrier.queued
        if report is not None:
            report(self.account)


@contextmanager
def first_in_line() -> Iterator[bool]:
    """Let this process have real-time priority within the block; yield whether the system allows it."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, policy, parameter)
