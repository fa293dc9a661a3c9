"""Equations 1, 2 and 4 of Chen and others (2004), with both counts of blocks.

The paper gives a coded packet of s payload bits s/15 blocks; a block of 15 bits carries ten of them, so s/10
is meant. "As printed" here takes whole blocks and the sizes of its table 1 (a DM5 of 227 bytes), which gives
its thresholds to the last digit.
"""

import numpy as np

from btqueue.baseband import packet_type
from btqueue.baseband.packets import FEC_BLOCK_BITS
from btqueue.channel import ber_from_link_quality, coded_error_rate, packet_error_rate
from btqueue.scenario.library import models_folder

PRINTED_BYTES = {"DM5": 227}
"""Payloads that the paper's tables 1 and 2 print differently."""


def error_rate(ber: np.ndarray, packet: str, *, printed: bool) -> np.ndarray:
    """Return the packet error rate by equations 1 and 2, with either count of blocks."""
    kind = packet_type(packet)
    if not printed or not kind.coded:
        return packet_error_rate(kind, ber)
    bits = 8 * PRINTED_BYTES.get(packet, kind.payload_bytes)
    return coded_error_rate(bits // FEC_BLOCK_BITS, ber)


def throughput_kbps(ber: np.ndarray, packet: str, *, printed: bool) -> np.ndarray:
    """Return the throughput (kbit/s) by equation 4, with either count of blocks."""
    return packet_type(packet).asymmetric_kbps * (1 - error_rate(ber, packet, printed=printed))


def trace_bit_error_rate(time_s: np.ndarray) -> np.ndarray:
    """Return the bit error rates of the synthetic trace at times (s); it has a link quality every 0.1 s."""
    quality = np.loadtxt(models_folder() / "chen-2004" / "link-quality.txt")
    return ber_from_link_quality(quality[np.rint(time_s / 0.1).astype(int)])
