"""The exact small-window chain against published-precision check values.

The check values were computed for a receive window of 8 segments, a round-trip time of 0.1 s and a timeout
of 1 s by an independent program for the same assumptions; they are quoted to six decimals.
"""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from tcp_chains.chain import compile_chain
from tcp_chains.lockstep import lockstep_rates
from tcp_chains.loss_process import LossProcess, in_series
from tcp_chains.newreno_chain import Variant
from tcp_chains.round_map import NotConvergedError

SIX_DECIMALS = 1e-6  # printed values are rounded: half a unit of the last digit is 5e-7
WINDOW, RTT = 8, 0.1

NEWRENO = {  # loss: goodput, timeouts, fast retransmits (per second), whole window at the ends of rounds
    0.001: (78.310532, 0.000089, 0.077760, 7.8892),
    0.01: (64.998617, 0.014111, 0.603097, 7.0471),
    0.05: (27.270812, 0.301550, 0.879544, 4.9608),
    0.1: (11.361172, 0.541839, 0.440291, 3.8165),
    0.2: (3.783637, 0.620127, 0.097183, 2.8035),
    0.3: (1.682759, 0.530636, 0.018346, 2.3029),
    0.4: (0.757422, 0.385724, 0.002593, 2.0138),
}
RENO = dict(
    zip(NEWRENO, (78.264337, 62.352209, 22.531615, 10.008372, 3.669635, 1.674046, 0.756976), strict=True)
)
TAHOE = dict(
    zip(NEWRENO, (77.845514, 61.660089, 24.979762, 10.832759, 3.710468, 1.671011, 0.755970), strict=True)
)


def rates(loss, **changes):
    """Rates at the parameters of the check values, or with some of them changed."""
    return lockstep_rates(**{"window": WINDOW, "rtt": RTT, "loss": loss, **changes})


@pytest.mark.parametrize("loss", NEWRENO)
def test_newreno_check_values(loss):
    goodput, timeouts, fast_retransmits, window = NEWRENO[loss]
    result = rates(LossProcess.independent(loss))
    assert result.goodput == pytest.approx(goodput, abs=SIX_DECIMALS)
    assert result.timeouts == pytest.approx(timeouts, abs=SIX_DECIMALS)
    assert result.fast_retransmits == pytest.approx(fast_retransmits, abs=SIX_DECIMALS)
    assert result.mean_window_at_round_ends == pytest.approx(window, abs=1e-4)


@pytest.mark.parametrize(("variant", "table"), [(Variant.RENO, RENO), (Variant.TAHOE, TAHOE)])
def test_older_variants_check_values(variant, table):
    found = {loss: rates(LossProcess.independent(loss), variant=variant).goodput for loss in table}
    assert found == pytest.approx(table, abs=SIX_DECIMALS)


# A radio link that changes between a good and a bad state (mean sojourns 437.5 and 55.8 ms), and what
# becomes of the packets of a segment (four of 339 bytes, one of 183) and of an ACK (one of 183 bytes) at the
# bit error rates of the two.
GENERATOR = np.array([[-1 / 0.4375, 1 / 0.4375], [1 / 0.0558, -1 / 0.0558]])
STATIONARY = np.array([437.5, 55.8]) / (437.5 + 55.8)
BIT_ERROR_RATES = np.array([6.8979e-6, 1.263e-4])
SLOT = 625e-6


def success(payload_bytes):
    """Packet success by channel state: every bit of the payload arrives unharmed."""
    return (1.0 - BIT_ERROR_RATES) ** (8 * payload_bytes)


def test_gilbert_elliott_link_check_value():
    """One hop; the channel state at the start of a round decides for all of its segments.

    The reference knew its loss probabilities to about six digits, which moves the goodput by up to 5e-5.
    """
    data_loss, ack_loss = 1.0 - success(339) ** 4 * success(183), 1.0 - success(183)
    assert float(STATIONARY @ data_loss) == pytest.approx(0.161440, abs=SIX_DECIMALS)
    assert float(STATIONARY @ ack_loss) == pytest.approx(0.028008, abs=SIX_DECIMALS)
    result = rates(LossProcess.markov(data_loss, ack_loss, GENERATOR))
    assert result.goodput == pytest.approx(7.114603, abs=5e-5)
    assert result.timeouts == pytest.approx(0.583503, abs=SIX_DECIMALS)
    assert result.fast_retransmits == pytest.approx(0.206946, abs=SIX_DECIMALS)


def test_two_link_path_check_values():
    """Two hops with four hidden states; the packets of a segment see the state change from slot to slot."""
    one = LossProcess.markov(np.zeros(2), np.zeros(2), GENERATOR)
    packet = one.transition(5 * SLOT) @ np.diag(success(339))
    last = one.transition(3 * SLOT) @ np.diag(success(183))
    gap = one.transition(SLOT)
    segment = packet @ gap @ packet @ gap @ packet @ gap @ packet @ gap @ last
    hop = LossProcess.markov(1.0 - segment.sum(axis=1), 1.0 - last.sum(axis=1), GENERATOR)
    path = in_series([hop, hop])
    assert float(np.kron(STATIONARY, STATIONARY) @ path.data_loss) == pytest.approx(
        0.305240, abs=SIX_DECIMALS
    )
    assert float(np.kron(STATIONARY, STATIONARY) @ path.ack_loss) == pytest.approx(0.055231, abs=SIX_DECIMALS)
    result = rates(path)
    assert result.goodput == pytest.approx(1.650542, abs=SIX_DECIMALS)
    assert result.timeouts == pytest.approx(0.486178, abs=SIX_DECIMALS)
    assert result.fast_retransmits == pytest.approx(0.022540, abs=SIX_DECIMALS)
    assert result.mean_window_at_round_ends == pytest.approx(2.39, abs=5e-3)
    kbps_per_segment = 1460 * 8 / 1000
    assert rates(path, min_rto=0.3).goodput * kbps_per_segment == pytest.approx(53.542, abs=1e-3)
    assert rates(path, min_rto=0.2).goodput * kbps_per_segment == pytest.approx(71.560, abs=1e-3)


def test_a_window_of_one_is_stop_and_wait():
    """Renewal argument: N timeouts before a success, N geometric, waits doubling up to 64 s."""
    data_loss, ack_loss = 0.3, 0.1
    fail = 1.0 - (1.0 - data_loss) * (1.0 - ack_loss)
    waits = sum(fail**k * min(2.0 ** (k - 1), 64.0) for k in range(1, 400))
    cycle = waits + RTT
    result = rates(LossProcess.independent(data_loss, ack_loss), window=1)
    assert result.goodput == pytest.approx(1.0 / cycle, rel=1e-9)
    assert result.timeouts == pytest.approx(fail / (1.0 - fail) / cycle, rel=1e-9)


def test_without_loss_the_window_is_the_limit():
    result = rates(LossProcess.independent(0.0))
    assert result.goodput == pytest.approx(WINDOW / RTT)
    assert result.timeouts == pytest.approx(0.0, abs=1e-12)
    assert result.mean_window == pytest.approx(WINDOW)


def test_a_fast_channel_is_independent_loss_between_rounds_and_segments():
    """Once the channel forgets its state from one segment to the next, only the mean loss is left."""
    fast = 1e6 * np.array([[-1.0, 1.0], [1.0, -1.0]])
    hidden = LossProcess.markov([0.0, 0.2], [0.0, 0.0], fast)
    assert rates(hidden, segment_spacing=0.001).goodput == pytest.approx(
        rates(LossProcess.independent(0.1)).goodput, rel=1e-8
    )


def test_backoff_lengthens_the_silence():
    """Without backoff every timeout waits the same, so heavy loss costs less time."""
    loss = LossProcess.independent(0.4)
    assert rates(loss, rto_backoff=False).goodput > 1.5 * rates(loss).goodput
    assert rates(loss, max_rto=1.0).goodput == pytest.approx(rates(loss, rto_backoff=False).goodput, rel=1e-9)


def test_bookkeeping():
    """What is sent either is lost or arrives; what arrives is delivered once."""
    result = rates(LossProcess.independent(0.05, 0.02))
    assert result.segment_loss == pytest.approx(0.05, rel=1e-9)
    assert result.goodput < result.sends * 0.95
    assert result.mean_window <= WINDOW


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("window", range(1, 8))
def test_every_enumerated_state_is_recurrent(window, variant):
    structure = compile_chain(window, variant=variant)
    n = structure.states
    source = np.repeat(np.arange(n), structure.fates)
    graph = sparse.csr_array((np.ones(source.size), (source, structure.target.ravel())), shape=(n, n))
    assert connected_components(graph, connection="strong")[0] == 1


def test_a_tolerance_out_of_reach_raises():
    with pytest.raises(NotConvergedError, match="residual"):
        rates(LossProcess.independent(0.1), window=4, tolerance=1e-30)


@pytest.mark.parametrize("window", [1, 2])
def test_without_fast_retransmit_selective_acknowledgements_change_nothing(window):
    loss = LossProcess.independent(0.1)
    sack, newreno = (rates(loss, window=window, variant=v) for v in (Variant.SACK, Variant.NEWRENO))
    assert sack.fast_retransmits == newreno.fast_retransmits == 0.0
    assert sack.goodput == pytest.approx(newreno.goodput, rel=1e-9)
    assert sack.timeouts == pytest.approx(newreno.timeouts, rel=1e-9)


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.1, 0.2])
def test_selective_acknowledgements_carry_most(loss):
    goodputs = [rates(LossProcess.independent(loss), variant=v).goodput for v in Variant]
    assert goodputs[-1] == max(goodputs)
