"""Avancha et al. (2002): the claims that can be checked, one function each."""

from __future__ import annotations

from typing import Any

import numpy as np

from btqueue.reproduction.claims.engines import Answer, Engine
from btqueue.reproduction.claims.judgement import (
    WORDS,
    Finding,
    about,
    bound,
    exceeds,
    flat,
    lead,
    rising,
    rounded,
)
from btqueue.scenario import Scenario, load
from btqueue.simulator.construction.flows import pieces_of
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.replications import run_until

PAPER = "avancha-2002"
CDPD_SIZES = (128, 1024, 2048, 4096, 8192)
BLUETOOTH_SIZES = (64, 128, 1024, 2048, 4096, 8192)
WLAN_SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
QUIET, NOISY = 0.001, 0.02
"""Block error rates of CDPD: at good times, and at bad ones."""
APPLICATION_TIMEOUT_S = 30.0
"""A session is given up after this time."""


def scenario(name: str, size: int | None = None, **changes: Any) -> Scenario:
    """Return a scenario whose swept message has this size; CDPD sweeps the request, all others the reply."""
    if size is not None:
        changes["traffic__request_bytes" if name.startswith("cdpd") else "traffic__reply_bytes"] = size
    return load(f"{PAPER}/{name}").with_(**changes)


def simulated(engine: Engine, name: str, size: int | None = None, **changes: Any) -> Answer:
    """Answer a scenario by its name."""
    return engine(scenario(name, size, **changes))


def cdpd_link(bler: float) -> dict[str, Any]:
    """Return the channel with another block error rate."""
    (link,) = scenario("cdpd-tcp").to_dict(resolved=False)["network"]["outside_links"]
    return link | {"loss": bler}


def over_cdpd(
    engine: Engine,
    protocol: str,
    size: int,
    bler: float,
    delay_s: float = 0.97,
    buffer: int = 4,
    **changes: Any,
) -> Answer:
    """Simulate sessions over CDPD with another block error rate, one-way delay or buffer of the modem."""
    links = [cdpd_link(bler) | {"delay_s": delay_s, "buffer_packets": buffer}]
    return engine(scenario(f"cdpd-{protocol}", size, network__outside_links=links, **changes))


def session(result: Answer) -> np.ndarray:
    """Return the mean session time (s) of the first flow in each replication."""
    return result["session_time_s"].values[:, 0]


def retransmissions(result: Answer) -> np.ndarray:
    """Return retransmitted segments for each session, of both ends."""
    return result["retransmissions_per_s"].sum("flow").values / result["sessions_per_s"].values[:, 0]


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the ratio in each replication."""
    return a / b


# Section 3: how CentaurusComm and TCP repair losses.


def packets_at_bad_times(size: int) -> tuple[int, int, int]:
    """Return how many data packets arrived, were lost and were delivered with their message, in one run."""
    noisy = cdpd_link(NOISY)
    single = scenario("cdpd-centaurus", size, network__outside_links=[noisy])
    sim = run_until(new_state(single, 0), single.run.duration_s)
    count = sim.flow_statistics
    lost = int(count.segments_damaged.sum())
    return int(count.segments_finished.sum()) - lost, lost, int(count.delivered_in_order.sum())


def nothing_twice(engine: Engine) -> Finding:
    """A lost control message never causes an unnecessary data packet."""
    engine.only_simulated("count of single packets")
    size = 4096
    arrived, lost, delivered = packets_at_bad_times(size)
    under_way = len(pieces_of(scenario("cdpd-centaurus"), size))
    return Finding(
        0 <= arrived - delivered <= under_way and lost > 0,
        f"{arrived + lost} sent, {lost} lost, {delivered} delivered, "
        f"{arrived - delivered} of a message of {under_way} under way",
    )


def segments_of_large_messages(_engine: Engine) -> Finding:
    """Messages of 4 to 8 KB are 8 to 16 segments on a small device."""
    counts = [
        len(pieces_of(scenario("cdpd-tcp", transport__mss_bytes=mss), size))
        for mss in (512, 536)
        for size in (4096, 8192)
    ]
    return Finding(
        counts == [8, 16, 8, 16],
        f"{counts[0]} and {counts[1]} of 512 byte, {counts[2]} and {counts[3]} of 536",
    )


def satellite(engine: Engine, variant: str, window: int) -> np.ndarray:
    """Return the goodput (kbit/s) over a satellite with a variant of TCP and a window (segments)."""
    result = simulated(
        engine, "satellite", transport__variant=variant, transport__receive_window_segments=window
    )
    return result["goodput_kbps"].values[:, 0]


def sack_with_small_windows(engine: Engine) -> Finding:
    """SACK does not help with small windows."""
    pairs = [
        (satellite(engine, "sack", window), satellite(engine, "newreno", window)) for window in (2, 3, 4)
    ]
    gains = [100 * (sack.mean() / newreno.mean() - 1) for sack, newreno in pairs]
    return Finding(
        all(abs(gain) < 100 * WORDS["same"].limit for gain in gains),
        ", ".join(f"{gain:+.1f} %" for gain in gains) + " at 2, 3, 4 segments",
    )


def sack_over_satellite(engine: Engine) -> Finding:
    """SACK beats Reno over long-delay links."""
    sack, reno = satellite(engine, "sack", 64), satellite(engine, "reno", 64)
    return Finding(exceeds(sack, reno), f"{rounded(sack)} against {rounded(reno)} kbit/s")


# Sections 4.4, 5.2 and 6: sessions over CDPD.


def tcp_on_cdpd(engine: Engine) -> list[np.ndarray]:
    """Return TCP's session times (s) at good times, from 128 to 4,096 bytes."""
    return [session(over_cdpd(engine, "tcp", size, QUIET)) for size in CDPD_SIZES[:4]]


def jump_at_4096(engine: Engine) -> Finding:
    """TCP on CDPD: linear up to 2,048 bytes, a jump at 4,096."""
    times = tcp_on_cdpd(engine)
    return Finding(lead(times[3], times[2], "far"), f"{rounded(*times)} s")


def retransmissions_at_4096(engine: Engine) -> Finding:
    """Retransmissions set in massively at 4,096 bytes."""
    counts = [retransmissions(over_cdpd(engine, "tcp", size, QUIET)) for size in CDPD_SIZES[:4]]
    return Finding(lead(counts[3], counts[2], "far"), f"{rounded(*counts)} for each session")


def success_at_8192(engine: Engine, bler: float, timeout_s: float) -> np.ndarray:
    """Return the share of TCP sessions of 8,192 bytes that end before they are given up."""
    result = over_cdpd(engine, "tcp", 8192, bler, traffic__application_timeout_s=timeout_s)
    return 1 - result["sessions_lost"].values[:, 0]


def failures_at_8192(engine: Engine) -> Finding:
    """Sessions of 8,192 bytes hardly ever end by TCP."""
    quiet, noisy = (success_at_8192(engine, bler, APPLICATION_TIMEOUT_S) for bler in (QUIET, NOISY))
    short = success_at_8192(engine, NOISY, 15.0)
    seen = (
        f"{rounded(quiet)}; with many block errors {rounded(noisy)}, "
        f"and {rounded(short)} if given up after 15 s"
    )
    return Finding(quiet.mean() <= WORDS["few"].limit, seen)


def longer_timeout(engine: Engine) -> Finding:
    """A longer timeout hardly helps messages of 8,192 bytes at bad times."""
    shares = [success_at_8192(engine, NOISY, timeout_s) for timeout_s in (15.0, APPLICATION_TIMEOUT_S, 60.0)]
    return Finding(
        flat(np.array(shares[1:]), WORDS["hardly"].limit).holds,
        f"{rounded(*shares)} get through within 15, 30 and 60 s",
    )


def block_errors(engine: Engine) -> Finding:
    """Block errors lower efficiency and raise the time."""
    rates = (0.001, 0.005, 0.01, 0.02)
    results = [over_cdpd(engine, "tcp", 1024, bler) for bler in rates]
    times = [session(result) for result in results]
    shares = [useful(result) for result in results]
    return Finding(
        rising(times) and rising(shares[::-1]), f"{rounded(*times)} s, efficiency {rounded(*shares)}"
    )


def useful(result: Answer) -> np.ndarray:
    """Return the share of the bytes sent that are delivered data, of both ends."""
    return (result["goodput_kbps"].sum("flow") / result["throughput_kbps"].sum("flow")).values


def busy_cell(engine: Engine) -> Finding:
    """A second Palm sends 8 kbit/s in the same cell, at a block error rate of 0.5 %: as errors alone do."""
    second = {"name": "cdpd-2", "from": "palm-2", "to": "server"}
    links = [cdpd_link(0.005) | {"medium": "cell"} | other for other in ({}, second)]
    flows = [
        {"from": "palm", "to": "server"},
        {"from": "palm-2", "to": "server", "law": "poisson", "load_kbps": 8, "protocol": "none"},
    ]
    busy = simulated(
        engine,
        "cdpd-tcp",
        1024,
        network__outside_links=links,
        network__flows=flows,
        traffic__message_bytes=500,
    )
    first = [busy[metric].isel(flow=0).values for metric in ("goodput_kbps", "throughput_kbps")]
    quiet = over_cdpd(engine, "tcp", 1024, QUIET)
    times = [session(result) for result in (quiet, busy)]
    shares = [useful(quiet), first[0] / first[1]]
    return Finding(
        rising(times) and rising(shares[::-1]),
        f"{rounded(*times)} s, efficiency {rounded(*shares)}, quiet and busy",
    )


def lost_sessions(engine: Engine) -> Finding:
    """CentaurusComm's sessions of all sizes end before they are given up."""
    lost = {
        bler: [
            over_cdpd(engine, "centaurus", size, bler, traffic__application_timeout_s=APPLICATION_TIMEOUT_S)[
                "sessions_lost"
            ].values[:, 0]
            for size in CDPD_SIZES
        ]
        for bler in (QUIET, NOISY)
    }
    seen = f"{rounded(*lost[QUIET])}; with many block errors {rounded(*lost[NOISY])}"
    return Finding(all(not one.any() for one in lost[QUIET]), seen)


def tcp_suffers_more(engine: Engine) -> Finding:
    """TCP's time grows by a larger factor at bad times than CentaurusComm's."""
    met, seen = True, []
    for size in (1024, 4096):
        tcp, centaurus = (
            ratio(
                *(
                    session(over_cdpd(engine, protocol, size, bler, run__replications=20))
                    for bler in (NOISY, QUIET)
                )
            )
            for protocol in ("tcp", "centaurus")
        )
        met = met and exceeds(tcp, centaurus)
        seen.append(f"{size} byte: times {rounded(tcp)} against times {rounded(centaurus)}")
    return Finding(met, "; ".join(seen))


def large_suffer_more(engine: Engine) -> Finding:
    """Large messages suffer more than small ones."""
    growth = {
        size: ratio(
            *(session(over_cdpd(engine, "tcp", size, bler, run__replications=20)) for bler in (NOISY, QUIET))
        )
        for size in (1024, 4096)
    }
    return Finding(
        exceeds(growth[4096], growth[1024]),
        f"times {rounded(growth[4096])} against times {rounded(growth[1024])}",
    )


def connect_time(engine: Engine) -> np.ndarray:
    """Return how much longer an exchange takes if it opens a new connection (s)."""
    period = [
        1 / over_cdpd(engine, "tcp", 128, 0.0, **changes)["sessions_per_s"].values[:, 0]
        for changes in ({"transport__handshake": True, "transport__connection_per_session": True}, {})
    ]
    return period[0] - period[1]


def connection_time(engine: Engine) -> Finding:
    """Opening a TCP connection takes about 2 s."""
    return Finding(about(connect_time(engine), 2.0).holds, f"{rounded(connect_time(engine))} s")


def penalties(engine: Engine, delay_s: float = 0.97) -> list[np.ndarray]:
    """Return how much longer CentaurusComm takes than TCP, without losses of any kind (s)."""
    options = {"bler": 0.0, "delay_s": delay_s, "buffer": 1000}
    return [
        session(over_cdpd(engine, "centaurus", size, transport__centaurus_worker_s=0.0, **options))
        - session(over_cdpd(engine, "tcp", size, **options))
        for size in (128, 1024, 2048)
    ]


def penalty(engine: Engine) -> Finding:
    """CentaurusComm costs a constant 2 s more."""
    usual, short = penalties(engine), penalties(engine, 0.32)
    met = all(about(p, 2.0).holds for p in usual)
    return Finding(met, f"{rounded(*usual)} s; {rounded(*short)} s with a round trip of 0.64 s")


def small_messages(engine: Engine) -> Finding:
    """With the connection time, small messages take as long by either protocol."""
    tcp, centaurus = (session(over_cdpd(engine, protocol, 128, QUIET)) for protocol in ("tcp", "centaurus"))
    share = ratio(centaurus, tcp + connect_time(engine))
    early = session(over_cdpd(engine, "centaurus", 128, QUIET, transport__centaurus_early_data=True))
    return Finding(
        about(share, 1.0).holds,
        f"{rounded(share)}; {rounded(ratio(early, tcp + connect_time(engine)))} with early data",
    )


def factor_at_4096(engine: Engine) -> Finding:
    """At 4,096 bytes CentaurusComm is five times as fast."""
    quiet, noisy = (
        ratio(
            session(over_cdpd(engine, "tcp", 4096, bler)), session(over_cdpd(engine, "centaurus", 4096, bler))
        )
        for bler in (QUIET, NOISY)
    )
    return Finding(about(quiet, 5.0).holds, f"{rounded(quiet)}; {rounded(noisy)} with many block errors")


def early_data(engine: Engine) -> Finding:
    """Data before PROCEED would save much, and cost nothing at bad times."""
    quiet, noisy = (
        [
            session(over_cdpd(engine, "centaurus", 4096, bler, transport__centaurus_early_data=early))
            for early in (True, False)
        ]
        for bler in (QUIET, NOISY)
    )
    return Finding(
        exceeds(quiet[1], quiet[0]) and not exceeds(noisy[0], noisy[1]),
        f"{rounded(quiet[1])} > {rounded(quiet[0])} s; "
        f"with many block errors {rounded(noisy[1])} > {rounded(noisy[0])} s",
    )


def tcp_is_poor_on_cdpd(engine: Engine) -> Finding:
    """TCP does badly on slow, long links, the message protocol better."""
    pairs = {
        (size, bler): [session(over_cdpd(engine, protocol, size, bler)) for protocol in ("centaurus", "tcp")]
        for size in (4096, 8192)
        for bler in (QUIET, NOISY)
    }
    seen = "; ".join(
        f"{size} byte, {100 * bler:g} %: {rounded(c)} against {rounded(t)} s"
        for (size, bler), (c, t) in pairs.items()
    )
    return Finding(all(exceeds(t, c) for c, t in pairs.values()), seen)


# Sections 5.1, 5.3 and 5.4: sessions over Ethernet, Bluetooth and a WLAN.


def ethernet_is_flat(engine: Engine) -> Finding:
    """On Ethernet the time does not depend on the size."""
    near, far = (
        [
            1000 * session(simulated(engine, "ethernet", size, run__jitter_s=0.0)) + 2000 * further_s
            for size in (64, 1024, 8192)
        ]
        for further_s in (0.0, 0.05)
    )
    return Finding(
        flat(np.array(near), WORDS["hardly"].limit).holds,
        f"{rounded(*near)} ms; {rounded(*far)} ms over a way that is 50 ms longer",
    )


def milliseconds(engine: Engine, name: str, size: int, **changes: Any) -> np.ndarray:
    """Return the session time of a scenario (ms)."""
    return 1000 * session(simulated(engine, name, size, **changes))


def no_collapse(engine: Engine) -> Finding:
    """No cascade of retransmissions on Bluetooth."""
    result = simulated(engine, "bluetooth-tcp", 8192)
    share = (result["retransmissions_per_s"].sum("flow") / result["sessions_per_s"].isel(flow=0) / 8).values
    return Finding(bool(share.max() < 0.01), f"{100 * share.mean():.2g} % of segments")


def centaurus_is_linear(engine: Engine) -> Finding:
    """CentaurusComm's time on Bluetooth is linear in the size."""
    sizes = np.array(BLUETOOTH_SIZES[:5])
    times = [milliseconds(engine, "bluetooth-centaurus", size) for size in BLUETOOTH_SIZES[:5]]
    fit = float(np.corrcoef(sizes, [t.mean() for t in times])[0, 1] ** 2)
    return Finding(fit > 0.95, f"R² = {fit:.4f}: {rounded(*times)} ms")


def differences(engine: Engine, sizes: tuple[int, ...]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return how much longer CentaurusComm takes on Bluetooth (ms), as it is and with a slow worker."""
    usual, slow = (
        [
            milliseconds(engine, "bluetooth-centaurus", size, **changes)
            - milliseconds(engine, "bluetooth-tcp", size)
            for size in sizes
        ]
        for changes in ({}, {"transport__centaurus_worker_s": 0.01})
    )
    return usual, slow


def difference_of_large(engine: Engine) -> Finding:
    """From 1,024 to 4,096 bytes the protocols differ by 100 to 150 ms."""
    usual, slow = differences(engine, (1024, 2048, 4096))
    near = WORDS["about"].limit
    met = all(bound(d, 100 * (1 - near), 150 * (1 + near)).holds for d in usual)
    return Finding(met, f"{rounded(*usual)} ms; {rounded(*slow)} ms with a worker every 10 ms")


def difference_of_small(engine: Engine) -> Finding:
    """Up to 512 bytes the protocols differ by about 50 ms."""
    usual, slow = differences(engine, (64, 512))
    met = all(about(d, 50.0).holds for d in usual)
    return Finding(
        met, f"{rounded(*usual)} ms at 64 and 512 byte; {rounded(*slow)} ms with a worker every 10 ms"
    )


def tcp_is_faster_on_bluetooth(engine: Engine) -> Finding:
    """TCP is faster on Bluetooth."""
    pairs = [
        (milliseconds(engine, "bluetooth-tcp", size), milliseconds(engine, "bluetooth-centaurus", size))
        for size in BLUETOOTH_SIZES
    ]
    seen = ", ".join(f"{t.mean():.0f} < {c.mean():.0f}" for t, c in pairs)
    return Finding(all(exceeds(c, t) for t, c in pairs), f"{seen} ms")


def order_of_networks(engine: Engine) -> Finding:
    """TCP: WLAN nearly as good as wired, then Bluetooth, then CDPD."""
    seen, met = [], True
    for size in (128, 8192):
        times = [
            session(simulated(engine, "ethernet", size)),
            session(simulated(engine, "wlan-tcp", size)),
            session(simulated(engine, "bluetooth-tcp", size)),
            session(over_cdpd(engine, "tcp", size, QUIET)),
        ]
        met = met and rising(times)
        seen.append(f"{size} byte: " + " < ".join(rounded(1000 * time) for time in times) + " ms")
    return Finding(met, "; ".join(seen))


def half_as_long_again(engine: Engine) -> Finding:
    """CentaurusComm takes 50 % longer than TCP on the WLAN, at all sizes."""
    ratios = [
        ratio(milliseconds(engine, "wlan-centaurus", size), milliseconds(engine, "wlan-tcp", size))
        for size in WLAN_SIZES
    ]
    return Finding(all(about(r, 1.5).holds for r in ratios), rounded(*ratios))


def interference(engine: Engine) -> Finding:
    """Interference lengthens TCP's 8,192 bytes by 400 %."""
    factor = ratio(milliseconds(engine, "wlan-chargen", 8192), milliseconds(engine, "wlan-tcp", 8192))
    increase = 100 * (factor - 1)
    return Finding(about(increase, 400.0).holds, f"+{rounded(increase)} %, a factor of {rounded(factor)}")


def small_under_interference(engine: Engine) -> Finding:
    """Interference hardly lengthens messages of 128 and 256 bytes."""
    pairs = [
        [milliseconds(engine, name, size) for name in ("wlan-tcp", "wlan-chargen")] for size in (128, 256)
    ]
    met = all(flat(np.array(pair), WORDS["hardly"].limit).holds for pair in pairs)
    return Finding(met, "; ".join(f"{rounded(*pair)} ms" for pair in pairs))


SMALL_WINDOWS: dict[str, dict[str, Any]] = {
    "1 segment": {"receive_window_segments": 1},
    "2 of 1,024 byte": {"receive_window_segments": 2, "mss_bytes": 1024},
}
"""Readings of a window of 2,048 bytes, as keys of a flow; a full segment has 1,460."""


def of_first_flow(engine: Engine, name: str, size: int, keys: dict[str, Any]) -> np.ndarray:
    """Return the session time (ms) of the first flow, with other keys for this flow."""
    first, *others = scenario(name).to_dict(resolved=False)["network"]["flows"]
    return milliseconds(engine, name, size, network__flows=[first | keys, *others])


def small_window(engine: Engine) -> Finding:
    """A window of one segment lengthens TCP's time, at no size by more than slightly."""
    times = {
        name: [
            ratio(of_first_flow(engine, "wlan-tcp", size, keys), milliseconds(engine, "wlan-tcp", size))
            for size in WLAN_SIZES
        ]
        for name, keys in SMALL_WINDOWS.items()
    }
    first = times["1 segment"]
    slight = all(bound(one, upper=1 / WORDS["slightly"].limit).holds for one in first)
    seen = (f"times {rounded(*found)} with {name}" for name, found in times.items())
    return Finding(slight and exceeds(first[-1], np.ones_like(first[-1])), "; ".join(seen))


def order_under_interference(engine: Engine) -> Finding:
    """8,192 bytes under interference: TCP, then CentaurusComm, then TCP with a small window."""
    mixed = {"protocol": "centaurus", "centaurus_packet_bytes": 64}
    tcp, centaurus, *small = (
        of_first_flow(engine, "wlan-chargen", 8192, keys) for keys in ({}, mixed, *SMALL_WINDOWS.values())
    )
    seen = ", ".join(f"{rounded(time)} with {name}" for name, time in zip(SMALL_WINDOWS, small, strict=True))
    return Finding(
        rising([tcp, centaurus, small[0]]),
        f"TCP {rounded(tcp)}, CentaurusComm {rounded(centaurus)} ms; TCP {seen}",
    )


CHECKS = {
    "3.1-control-loss": nothing_twice,
    "3.1-data-loss": nothing_twice,
    "3.1-tcp-segments": segments_of_large_messages,
    "3.1-sack-small-window": sack_with_small_windows,
    "3.1-sack-satellite": sack_over_satellite,
    "5.1-ethernet-flat": ethernet_is_flat,
    "5.2.1-jump-4096": jump_at_4096,
    "5.2.1-retransmissions-4096": retransmissions_at_4096,
    "4.4-tcp-8192-fails": failures_at_8192,
    "4.4-app-timeout": longer_timeout,
    "5.2.1-bler": block_errors,
    "5.2.1-large-prone": large_suffer_more,
    "5.2.2-connect-time": connection_time,
    "5.2.2-penalty": penalty,
    "5.2.2-small-comparable": small_messages,
    "5.2.2-factor-5": factor_at_4096,
    "5.2.2-early-data": early_data,
    "5.3.1-no-collapse": no_collapse,
    "5.3.2-linear": centaurus_is_linear,
    "5.3.2-diff-small": difference_of_small,
    "5.3.2-tcp-better": tcp_is_faster_on_bluetooth,
    "5.4.1-wlan-like-wired": order_of_networks,
    "5.4.2-plus-50": half_as_long_again,
    "5.2.1-bler-and-busy": busy_cell,
    "5.2.2-no-lost-sessions": lost_sessions,
    "5.2.2-less-prone": tcp_suffers_more,
    "5.3.2-diff-large": difference_of_large,
    "5.4.1-small-unaffected": small_under_interference,
    "5.4.2-window-2048": small_window,
    "5.4.2-adverse-order": order_under_interference,
    "5.4.1-degradation-400": interference,
    "6-tcp-poor-cdpd": tcp_is_poor_on_cdpd,
}
