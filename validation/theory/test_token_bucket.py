"""Token bucket: exact values (each confirmed by simulation to its error) and limits.

Segments of 1460 bytes are five packets of 307.8 bytes on average; rates are in kbit/s of payload and of
tokens.
"""

import numpy as np
import pytest

from btqueue.queueing import lattice
from btqueue.queueing.arrivals import PoissonBatches
from btqueue.queueing.token_bucket import TokenBucketSolution, token_bucket

PACKET_BYTES = 307.8


def segments(payload_kbps: float, token_kbps: float, buffer: int, depth: float) -> TokenBucketSolution:
    return token_bucket(
        batches=PoissonBatches(payload_kbps * 1e3 / (8 * 1460), lattice.point(5)),
        token_time=8 * PACKET_BYTES / (token_kbps * 1e3),
        depth=depth,
        buffer=buffer,
    )


@pytest.mark.parametrize(
    ("payload", "tokens", "buffer", "load", "packet_loss", "segment_loss"),
    [
        (200, 250, 25, 0.8433, 0.019957, 0.037390),
        (200, 250, 15, 0.8433, 0.043106, 0.080756),
        (240, 250, 25, 1.0119, 0.076597, 0.137486),
        (200, 250, 5, 0.8433, 0.107036, 0.200245),
        (200, 250, 10, 0.8433, 0.066090, 0.123732),
        (160, 250, 10, 0.6746, 0.025510, 0.050225),
        (80, 250, 5, 0.3373, 0.006487, 0.014804),
    ],
)
def test_losses(
    payload: float, tokens: float, buffer: int, load: float, packet_loss: float, segment_loss: float
):
    solution = segments(payload, tokens, buffer, 9)
    assert float(solution.load) == pytest.approx(load, abs=5e-5)
    assert float(solution.packet_loss) == pytest.approx(packet_loss, abs=5e-7)
    assert float(solution.segment_loss) == pytest.approx(segment_loss, abs=5e-7)


def test_fractional_depth_is_interpolated_geometrically():
    solution = segments(80, 250, 5, 3000 / PACKET_BYTES)
    assert float(solution.packet_loss) == pytest.approx(0.004893, abs=5e-7)
    assert float(solution.segment_loss) == pytest.approx(0.010980, abs=5e-7)


def test_only_depth_plus_buffer_matters_for_loss_and_depth_shortens_the_wait():
    shallow, deep = segments(200, 250, 25, 9), segments(200, 250, 15, 19)
    assert float(shallow.packet_loss) == pytest.approx(float(deep.packet_loss), rel=1e-12)
    assert float(deep.mean_token_wait) < float(shallow.mean_token_wait)


def test_tokens_are_spent_at_the_accepted_rate():
    """Tokens accrue whenever the bucket is not full, one packet's worth in a token time."""
    solution = segments(240, 250, 25, 9)
    token_time = 8 * PACKET_BYTES / 250e3
    accrued = (1.0 - float(solution.occupancy[0])) / token_time
    assert accrued == pytest.approx(float(solution.accepted_rate), rel=1e-12)


def test_wait_without_loss_is_that_of_md1():
    """One token deep, single packets, large buffer: the wait for a token is the wait in M/D/1."""
    rate, token_time = 0.5, 1.0
    solution = token_bucket(batches=PoissonBatches(rate), token_time=token_time, depth=1, buffer=100)
    load = rate * token_time
    assert float(solution.mean_token_wait) == pytest.approx(load * token_time / (2 * (1 - load)), rel=1e-10)


def test_occupancy_is_a_law():
    occupancy = segments(240, 250, 25, 9).occupancy
    assert occupancy.shape == (35,)
    assert np.sum(occupancy) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"token_time": 0.0}, "token_time"), ({"depth": -1.0}, "depth"), ({"buffer": 2.5}, "buffer")],
)
def test_impossible_arguments_are_refused(change: dict[str, float], name: str):
    arguments = {"batches": PoissonBatches(1.0), "token_time": 1.0, "depth": 2.0, "buffer": 3, **change}
    with pytest.raises(ValueError, match=name):
        token_bucket(**arguments)
