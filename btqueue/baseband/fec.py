"""The 2/3-rate forward error correction of DM packets: the shortened Hamming (15,10) code.

Generator polynomial g(D) = (D + 1)(D^4 + D + 1) = D^5 + D^4 + D^2 + 1: every single error in a block is
corrected and every double error detected. The failure probabilities are computed directly and not as one
minus a success, so that they keep their digits at the smallest bit error rates.

Source: Bluetooth Core Specification, Baseband part, section on the rate-2/3 FEC; Valenti, Robert and Reed,
"On the throughput of Bluetooth data transmissions", WCNC 2002.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from btqueue.baseband.packets import FEC_BLOCK_BITS


def block_error_rate(ber: ArrayLike) -> NDArray[np.float64]:
    """Probability that a received block does not yield its ten information bits.

    The decoder gives up on a syndrome that belongs to no single error, so exactly the patterns of weight 0
    and 1 succeed.

    Args:
        ber: bit error rate, any shape, within [0, 1]; errors are independent.

    Returns:
        Probabilities, the shape of ``ber``.

    Raises:
        ValueError: a bit error rate outside [0, 1].
    """
    from scipy.special import bdtrc  # takes longer to import than a scenario to read

    return bdtrc(1, FEC_BLOCK_BITS, checked(ber))  # two or more errors of fifteen


def block_success_rate(ber: ArrayLike) -> NDArray[np.float64]:
    """Probability q(b) = (1-b)^15 + 15 b (1-b)^14 that a received block yields its ten information bits."""
    return 1.0 - block_error_rate(ber)


def checked(ber: ArrayLike) -> NDArray[np.float64]:
    """Return bit error rates as an array.

    Raises:
        ValueError: one is outside [0, 1].
    """
    b = np.asarray(ber, dtype=np.float64)
    if not np.all((b >= 0) & (b <= 1)):
        raise ValueError(f"bit error rate must lie within [0, 1], not {ber}")
    return b
