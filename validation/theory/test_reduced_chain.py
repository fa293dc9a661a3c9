"""The reduced chain: its errors are those its documentation states, and its limits are exact."""

import itertools

import jax
import numpy as np
import pytest

from btqueue.transport import LossProcess, lockstep_rates
from btqueue.transport.reduced_chain import reduced_structure
from btqueue.transport.reduced_rates import reduced_rates

RTT = 0.1
LOSSES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.4)


def exact(window, *losses):
    return lockstep_rates(window=window, rtt=RTT, loss=LossProcess.independent(*losses))


def reduced(window, *losses, **times):
    return reduced_rates(reduced_structure(window), *losses, **{"rtt": RTT, **times})


@pytest.mark.parametrize(("window", "loss"), [*itertools.product(range(4, 9), LOSSES)])
def test_stated_errors_against_the_exact_chain(window, loss):
    approximate, truth = reduced(window, loss), exact(window, loss)
    assert float(approximate.goodput) == pytest.approx(truth.goodput, rel=0.033)
    assert float(approximate.mean_window) == pytest.approx(truth.mean_window, rel=0.07)
    assert float(approximate.timeouts) == pytest.approx(truth.timeouts, rel=0.10 if loss >= 0.05 else 0.29)
    fast = 0.04 if loss <= 0.1 else 0.12 if loss <= 0.2 else 0.38
    assert float(approximate.fast_retransmits) == pytest.approx(truth.fast_retransmits, rel=fast)


@pytest.mark.parametrize(
    ("window", "losses"), [*itertools.product((4, 6, 8), ((0.05, 0.05), (0.1, 0.1), (0.3, 0.05)))]
)
def test_stated_error_with_ack_loss(window, losses):
    ratio = float(reduced(window, *losses).goodput) / exact(window, *losses).goodput
    assert 1.0 < ratio < 1.09


# Event-simulated NewReno goodput, segments/s: window 64, RTT 0.1 s, timeout 1 s, independent losses.
LARGE_WINDOW = {0.0003: 536.70, 0.001: 379.83, 0.003: 220.10, 0.01: 111.84, 0.03: 51.13, 0.1: 11.89}


@pytest.mark.parametrize("loss", LARGE_WINDOW)
def test_stated_error_for_large_windows(loss):
    ratio = float(reduced(64, loss).goodput) / LARGE_WINDOW[loss]
    assert 0.93 < ratio < 1.005


@pytest.mark.parametrize("window", [1, 2, 3, 8, 30])
def test_without_loss_the_window_is_the_limit(window):
    result = reduced(window, 0.0)
    assert float(result.goodput) == pytest.approx(window / RTT, rel=1e-12)
    assert float(result.timeouts) == pytest.approx(0.0, abs=1e-12)


def test_a_window_of_one_is_exact():
    truth = exact(1, 0.3, 0.1)
    result = reduced(1, 0.3, 0.1)
    assert (float(result.goodput), float(result.timeouts)) == pytest.approx(
        (truth.goodput, truth.timeouts), rel=1e-9
    )


def test_derivatives_match_differences():
    structure, step = reduced_structure(8), 1e-6

    def goodput(arguments):
        return reduced_rates(
            structure, arguments[0], arguments[1], rtt=arguments[2], min_rto=arguments[3]
        ).goodput

    point = np.array([0.05, 0.01, 0.1, 1.0])
    with jax.enable_x64(True):
        slopes = np.asarray(jax.jit(jax.grad(goodput))(point))
        for k in range(point.size):
            shift = step * np.eye(point.size)[k]
            difference = (goodput(point + shift) - goodput(point - shift)) / (2.0 * step)
            assert slopes[k] == pytest.approx(float(difference), rel=1e-6)


def test_a_batch_is_its_points():
    structure, losses = reduced_structure(8), np.array([0.01, 0.1, 0.3])
    with jax.enable_x64(True):
        batch = jax.vmap(lambda p: reduced_rates(structure, p, rtt=RTT).goodput)(losses)
    assert np.asarray(batch) == pytest.approx([float(reduced(8, p).goodput) for p in losses], rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"data_loss": 1.0}, "loss"), ({"ack_loss": -0.1}, "ack_loss"), ({"rtt": 0.0}, "rtt")],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        reduced_rates(reduced_structure(4), **{"data_loss": 0.1, "rtt": RTT, **arguments})


def test_windows_out_of_range_are_refused():
    for window in (0, 65):
        with pytest.raises(ValueError, match="window"):
            reduced_structure(window)
