r"""Bit error rates of the three Bluetooth modulations in white Gaussian noise.

``snr`` is the energy per *bit* over the noise density, gamma = E_b / N_0, as a plain ratio (10 dB is 10).

Sources: Proakis, "Digital Communications", 4th ed., chapter 5 (DQPSK with Gray map, envelope detection of
correlated binary signals); Pawula, Rice and Roberts, IEEE Trans. Commun. 30 (1982), symbol errors of M-ary
DPSK; Simon and Alouini, "Digital Communication over Fading Channels", for the integral form.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

GFSK_MODULATION_INDEX = 0.32
"""Nominal frequency-modulation index of the basic rate (allowed: 0.28 to 0.35)."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(128)
_ANGLES = np.linspace(-np.pi, np.pi, 512, endpoint=False)


def gfsk_ber(snr: ArrayLike, *, modulation_index: float = GFSK_MODULATION_INDEX) -> NDArray[np.float64]:
    """Basic rate: non-coherent binary FSK whose two tones have correlation r = sin(2 pi h) / (2 pi h).

    Leaves out the Gaussian filter and the losses of real discriminators, so hardware does worse.

    Args:
        snr: E_b / N_0, any shape, not negative.
        modulation_index: h, not 0.
    """
    r = np.sinc(2.0 * modulation_index)
    spread = np.sqrt(1.0 - r * r)
    return _noncoherent(_checked(snr) / 2.0, spread)


def dqpsk_ber(snr: ArrayLike) -> NDArray[np.float64]:
    """Enhanced rate 2 Mbit/s: pi/4-DQPSK with Gray map, differential detection, exact."""
    return _noncoherent(2.0 * _checked(snr), np.sqrt(0.5))


def dpsk8_symbol_error_rate(snr: ArrayLike) -> NDArray[np.float64]:
    """Enhanced rate 3 Mbit/s: probability that a symbol (3 bits) of 8DPSK is wrong, exact.

    sin(pi/8)/(2 pi) times the integral over (-pi/2, pi/2) of exp(-3 gamma d) / d with
    d = 1 - cos(pi/8) cos(theta), by Gauss-Legendre quadrature with 128 nodes.
    """
    gamma = _checked(snr)[..., np.newaxis]
    d = 1.0 - np.cos(np.pi / 8) * np.cos(_NODES * np.pi / 2)
    integral = (np.pi / 2) * np.sum(_WEIGHTS * np.exp(-3.0 * gamma * d) / d, axis=-1)
    return np.sin(np.pi / 8) / (2.0 * np.pi) * integral


def dpsk8_ber(snr: ArrayLike) -> NDArray[np.float64]:
    """Enhanced rate 3 Mbit/s: bit error rate of 8DPSK with Gray map, one wrong bit per wrong symbol.

    An approximation: good where symbol errors go to a neighbour, too low at small ``snr``.
    """
    return dpsk8_symbol_error_rate(snr) / 3.0


def _noncoherent(scale: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """Q_1(a, c) - I_0(ac) exp(-(a^2 + c^2)/2) / 2 with a^2, c^2 = scale (1 -+ spread).

    The difference of Marcum and Bessel function loses all digits where the result is small.  With z = a/c and
    w = 1 + 2 z sin(theta) + z^2 it equals (1 - z^2)/(4 pi) times the integral of exp(-c^2 w / 2) / w over a
    period (Simon and Alouini), whose integrand is positive, smooth and periodic: equally spaced points are
    enough.
    """
    z = np.sqrt((1.0 - spread) / (1.0 + spread))
    w = 1.0 + 2.0 * z * np.sin(_ANGLES) + z * z
    half_c2 = 0.5 * scale[..., np.newaxis] * (1.0 + spread)
    return 0.5 * (1.0 - z * z) * np.mean(np.exp(-half_c2 * w) / w, axis=-1)


def _checked(snr: ArrayLike) -> NDArray[np.float64]:
    gamma = np.asarray(snr, dtype=np.float64)
    if not np.all(gamma >= 0):
        raise ValueError(f"snr must not be negative, not {snr}")
    return gamma
