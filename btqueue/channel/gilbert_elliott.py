r"""The two-state (Gilbert-Elliott) radio channel in continuous time.

Good and bad periods alternate with exponential lengths of means rho_G and rho_B; while a state lasts, bit
errors are independent with that state's bit error rate.  With mu = 1/rho_G + 1/rho_B and stationary law pi,

    e^{Qt} = 1 pi + e^{-mu t} (I - 1 pi),      Q = [[-1/rho_G, 1/rho_G], [1/rho_B, -1/rho_B]].

State 0 is good, state 1 bad, everywhere.

Sources: Gilbert, "Capacity of a burst-noise channel", BSTJ 39 (1960); Elliott, BSTJ 42 (1963); the two states
of Venugopal's thesis (University of Manitoba 2006, section 3.1.3).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStateChannel:
    """Parameters of one link's channel; every link has its own, independent one.

    Attributes:
        ber_good: bit error rate in the good state, within [0, 1].
        ber_bad: bit error rate in the bad state, within [0, 1].
        good_s: mean length of a good period in seconds.
        bad_s: mean length of a bad period in seconds.  One of the two may be 0: that state never shows.

    Raises:
        ValueError: a rate outside [0, 1], a length that is negative or not finite, or both lengths 0.
    """

    ber_good: float
    ber_bad: float
    good_s: float
    bad_s: float

    def __post_init__(self) -> None:
        for name in ("ber_good", "ber_bad"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} must lie within [0, 1], not {value}")
        for name in ("good_s", "bad_s"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} must be finite and not negative, not {value}")
        if self.good_s + self.bad_s == 0:
            raise ValueError("good_s and bad_s cannot both be 0")

    @property
    def bers(self) -> NDArray[np.float64]:
        """Bit error rates of the good and the bad state, shape (2,)."""
        return np.array([self.ber_good, self.ber_bad])

    @property
    def stationary(self) -> NDArray[np.float64]:
        """Long-run fraction of time in the good and the bad state, shape (2,)."""
        return np.array([self.good_s, self.bad_s]) / (self.good_s + self.bad_s)

    @property
    def correlation_s(self) -> float:
        """Time constant 1/mu in seconds with which the state is forgotten; 0 if one state never shows."""
        # harmonic form of 1 / (1/good + 1/bad) that needs no infinite rate
        return self.good_s * self.bad_s / (self.good_s + self.bad_s)

    def transition(self, time_s: ArrayLike) -> NDArray[np.float64]:
        """Transition matrix e^{Qt}.

        Args:
            time_s: elapsed time in seconds, any shape ``(...)``, not negative; infinity is allowed.

        Returns:
            Shape ``(..., 2, 2)``; entry ``[..., i, j]`` is the probability of state j after starting in i.

        Raises:
            ValueError: a negative time.
        """
        t = np.asarray(time_s, dtype=np.float64)
        if not np.all(t >= 0):
            raise ValueError(f"time must not be negative, not {time_s}")
        # if one state never shows, it is forgotten at once
        forgotten, known = np.where(t > 0, np.inf, 0.0), self.correlation_s > 0
        exponent = -np.divide(t, self.correlation_s, out=forgotten, where=known)[..., np.newaxis, np.newaxis]
        return np.exp(exponent) * np.eye(2) - np.expm1(exponent) * self.stationary
