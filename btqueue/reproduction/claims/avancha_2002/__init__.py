"""Avancha et al. (2002): the claims that can be checked, one function each."""

from btqueue.reproduction.claims.avancha_2002 import cdpd, lans, section_3

CHECKS = {
    "3.1-control-loss": section_3.nothing_twice,
    "3.1-data-loss": section_3.nothing_twice,
    "3.1-tcp-segments": section_3.segments_of_large_messages,
    "3.1-sack-small-window": section_3.sack_with_small_windows,
    "3.1-sack-satellite": section_3.sack_over_satellite,
    "5.1-ethernet-flat": lans.ethernet_is_flat,
    "5.2.1-jump-4096": cdpd.jump_at_4096,
    "5.2.1-retransmissions-4096": cdpd.retransmissions_at_4096,
    "4.4-tcp-8192-fails": cdpd.failures_at_8192,
    "5.2.1-bler": cdpd.block_errors,
    "5.2.1-large-prone": cdpd.large_suffer_more,
    "5.2.2-connect-time": cdpd.connection_time,
    "5.2.2-penalty": cdpd.penalty,
    "5.2.2-small-comparable": cdpd.small_messages,
    "5.2.2-factor-5": cdpd.factor_at_4096,
    "5.2.2-early-data": cdpd.early_data,
    "5.3.1-no-collapse": lans.no_collapse,
    "5.3.2-linear": lans.centaurus_is_linear,
    "5.3.2-diff-small": lans.difference_of_small,
    "5.3.2-tcp-better": lans.tcp_is_faster_on_bluetooth,
    "5.4.1-wlan-like-wired": lans.order_of_networks,
    "5.4.2-plus-50": lans.half_as_long_again,
    "5.4.1-degradation-400": lans.interference,
    "6-tcp-poor-cdpd": cdpd.tcp_is_poor_on_cdpd,
}
