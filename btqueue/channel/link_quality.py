"""The link-quality number (0..255) of one chip family and the bit error rate it stands for.

The mapping is CSR's, as given by Chen, Kapoor, Sanadidi and Gerla (ICC 2004, section IV): three straight
lines,

    LQ = 255 - 40000 b          b <= 0.001
    LQ = 215 - 40000 b / 32     0.001 < b <= 0.1
    LQ = 105 - 40000 b / 256    b > 0.1.

The first two do not meet: at b = 0.001 the number jumps from 215 to 213.75.  Above b = 0.672 the third line
would be negative; the number is cut at 0 there.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from btqueue.baseband.fec import checked

_SLOPE = 40_000.0
"""Link quality lost for each unit of the bit error rate, at the top of the scale."""


def link_quality(ber: ArrayLike) -> NDArray[np.float64]:
    """Link quality, not rounded, for an array of bit error rates within [0, 1]; 255 is best.

    Raises:
        ValueError: a bit error rate outside [0, 1].
    """
    b = checked(ber)
    lines = (255.0 - _SLOPE * b, 215.0 - _SLOPE * b / 32, 105.0 - _SLOPE * b / 256)
    return np.maximum(np.select([b <= 1e-3, b <= 0.1], lines[:2], default=lines[2]), 0.0)


def ber_from_link_quality(quality: ArrayLike) -> NDArray[np.float64]:
    """Bit error rate for an array of link qualities within 0..255: the inverse of :func:`link_quality`.

    No bit error rate has a quality between 213.75 and 215; the formula of the middle line is used there.

    Raises:
        ValueError: a link quality outside 0..255.
    """
    lq = np.asarray(quality, dtype=np.float64)
    if not np.all((lq >= 0) & (lq <= 255)):
        raise ValueError(f"link quality must lie within 0..255, not {quality}")
    lines = ((255.0 - lq) / _SLOPE, 32 * (215.0 - lq) / _SLOPE, 256 * (105.0 - lq) / _SLOPE)
    return np.select([lq >= 215, lq >= 90], lines[:2], default=lines[2])
