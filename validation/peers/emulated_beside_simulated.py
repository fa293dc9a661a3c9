"""Real TCP of Linux over emulated networks, beside the same networks simulated with the preset "linux".

`python validation/peers/emulated_beside_simulated.py`, on Linux, as root, takes about seven minutes. For each
network a real sender (CUBIC) sends as much as it can for `DURATION_S` of real time, and the goodput after
`WARMUP_S` is compared with that of simulated replications of the same length. One emulated run is one sample:
it agrees if it lies within 5 % of the simulated mean, or in the interval that would hold one more replication
in 99 of 100 cases (Student). With no difference at all one of 100 networks outside 5 % disagrees by chance.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import t as student

import btqueue as bt

DURATION_S, WARMUP_S, REPLICATIONS = 30, 5, 10
CLOSE, CONFIDENCE = 0.05, 0.99
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
import socket, time
sending = socket.socket()
sending.setsockopt(socket.IPPROTO_TCP, {option}, b"cubic")
sending.connect(("10.77.0.2", {port}))
sending.settimeout(1)
end = time.monotonic() + {duration} + 2
while time.monotonic() < end:
    try:
        sending.send(bytes(65536))
    except TimeoutError:
        pass
"""


def wire(**link: object) -> dict:
    """Return a network of one outside link."""
    idle = {"name": "idle", "central": "c", "peripherals": ["p"]}
    one = {"name": "wire", "from": "a", "to": "b", "header_bytes": 0, **link}
    flows = [{"from": "a", "to": "b"}]
    return {"network": {"topology": "custom", "piconet_list": [idle], "outside_links": [one], "flows": flows}}


def piconet(*, token_bucket: bool = False, **tables: dict) -> dict:
    """Return a piconet whose first flow is real."""
    network = {"topology": "piconet", "peripherals": 2, "active_flows": 1} | tables.pop("network", {})
    queues = {"enabled": token_bucket, "baseband_packets": 100}  # a segment takes 56 packets of DH1
    return {"network": network, "flow_control": queues, **tables}


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


def scenario_of(network: dict) -> bt.Scenario:
    """Return a scenario of what Linux sends: segments of 1448 bytes with 52 of headers."""
    return bt.Scenario.from_dict(
        network
        | {
            "traffic": {"source": "greedy"},
            "transport": {"preset": "linux", "mss_bytes": 1448, "header_bytes": 52, "timestamps": True},
            "run": {
                **{"duration_s": DURATION_S - WARMUP_S, "warmup_s": WARMUP_S},
                **{"replications": REPLICATIONS, "intervals": "replications"},
                "jitter_s": 0.002,  # without it nothing is random, and all replications fall into one rhythm
            },
        }
    )


def emulated(scenario: bt.Scenario) -> tuple[float, float]:
    """Return the goodput of a real connection (kbit/s), and how late packets were (ms, 99 of 100)."""
    with tempfile.TemporaryDirectory() as folder:
        file, found = Path(folder, "scenario.toml"), Path(folder, "goodput.json")
        file.write_text(scenario.to_toml(resolved=False))
        facts = {
            "port": PORT,
            "duration": DURATION_S,
            "warmup": WARMUP_S,
            "option": CONGESTION,
            "file": str(found),
        }
        programs = {}
        for option, text in (("--serve", SINK), ("--exec", SOURCE)):
            program = Path(folder, f"{option.strip('-')}.py")
            program.write_text(text.format(**facts))
            programs[option] = f"{sys.executable} {program}"
        command = [sys.executable, "-m", "btqueue", "emulate", str(file), "--json", "--quiet"]
        command += [word for pair in programs.items() for word in pair]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(found.read_text()), json.loads(done.stdout)["emulate"]["lateness_ms"]["p99"]


def simulated(scenario: bt.Scenario) -> tuple[float, float]:
    """Return mean and standard deviation over replications of the goodput of the first flow (kbit/s)."""
    samples = bt.simulate(scenario).goodput_kbps.values[:, 0]
    return float(np.mean(samples)), float(np.std(samples, ddof=1))


def main() -> None:
    """Print a row for each network."""
    factor = student.ppf(0.5 + CONFIDENCE / 2, REPLICATIONS - 1) * np.sqrt(1 + 1 / REPLICATIONS)
    agreeing = 0
    for name, network in NETWORKS.items():
        scenario = scenario_of(network)
        real, late_ms = emulated(scenario)
        mean, deviation = simulated(scenario)
        agrees = abs(real - mean) <= max(CLOSE * mean, factor * deviation)
        agreeing += agrees
        print(
            f"{name}: {real:.1f} kbit/s emulated, {mean:.1f} ± {factor * deviation:.1f} simulated"
            f" ({real / mean - 1:+.1%}), late {late_ms:.2f} ms{'' if agrees else ', DISAGREES'}",
            flush=True,
        )
    print(f"{agreeing} of {len(NETWORKS)} agree")


if __name__ == "__main__":
    main()
