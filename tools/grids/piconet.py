"""One piconet: both directions, relays, radios, limits, tokens, mixtures.

Loads are shares of what the slots carry without errors.
"""

import btqueue as bt
from btqueue.scenario import Scenario
from grids import rings

FULL_KBPS = 620.0
"""What the slots carry of all flows together, by DH5 and DH3 packets."""
RELAYED_KBPS = 359.4
"""The same where each segment takes two hops."""
RUN = {"run.duration_s": 300.0, "run.warmup_s": 20.0, "run.replications": 8}
BASE = {
    "network.topology": "piconet",
    "link.arq": "unlimited",
    "flow_control.enabled": False,
    "flow_control.baseband_packets": 200,
}


def points() -> list[tuple[str, Scenario]]:
    """Return the points by name: what kind, then what differs."""
    found = []
    for flows in ("uplink", "downlink"):
        for n in (2, 4, 7):
            common = {"network.flows": flows, "network.peripherals": n}
            found += [_loaded("perfect radio", share, 5, common) for share in (0.2, 0.5, 0.75)]
            found += [_loaded("perfect radio", 0.5, limit, common) for limit in (1, 15)]
            lossy = common | _radio(1e-4)
            found += [_loaded("bit errors", share, 5, lossy) for share in (0.2, 0.4, 0.6)]
            found.append(_loaded("bit errors", 0.4, 15, common | _radio(5e-5)))
            found.append(_point("greedy", "perfect radio", common | {"traffic.source": "greedy"}))
            found.append(_point("greedy", "1e-4", common | {"traffic.source": "greedy"} | _radio(1e-4)))
    for flows in ("uplink", "downlink"):
        common = {"network.flows": flows, "network.peripherals": 3}
        found += _others(flows, common)
    return found + _mixtures() + _relayed() + _unrepeated()


def _unrepeated() -> list[tuple[str, Scenario]]:
    """Return the ring's points with bit errors and without voice, then others of the same kind."""
    _, usual = rings.point(2, 160, 25, 5, 250, errors=True)
    changes = {
        "window 4": {"transport__receive_window_segments": 4},
        "timeouts of 0.5 s": {"transport__min_rto_s": 0.5},
        "one channel": {"radio__fading": "per-piconet"},
        "limit 1": {"polling__limit": 1},
        "slow fading": {"radio__good_s": 4.0, "radio__bad_s": 0.5},
    }
    others = [(f"bit errors, n=2, {name}", usual.with_(**change)) for name, change in changes.items()]
    return [
        (f"ring without repetition, {name}", scenario)
        for name, scenario in [*rings.points(), *others]
        if scenario.radio.model != "perfect" and scenario.voice.packet == "none"
    ]


def _relayed() -> list[tuple[str, Scenario]]:
    """Return points with flows between stations, by repetition on a perfect radio and with bit errors."""
    found = []
    for flows, n in (("ring", 2), ("ring", 4), ("ring", 7), ("pairs", 4)):
        for share in (0.2, 0.5, 0.75):
            for limit in (1, 5, 15):
                load = {"traffic.load_kbps": round(share * RELAYED_KBPS / n, 2), "polling.limit": limit}
                common = {"network.flows": flows, "network.peripherals": n}
                found.append(_point("relayed", f"{flows}, n={n}, load {share}, M={limit}", common | load))
    for share in (0.2, 0.4):
        load = {"traffic.load_kbps": round(share * RELAYED_KBPS / 3, 2), "network.peripherals": 3}
        ring = {"network.flows": "ring"} | load
        found.append(_point("relayed", f"ring, n=3, load {share}, 1e-4", ring | _radio(1e-4)))
        ring |= {"network.relay": "segment"}
        found.append(_point("relayed", f"ring, n=3, load {share}, segments", ring))
    greedy = {"network.flows": "ring", "network.peripherals": 3, "traffic.source": "greedy"}
    return [*found, _point("relayed", "ring, n=3, greedy", greedy)]


def _others(flows: str, common: dict) -> list[tuple[str, Scenario]]:
    """Return points with one thing that is different from all the others."""
    load = {"traffic.load_kbps": round(0.5 * FULL_KBPS / 3, 1)}
    found = []
    for name, changes in {
        "no transport, load 0.3": {"transport.protocol": "none", "traffic.load_kbps": 62.0},
        "no transport, load 0.7": {"transport.protocol": "none", "traffic.load_kbps": 145.0},
        "no transport, load 0.5, S=20": {"transport.protocol": "none", "flow_control.baseband_packets": 20},
        "3-DH5": {"link.packets": ["3-DH5", "DH1"], "traffic.load_kbps": 300.0},
        "messages of 500 bytes": {
            "traffic.message_bytes": 500, "traffic.load_kbps": 60.0, "transport.windows": "segments",
        },
        "window 2": {"transport.receive_window_segments": 2},
        "at most 2 transmissions": {"link.arq": 2} | _radio(5e-5),
        "two-state radio": {
            "radio.model": "gilbert-elliott", "radio.ber_good": 6.9e-6, "radio.ber_bad": 1.26e-4,
            "radio.good_s": 0.4375, "radio.bad_s": 0.0558,
        },
        "exhaustive": {"polling.discipline": "exhaustive"},
    }.items():  # fmt: skip
        found.append(_point("others", f"{flows}, {name}", common | load | changes))
    for share in (0.3, 0.6):
        for rate in (150.0, 400.0):
            tokens = {"flow_control.enabled": True, "flow_control.token_rate_kbps": rate}
            tokens |= {"traffic.load_kbps": round(share * FULL_KBPS / 3, 1)}
            found.append(_point("token bucket", f"{flows}, load {share}, {rate:g} kbit/s", common | tokens))
    for ber in (1e-6, 5e-6, 2e-5):
        lossy = {"link.arq": "none", "traffic.load_kbps": 60.0} | _radio(ber)
        found.append(_point("no repetition", f"{flows}, {ber:g}", common | lossy))
    for places in (20, 30):
        small = {"flow_control.baseband_packets": places, "flow_control.central_buffer_packets": places}
        found.append(_point("small buffers", f"{flows}, L={places}", common | load | small))
        greedy = {"traffic.source": "greedy"}
        found.append(_point("small buffers", f"{flows}, L={places}, greedy", common | greedy | small))
    return found + _messages(flows, common)


def _messages(flows: str, common: dict) -> list[tuple[str, Scenario]]:
    """Return points whose messages have several segments, and windows that let out a part of them or all."""
    common, found = common | {"traffic.load_kbps": round(0.4 * FULL_KBPS / 3, 1)}, []
    for number in (1, 2, 3, 8):
        message = common | {"traffic.message_bytes": number * 1460}
        for window in (1, 2, 4, 16) if number > 1 else (1,):
            changes = {"transport.receive_window_segments": window}
            name = f"{flows}, {number} segments, window {window}"
            found.append(_point("long messages", name, message | changes))
        for clock in ("timer", "tick"):
            changes = {"transport.delayed_ack": True, "transport.ack_clock": clock}
            name = f"{flows}, {number} segments, {clock}"
            found.append(_point("delayed acknowledgements", name, message | changes))
    return found


def _mixtures() -> list[tuple[str, Scenario]]:
    """Return points with flows that differ."""
    patterns = {
        "both ways": [("c1", "p1.1"), ("p1.1", "c1"), ("c1", "p1.2"), ("p1.2", "c1")],
        "one up, two down": [("p1.1", "c1"), ("c1", "p1.2"), ("c1", "p1.3")],
        "two of four": [("c1", "p1.1"), ("c1", "p1.2")],
    }
    found = []
    for name, pairs in patterns.items():
        flows = [{"from": source, "to": target} for source, target in pairs]
        stations = 4 if name == "two of four" else len({end for pair in pairs for end in pair}) - 1
        common = {"network.flows": flows, "network.peripherals": stations}
        for share in (0.3, 0.6):
            load = {"traffic.load_kbps": round(share * FULL_KBPS / len(pairs), 1)}
            found.append(_point("mixtures", f"{name}, load {share}", common | load))
    unlike = [
        {"from": "c1", "to": "p1.1", "load_kbps": 200.0},
        {"from": "c1", "to": "p1.2", "load_kbps": 50.0},
        {"from": "p1.3", "to": "c1", "load_kbps": 20.0},
    ]
    common = {"network.flows": unlike, "network.peripherals": 3}
    found.append(_point("mixtures", "loads of 200, 50 and 20", common))
    two = [("p1.1", "c1", 0.25), ("p1.1", "c1", 0.25), ("c1", "p1.2", 0.5)]
    steep = [("p1.1", "c1", 0.5), ("p1.2", "c1", 0.27), ("p1.3", "c1", 0.14), ("p1.4", "c1", 0.09)]
    for name, pattern in (("two flows on a link", two), ("steep loads", steep)):
        for share, limit in ((0.3, 5), (0.6, 5), (0.6, 15)):
            flows = [
                {"from": source, "to": target, "load_kbps": round(part * share * FULL_KBPS, 1)}
                for source, target, part in pattern
            ]
            stations = {end for source, target, _ in pattern for end in (source, target)} - {"c1"}
            common = {"network.flows": flows, "network.peripherals": len(stations), "polling.limit": limit}
            found.append(_point("mixtures", f"{name}, load {share}, M={limit}", common))
    beside = [{"from": "c1", "to": "p1.1", "law": "greedy"}, {"from": "p1.2", "to": "c1", "load_kbps": 40.0}]
    common = {"network.flows": beside, "network.peripherals": 2}
    return [*found, _point("mixtures", "one greedy, one of 40", common)]


def _radio(ber: float) -> dict:
    return {"radio.model": "constant", "radio.ber": ber}


def _loaded(kind: str, share: float, limit: int, changes: dict) -> tuple[str, Scenario]:
    n = changes["network.peripherals"]
    name = f"load {share}, M={limit}" + (f", {changes['radio.ber']:g}" if "radio.ber" in changes else "")
    more = {"traffic.load_kbps": round(share * FULL_KBPS / n, 2), "polling.limit": limit}
    return _point(kind, name, changes | more)


def _point(kind: str, name: str, changes: dict) -> tuple[str, Scenario]:
    where = f", {changes['network.flows']}, n={changes['network.peripherals']}"
    where = "" if kind not in ("perfect radio", "bit errors", "greedy") else where
    scenario = bt.load("venugopal-2006/piconet").changed(BASE | RUN | changes)
    return f"{kind}{where}, {name}", scenario
