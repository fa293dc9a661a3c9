"""The chain of CentaurusComm objects."""

import numpy as np
import pytest

from btqueue.transport.centaurus_transaction import Branch, Transaction, mean_time

TIMES = {"data_s": 0.005, "control_s": 0.010, "setup_s": 0.030}
# packets, data loss, control loss, mean (s): computed independently, confirmed by Monte Carlo to three digits
CHECKED = [
    (16, 0.1, 0.05, 1.019591),
    (64, 0.05, 0.02, 0.754864),
    (128, 0.2, 0.0, 0.937452),
    (1, 0.1, 0.05, 0.715685),
]


def transaction(packets, data_loss, control_loss, watchdog_s=2.0):
    """One time and one loss for every control message; the watchdog runs from when one should have come."""
    data_s, control_s, setup_s = TIMES.values()
    kept = 1.0 - control_loss
    lost = [
        Branch(kept**k * control_loss, setup_s + (k + 1) * control_s + watchdog_s, False) for k in range(3)
    ]
    burst = np.arange(packets + 1) * data_s + control_s
    # a lost answer is noticed one message later than a lost DONE: the mean of both, given that one is lost
    later = kept / (1.0 + kept) * control_s
    return Transaction(
        offer=(*lost, Branch(kept**3, setup_s + 3 * control_s, True)),
        burst_s=tuple(burst),
        answer_s=control_s,
        hang_s=tuple(burst + later + watchdog_s),
        data_loss=data_loss,
        done_loss=control_loss,
        answer_loss=control_loss,
    )


def expected_rounds(packets, data_loss):
    """Sum of 1 - (1 - p^k)^N over rounds k."""
    return sum(1.0 - (1.0 - data_loss**k) ** packets for k in range(200))


@pytest.mark.parametrize(("packets", "data_loss", "control_loss", "mean"), CHECKED)
def test_mean_of_the_chain(packets, data_loss, control_loss, mean):
    assert mean_time(transaction(packets, data_loss, control_loss)) == pytest.approx(mean, abs=6e-7)


@pytest.mark.parametrize("packets", [1, 5, 128])
@pytest.mark.parametrize("loss", [0.0, 0.03, 0.2, 0.6])
def test_closed_form_without_control_loss(packets, loss):
    data_s, control_s, setup_s = TIMES.values()
    rounds = expected_rounds(packets, loss)
    closed = setup_s + 3 * control_s + packets * data_s / (1.0 - loss) + 2 * control_s * rounds
    assert mean_time(transaction(packets, loss, 0.0)) == pytest.approx(closed, rel=1e-10)
