"""Avancha et al. (2002): what does hold where a claim is not met.

Seeds are fixed. Orders and trends are paired t-tests with a false-alarm rate of 0.1 %.
"""

import pytest

from btqueue.reproduction.claims import avancha_2002
from btqueue.reproduction.claims.engines import Simulator
from btqueue.reproduction.claims.judgement import exceeds

SIMULATOR = Simulator()


def test_without_the_modems_limit_there_is_no_jump():
    small, large = (
        avancha_2002.session(avancha_2002.over_cdpd(SIMULATOR, "tcp", size, 0.0, buffer=1000)).mean()
        for size in (2048, 4096)
    )
    assert large < 1.5 * small


def test_the_penalty_of_centaurus_is_three_round_trips():
    # Plus the air of packets and control messages, which are longer than those of TCP.
    for delay_s in (0.32, 0.97):
        least = avancha_2002.penalties(SIMULATOR, delay_s)[0].mean()
        assert 6 * delay_s < least < 6 * delay_s + 0.3


def test_at_bad_times_centaurus_is_faster_than_tcp_from_4096_bytes_on():
    for size in (4096, 8192):
        tcp, centaurus = (
            avancha_2002.session(
                avancha_2002.over_cdpd(SIMULATOR, protocol, size, avancha_2002.NOISY, run__replications=20)
            )
            for protocol in ("tcp", "centaurus")
        )
        assert exceeds(tcp, centaurus)


def test_hardly_any_long_message_gets_through_in_15_s_at_bad_times():
    assert avancha_2002.success_at_8192(SIMULATOR, avancha_2002.NOISY, 15.0).mean() < 0.1


def test_the_ratio_on_the_wlan_comes_down_to_that_of_the_bytes_sent():
    centaurus, tcp = (
        [avancha_2002.milliseconds(SIMULATOR, f"wlan-{protocol}", size) for size in avancha_2002.WLAN_SIZES]
        for protocol in ("centaurus", "tcp")
    )
    ratios = [(long / short).mean() for long, short in zip(centaurus, tcp, strict=True)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] > (64 + 6 + 28) / 64 / (1500 / 1460)


def test_a_worker_with_the_tick_of_linux_gives_the_published_time_at_4096_bytes():
    time = avancha_2002.milliseconds(
        SIMULATOR, "bluetooth-centaurus", 4096, transport__centaurus_worker_s=0.01
    )
    assert time.mean() == pytest.approx(600, rel=0.3)
