"""Sessions of Avancha et al. 2002: the sizes of the paper, then losses, buffers and options around them.

The present treatment of losses was developed with all of these points in view: they are no independent test.
"""

from itertools import product

import btqueue as bt
from btqueue.scenario import Scenario

SIZES = {
    "ethernet": (64, 1024, 8192),
    "bluetooth-tcp": (64, 1024, 8192),
    "bluetooth-centaurus": (64, 1024, 8192),
    "wlan-tcp": (128, 1024, 8192),
    "wlan-centaurus": (128, 1024, 8192),
    "cdpd-tcp": (128, 1024, 2048, 4096, 8192),
    "cdpd-centaurus": (128, 1024, 4096, 8192),
}
FRESH = (
    (0.0005, 3000, 4, 0.97), (0.002, 1500, 4, 0.97), (0.003, 6000, 6, 0.97), (0.003, 700, 4, 0.4),
    (0.008, 3000, 20, 0.97), (0.008, 2500, 3, 0.5), (0.012, 1500, 6, 0.97), (0.012, 5000, 4, 0.97),
)  # fmt: skip

LOSSES = (0.005, 0.01, 0.02, 0.03)
LOSSY_SIZES = (256, 1024, 4096, 8192)
LONG_S = 20_000
"""Duration with many losses: sessions last up to minutes."""


def points() -> list[tuple[str, Scenario]]:
    """Return the points."""
    found = []
    for name, sizes in SIZES.items():
        swept = "request_bytes" if name.startswith("cdpd") else "reply_bytes"
        found += [(f"{name}, {size} bytes", scenario(name, **{f"traffic__{swept}": size})) for size in sizes]
    for loss, size, buffer, delay in FRESH:
        lossy = with_links(scenario("cdpd-tcp"), loss=loss, buffer_packets=buffer, delay_s=delay)
        name = f"cdpd-tcp, fresh: loss {loss}, {size} bytes, buffer {buffer}, delay {delay}"
        found.append((name, lossy.with_(traffic__request_bytes=size)))
    found += [
        (f"{name}, loss {loss}", with_links(scenario(name), loss=loss))
        for loss in (0.005, 0.02)
        for name in ("cdpd-tcp", "cdpd-centaurus")
    ]
    for loss, size in product(LOSSES, LOSSY_SIZES):
        long = scenario("cdpd-tcp", traffic__request_bytes=size, run__duration_s=LONG_S)
        found.append((f"cdpd-tcp, lossy: loss {loss}, {size} bytes", with_links(long, loss=loss)))
    found += [
        ("wlan-tcp, loss 0.007", with_links(scenario("wlan-tcp", traffic__reply_bytes=2000), loss=0.007)),
        ("wlan-tcp, window 1", scenario("wlan-tcp", transport__receive_window_segments=1)),
        ("bluetooth-tcp, errors 0.1", scenario("bluetooth-tcp", radio__model="constant", radio__per=0.1)),
        ("bluetooth-tcp, pause 0.05", scenario("bluetooth-tcp", traffic__pause_s=0.05)),
    ]
    return found


def scenario(name: str, **changes) -> Scenario:
    """Return a scenario of the paper, changed; long enough for its losses."""
    replications = 60 if name.startswith("cdpd") else 10
    return bt.load(f"avancha-2002/{name}").with_(run__replications=replications, **changes)


def with_links(scenario: Scenario, **changes) -> Scenario:
    """Return the scenario with all outside links changed."""
    data = scenario.to_dict()
    for link in data["network"]["outside_links"]:
        link.update(changes)
    return Scenario.from_dict(data)
