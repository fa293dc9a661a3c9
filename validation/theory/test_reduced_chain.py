"""The reduced chain: its errors are those its documentation states, and its limits are exact."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from tcp_chains.lockstep import lockstep_rates
from tcp_chains.loss_process import LossProcess
from tcp_chains.reduced_chain import reduced_structure
from tcp_chains.reduced_cost import reduced_cost, stationary
from wires import LARGE_WINDOW

RTT = 0.1
LOSSES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.4)


class Rates(NamedTuple):
    """Of a connection, per second."""

    goodput: float
    timeouts: float
    fast_retransmits: float
    mean_window: float


def exact(window, *losses):
    return lockstep_rates(window=window, rtt=RTT, loss=LossProcess.independent(*losses))


def reduced(window, data_loss, ack_loss=0.0):
    """Rates with a timeout of 1 s that doubles up to 64 s."""
    cost = reduced_cost(reduced_structure(window), data_loss, ack_loss)
    seconds = RTT * cost.rounds + float(cost.stages @ 2.0 ** np.arange(len(cost.stages)))
    timeouts = float(cost.stages.sum())
    return Rates(1.0 / seconds, timeouts / seconds, cost.fast_retransmits / seconds, cost.window)


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


@pytest.mark.parametrize("loss", LARGE_WINDOW)
def test_stated_error_for_large_windows(loss):
    ratio = float(reduced(64, loss).goodput) / LARGE_WINDOW[loss][0]
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


@pytest.mark.parametrize("loss", [0.01, 0.1, 0.3])
def test_transmissions_are_those_of_the_exact_chain(loss):
    truth = exact(8, loss)
    found = reduced_cost(reduced_structure(8), loss, 0.0)
    assert found.sends == pytest.approx(truth.sends / truth.goodput, rel=0.03)


def test_the_stationary_law_has_all_its_digits():
    """Birth and death: every state is a million times as rare as the one before it."""
    up, down, states = 1e-7, 0.1, 30
    chain = up * np.eye(states, k=1) + down * np.eye(states, k=-1)
    chain += np.diag(1.0 - chain.sum(axis=1))
    law = (up / down) ** np.arange(states)
    assert stationary(chain, 0) == pytest.approx(law / law.sum(), rel=1e-12, abs=0.0)
