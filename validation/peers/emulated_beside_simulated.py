"""Real TCP of Linux over emulated networks, beside the same networks simulated with the preset "linux".

`PYTHONPATH=validation/helpers python validation/peers/emulated_beside_simulated.py`, on Linux, as root, takes
about 14 minutes. For each network and sender (CUBIC, Reno) a real one sends as much as it can for
`DURATION_S` of real time. Goodput, mean smoothed round-trip time, and retransmissions after `WARMUP_S` are
compared with those of simulated replications of the same length. One emulated run is one sample: it agrees if
it lies within a share of the simulated mean (`CLOSE`), or in the interval that would hold one more
replication in 99 of 100 cases (Student). With no difference at all one of 100 values outside the share
disagrees by chance.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import t as student
from thesis import over_wires

import btqueue as bt

DURATION_S, WARMUP_S, REPLICATIONS = 30, 5, 10
CLOSE = {"goodput_kbps": 0.05, "rtt_s": 0.1, "retransmissions_per_s": 0.15}
"""Share of the simulated mean within which a value agrees."""
CONFIDENCE = 0.99
SENDERS = {"cubic": "cubic", "reno": "newreno"}
"""The kernel's names, and those of `transport.variant`."""
PORT, CONGESTION = 5001, 13

SINK = """
import json, socket, time
listening = socket.create_server(("10.77.0.2", {port}))
connection, _ = listening.accept()
connection.settimeout(0.1)
begin, late, now = time.monotonic(), 0, 0.0
while now < {duration}:
    try:
        size = len(connection.recv(65536))
    except TimeoutError:
        size = 0
    now = time.monotonic() - begin
    late += size * ({warmup} <= now < {duration})
with open({file!r}, "w") as file:
    json.dump(late * 8 / 1000 / ({duration} - {warmup}), file)
while True:  # the source ends the emulation
    time.sleep(1)
"""
SOURCE = """
import json, socket, statistics, struct, threading, time
sending = socket.socket()
sending.setsockopt(socket.IPPROTO_TCP, {option}, b"{sender}")
sending.connect(("10.77.0.2", {port}))
sending.settimeout(1)
begin = time.monotonic()
def look():
    times, counts = [], []
    while time.monotonic() < begin + {duration}:
        time.sleep(0.05)
        if time.monotonic() >= begin + {warmup}:
            facts = sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            times.append(struct.unpack_from("I", facts, 68)[0] / 1e6)
            counts.append(struct.unpack_from("I", facts, 100)[0])
    with open({looked!r}, "w") as file:
        json.dump([statistics.mean(times), (counts[-1] - counts[0]) / ({duration} - {warmup})], file)
threading.Thread(target=look).start()
while time.monotonic() < begin + {duration} + 2:
    try:
        sending.send(bytes(65536))
    except TimeoutError:
        pass
"""
"""tcpi_rtt (us) and tcpi_total_retrans of TCP_INFO stand at bytes 68 and 100."""


def wire(**link: object) -> dict:
    """Return a network of one outside link."""
    return {"network": over_wires({"name": "wire", "from": "a", "to": "b", "header_bytes": 0, **link})}


def piconet(*, token_bucket: bool = False, **tables: dict) -> dict:
    """Return a piconet whose first flow is real."""
    network = {"topology": "piconet", "peripherals": 2, "active_flows": 1} | tables.pop("network", {})
    queues = {"enabled": token_bucket, "baseband_packets": 100}  # a segment takes 56 packets of DH1
    link = {"packets": ["DH5", "DH3"], "arq": "none"} | tables.pop("link", {})
    return {"network": network, "flow_control": queues, "link": link, **tables}


NETWORKS = {
    "piconet": piconet(),
    "piconet of four, three of them simulated": piconet(network={"peripherals": 4, "active_flows": 4}),
    "piconet with a token bucket": piconet(token_bucket=True),
    "piconet, DH1": piconet(link={"packets": ["DH1"]}),
    "piconet, 3-DH5": piconet(link={"packets": ["3-DH5"]}),
    "piconet, repetition": piconet(radio={"model": "constant", "ber": 1e-4}, link={"arq": "unlimited"}),
    "piconet, losses": piconet(radio={"model": "constant", "ber": 1e-5}),
    "piconet to the central": piconet(network={"flows": "uplink"}),
    "link, 700 kbit/s": wire(rate_kbps=700, delay_s=0.02, buffer_packets=25),
    "link, long": wire(rate_kbps=2000, delay_s=0.05, buffer_packets=50),
    "link, losses": wire(rate_kbps=700, delay_s=0.02, buffer_packets=25, loss=0.01),
    "link, slow": wire(rate_kbps=250, delay_s=0.1, buffer_packets=10),
}


def scenario_of(network: dict, sender: str) -> bt.Scenario:
    """Return a scenario of what Linux sends: segments of 1448 bytes with 52 of headers."""
    run = {"duration_s": DURATION_S - WARMUP_S, "warmup_s": WARMUP_S}
    linux = {"preset": "linux", "variant": SENDERS[sender], "mss_bytes": 1448, "header_bytes": 52}
    return bt.Scenario.from_dict(
        network
        | {
            "traffic": {"source": "greedy"},
            "transport": {**linux, "timestamps": True},
            # without jitter nothing is random, and all replications fall into one rhythm
            "run": run | {"replications": REPLICATIONS, "jitter_s": 0.002},
        }
    )


def emulated(scenario: bt.Scenario, sender: str) -> tuple[list[float], float]:
    """Return the values of a real connection, in the order of `CLOSE`, and the lateness (ms, 99 of 100)."""
    with tempfile.TemporaryDirectory() as folder:
        file, found, looked = (
            Path(folder, name) for name in ("scenario.toml", "goodput.json", "looked.json")
        )
        file.write_text(scenario.to_toml(resolved=False))
        facts = {"port": PORT, "duration": DURATION_S, "warmup": WARMUP_S, "option": CONGESTION}
        facts |= {"file": str(found), "looked": str(looked), "sender": sender}
        programs = {}
        for option, text in (("--serve", SINK), ("--exec", SOURCE)):
            program = Path(folder, f"{option.strip('-')}.py")
            program.write_text(text.format(**facts))
            programs[option] = f"{sys.executable} {program}"
        command = [sys.executable, "-m", "btqueue", "emulate", str(file), "--json", "--quiet"]
        command += [word for pair in programs.items() for word in pair]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        values = [json.loads(found.read_text()), *json.loads(looked.read_text())]
        return values, json.loads(done.stdout)["emulate"]["lateness_ms"]["p99"]


def main() -> None:
    """Print a row for each network, sender and metric, and what they come to."""
    factor = student.ppf(0.5 + CONFIDENCE / 2, REPLICATIONS - 1) * np.sqrt(1 + 1 / REPLICATIONS)
    agreeing, differences = dict.fromkeys(CLOSE, 0), {metric: [] for metric in CLOSE}
    for sender in SENDERS:
        for name, network in NETWORKS.items():
            scenario = scenario_of(network, sender)
            values, late_ms = emulated(scenario, sender)
            answer = bt.simulate(scenario)
            for (metric, share), real in zip(CLOSE.items(), values, strict=True):
                samples = answer[metric].values[:, 0]
                mean, wide = float(np.mean(samples)), factor * float(np.std(samples, ddof=1))
                agrees = abs(real - mean) <= max(share * mean, wide)
                agreeing[metric] += agrees
                differences[metric].append(abs(real / mean - 1) if mean else float(real != mean))
                said = (
                    f"{differences[metric][-1]:.1%}{'' if agrees else ' DISAGREES'} | late {late_ms:.2f} ms"
                )
                row = f"{sender} | {name} | {metric} | {real:.4g} | {mean:.4g} ± {wide:.2g} | {said}"
                print(row, flush=True)
    for metric, count in agreeing.items():
        median = float(np.median(differences[metric]))
        print(f"{metric}: {count} of {len(SENDERS) * len(NETWORKS)} agree, median difference {median:.1%}")


if __name__ == "__main__":
    main()
