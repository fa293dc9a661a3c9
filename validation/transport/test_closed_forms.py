"""Square-root and PFTK laws: check values, limits, and what they are limits of."""

from functools import cache

import pytest
from wires import LARGE_WINDOW

from btqueue.study.closed_forms import closed_forms
from btqueue.transport.recovery import LossyPath
from btqueue.transport.window_cycles import lossy_rates

PERCENT = 0.5 + 1e-9  # errors are quoted in whole percent

# Errors in percent against simulated NewReno: of the square-root law (send rate), PFTK full and PFTK short.
LARGE_WINDOW_ERRORS = [
    (0.0003, 32, 1, 19),
    (0.001, 2, -1, 0),
    (0.003, 2, -6, -5),
    (0.01, 10, -13, -12),
    (0.03, 38, -20, -21),
    (0.1, 226, -6, -26),
]


@cache
def law(name, *symbols):
    return closed_forms()[f"send rate, {name}"].function(*symbols)


def square_root_rate(loss, rtt):
    return law("square-root law", "p", "RTT", "b")(loss, rtt, 1.0)


def pftk_rate(loss, rtt, *, window, rto):
    return law("PFTK", "p", "RTT", "W_m", "T_0", "b")(loss, rtt, window, rto, 1.0)


def pftk_short_rate(loss, rtt, *, window, rto):
    return law("PFTK short", "p", "RTT", "W_m", "T_0", "b")(loss, rtt, window, rto, 1.0)


def percent(value, reference):
    return 100.0 * (value / reference - 1.0)


@pytest.mark.parametrize(("loss", "square_root", "full", "short"), LARGE_WINDOW_ERRORS)
def test_errors_against_simulated_large_windows(loss, square_root, full, short):
    newreno, _ = LARGE_WINDOW[loss]
    assert percent(square_root_rate(loss, 0.1), newreno) == pytest.approx(square_root, abs=PERCENT)
    for rate, error in ((pftk_rate, full), (pftk_short_rate, short)):
        goodput = (1.0 - loss) * rate(loss, 0.1, window=64, rto=1.0)
        assert percent(goodput, newreno) == pytest.approx(error, abs=PERCENT)


def test_limits_of_rare_losses():
    # what the window lets through; no receive window: the square-root law
    for rate in (pftk_rate, pftk_short_rate):
        assert rate(1e-9, 0.1, window=8, rto=1.0) == pytest.approx(80.0, rel=1e-4)
        assert rate(1e-9, 0.1, window=1e9, rto=1.0) == pytest.approx(square_root_rate(1e-9, 0.1), rel=3e-4)


def test_renewal_chain_tends_to_the_constant_of_random_losses():
    # Random losses leave larger windows than periodic ones: 1.3098 for sqrt(3/2), T. Ott, J. Kemperman &
    # M. Mathis, The stationary behavior of ideal TCP congestion avoidance (1996). A recovery's round trips
    # cost a part of the rate in proportion to the square root of the loss, which drops out of two losses.
    losses, constants = (2e-3, 5e-4), []
    for loss, window in zip(losses, (90, 170), strict=True):
        path = LossyPath(loss, 1.0, window, 1e9, 0.1, 1e-9, "sack", 1.0, 64.0, True)
        constants.append(lossy_rates(path).goodput * 0.1 * loss**0.5)
    limit = 2.0 * constants[1] - constants[0]
    assert limit == pytest.approx(1.3098, rel=0.005)
    assert constants[1] == pytest.approx(1.3098, rel=0.03)
