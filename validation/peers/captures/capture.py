"""Make further captures with counters (Linux, root).

    python validation/peers/captures/capture.py FOLDER [NAME ...]

The transfers of `../linux/record.py`, seen by a packet socket at the sender's device: NAME.pcap with the
first 100 bytes of each packet, in front of the link's queue, and NAME.json with the sender's counters.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from btqueue.emulation.namespaces import DEVICE, Namespace, require_namespaces

sys.path.insert(0, str(Path(__file__).parents[1] / "linux"))
transfers: Any = importlib.import_module("record")
TIMESTAMPS = (1, 0)
"""On and off."""
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


def capture(path: Path, link: Any, variant: str, sack: int, rack: int, stamps: int) -> None:
    """Play one transfer and write its packets and counters."""
    with Namespace("10.77.0.1", 24) as near, Namespace("10.77.0.2", 24) as far:
        kernel = {"tcp_sack": sack, "tcp_recovery": rack, "tcp_early_retrans": 3 * rack}
        for name, value in {**kernel, "tcp_timestamps": stamps, "tcp_no_metrics_save": 1}.items():
            near.set_kernel(f"net/ipv4/{name}", value)
            far.set_kernel(f"net/ipv4/{name}", value)
        size = link.segments * transfers.MSS
        tap = transfers.start(near, CAPTURE.format(path.with_suffix(".pcap").resolve(), DEVICE))
        server = transfers.start(far, transfers.SERVER.format(size))
        for program in (tap, server):
            assert program.stdout is not None
            program.stdout.readline()
        client = transfers.start(near, transfers.CLIENT.format(size, variant))
        try:
            assert server.stdout is not None
            transfers.play(link, near, far, server.stdout.fileno())
            counters = transfers.counters_of(near)
            rows = [row.split() for row in near.run(["cat", "/proc/net/snmp"]).splitlines()]
            names, values = (row for row in rows if row[0] == "Tcp:")
            counters["RetransSegs"] = int(values[names.index("RetransSegs")])
        finally:
            for program in (client, tap, server):
                program.communicate("\n")
    told = {name: counters[name] for name in (*transfers.COUNTERS, "RetransSegs") if counters.get(name)}
    sender = {"variant": variant, "sack": sack, "rack": rack, "ts": stamps}
    path.with_suffix(".json").write_text(json.dumps({"link": link._asdict() | sender, "counters": told}))


if __name__ == "__main__":
    require_namespaces()
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or transfers.LINKS:
        for variant, sack, rack in transfers.SENDERS:
            for stamps in TIMESTAMPS:
                path = folder / f"{name}-{variant}-sack{sack}-rack{rack}-ts{stamps}"
                capture(path, transfers.LINKS[name], variant, sack, rack, stamps)
                print(path.name, flush=True)
