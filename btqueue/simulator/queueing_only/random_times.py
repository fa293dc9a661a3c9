"""Laws of random times (services and walks): which there are, as the user writes them and as records.

Times are in slots outside and in nanoseconds inside.
"""

from dataclasses import dataclass

import numpy as np

from btqueue.simulator.machinery.compilation import compiled
from btqueue.simulator.machinery.random_streams import exponential, uniform
from btqueue.simulator.records.conventions import SLOT, integers, reals

CONSTANT, TWO_POINT, EXPONENTIAL, ERLANG, UNIFORM, GEOMETRIC = range(6)

law_dtype = np.dtype(
    [
        *integers("kind least most"),
        *reals("scale probability"),
        *integers("phases"),
    ]
)
"""`least` and `most`: the two values of TWO_POINT and the ends of UNIFORM (ns), `least` alone is CONSTANT;
`scale`: mean of EXPONENTIAL and of one phase of ERLANG (ns), and of the exponential that GEOMETRIC rounds
up (slots); `probability`: of `most` in TWO_POINT."""


def require_times(law: object, *slots: float) -> None:
    """Raise `ValueError` unless each of these is 0 slots or at least 1 ns."""
    if any(time < 0 or 0 < time * SLOT < 1 for time in slots):
        raise ValueError(f"a time must be 0, or at least 1 ns: {law}")


@dataclass(frozen=True, kw_only=True)
class ConstantTime:
    """Always this many slots."""

    slots: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        require_times(self, self.slots)

    @property
    def mean(self) -> float:
        """Return the mean (slots)."""
        return self.slots

    def record(self) -> tuple:
        """Return the law as a `law_dtype` record."""
        return (CONSTANT, round(self.slots * SLOT), 0, 0.0, 0.0, 0)


@dataclass(frozen=True, kw_only=True)
class TwoPointTime:
    """`long` slots with probability `probability_long`, else `short` slots."""

    short: float
    long: float
    probability_long: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        require_times(self, self.short, self.long)
        if not 0 <= self.probability_long <= 1:
            raise ValueError(f"probability_long must be from 0 to 1, not {self.probability_long}")

    @property
    def mean(self) -> float:
        """Return the mean (slots)."""
        return self.short + self.probability_long * (self.long - self.short)

    def record(self) -> tuple:
        """Return the law as a `law_dtype` record."""
        return (
            TWO_POINT,
            round(self.short * SLOT),
            round(self.long * SLOT),
            0.0,
            self.probability_long,
            0,
        )


@dataclass(frozen=True, kw_only=True)
class ExponentialTime:
    """An exponential time with this mean (slots)."""

    mean: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        require_times(self, self.mean)

    def record(self) -> tuple:
        """Return the law as a `law_dtype` record."""
        return (EXPONENTIAL, 0, 0, self.mean * SLOT, 0.0, 0)


@dataclass(frozen=True, kw_only=True)
class ErlangTime:
    """The sum of `phases` exponential times, `mean` slots in all."""

    mean: float
    phases: int

    def __post_init__(self) -> None:
        """Check the parameters."""
        require_times(self, self.mean)
        if self.phases < 1:
            raise ValueError(f"phases must be at least 1, not {self.phases}")

    def record(self) -> tuple:
        """Return the law as a `law_dtype` record."""
        return (ERLANG, 0, 0, self.mean / self.phases * SLOT, 0.0, self.phases)


@dataclass(frozen=True, kw_only=True)
class UniformTime:
    """A whole number of slots from `least` to `most`, each as likely."""

    least: int
    most: int

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not 0 <= self.least <= self.most:
            raise ValueError(f"least and most must be slots in order: {self}")

    @property
    def mean(self) -> float:
        """Return the mean (slots)."""
        return (self.least + self.most) / 2

    def record(self) -> tuple:
        """Return the law as a `law_dtype` record."""
        return (UNIFORM, self.least, self.most, 0.0, 0.0, 0)


@dataclass(frozen=True, kw_only=True)
class GeometricTime:
    """A whole number of slots from 1 on, geometric with this mean."""

    mean: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.mean <= 1:
            raise ValueError(f"mean must be above 1 slot, not {self.mean}")

    def record(self) -> tuple:
        """Return the law as a `law_dtype` record."""
        return (GEOMETRIC, 0, 0, -1.0 / np.log1p(-1.0 / self.mean), 0.0, 0)


TimeLaw = ConstantTime | TwoPointTime | ExponentialTime | ErlangTime | UniformTime | GeometricTime
NO_TIME = ConstantTime(slots=0)


@compiled
def draw_time(law, stream):
    """Draw a time (ns) from the law."""
    if law.kind == CONSTANT:
        return law.least
    if law.kind == TWO_POINT:
        return law.most if uniform(stream) < law.probability else law.least
    if law.kind == EXPONENTIAL:
        return int(exponential(stream, law.scale))
    if law.kind == ERLANG:
        total = 0.0
        for _ in range(law.phases):
            total += exponential(stream, law.scale)
        return int(total)
    if law.kind == UNIFORM:
        return SLOT * (law.least + int(uniform(stream) * (law.most - law.least + 1)))
    return SLOT * (1 + int(exponential(stream, law.scale)))
