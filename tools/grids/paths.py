"""Paths: lone flows over wires and a piconet, with and without random losses, and flows that share a wire.

The scenarios of Suliman 2005 and the long-delay link of Avancha 2002 with a grid around each, and internet
scenarios drawn at random. The model answers for the long run: transfers run without their first slow start.
"""

import numpy as np

import btqueue as bt
from btqueue.scenario import Scenario

LONG_RUN = {"run__warmup_s": 60, "run__duration_s": 600, "run__replications": 10}
LONG_S = 20_000
"""Timeouts by random loss are rare: so long that ten replications know their rate to some per cent."""
SULIMAN = "suliman-2005/"
PACKETS = ["DH5", "DH1"], ["3-DH5", "3-DH1"]
DRAWN = 40
SEED = 2711


def points() -> list[tuple[str, Scenario]]:
    """Return the scenarios of the two papers, a grid around each, and the drawn ones."""
    trips, connections = "round-trips", "connections"
    found = [suliman(name) for name in (trips, "one-of-seven", "one-of-seven-adaptive")]
    found += [window_and_packet(window, 1460) for window in (1, 2, 4, 8, 22, 32)]
    found += [window_and_packet(window, mss) for window, mss in ((16, 984), (64, 984), (32, 472), (64, 472))]
    found += [suliman(trips, one, transport__variant=one) for one in ("newreno", "reno", "tahoe")]
    found += [suliman(trips, f"packet error rate {per}", **noisy(per)) for per in (0.1, 0.3)]
    found.append(suliman(trips, "each segment acknowledged", transport__delayed_ack=False))
    found += [suliman(connections, f"{n} active", network__active_flows=n) for n in range(1, 8)]
    four = {"network__active_flows": 4, **noisy(0.1)}
    found.append(suliman(connections, "4 active, packet error rate 0.1", **four))
    uploads = [{"from": f"s{i}", "to": "host"} for i in (1, 2, 3)]
    found.append(("three uploads", suliman(connections, network__flows=uploads)[1]))
    found += [lossy_wlan(trips, loss) for loss in (0.002, 0.005, 0.01)]
    found.append(lossy_wlan("one-of-seven", 0.01))
    found += [satellite(loss=loss) for loss in (0.0001, 0.001, 0.003, 0.01, 0.03, 0.05)]
    found += [satellite(variant=variant) for variant in ("newreno", "reno", "tahoe")]
    found += [satellite(delay=delay) for delay in (0.05, 0.1, 0.5)]
    name, slow = satellite(window=16)
    found.append((f"{name}, delayed acknowledgements", slow.with_(transport__delayed_ack=True)))
    return [*found, *(satellite(window=window) for window in (8, 16, 32)), *drawn()]


def suliman(name: str, what: str = "", **changes: object) -> tuple[str, Scenario]:
    """Return a scenario of the paper in the long run, and what is changed in it."""
    return f"{name}, {what}" if what else name, bt.load(SULIMAN + name).with_(**LONG_RUN, **changes)


def noisy(error_rate: float) -> dict[str, object]:
    """Return the changes that give every packet this error rate."""
    return {"radio__model": "constant", "radio__per": error_rate}


def window_and_packet(window: int, mss: int) -> tuple[str, Scenario]:
    """Return one of seven with a window and packet size."""
    sizes = {"transport__mss_bytes": mss, "traffic__message_bytes": mss}
    sizes |= {"transport__receive_window_segments": window}
    sizes |= {"transport__initial_window_segments": min(2, window)}
    return suliman("one-of-seven", f"window {window}, segments of {mss} bytes", **sizes)


def lossy_wlan(name: str, loss: float) -> tuple[str, Scenario]:
    """Return a scenario whose WLAN loses packets, both ways."""
    link = {"name": "wlan", "from": "host", "to": "gateway", "kind": "wlan", "delay_s": 0.002, "loss": loss}
    name, scenario = suliman(name, f"WLAN loss {loss}", network__outside_links=[link])
    return name, scenario.with_(run__duration_s=LONG_S)


def satellite(
    loss: float = 0.01, variant: str = "sack", delay: float = 0.25, window: int = 64
) -> tuple[str, Scenario]:
    """Return the long-delay link."""
    link = {"name": "satellite", "from": "ground", "to": "far", "kind": "other", "half_duplex": False}
    scenario = bt.load("avancha-2002/satellite").with_(
        network__outside_links=[link | {"delay_s": delay, "loss": loss, "loss_back": 0}],
        transport__variant=variant,
        transport__receive_window_segments=window,
        run__duration_s=LONG_S,
    )
    return f"satellite, {variant}, loss {loss}, delay {delay} s, window {window}", scenario


def drawn() -> list[tuple[str, Scenario]]:
    """Return internet scenarios: phones behind a gateway, or one behind which the gateway is a peripheral."""
    draw = np.random.default_rng(SEED)
    return [internet(number, draw) for number in range(DRAWN)]


def internet(number: int, draw: np.random.Generator) -> tuple[str, Scenario]:
    """Return one of them; windows do not overflow a buffer together."""
    phones = int(draw.choice([1, 1, 1, 2, 3]))
    names = [f"phone{n}" for n in range(1, phones + 1)]
    central = phones > 1 or draw.random() < 0.7
    rate, delay = [(500, 0.02), (1000, 0.03), (2000, 0.1), (5000, 0.2)][int(draw.integers(4))]
    link = {"name": "internet", "from": "gateway", "to": "server", "kind": "other", "half_duplex": False}
    link |= {"rate_kbps": rate, "delay_s": delay}
    loss = float(draw.choice([0.0, 0.002, 0.005, 0.01, 0.02, 0.03])) if phones == 1 else 0.0
    up, delayed, lossy_air = draw.random() < 0.3, draw.random() < 0.3, draw.random() < 0.3
    window = int(draw.choice([4, 8, 16, 32, 64]))
    buffer = int(draw.choice([10, 30, 1000])) if phones == 1 else 1000
    first, others = ("gateway", names) if central else (names[0], ["gateway"])
    pairs = [(name, "server") if up else ("server", name) for name in names]
    scenario = bt.Scenario.from_dict(
        {
            "network": {
                "topology": "custom",
                "piconet_list": [{"name": "home", "central": first, "peripherals": others}],
                "outside_links": [link | {"loss": loss, "buffer_packets": buffer}],
                "flows": [{"from": source, "to": target} for source, target in pairs],
            },
            "radio": {"model": "constant", "ber": 3e-5} if lossy_air else {},
            "link": {"arq": "unlimited", "packets": PACKETS[int(draw.integers(2))]},
            "flow_control": {"enabled": False, "baseband_packets": 1000},
            "traffic": {"source": "greedy"},
            "transport": {
                "preset": "thesis",
                "variant": str(draw.choice(["tahoe", "reno", "newreno", "sack"])),
                "receive_window_segments": window,
                "delayed_ack": delayed,
                "timestamps": bool(draw.random() < 0.7),
            },
            "run": {"warmup_s": 60.0, "duration_s": 3000.0 if loss else 300.0, "replications": 6},
        }
    )
    return f"internet {number}, loss {loss:g}, {phones} flows", scenario
