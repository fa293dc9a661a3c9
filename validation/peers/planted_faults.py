"""Faults of simulators, planted: the claimed scenario, the simulated one, and words that name the fault.

`PYTHONPATH=validation/helpers python validation/peers/planted_faults.py` simulates those that are ours and
writes `planted_faults.json`. The words were written before the checks ran. The faults of `OF_CPP` are in the
loop in C++ of the benchmarks, changed by a line each (README.md); their numbers stand there as they came out.
"""

import json
from pathlib import Path
from typing import NamedTuple

from thesis import over_wires

import btqueue as bt

FILE = Path(__file__).with_name("planted_faults.json")
SEED = 4711
TCP = (
    "goodput_kbps",
    "rtt_s",
    "rtt_min_s",
    "timeouts_per_s",
    "fast_retransmits_per_s",
    "retransmissions_per_s",
)
QUEUES = (*TCP, "loss_token_buffer", "loss_baseband_buffer", "polls_per_s")


class Fault(NamedTuple):
    """A fault, and words of the sentence that names it."""

    claimed: bt.Scenario
    simulated: dict[str, object]
    words: str
    metrics: tuple[str, ...] = TCP
    tolerance: float | None = None


THESIS = bt.load("venugopal-2006/piconet").with_(run__duration_s=200, run__warmup_s=30)
LIGHT = THESIS.with_(traffic__load_kbps=40)
SCARCE = THESIS.with_(flow_control__token_rate_kbps=200, run__duration_s=480)
ERRORS = bt.load("venugopal-2006/piconet-errors").with_(run__duration_s=480, run__warmup_s=30)
LOSSY = THESIS.with_(radio__model="constant", radio__ber=2e-5)
UPLINK = THESIS.with_(
    **{"network__flows": "uplink", "transport__protocol": "none", "flow_control__enabled": False},
    **{"traffic__message_bytes": 295, "traffic__load_kbps": 100},
)
SESSIONS = bt.load("avancha-2002/ethernet").with_(
    traffic__reply_bytes=20_000, transport__connection_per_session=True, transport__handshake=True
)
LINK = bt.Scenario.from_dict(
    {
        "network": over_wires(
            {"name": "wire", "from": "a", "to": "b", "rate_kbps": 1000.0, "delay_s": 0.03}
            | {"buffer_packets": 12, "loss": 0.005, "loss_back": 0.0, "header_bytes": 2}
        ),
        "traffic": {"source": "greedy"},
        "transport": {"preset": "thesis", "variant": "newreno", "receive_window_segments": 64},
        "run": {"duration_s": 200, "warmup_s": 20, "replications": 10},
    }
)


def wire(**keys: float) -> dict[str, object]:
    """Return the changes of keys of the link."""
    (link,) = LINK.to_dict(resolved=False)["network"]["outside_links"]
    return {"network.outside_links": [link | keys]}


BUFFER = "network.outside_links[1].buffer_packets = 24 (the scenario has 12)"
FAULTS = {
    "M one more": Fault(THESIS.with_(polling__limit=1), {}, "polling.limit = 2"),
    "M one less": Fault(THESIS.with_(polling__limit=2), {"polling.limit": 1}, "polling.limit = 1", QUEUES),
    "a POLL slot forgotten": Fault(LIGHT, {}, "a POLL or a NULL slot is forgotten"),
    "a NULL slot forgotten": Fault(LIGHT, {}, "a POLL or a NULL slot is forgotten"),
    "delay from the start of service": Fault(
        UPLINK.with_(traffic__load_kbps=250),
        {},
        "as if counted from the start of service",
        ("goodput_kbps", "delay_s", "queue_packets"),
    ),
    "queue in segments for packets": Fault(
        THESIS.with_(flow_control__buffer_packets=6),
        {"flow_control.buffer_packets": 30},
        "flow_control.buffer_packets = 30 (the scenario has 6): a queue that counts segments",
        QUEUES,
    ),
    "least timeout 0.2": Fault(LOSSY, {"transport.min_rto_s": 0.2}, "transport.min_rto_s = 0.2"),
    "initial window": Fault(
        SESSIONS,
        {"transport.initial_window_segments": 3},
        "transport.initial_window_segments = 3",
        ("session_time_s", "sessions_per_s", "goodput_kbps"),
    ),
    "two duplicates for three": Fault(ERRORS, {}, "two duplicates"),
    "warm-up 0": Fault(
        LINK.with_(run__duration_s=5, run__warmup_s=20, run__replications=20),
        {"run.warmup_s": 0.0},
        "run.warmup_s = 0",
    ),
    "bit errors on the payload only": Fault(
        UPLINK.with_(
            **{"link__packets": ["DH1"], "transport__header_bytes": 0, "traffic__message_bytes": 23},
            **{"traffic__load_kbps": 30, "radio__model": "constant", "radio__ber": 1e-3},
            radio__bits="on-air",
        ),
        {"radio.bits": "payload"},
        "radio.bits = payload",
        ("goodput_kbps", "delay_s", "loss_radio"),
    ),
    "token price by actual bytes": Fault(SCARCE, {}, "flow_control.charge = actual"),
    "delayed acknowledgements off": Fault(
        LINK.with_(transport__delayed_ack=True),
        {"transport.delayed_ack": False},
        "transport.delayed_ack = false",
    ),
    "MSS 12 less": Fault(
        LINK.with_(transport__receive_window_segments=4).changed(wire(loss=0.0)),
        {"transport.mss_bytes": 1448},
        "transport.mss_bytes = 1448",
        tolerance=0.001,
    ),
    "delay halved": Fault(LINK, wire(delay_s=0.015), "network.outside_links[1].delay_s = 0.015"),
    "queue of 24 said 12": Fault(LINK, wire(buffer_packets=24), BUFFER),
    "loss 1 % said 2 %": Fault(
        LINK.changed(wire(loss=0.02)),
        wire(loss=0.01),
        "network.outside_links[1].loss = 0.01 (the scenario has 0.02)",
    ),
    "CUBIC said NewReno": Fault(LINK, {"transport.variant": "cubic"}, "transport.variant = cubic"),
    "shared random streams": Fault(LINK, {}, "they share one random stream"),
    "no doubling of the timer": Fault(
        LOSSY, {"transport.rto_backoff": False}, "transport.rto_backoff = false"
    ),
    "Vegas' thresholds": Fault(
        LINK.with_(transport__variant="vegas", transport__alpha=1.0, transport__beta=3.0),
        {"transport.alpha": 2.0, "transport.beta": 4.0},
        "transport.alpha = 2 (the scenario has 1) and transport.beta = 4",
    ),
}
OF_CPP = (
    *("M one more", "a POLL slot forgotten", "a NULL slot forgotten"),
    *("two duplicates for three", "token price by actual bytes"),
)


def measured(name: str) -> dict[str, list[float]]:
    """Return each metric of a fault of ours, a value a replication."""
    fault = FAULTS[name]
    found = bt.simulate(fault.claimed.changed(fault.simulated | {"run.seed": SEED})).to_dataset()
    values = {}
    for metric in fault.metrics:
        one = found[metric]
        if "queue" in one.dims:
            values |= {f"{metric}[{queue}]": one.sel(queue=queue).values for queue in one["queue"].values}
        else:
            values[metric] = one.mean([dim for dim in one.dims if dim != "replication"]).values
    if name == "delay from the start of service":  # five slots on the air
        values["delay_s"] = [5 * 625e-6] * len(values["delay_s"])
    if name == "shared random streams":
        values = {metric: [one[0]] * 5 for metric, one in values.items()}
    return {metric: [float(f"{value:.5g}") for value in one] for metric, one in values.items()}


def main() -> None:
    """Write the file; faults of `OF_CPP` stay as they are in it."""
    known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    table = {name: known[name] if name in OF_CPP else measured(name) for name in FAULTS}
    rows = ",\n".join(f'"{name}": {json.dumps(one)}' for name, one in table.items())
    FILE.write_text(f"{{\n{rows}\n}}\n", "utf-8")


if __name__ == "__main__":
    main()
