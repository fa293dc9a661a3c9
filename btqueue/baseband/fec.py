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


def block_error_rate(ber: ArrayLike, *, lenient: bool = False) -> NDArray[np.float64]:
    """Probability that a received block does not yield its ten information bits.

    Args:
        ber: bit error rate, any shape, within [0, 1]; errors are independent.
        lenient: a strict decoder gives up on a syndrome that belongs to no single error, so exactly the
            patterns of weight 0 and 1 succeed.  A lenient one then passes on the ten received information
            bits, which are right when all errors fell on the parity bits: 10 more patterns of weight 2, 1 of
            weight 3 and 5 of weight 4.

    Returns:
        Probabilities, the shape of ``ber``.

    Raises:
        ValueError: a bit error rate outside [0, 1].
    """
    from scipy.special import bdtrc  # takes longer to import than a scenario to read

    b = _checked(ber)
    failure = bdtrc(1, FEC_BLOCK_BITS, b)  # two or more errors of fifteen
    if lenient:
        failure = failure - _parity_only_patterns(b)
    return failure


def block_success_rate(ber: ArrayLike, *, lenient: bool = False) -> NDArray[np.float64]:
    """Probability q(b) that a received block yields its ten information bits.

    Strictly q(b) = (1-b)^15 + 15 b (1-b)^14; arguments and errors as in :func:`block_error_rate`.
    """
    return 1.0 - block_error_rate(ber, lenient=lenient)


def _parity_only_patterns(b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of the uncorrectable patterns that leave the information bits untouched."""
    a = 1.0 - b
    return 10 * b**2 * a**13 + b**3 * a**12 + 5 * b**4 * a**11


def _checked(ber: ArrayLike) -> NDArray[np.float64]:
    b = np.asarray(ber, dtype=np.float64)
    if not np.all((b >= 0) & (b <= 1)):
        raise ValueError(f"bit error rate must lie within [0, 1], not {ber}")
    return b
