"""A queue whose server has two speeds: laws that it must keep, and the exact queue on the server's clock."""

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btqueue.queueing.single.two_speed_server import TwoSpeedServer, two_speed_server

ENDLESS = 1e9


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@st.composite
def servers(draw: st.DrawFn) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Load, speeds, moves and size of a stable queue."""
    slow = draw(st.floats(1e-4, 0.95))
    speeds = np.array([1.0, slow]) * draw(st.floats(0.3, 30.0))
    moves = np.array([draw(st.floats(0.01, 30.0)), draw(st.floats(0.01, 30.0))])
    mean = float(moves[::-1] @ speeds / moves.sum())
    return draw(st.floats(0.05, 0.95)) * mean, speeds, moves, draw(st.floats(0.3, 3.0))


def sojourn(found: TwoSpeedServer, size: float) -> float:
    """Mean time in the system of exponential jobs: the wait, and own work from the state found then."""
    bad = float(found.bad_at_service())
    gone = 1.0 - 1.0 / (1.0 + size * float(found.forgetting))
    return float(
        np.sum(found.waits(ENDLESS))
        + size / found.mean_speed
        + np.array([1.0 - bad, bad]) @ found.excess() * gone
    )


@given(servers())
def test_every_state_has_its_share_and_all_that_comes_is_served(case: tuple) -> None:
    rate, speeds, moves, size = case
    found = two_speed_server(rate, speeds, moves, size)
    np.testing.assert_allclose(found.none + found.some.sum(axis=1), moves[::-1] / moves.sum(), rtol=1e-8)
    assert (found.none >= 0.0).all()
    assert (found.rates > 0.0).all()
    np.testing.assert_allclose(speeds @ (found.share - found.none), rate, rtol=1e-7)
    np.testing.assert_allclose(found.served().sum(), 1.0)


@given(servers())
def test_little_for_exponential_jobs(case: tuple) -> None:
    """As many jobs are there as come in the time that one stays; the work of each is exponential."""
    rate, speeds, moves, size = case
    found = two_speed_server(rate, speeds, moves, size)
    jobs = float(found.work(ENDLESS)) / size
    np.testing.assert_allclose(sojourn(found, size) * rate / size, jobs, rtol=1e-6)


@pytest.mark.parametrize(
    ("rate", "speeds", "moves"),
    [(0.5, (1.0, 0.3), (0.2, 1.0)), (3.0, (10.0, 1.0), (0.2, 1.0)), (0.6, (1.0, 0.01), (0.5, 3.0))],
)
def test_the_exact_queue_on_the_clock_of_the_server(
    rate: float, speeds: tuple[float, float], moves: tuple[float, float]
) -> None:
    """There the speed is 1, and jobs come at a rate that changes: a Markov chain of jobs and states."""
    solved = two_speed_server(rate, speeds, moves, 1.0)
    (a, b), (g, s) = moves, speeds
    moves_and_jobs = np.array([[-(rate + a) / g, a / g], [b / s, -(rate + b) / s]])
    rates = np.array([rate / g, rate / s])
    most = 600  # jobs, as good as endless
    generator = (
        np.kron(np.eye(most + 1), moves_and_jobs)
        + np.kron(np.eye(most + 1, k=1), np.diag(rates))
        + np.kron(np.eye(most + 1, k=-1) - np.diag([0.0] + most * [1.0]), np.eye(2))
    )
    generator[-2:, -2:] += np.diag(rates)  # the last level lets nothing in
    balance = generator.T.copy()
    balance[-1] = 1.0
    exact = np.linalg.solve(balance, np.eye(len(balance))[-1]).reshape(-1, 2)
    # jobs find what is there when they come, and on this clock their rate is that of the state
    found = exact[:40] @ rates / (exact @ rates).sum()
    # work of n exponential jobs has the transform 1 / (1 + s)^n, so the number is a mixture of geometric laws
    fall = 1.0 - solved.rates
    law = np.array([solved.some.sum(axis=0) @ (solved.rates * fall ** (n - 1.0)) for n in range(1, 40)])
    np.testing.assert_allclose(found[1:], law, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found[0], solved.none.sum(), rtol=1e-8)


def test_equal_speeds_are_an_ordinary_queue() -> None:
    found = two_speed_server(0.6, (1.0, 1.0), (0.7, 2.0), 0.5)
    np.testing.assert_allclose(np.sum(found.waits(ENDLESS)), 0.6 * 0.5 / 0.4, rtol=1e-6)


@pytest.mark.parametrize("window", [2.0, ENDLESS])
def test_fast_changes_are_the_mean_speed(window: float) -> None:
    moves = 1e6 * np.array([1.0, 3.0])
    fast = two_speed_server(0.5, (1.0, 0.2), moves, 0.5)
    mean = two_speed_server(0.5, (0.8, 0.8), moves, 0.5)
    np.testing.assert_allclose(np.sum(fast.waits(window)), np.sum(mean.waits(window)), rtol=1e-4)


def test_slow_changes_are_the_mean_of_two_queues() -> None:
    slow = two_speed_server(0.2, (1.0, 0.4), 1e-6 * np.array([1.0, 3.0]), 0.5)
    mean = 0.75 * 0.5 * 0.2 / 1.0 / 0.8 + 0.25 * 0.5 * 0.2 / 0.4 / 0.2
    np.testing.assert_allclose(np.sum(slow.waits(ENDLESS)), mean, rtol=1e-3)


def test_a_server_that_stops_lets_all_that_comes_pile_up() -> None:
    """Fluid limit of small jobs: what piles up in a stop of mean d is cleared at the speed that is left."""
    rate, stop, run = 0.4, 50.0, 450.0
    found = two_speed_server(rate, (1.0, 1e-7), (1.0 / run, 1.0 / stop), 1e-3)
    # mean fluid level of an exponential on-off source against a constant drain, E V = share x stop / spare
    share = stop / (run + stop)
    spare = 1.0 - share - rate
    np.testing.assert_allclose(found.work(ENDLESS), share * rate * stop * (1.0 - share) / spare, rtol=1e-2)


def test_derivatives_are_those_of_the_answer() -> None:
    def wait(rate: float, bad: float, size: float) -> jax.Array:
        return (
            two_speed_server(rate, jax.numpy.stack([1.0 + 0.0 * bad, bad]), (0.5, 1.5), size).waits(3.0).sum()
        )

    at = (0.5, 0.3, 0.7)
    slopes = jax.grad(wait, argnums=(0, 1, 2))(*at)
    for place, slope in enumerate(slopes):
        above, below = ([x + sign * 1e-6 * (k == place) for k, x in enumerate(at)] for sign in (1, -1))
        np.testing.assert_allclose(slope, (wait(*above) - wait(*below)) / 2e-6, rtol=1e-6)
