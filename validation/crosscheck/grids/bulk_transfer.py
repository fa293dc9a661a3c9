"""Bulk transfers: Suliman 2005 with its sweeps; the long-delay link and the busy WLAN of Avancha 2002.

The model answers for the long run, so the transfers run longer than the 30 s of the paper and without their
first slow start.
"""

import btqueue as bt
from btqueue.scenario import Scenario

LONG_RUN = {"run__warmup_s": 60, "run__duration_s": 600, "run__replications": 10}
LONG_S = 20_000
"""Timeouts by random loss are rare: so long that ten replications know their rate to some per cent."""
SULIMAN = "suliman-2005/"


def points() -> list[tuple[str, Scenario]]:
    """Return the scenarios of the two papers, and a grid around each."""
    found = [(name, suliman(name)) for name in ("round-trips", "one-of-seven", "one-of-seven-adaptive")]
    found += [
        (f"connections, {n} active", suliman("connections", network__active_flows=n)) for n in range(1, 8)
    ]
    found += [window_and_packet(window, 1460) for window in (1, 2, 4, 8, 22, 32)]
    found += [window_and_packet(window, mss) for window, mss in ((16, 984), (64, 984), (32, 472), (64, 472))]
    found += [
        (f"round-trips, {variant}", suliman("round-trips", transport__variant=variant))
        for variant in ("newreno", "reno", "tahoe")
    ]
    found += [
        (f"round-trips, packet error rate {per}", suliman("round-trips", **noisy(per))) for per in (0.1, 0.3)
    ]
    found.append(
        (
            "connections, 4 active, packet error rate 0.1",
            suliman("connections", network__active_flows=4, **noisy(0.1)),
        )
    )
    found.append(
        ("round-trips, each segment acknowledged", suliman("round-trips", transport__delayed_ack=False))
    )
    found.append(("three uploads", uploads(3)))
    found += [
        (f"round-trips, WLAN loss {loss}", lossy_wlan("round-trips", loss)) for loss in (0.002, 0.005, 0.01)
    ]
    found.append(("one-of-seven, WLAN loss 0.01", lossy_wlan("one-of-seven", 0.01)))
    found += [satellite(loss=loss) for loss in (0.0001, 0.001, 0.003, 0.01, 0.03, 0.05)]
    found += [satellite(variant=variant) for variant in ("newreno", "reno", "tahoe")]
    found += [satellite(delay=delay) for delay in (0.05, 0.1, 0.5)]
    name, slow = satellite(window=16)
    found.append((f"{name}, delayed acknowledgements", slow.with_(transport__delayed_ack=True)))
    found += [busy_wlan(reply) for reply in (64, 1024, 4096, 8192)]
    return found + [satellite(window=window) for window in (8, 16, 32)]


def suliman(name: str, **changes: object) -> Scenario:
    """Return a scenario of the paper in the long run."""
    return bt.load(SULIMAN + name).with_(**LONG_RUN, **changes)


def noisy(error_rate: float) -> dict[str, object]:
    """Return the changes that give every packet this error rate."""
    return {"radio__model": "constant", "radio__per": error_rate}


def window_and_packet(window: int, mss: int) -> tuple[str, Scenario]:
    """Return one of seven with a window and packet size."""
    scenario = suliman(
        "one-of-seven",
        transport__mss_bytes=mss,
        traffic__message_bytes=mss,
        transport__receive_window_segments=window,
        transport__initial_window_segments=min(2, window),
    )
    return f"one-of-seven, window {window}, segments of {mss} bytes", scenario


def uploads(count: int) -> Scenario:
    """Return the connections turned round: peripherals send to the host."""
    return suliman(
        "connections", network__flows=[{"from": f"s{i}", "to": "host"} for i in range(1, count + 1)]
    )


def lossy_wlan(name: str, loss: float) -> Scenario:
    """Return a scenario whose WLAN loses packets, both ways."""
    link = {"name": "wlan", "from": "host", "to": "gateway", "kind": "wlan", "delay_s": 0.002, "loss": loss}
    return suliman(name, network__outside_links=[link]).with_(run__duration_s=LONG_S)


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


def busy_wlan(reply: int) -> tuple[str, Scenario]:
    """Return sessions beside two greedy transfers."""
    scenario = bt.load("avancha-2002/wlan-chargen").with_(
        traffic__reply_bytes=reply, run__duration_s=200, run__replications=10
    )
    return f"wlan-chargen, reply of {reply} bytes", scenario


def group(name: str) -> str:
    """Return under which heading a point is counted besides all of them."""
    return "random loss" if "satellite" in name or "WLAN loss" in name else "no random loss"


REASONS = """
* **Several flows through one buffer** have several limit cycles, in step and out of step. A run of the
  simulator stays in one of them for minutes; at four connections its replications differ by 20 % in the
  round trip. The model averages orbits from three starts and says so.
* **Timeouts at round trips just above half the least timeout** (satellite) are retransmissions that arrive,
  but too late for a timer that has run since the last new acknowledgement. How many of them are late the
  model says well (simulated and modelled by the number in flight); what is missing, 10 to 15 % at losses of
  3 % and more, and a quarter at windows of eight and with Tahoe, comes from small windows, in which more is
  lost.
* **Sessions beside greedy transfers** lock to the turns of the cell: each replication of the simulator has
  one of a few session times (32 or 38 ms at 64 bytes).
* **Random loss** is given to a lone flow only. Its round trips leave out the queue that bursts build on an
  otherwise empty path beyond half a segment: the 90 % quantile comes out 2 to 3 % low.
"""
