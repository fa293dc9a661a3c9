"""A transfer over one wire, and what simulations of single TCP connections found."""

from thesis import over_wires, thesis_of

import btqueue as bt

LARGE_WINDOW = {
    0.0003: (536.70, 534.55),
    0.001: (379.83, 375.74),
    0.003: (220.10, 217.14),
    0.01: (111.84, 106.47),
    0.03: (51.13, 43.18),
    0.1: (11.89, 10.32),
}
"""Goodput of NewReno and of Reno in segments/s by the loss of segments: an independent event simulation of a
window of 64, a round trip of 0.1 s, a timeout of 1 s and independent losses."""


def wire(**changes) -> bt.Scenario:
    """Return a transfer over a single wired link of 1 Mbit/s, 50 ms each way; `link` changes that."""
    link = {"name": "wire", "from": "a", "to": "b", "rate_kbps": 1000, "delay_s": 0.05}
    network = over_wires(link | changes.pop("link", {})) | {"relay": "segment"}
    return thesis_of({"network": network, "traffic": {"source": "greedy"}}).with_(**changes)
