"""Automatic repeat request: closed forms, exact values (each confirmed by simulation), limits, gradients.

The fading link is a five-slot packet and a one-slot reply on a two-state channel with error rates 6.8979e-5
and 1.263e-3 and mean sojourns of 437.5 and 55.8 ms, all bits on air counted.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.typing import ArrayLike
from scipy import stats

from btqueue.baseband import PACKET_TYPES, packet_type
from btqueue.channel import TwoStateChannel, packet_error_rate, reply_error_rate
from btqueue.network.arq_service import arq_link, fading_arq_link, goodput_kbps, reception
from btqueue.queueing.laws import lattice
from btqueue.queueing.links import arq
from btqueue.queueing.links.arq_service import flushed_transfer, service_law

CHANNEL = TwoStateChannel(ber_good=6.8979e-5, ber_bad=1.263e-3, good_s=0.4375, bad_s=0.0558)
DH5 = packet_type("DH5")
FADING = fading_arq_link(DH5, CHANNEL)
EVEN = np.array([0.5, 0.5])
ALONE = np.ones(1)
"""The only state of a memoryless link."""
GOOD, POOR = (0.99, 0.83, 0.98), (0.9, 0.3, 0.8)


def memoryless(
    chances: tuple[float, float, float], slots: int = 5, reply: int | ArrayLike = 1
) -> arq.ArqLink:
    detected, intact, acknowledged = chances
    return arq.memoryless_link(
        detected=detected, intact=intact, acknowledged=acknowledged, slots=slots, reply=reply
    )


@pytest.mark.parametrize(
    ("chances", "limit", "mean", "delivered"),
    [
        (GOOD, None, 1.237603, 1.0),
        (GOOD, 3, 1.229945, 0.994332),
        (POOR, None, 3.981481, 1.0),
        (POOR, 3, 2.371440, 0.610983),
        (POOR, 6, 3.353805, 0.848666),
    ],
)
def test_attempts_without_memory(chances, limit: int | None, mean: float, delivered: float):
    result = arq.attempts(memoryless(chances), ALONE, limit)
    assert float(result.mean) == pytest.approx(mean, abs=5.1e-7)
    assert float(result.delivered) == pytest.approx(delivered, abs=5.1e-7)
    if limit is None:
        assert float(result.mean) == pytest.approx(arq.expected_attempts(*chances), rel=1e-14)
    else:
        exact = arq.limited_delivery(chances[0], chances[1], limit)
        assert float(result.delivered) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize(("chances", "second"), [(GOOD, 1.817192), (POOR, 26.282579)])
def test_second_moment_of_attempts(chances, second: float):
    assert float(arq.attempts(memoryless(chances), ALONE).second_moment) == pytest.approx(second, abs=5.1e-7)


@pytest.mark.parametrize(("timeout", "completed"), [(36, 0.673999), (60, 0.995486)])
def test_flush_timeout_of_five_packets(timeout: int, completed: float):
    transfer = flushed_transfer(memoryless(GOOD), ALONE, 5, timeout)
    assert float(transfer.completed) == pytest.approx(completed, abs=5.1e-7)
    assert float(np.sum(transfer.acknowledged)) == pytest.approx(1.0, abs=1e-13)
    assert float(np.sum(transfer.service)) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize(
    ("limit", "mean", "delivered"),
    [(None, 1.355990, 1.0), (3, 1.290138, 0.951436), (10, 1.343297, 0.990639)],
)
def test_saturated_sender_on_a_fading_link(limit: int | None, mean: float, delivered: float):
    start = arq.saturated_start(FADING, limit)
    result = arq.attempts(FADING, start, limit)
    assert float(result.mean) == pytest.approx(mean, abs=5.1e-7)
    assert float(result.delivered) == pytest.approx(delivered, abs=5.1e-7)
    np.testing.assert_allclose(
        result.left_in, start, atol=1e-14
    )  # the next packet starts where this one ended


def test_second_moment_on_a_fading_link():
    result = arq.attempts(FADING, arq.saturated_start(FADING))
    assert float(result.second_moment) == pytest.approx(5.11152, abs=5.1e-6)


@pytest.mark.parametrize("limit", [None, 1, 2, 5, 10])
def test_saturated_goodput_hardly_depends_on_the_limit(limit: int | None):
    """Exactly so if detection did not depend on the state; here it does by 2e-7."""
    assert float(goodput_kbps(DH5, FADING, limit=limit)) == pytest.approx(533.337, abs=5.1e-4)


def test_saturated_goodput_is_that_of_the_mean_success_when_detection_is_certain():
    slow, fast = [
        arq.fading_link(
            slot_transition=np.array([[1 - p, p], [3 * p, 1 - 3 * p]]),
            detected=np.array([1.0, 1.0]),
            intact=np.array([0.9, 0.2]),
            acknowledged=np.array([1.0, 1.0]),
            slots=3,
        )
        for p in (1e-3, 0.2)
    ]
    for link in (slow, fast):
        for limit in (None, 2, 7):
            assert float(arq.saturated_goodput(link, limit)) == pytest.approx((0.675 + 0.05) / 4, rel=1e-12)
    second = [float(arq.attempts(link, arq.saturated_start(link)).second_moment) for link in (slow, fast)]
    assert second[0] > second[1]  # burstiness shows in the variance


@pytest.mark.parametrize(
    ("name", "kbps"),
    [
        ("DM1", (108.798, 108.607, 92.271)),
        ("DH1", (168.702, 135.900, 15.398)),
        ("DM3", (387.159, 383.149, 146.041)),
        ("DH3", (504.228, 131.082, 0.000)),
        ("DM5", (477.774, 468.799, 80.823)),
        ("DH5", (549.644, 46.444, 0.000)),
    ],
)
def test_goodput_of_the_packet_types(name: str, kbps: tuple[float, ...]):
    packet = packet_type(name)
    found = [float(goodput_kbps(packet, arq_link(packet, ber))) for ber in (1e-4, 1e-3, 1e-2)]
    assert found == pytest.approx(kbps, abs=5.1e-4)


@pytest.mark.parametrize("name", ["DM1", "DH5", "2-DH3"])
@pytest.mark.parametrize("bits", ["payload", "on-air"])
def test_reception_is_the_complement_of_the_error_rates(name: str, bits):
    packet, bers = PACKET_TYPES[name], np.array([0.0, 1e-6, 1e-4, 1e-2, 0.1])
    chances = reception(packet, bers, bits=bits)
    np.testing.assert_allclose(
        chances.detected * chances.intact,
        1.0 - packet_error_rate(packet, bers, bits=bits),
        rtol=1e-10,
        atol=1e-15,
    )
    replies = 1.0 - reply_error_rate(bers) if bits == "on-air" else np.ones(5)
    np.testing.assert_allclose(chances.acknowledged, replies, rtol=1e-12)


def test_generating_function_is_that_of_the_law():
    z, detected, intact, acknowledged = sympy.symbols("z h s r", positive=True)
    generating = arq.attempts_pgf(z, detected, intact, acknowledged)
    mean = sympy.simplify(sympy.diff(generating, z).subs(z, 1))
    assert sympy.simplify(mean - arq.expected_attempts(detected, intact, acknowledged)) == 0
    law = arq.attempts_law(memoryless(POOR), ALONE, 60).probabilities
    value = float(arq.attempts_pgf(0.5, *POOR))
    assert float(law @ 0.5 ** np.arange(60.0)) == pytest.approx(value, rel=1e-13)


def test_service_with_random_replies_has_the_compound_law():
    """Without memory the slots are a random number of independent frames."""
    reply = np.array([0.0, 0.6, 0.0, 0.4])
    law = service_law(memoryless(GOOD, 3, reply), ALONE, 200)
    counts = arq.attempts_law(memoryless(GOOD), ALONE, 40).probabilities
    frames = np.array([0.0, 0.0, 0.0, 0.0, 0.6, 0.0, 0.4])
    np.testing.assert_allclose(
        law.probabilities, lattice.compound(counts, frames, 200).probabilities, atol=1e-15
    )
    assert float(law.tail) < 1e-14


def test_mean_service_is_attempts_times_frames_on_a_fading_link():
    """Wald's identity: a reply's length does not look ahead."""
    link = fading_arq_link(DH5, CHANNEL, reply=np.array([0.0, 0.5, 0.0, 0.5]))
    start = arq.saturated_start(link, 8)
    law = service_law(link, start, 8 * 8 + 1, 8)
    assert float(law.tail) < 1e-12
    assert float(lattice.mean(law.probabilities)) == pytest.approx(
        7.0 * float(arq.attempts(link, start, 8).mean), rel=1e-12
    )
    attempts = arq.attempts_law(link, start, 9, 8)
    assert float(np.sum(attempts.probabilities)) == pytest.approx(1.0, abs=1e-12)
    assert float(attempts.tail) == 0.0
    assert float(lattice.mean(attempts.probabilities)) == pytest.approx(
        float(arq.attempts(link, start, 8).mean), rel=1e-12
    )


@settings(deadline=None, max_examples=15)
@given(
    chances=st.tuples(*[st.floats(0.05, 1.0)] * 3),
    stay=st.floats(0.5, 0.999),
    worse=st.floats(0.1, 1.0),
)
def test_laws_and_moments_agree(chances, stay: float, worse: float):
    detected, intact, acknowledged = chances
    link = arq.fading_link(
        slot_transition=np.array([[stay, 1 - stay], [1 - stay, stay]]),
        detected=np.array([detected, detected * worse]),
        intact=np.array([intact, intact * worse]),
        acknowledged=np.array([acknowledged, acknowledged]),
        slots=1,
    )
    law = arq.attempts_law(link, EVEN, 31, 30).probabilities
    result = arq.attempts(link, EVEN, 30)
    assert float(np.sum(law)) == pytest.approx(1.0, abs=1e-12)
    assert (np.asarray(law) >= 0).all()
    assert float(lattice.mean(law)) == pytest.approx(float(result.mean), rel=1e-10)
    assert float(lattice.second_moment(law)) == pytest.approx(float(result.second_moment), rel=1e-10)
    assert float(np.sum(result.left_in)) == pytest.approx(1.0, abs=1e-12)


def test_fading_link_against_simulation():
    """Frame by frame with the rules of the receiver; seed 7, false alarm 1e-4 for all six means together."""
    chances = reception(DH5, CHANNEL.bers)
    forward, back = CHANNEL.transition(5 * 625e-6), CHANNEL.transition(625e-6)
    draw, runs, limit = np.random.default_rng(7), 400_000, 4
    link = FADING
    start = np.asarray(arq.saturated_start(link, limit))
    state = (draw.random(runs) < start[1]).astype(int)
    number, has, ended = np.zeros(runs), np.zeros(runs, bool), np.zeros(runs, bool)
    for _ in range(limit):
        number += ~ended
        state = np.where(ended, state, (draw.random(runs) < forward[state, 1]).astype(int))
        heard = ~ended & (draw.random(runs) < np.asarray(chances.detected)[state])
        has |= heard & (draw.random(runs) < np.asarray(chances.intact)[state])
        state = np.where(ended, state, (draw.random(runs) < back[state, 1]).astype(int))
        ended |= heard & has & (draw.random(runs) < np.asarray(chances.acknowledged)[state])
    result = arq.attempts(link, start, limit)
    limit_z = stats.norm.isf(1e-4 / 4 / 2)
    for sample, exact in [
        (number, result.mean),
        (number**2, result.second_moment),
        (has, result.delivered),
        (state, result.left_in[1]),
    ]:
        error = sample.std() / np.sqrt(runs)
        assert abs(sample.mean() - float(exact)) < limit_z * error


def test_gradients():
    def value(detected: ArrayLike, intact: ArrayLike, acknowledged: ArrayLike, stay: ArrayLike) -> jax.Array:
        other = 1.0 - jnp.asarray(stay)
        link = arq.fading_link(
            slot_transition=jnp.asarray([[stay, other], [other, stay]]),
            detected=jnp.asarray([detected, 0.8]),
            intact=jnp.asarray([intact, 0.3]),
            acknowledged=jnp.asarray([acknowledged, 0.7]),
            slots=3,
        )
        start = arq.saturated_start(link, 3)
        transfer = flushed_transfer(link, start, 2, 20)
        return arq.saturated_goodput(link) + arq.attempts(link, start, 3).second_moment + transfer.completed

    at = (0.95, 0.8, 0.9, 0.97)
    with jax.enable_x64(True):
        slopes = jax.jit(jax.grad(value, argnums=(0, 1, 2, 3)))(*at)
        compiled = jax.jit(value)
        for place, slope in enumerate(slopes):
            step = np.eye(4)[place] * 1e-5
            difference = (compiled(*(at + step)) - compiled(*(at - step))) / 2e-5
            assert float(slope) == pytest.approx(float(difference), rel=1e-6)
        goodput = jax.jit(lambda ber: goodput_kbps(DH5, arq_link(DH5, ber)))
        slope = float(jax.grad(goodput)(1e-4))
        assert slope == pytest.approx(float(goodput(1.001e-4) - goodput(0.999e-4)) / 2e-7, rel=1e-5)
        several = jax.vmap(goodput)(jnp.asarray([1e-4, 1e-3]))
    np.testing.assert_allclose(several, [549.644, 46.444], atol=5.1e-4)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"detected": 1.2}, "detected"),
        ({"intact": -0.1}, "intact"),
        ({"slots": 0}, "slots"),
        ({"reply": [0.5, 0.4]}, "reply"),
    ],
)
def test_impossible_arguments_are_refused(change, name: str):
    arguments = {"detected": 0.9, "intact": 0.9, "acknowledged": 0.9, "slots": 1, **change}
    with pytest.raises(ValueError, match=name):
        arq.memoryless_link(**arguments)
