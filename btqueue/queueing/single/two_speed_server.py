r"""A queue whose server changes between two speeds by itself: Poisson jobs, exponential stays, closed form.

With jobs of exponential work of mean theta that come at rate x / theta, speeds r_j in state j (0 good, 1
bad), moves at rates a (good to bad) and b (back), the transform F_j(s) of the work V in state j obeys

    F(s) K(s) = s l,   K(s) = Q + diag(s r_j - x s / (1 + theta s)),   l_j = r_j P(V = 0, j).

det K is s times a cubic. Its positive root divides the idle time between the states; its two negative ones
are the rates of the two exponentials of which the law of V consists in each state. To clear work v takes

    v / r + c_j (1 - e^(-k v)),   r = sum pi_j r_j,   k = a / r_0 + b / r_1,   c_j = (1 / r_j - 1 / r) / k

from state j, since on the server's clock the state moves at rates a / r_0 and b / r_1. Work of other laws is
replaced by exponential work with the same rate of its squares: exact in the mean where both speeds are equal
(Pollaczek and Khinchin), and where the state changes fast or slowly against the service of a job.

Sources: U. Yechiali and P. Naor, Oper. Res. 19 (1971); S. Asmussen and O. Kella, J. Appl. Prob. 37 (2000).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64

APART = 1e-9
"""Relative difference of the speeds, at least, and least share of the faster one that the slower one has."""
HALVINGS = 60
STEPS = 3
"""Of Newton's method, after the halvings: they give the root its derivatives, too."""
FULL = 0.999
"""Load up to which there is a steady state worth the name."""


class TwoSpeedServer(NamedTuple):
    """The law of the work: in state j nothing with probability ``none[j]``, else exponential work.

    Attributes:
        moves: (2,) rates out of the good state and out of the bad one.
        speeds: (2,) of the server, good and bad.
        mean_speed: over time.
        share: (2,) of the time in each state.
        none: (2,) probability of no work and this state.
        some: (2, 2) probability of work of each exponential, by state.
        rates: (2,) of the exponentials.
    """

    moves: Array
    speeds: Array
    mean_speed: Array
    share: Array
    none: Array
    some: Array
    rates: Array

    @property
    def forgetting(self) -> Array:
        """Rate k at which the state is forgotten, on the clock of the work that the server can do."""
        return (self.moves / self.speeds).sum()

    def transform(self, s: ArrayLike) -> Array:
        """(2,) E[exp(-s V)] and this state."""
        return self.none + self.some @ (self.rates / (self.rates + s))

    def served(self) -> Array:
        """(2,) share of the work that is served in each state."""
        done = self.speeds * (self.share - self.none)
        return done / done.sum()

    def excess(self) -> Array:
        """(2,) c: what work of some length takes longer from this state than on average."""
        return (1.0 / self.speeds - 1.0 / self.mean_speed) / self.forgetting

    def waits(self, most: ArrayLike) -> Array:
        """(2,) mean time until a job is served that comes in this state, once only ``most`` is before it.

        The probability of the state is in it: the sum is the mean over all jobs. What is before a job beyond
        ``most`` is served while the job waits elsewhere; meanwhile the state changes.
        """
        k, rates = self.forgetting, self.rates
        beyond, forgotten = jnp.exp(-rates * most), jnp.exp(-k * most)
        linear = self.some @ ((1.0 - beyond) / rates) / self.mean_speed
        within = (1.0 - beyond) - rates / (rates + k) * (1.0 - beyond * forgotten)
        after = beyond * rates / (rates + k) * (1.0 - forgotten)
        return linear + self.excess() * (self.some @ (within + after))

    def work(self, most: ArrayLike) -> Array:
        """Mean work before a job, at most ``most``."""
        return (self.some @ ((1.0 - jnp.exp(-self.rates * most)) / self.rates)).sum()

    def bad_at_service(self) -> Array:
        """Probability of the bad state when the service of a job begins."""
        bad = self.share[1] * self.speeds[1] / self.mean_speed
        known = self.transform(self.forgetting)
        return bad + known[1] - bad * known.sum()


@in_float64
@jax.jit
def two_speed_server(rate: ArrayLike, speeds: ArrayLike, moves: ArrayLike, size: ArrayLike) -> TwoSpeedServer:
    """Return the steady state.

    Args:
        rate: work that comes in a unit of time.
        speeds: (2,) work that is done in a unit of time, good and bad; the good one is the larger one.
        moves: (2,) rates out of the good state and out of the bad one.
        size: mean work theta of an exponential job with the right rate of squares: E[S^2] / (2 E[S]).

    Beyond a load of `FULL` the answer is that at this load.

    Example:
        >>> from btqueue.queueing.single.two_speed_server import two_speed_server
        >>> server = two_speed_server(0.5, [1.0, 0.25], [0.1, 0.3], 1.0)
        >>> round(float(server.mean_speed), 4)
        0.8125
    """
    speeds, moves, size = (jnp.asarray(one, float) for one in (speeds, moves, size))
    good = speeds[0]
    bad = jnp.clip(speeds[1], APART * good, (1.0 - APART) * good)
    speeds = jnp.stack([good, bad])
    share = moves[::-1] / moves.sum()
    mean_speed = share @ speeds
    x = jnp.minimum(rate, FULL * mean_speed)
    spare = speeds - x
    p, q = moves[0] * bad + moves[1] * good, (mean_speed - x) * moves.sum()
    cubic = jnp.stack(
        [
            good * bad,
            good * spare[1] + bad * spare[0] - size * p,
            spare[0] * spare[1] - size * (p + q),
            -size * q,
        ]
    )  # of y = theta s
    slope = cubic[:3] * jnp.array([3.0, 2.0, 1.0])
    middle = -spare[0] / good  # between the negative roots
    low = _root(cubic, slope, -jnp.ones(()), middle)
    high = _root(cubic, slope, jnp.zeros(()), middle)
    top = -cubic[1] / cubic[0] - low - high
    # idle time, from the positive root
    s, t = top / size, 1.0 + top
    drift = mean_speed - x
    idle_bad = drift * moves[0] / (s * (good - x / t))
    idle = jnp.stack([drift - idle_bad, idle_bad])
    y = jnp.stack([low, high])
    s, t = y / size, 1.0 + y
    other = (
        speeds[::-1, None] * s * t - x * s - moves[::-1, None] * t
    )  # (2, roots): t times K of the other state
    tops = t * (idle[:, None] * other - t * (idle * moves)[::-1, None])
    some = -tops / (jnp.polyval(slope, y) * s)
    return TwoSpeedServer(moves, speeds, mean_speed, share, idle / speeds, some, -s)


def _root(cubic: Array, slope: Array, below: Array, above: Array) -> Array:
    """Root between a place where the cubic is negative and one where it is positive."""

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        under, over = bracket
        middle = 0.5 * (under + over)
        positive = jnp.polyval(cubic, middle) >= 0.0
        return jnp.where(positive, under, middle), jnp.where(positive, middle, over)

    under, over = lax.fori_loop(0, HALVINGS, halve, (below, above))
    found = lax.stop_gradient(0.5 * (under + over))
    for _ in range(STEPS):
        found = found - jnp.polyval(cubic, found) / jnp.polyval(slope, found)
    return found
