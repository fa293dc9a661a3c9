"""Avancha et al. (2002): what does hold where a claim is not met.

Seeds are fixed. Orders and trends are paired t-tests with a false-alarm rate of 0.1 %.
"""

import pytest

from btqueue.reproduction.claims.avancha_2002 import NOISY
from btqueue.reproduction.claims.engines import Simulator
from btqueue.reproduction.claims.judgement import exceeds
from btqueue.scenario import load

SIMULATOR = Simulator()
LINK = "network.outside_links[1]"
WLAN_SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)


def session(name, metric="session_time_s", **keys):
    scenario = load(f"avancha-2002/{name}", {key.replace("__", "."): value for key, value in keys.items()})
    return SIMULATOR.sample(scenario, metric)


def over_cdpd(protocol, size, metric="session_time_s", *, more=None, **link):
    keys = {f"{LINK}.{name}": value for name, value in link.items()} | (more or {})
    return session(f"cdpd-{protocol}", metric, traffic__request_bytes=size, **keys)


def test_without_the_modems_limit_there_is_no_jump():
    small, large = (over_cdpd("tcp", size, loss=0.0, buffer_packets=1000).mean() for size in (2048, 4096))
    assert large < 1.5 * small


def test_the_penalty_of_centaurus_is_three_round_trips():
    # Plus the air of packets and control messages, which are longer than those of TCP.
    for delay_s in (0.32, 0.97):
        link = {"loss": 0.0, "buffer_packets": 1000, "delay_s": delay_s}
        centaurus = over_cdpd("centaurus", 128, more={"transport.centaurus_worker_s": 0.0}, **link)
        least = (centaurus - over_cdpd("tcp", 128, **link)).mean()
        assert 6 * delay_s < least < 6 * delay_s + 0.3


def test_at_bad_times_centaurus_is_faster_than_tcp_from_4096_bytes_on():
    for size in (4096, 8192):
        tcp, centaurus = (
            over_cdpd(protocol, size, more={"run.replications": 20}, loss=NOISY)
            for protocol in ("tcp", "centaurus")
        )
        assert exceeds(tcp, centaurus)


def test_hardly_any_long_message_gets_through_in_15_s_at_bad_times():
    keys = {"traffic.application_timeout_s": 15.0}
    assert over_cdpd("tcp", 8192, "sessions_lost", more=keys, loss=NOISY).mean() > 0.9


def test_the_ratio_on_the_wlan_comes_down_to_that_of_the_bytes_sent():
    centaurus, tcp = (
        [session(f"wlan-{protocol}", traffic__reply_bytes=size) for size in WLAN_SIZES]
        for protocol in ("centaurus", "tcp")
    )
    ratios = [(long / short).mean() for long, short in zip(centaurus, tcp, strict=True)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] > (64 + 6 + 28) / 64 / (1500 / 1460)


def test_a_worker_with_the_tick_of_linux_gives_the_published_time_at_4096_bytes():
    keys = {"traffic__reply_bytes": 4096, "transport__centaurus_worker_s": 0.01}
    assert 1000 * session("bluetooth-centaurus", **keys).mean() == pytest.approx(600, rel=0.3)
