"""Real packets over the simulated network: delays to the nanosecond; then whole commands, where we may."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesis import over_wires

from btqueue.emulation import namespaces
from btqueue.emulation.carrier import Carrier, ends_of
from btqueue.emulation.namespaces import EmulationUnavailable, require_namespaces
from btqueue.scenario import Scenario
from btqueue.simulator.records.conventions import SECOND

RATE_KBPS, DELAY_MS, PLACES = 1000.0, 10, 3
MS = SECOND // 1000


def wire() -> Scenario:
    """Return a network with an outside link between two hosts; a packet of n bytes takes 8 n us and 10 ms."""
    own = {"name": "wire", "from": "near", "to": "far", "rate_kbps": RATE_KBPS, "delay_s": DELAY_MS / 1000}
    return Scenario(
        network=over_wires(own | {"buffer_packets": PLACES}) | {"relay": "segment"},
        polling={"discipline": "round-robin"},
        transport={"ack_path": "direct"},
    )


PICONET = Scenario(
    network={"peripherals": 1, "flows": "uplink"},
    link={"packets": ["DH5", "DH3", "DH1"]},
    flow_control={"enabled": False, "baseband_packets": 100},
    polling={"discipline": "round-robin"},
)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(20, 1500), st.booleans()), min_size=1, max_size=8))
def test_a_packet_alone_takes_its_time_on_the_wire_and_the_delay(packets):
    carrier = Carrier(wire())
    for number, (size, backward) in enumerate(packets):
        begin = number * SECOND
        assert carrier.advance(begin) == []
        content = bytes([number]) * size
        carrier.hand_down(content, backward=backward)
        (delivery,) = carrier.advance(begin + SECOND // 2)
        assert delivery == (begin, begin + size * 8000 + DELAY_MS * MS, backward, content)


def test_packets_keep_their_order_and_those_that_find_no_place_are_lost():
    carrier = Carrier(wire())
    carrier.advance(MS)
    for number in range(PLACES + 4):
        carrier.hand_down(bytes([number]) * 1000, backward=False)
    out = carrier.advance(SECOND)
    # one on the wire, as many as there are places wait
    assert [delivery.packet[0] for delivery in out] == list(range(PLACES + 1))
    assert [delivery.at for delivery in out] == [(1 + 8 * k + DELAY_MS) * MS for k in range(1, PLACES + 2)]
    carrier.count_lost()
    assert carrier.lost == [3, 0]


def test_a_packet_of_1000_bytes_takes_its_visits_of_a_piconet():
    # 1004 bytes with the header of L2CAP: three DH5 (339 bytes each hold 1017); each is five slots after a
    # POLL of one slot, and the packet comes at the beginning of a frame.
    carrier = Carrier(PICONET)
    frames = [6 * 625_000] * 3
    carrier.advance(SECOND)
    carrier.hand_down(bytes(1000), backward=False)
    (delivery,) = carrier.advance(2 * SECOND)
    least = sum(frames)
    # what is left of the idle frame of two slots that it finds
    assert least - 625_000 <= delivery.at - SECOND <= least + 2 * 625_000


def test_the_modelled_traffic_of_the_real_flow_is_silent_and_that_of_others_is_not():
    both = PICONET.with_(network__peripherals=2)
    carrier = Carrier(both)
    carrier.advance(10 * SECOND)
    sent = carrier._sim.flow_statistics.segments_sent
    assert sent[0] == 0 < sent[1]
    assert ends_of(both, 1) == ("p1.2", "c1")


@pytest.mark.parametrize(
    ("module", "name", "value", "says"),
    [
        ("sys", "platform", "darwin", "needs Linux"),
        ("os", "geteuid", lambda: 1000, "run it as root"),
        ("shutil", "which", lambda program: None, "iproute2"),
        ("", "TUN", "/nowhere/tun", "No such file"),
    ],
)
def test_a_machine_or_user_that_cannot_is_told_why(monkeypatch, module, name, value, says):
    if sys.platform != "linux" and module != "sys":
        pytest.skip("the first reason comes first")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda program: "/bin/" + program)
    monkeypatch.setattr(getattr(namespaces, module) if module else namespaces, name, value)
    with pytest.raises(EmulationUnavailable, match=says):
        require_namespaces()


def unavailable() -> str:
    try:
        require_namespaces()
        with namespaces.namespace("10.78.0.1"):
            return ""
    except EmulationUnavailable as error:
        return str(error)


REASON = unavailable()
as_root = pytest.mark.skipif(bool(REASON), reason=REASON or "available")
ECHO = (
    "import socket; s = socket.socket(2, 2); s.bind(('10.77.0.2', 9));"
    " [s.sendto(*s.recvfrom(2000)) for _ in range({0})]"
)
ASK = (
    "import socket; s = socket.socket(2, 2); s.settimeout(20); s.connect(('10.77.0.2', 9));"
    " [(s.send(bytes(500)), s.recv(2000)) for _ in range({0})]"
)


def command(*options: str) -> list[str]:
    quiet = ["--set", "network.active_flows=1", "--set", "flow_control.enabled=false", "--quiet"]
    return [sys.executable, "-m", "btqueue", "emulate", "venugopal-2006/piconet", *quiet, *options]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*options), capture_output=True, text=True, timeout=300, check=False)


def elsewhere() -> set[str]:
    """Return network namespace, number and name of all processes that are in another namespace than we."""
    found = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            network = os.readlink(f"/proc/{process}/ns/net")
            with open(f"/proc/{process}/comm") as name:
                found.add(f"{network} {process} {name.read().strip()}")
        except OSError:
            continue
    return {one for one in found if not one.startswith(os.readlink("/proc/self/ns/net"))}


@as_root
def test_real_programs_talk_over_the_piconet(tmp_path):
    count, capture = 30, tmp_path / "near.pcap"
    programs = ["--serve", f'{sys.executable} -c "{ECHO.format(count)}"']
    programs += ["--exec", f'{sys.executable} -c "{ASK.format(count)}"', "--pcap", str(capture), "--json"]
    done = run(*programs)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["emulate"]
    for way in ("there", "back"):
        assert [found[way][name] for name in ("sent", "delivered", "lost")] == [count, count, 0]
    # 532 bytes of IP and L2CAP: DH5 and DH3 on each of the two hops, at the least a quarter of which overlap
    assert 0.006 < found["there"]["mean_delay_s"] < 0.05
    assert found["complete"] is True
    assert found["kernel"] == os.uname().release
    # 24 bytes of the file's header, and for each packet 16 of its own, 28 of IP and UDP, 500
    assert capture.stat().st_size == 24 + 2 * count * (16 + 528)


@as_root
def test_a_program_that_fails_is_no_answer():
    done = run("--exec", "false")
    assert done.returncode == 3
    assert "--exec false: ended with the exit code 1" in done.stderr


@as_root
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_nothing_is_left_behind(number, code):
    before = elsewhere()
    words = command("--exec", "sh -c 'trap \"echo asked\" TERM; setsid sleep 600 & wait'")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: any(one.endswith(" sleep") for one in elsewhere() - before))
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert ("emulated" in out) == ("asked" in out) == (number != signal.SIGKILL)
    wait_for(lambda: elsewhere() <= before)


def wait_for(condition) -> None:
    limit = time.monotonic() + 120  # a hang, not slowness
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)
