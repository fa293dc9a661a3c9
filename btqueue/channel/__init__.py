"""Radio channel: bit error rates, packet error rates and the two-state (Gilbert-Elliott) channel."""

from btqueue.channel.error_rates import (
    SYNC_THRESHOLD,
    Bits,
    access_code_error_rate,
    body_error_rate,
    coded_error_rate,
    header_error_rate,
    on_air_error_rate,
    packet_error_rate,
    payload_error_rate,
    reply_error_rate,
    uncoded_error_rate,
)
from btqueue.channel.gilbert_elliott import TwoStateChannel
from btqueue.channel.interference import spared_by_neighbour
from btqueue.channel.link_quality import ber_from_link_quality, link_quality
from btqueue.channel.modulation import dpsk8_ber, dpsk8_symbol_error_rate, dqpsk_ber, gfsk_ber
from btqueue.channel.packet_adaptation import best_packet, goodput_crossing, packet_goodput_kbps
from btqueue.channel.packet_trains import (
    Observation,
    exchange_success,
    packet_success_matrix,
    train_success,
    train_success_matrix,
)

__all__ = [
    "SYNC_THRESHOLD",
    "Bits",
    "Observation",
    "TwoStateChannel",
    "access_code_error_rate",
    "ber_from_link_quality",
    "best_packet",
    "body_error_rate",
    "coded_error_rate",
    "dpsk8_ber",
    "dpsk8_symbol_error_rate",
    "dqpsk_ber",
    "exchange_success",
    "gfsk_ber",
    "goodput_crossing",
    "header_error_rate",
    "link_quality",
    "on_air_error_rate",
    "packet_error_rate",
    "packet_goodput_kbps",
    "packet_success_matrix",
    "payload_error_rate",
    "reply_error_rate",
    "spared_by_neighbour",
    "train_success",
    "train_success_matrix",
    "uncoded_error_rate",
]
