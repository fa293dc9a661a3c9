"""Square-root and PFTK laws: check values, limits, symbolic twins, and derivatives."""

import jax
import numpy as np
import pytest
import sympy as sp

from btqueue.transport import pftk_rate, pftk_short_rate, square_root_rate, symbolic
from btqueue.transport.closed_forms import timeout_probability, unlimited_window

PERCENT = 0.5 + 1e-9  # errors are quoted in whole percent

# Event-simulated goodput in segments/s of NewReno and Reno (window 64, RTT 0.1 s, timeout 1 s, independent
# loss), and the errors against NewReno in percent of the square-root law (send rate), PFTK full and PFTK
# short (goodput).
LARGE_WINDOW = [
    (0.0003, 536.70, 534.55, 32, 1, 19),
    (0.001, 379.83, 375.74, 2, -1, 0),
    (0.003, 220.10, 217.14, 2, -6, -5),
    (0.01, 111.84, 106.47, 10, -13, -12),
    (0.03, 51.13, 43.18, 38, -20, -21),
    (0.1, 11.89, 10.32, 226, -6, -26),
]
# Goodput of Reno by the exact chain (window 8), and the error of PFTK full in percent.
SMALL_WINDOW = [
    (0.001, 78.264337, -2),
    (0.01, 62.352209, -12),
    (0.05, 22.531615, 6),
    (0.1, 10.008372, 12),
    (0.2, 3.669635, 16),
    (0.3, 1.674046, 17),
    (0.4, 0.756976, 16),
]


def evaluate(expression, values):
    return float(sp.lambdify(list(values), expression)(*values.values()))


def percent(value, reference):
    return 100.0 * (value / reference - 1.0)


@pytest.mark.parametrize(("loss", "newreno", "reno", "square_root", "full", "short"), LARGE_WINDOW)
def test_errors_against_simulated_large_windows(loss, newreno, reno, square_root, full, short):
    through = 1.0 - loss
    assert percent(square_root_rate(loss, 0.1), newreno) == pytest.approx(square_root, abs=PERCENT)
    assert percent(through * pftk_rate(loss, 0.1, window=64, rto=1.0), newreno) == pytest.approx(
        full, abs=PERCENT
    )
    assert percent(through * pftk_short_rate(loss, 0.1, window=64, rto=1.0), newreno) == pytest.approx(
        short, abs=PERCENT
    )


@pytest.mark.parametrize(("loss", "reno", "error"), SMALL_WINDOW)
def test_errors_against_the_exact_small_window(loss, reno, error):
    goodput = (1.0 - loss) * pftk_rate(loss, 0.1, window=8, rto=1.0)
    assert percent(goodput, reno) == pytest.approx(error, abs=PERCENT)


def test_operating_point_of_a_coupled_network():
    """At the loss and round-trip time of a solved bottleneck the law returns the rate that was solved for."""
    rate = pftk_rate(0.047187247, 0.214937926, window=8, rto=1.0)
    assert rate == pytest.approx(16.518514555, rel=1e-8)  # the arguments are quoted to nine digits


def test_limits_of_vanishing_loss():
    assert pftk_rate(0.0, 0.1, window=8, rto=1.0) == pytest.approx(80.0, rel=1e-15)
    assert pftk_short_rate(0.0, 0.1, window=8, rto=1.0) == pytest.approx(80.0, rel=1e-15)
    assert square_root_rate(0.0, 0.1) == np.inf
    assert timeout_probability(1e-12, 8.0) == pytest.approx(3.0 / 8.0, rel=1e-9)
    # with no receive window the PFTK laws approach the square-root law as losses get rare
    for law in (pftk_rate, pftk_short_rate):
        rare = law(1e-9, 0.1, window=1e9, rto=1.0)
        assert rare == pytest.approx(square_root_rate(1e-9, 0.1), rel=3e-4)


def test_limits_of_delayed_acks_and_certain_timeouts():
    assert square_root_rate(0.01, 0.1, segments_per_ack=2) == pytest.approx(
        square_root_rate(0.01, 0.1) / np.sqrt(2)
    )
    assert timeout_probability(0.5, 1.5) == 1.0  # too few segments for three duplicate ACKs
    assert unlimited_window(0.01) == pytest.approx(1.0 + np.sqrt(265.0))


def test_scales_with_time():
    """Both times twice as long: half the rate."""
    assert pftk_rate(0.05, 0.2, window=8, rto=2.0) == pytest.approx(
        0.5 * pftk_rate(0.05, 0.1, window=8, rto=1.0)
    )


def test_falls_with_loss_within_each_branch():
    for losses, window in ((np.linspace(1e-4, 0.02, 200), 8.0), (np.linspace(0.1, 0.6, 200), 8.0)):
        assert np.all(np.diff(pftk_rate(losses, 0.1, window=window, rto=1.0)) < 0.0)
    assert np.all(np.diff(pftk_short_rate(np.linspace(0.05, 0.9, 200), 0.1, window=8.0, rto=1.0)) < 0.0)


@pytest.mark.parametrize("loss", [0.002, 0.05, 0.3])
def test_symbolic_laws_are_the_same_laws(loss):
    values = {
        symbolic.LOSS: loss,
        symbolic.RTT: 0.1,
        symbolic.RTO: 1,
        symbolic.WINDOW: 8,
        symbolic.SEGMENTS_PER_ACK: 2,
    }
    numerical = {
        symbolic.square_root_law(): square_root_rate(loss, 0.1, segments_per_ack=2),
        symbolic.pftk_short_law(): pftk_short_rate(loss, 0.1, window=8, rto=1, segments_per_ack=2),
        symbolic.pftk_law(): pftk_rate(loss, 0.1, window=8, rto=1, segments_per_ack=2),
        symbolic.unlimited_window(): unlimited_window(loss, segments_per_ack=2),
    }
    for law, value in numerical.items():
        assert evaluate(law, values) == pytest.approx(float(value), rel=1e-12)


def test_symbolic_limit_and_latex():
    inner = symbolic.timeout_probability(sp.Integer(8)).args[1]
    assert sp.limit(inner, symbolic.LOSS, 0, "+") == sp.Rational(3, 8)
    assert sp.latex(symbolic.square_root_law()) == r"\frac{\sqrt{6}}{2 RTT \sqrt{b} \sqrt{p}}"
    assert r"\begin{cases}" in sp.latex(symbolic.pftk_law())


@pytest.mark.parametrize("loss", [0.002, 0.05, 0.3])
def test_jax_derivatives_are_the_symbolic_ones(loss):
    values = {
        symbolic.LOSS: loss,
        symbolic.RTT: 0.1,
        symbolic.RTO: 1.0,
        symbolic.WINDOW: 8.0,
        symbolic.SEGMENTS_PER_ACK: 1.0,
    }
    expected = evaluate(sp.diff(symbolic.pftk_law(), symbolic.LOSS), values)
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(lambda p: pftk_rate(p, 0.1, window=8, rto=1.0)))(loss)
        at_zero = jax.grad(lambda p: pftk_short_rate(p, 0.1, window=8, rto=1.0))(0.0)
    assert float(slope) == pytest.approx(expected, rel=1e-10)
    assert np.isfinite(float(at_zero))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"loss": 1.0}, "loss"), ({"loss": -0.1}, "loss"), ({"rtt": 0.0}, "rtt"), ({"window": 0}, "window"),
     ({"rto": -1}, "rto"), ({"loss": "much"}, "loss")],
)  # fmt: skip
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        pftk_rate(**{"loss": 0.1, "rtt": 0.1, "window": 8, "rto": 1.0, **arguments})
