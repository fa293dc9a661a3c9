"""Avancha et al. (2002): each claim has the verdict on record, and where it is not met, what does hold.

Seeds are fixed. Orders and trends are paired t-tests with a false-alarm rate of 0.1 %.
"""

import claims_avancha_2002 as paper
import pytest
from claims import claims_of, verdict
from judgement import exceeds

CLAIMS = claims_of(paper.PAPER)
BY_CONSTRUCTION = {"3.4-two-messages"}
"""Checked in validation/unit/test_centaurus.py."""


def test_every_claim_is_checked_or_left_to_the_testbed():
    checked = {name for name, claim in CLAIMS.items() if claim["verdict"] != "testbed-only"}
    assert checked == set(paper.CHECKS) | BY_CONSTRUCTION
    assert all("reason" in claim for claim in CLAIMS.values() if claim["verdict"] == "not reproduced")


@pytest.mark.parametrize("name", paper.CHECKS)
def test_a_claim_has_the_verdict_on_record(name):
    finding = paper.CHECKS[name]()
    assert verdict([finding.holds]) == CLAIMS[name]["verdict"], finding.seen


def test_without_the_modems_limit_there_is_no_jump():
    small, large = (
        paper.session(paper.over_cdpd("tcp", size, 0.0, buffer=1000)).mean() for size in (2048, 4096)
    )
    assert large < 1.5 * small


def test_the_penalty_of_centaurus_is_three_round_trips():
    # Plus the air of packets and control messages, which are longer than those of TCP.
    for delay_s in (0.32, 0.97):
        least = paper.penalties(delay_s)[0].mean()
        assert 6 * delay_s < least < 6 * delay_s + 0.3


def test_at_bad_times_centaurus_is_faster_than_tcp_from_4096_bytes_on():
    for size in (4096, 8192):
        tcp, centaurus = (
            paper.session(paper.over_cdpd(protocol, size, paper.NOISY, run__replications=20))
            for protocol in ("tcp", "centaurus")
        )
        assert exceeds(tcp, centaurus)


def test_hardly_any_long_message_gets_through_in_15_s_at_bad_times():
    assert paper.success_at_8192(paper.NOISY, 15.0).mean() < 0.1


def test_the_ratio_on_the_wlan_comes_down_to_that_of_the_bytes_sent():
    ratios = [
        (paper.on_wlan("wlan-centaurus", size) / paper.on_wlan("wlan-tcp", size)).mean()
        for size in paper.WLAN_SIZES
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] > (64 + 6 + 28) / 64 / (1500 / 1460)


def test_a_worker_with_the_tick_of_linux_gives_the_published_time_at_4096_bytes():
    time = paper.on_bluetooth("centaurus", 4096, transport__centaurus_worker_s=0.01)
    assert time.mean() == pytest.approx(600, rel=0.3)
