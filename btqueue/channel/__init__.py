"""Radio channel: bit error rates, packet error rates and the two-state (Gilbert-Elliott) channel."""

from btqueue.channel.error_rates import (
    Bits,
    coded_error_rate,
    on_air_error_rate,
    packet_error_rate,
    payload_error_rate,
    reply_error_rate,
    uncoded_error_rate,
)
from btqueue.channel.gilbert_elliott import TwoStateChannel
from btqueue.channel.interference import spared_by_neighbour
from btqueue.channel.link_quality import ber_from_link_quality, link_quality
from btqueue.channel.packet_adaptation import best_packet, goodput_crossing, packet_goodput_kbps
from btqueue.channel.packet_trains import Observation, train_success

__all__ = [
    "Bits",
    "Observation",
    "TwoStateChannel",
    "ber_from_link_quality",
    "best_packet",
    "coded_error_rate",
    "goodput_crossing",
    "link_quality",
    "on_air_error_rate",
    "packet_error_rate",
    "packet_goodput_kbps",
    "payload_error_rate",
    "reply_error_rate",
    "spared_by_neighbour",
    "train_success",
    "uncoded_error_rate",
]
