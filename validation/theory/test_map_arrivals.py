"""Markovian arrivals against renewal theory, textbook formulas and brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btqueue.queueing.laws import lattice, phase_type_fit
from btqueue.queueing.traffic import map_sources
from btqueue.queueing.traffic.map_arrivals import ContinuousMap, DiscreteMap, superpose


@pytest.mark.parametrize(
    ("rate", "scv", "stop", "go"),
    [
        (0.01, 1.0, 0.985025126, 0.009949749),
        (0.01, 50.0, 0.038442832, 0.000388311),
        (0.1, 50.0, 0.031827112, 0.003536346),
        (0.3, 1.0, 0.576470588, 0.247058824),
    ],
)
def test_interrupted_bernoulli_has_the_rate_and_scv_asked_for(
    rate: float, scv: float, stop: float, go: float
):
    source = map_sources.interrupted_bernoulli(rate, scv)
    phases = np.asarray(source.blocks).sum(axis=0)
    assert phases[0, 1] == pytest.approx(stop, abs=5e-10)
    assert phases[1, 0] == pytest.approx(go, abs=5e-10)
    assert float(source.packet_rate) == pytest.approx(rate, rel=1e-13)
    gaps = source.gaps()
    assert float(gaps.mean) == pytest.approx(1 / rate, rel=1e-12)
    assert float(gaps.scv) == pytest.approx(scv, rel=1e-11)
    # a renewal process: gaps do not depend on each other, and counts disperse as the gaps do
    assert float(source.gap_correlation(1)) == pytest.approx(0.0, abs=1e-13)
    assert float(source.index_of_dispersion) == pytest.approx(scv, rel=1e-11)


def test_gaps_of_interrupted_bernoulli_have_their_generating_function():
    source = map_sources.interrupted_bernoulli(0.2, 4.0)
    stop, go = np.asarray(source.blocks).sum(axis=0)[[0, 1], [1, 0]]
    z = 0.6
    expected = z * ((1 - stop) + stop * go * z / (1 - (1 - go) * z))
    law = source.gaps().law(120)
    assert np.asarray(law.probabilities) @ z ** np.arange(120) == pytest.approx(expected, rel=1e-13)


def test_bernoulli_is_the_interrupted_one_that_never_is():
    source = map_sources.interrupted_bernoulli(0.3, 0.7)
    counts = source.count_law(10, 11)
    np.testing.assert_allclose(counts.probabilities, stats.binom.pmf(np.arange(11), 10, 0.3), rtol=1e-11)
    assert float(source.slot_correlation(1)) == pytest.approx(0.0, abs=1e-14)


def test_two_states_forget_geometrically():
    bad_to_good = map_sources.two_state_transition(40.0, 8.0)
    source = map_sources.modulated_bernoulli(bad_to_good, [0.1, 0.8])
    memory = 1 - 1 / 40 - 1 / 8
    share = np.array([40, 8]) / 48
    mean = share @ [0.1, 0.8]
    spread = share @ np.array([0.1, 0.8]) ** 2 - mean**2
    for lag in (1, 2, 7):
        expected = spread * memory**lag / (mean * (1 - mean))
        assert float(source.slot_correlation(lag)) == pytest.approx(expected, rel=1e-12)
    assert float(source.slot_correlation(0)) == 1.0
    expected = (mean * (1 - mean) + 2 * spread * memory / (1 - memory)) / mean
    assert float(source.index_of_dispersion) == pytest.approx(expected, rel=1e-12)


def test_index_of_dispersion_of_two_poisson_states():
    # Heffes & Lucantoni (1986), limit of I(t)
    out, back, low, high = 0.3, 0.7, 0.5, 4.0
    source = map_sources.modulated_poisson(map_sources.two_state_generator(1 / out, 1 / back), [low, high])
    expected = 1 + 2 * out * back * (low - high) ** 2 / ((out + back) ** 2 * (low * back + high * out))
    assert float(source.index_of_dispersion) == pytest.approx(expected, rel=1e-12)
    assert float(source.packet_rate) == pytest.approx((low * back + high * out) / (out + back), rel=1e-13)
    assert float(source.gap_correlation(1)) > 0.01


def test_interrupted_poisson_gaps_are_hyperexponential():
    # Kuczura (1973): on with rate 2, off to on 0.5, on to off 0.8
    source = map_sources.modulated_poisson([[-0.8, 0.8], [0.5, -0.5]], [2.0, 0.0])
    mean = (0.8 + 0.5) / (2.0 * 0.5)
    assert float(source.gaps().mean) == pytest.approx(mean, rel=1e-13)
    assert float(source.gaps().scv) == pytest.approx(1 + 2 * 0.8 * 2.0 / (0.8 + 0.5) ** 2, rel=1e-12)
    assert float(source.gap_correlation(3)) == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("batch", [(0.0, 1.0), (0.0, 0.25, 0.25, 0.5)])
def test_batches_multiply_rate_and_dispersion(batch: tuple[float, ...]):
    sizes = np.array(batch)
    mean, second = float(lattice.mean(sizes)), float(lattice.second_moment(sizes))
    poisson = map_sources.poisson(0.7, batch)
    assert float(poisson.packet_rate) == pytest.approx(0.7 * mean, rel=1e-14)
    assert float(poisson.batch_rate) == pytest.approx(0.7, rel=1e-14)
    assert float(poisson.index_of_dispersion) == pytest.approx(second / mean, rel=1e-13)
    np.testing.assert_allclose(poisson.batch_size, batch, atol=1e-16)
    slots = map_sources.bernoulli(0.3, batch)
    assert float(slots.index_of_dispersion) == pytest.approx((second - 0.3 * mean**2) / mean, rel=1e-13)


def test_counts_keep_their_tail():
    source = map_sources.interrupted_bernoulli(0.3, 5.0, [0.0, 0.5, 0.0, 0.5])
    known, whole = source.count_law(12, 10), source.count_law(12, 37)
    np.testing.assert_allclose(known.probabilities, whole.probabilities[:10], rtol=1e-13)
    assert float(known.tail) == pytest.approx(np.asarray(whole.probabilities)[10:].sum(), rel=1e-12)
    assert float(whole.tail) == 0.0
    assert float(lattice.mean(whole.probabilities)) == pytest.approx(12 * 0.3 * 2.0, rel=1e-12)


def test_variance_of_long_counts_tends_to_the_index_of_dispersion():
    source = map_sources.modulated_bernoulli([[0.8, 0.2], [0.3, 0.7]], [0.1, 0.6])
    short, long = (float(lattice.variance(source.count_law(n, n + 1).probabilities)) for n in (60, 120))
    # once the memory (0.5 a slot) is gone, the variance grows linearly
    assert (long - short) / 60 / float(source.packet_rate) == pytest.approx(
        float(source.index_of_dispersion), rel=1e-9
    )


@settings(deadline=None, derandomize=True, max_examples=5)
@given(st.integers(0, 10**6))
def test_superposition_adds_rates_and_variances(seed: int):
    rng = np.random.default_rng(seed)
    pair = [DiscreteMap(rng.dirichlet(np.ones(9), size=3).reshape(3, 3, 3).swapaxes(0, 1)) for _ in range(2)]
    both = superpose(*pair)
    rates = [float(part.packet_rate) for part in pair]
    assert float(both.packet_rate) == pytest.approx(sum(rates), rel=1e-12)
    variances = sum(rate * float(part.index_of_dispersion) for rate, part in zip(rates, pair, strict=True))
    assert float(both.packet_rate) * float(both.index_of_dispersion) == pytest.approx(variances, rel=1e-11)


def test_superposed_poisson_is_poisson():
    both = superpose(map_sources.poisson(0.4), map_sources.poisson(0.5, [0.0, 0.0, 1.0]))
    assert float(both.packet_rate) == pytest.approx(1.4, rel=1e-14)
    np.testing.assert_allclose(both.batch_size, [0, 4 / 9, 5 / 9], rtol=1e-14)


@pytest.mark.parametrize("discrete", [True, False])
def test_renewal_process_repeats_its_gap(discrete: bool):
    gap = phase_type_fit.fit_discrete(4.0, 0.3) if discrete else phase_type_fit.fit(4.0, 0.3)
    source = map_sources.renewal(gap)
    assert float(source.packet_rate) == pytest.approx(0.25, rel=1e-13)
    assert float(source.gaps().moment(3)) == pytest.approx(float(gap.moment(3)), rel=1e-12)
    assert float(source.index_of_dispersion) == pytest.approx(0.3, rel=1e-11)
    assert float(source.gap_correlation(2)) == pytest.approx(0.0, abs=1e-13)
    assert float(source.gap_correlation(0)) == pytest.approx(1.0, rel=1e-13)


def test_gradients_and_batches():
    with jax.enable_x64(True):

        def figures(rate: jax.Array, scv: jax.Array) -> jax.Array:
            source = map_sources.interrupted_bernoulli(rate, scv)
            return source.gaps().moment(3) * rate**3 + source.index_of_dispersion + source.slot_correlation(2)

        solve = jax.jit(jax.value_and_grad(figures, argnums=(0, 1)))  # one compilation
        step = 1e-6
        for which, slope in enumerate(solve(0.2, 3.0)[1]):
            at = [np.array([0.2, 3.0]) + sign * step * np.eye(2)[which] for sign in (1, -1)]
            assert float(slope) == pytest.approx(
                float(solve(*at[0])[0] - solve(*at[1])[0]) / (2 * step), rel=1e-6
            )
        many = jax.vmap(lambda scv: map_sources.interrupted_bernoulli(0.2, scv).gaps().scv)(
            jnp.array([1.0, 9.0])
        )
        np.testing.assert_allclose(many, [1.0, 9.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: DiscreteMap(np.ones((1, 2, 2))), "shape"),
        (lambda: DiscreteMap([[[0.5]], [[0.4]]]), "sum to one"),
        (lambda: DiscreteMap([[[1.0]], [[0.0]]]), "no arrivals"),
        (lambda: DiscreteMap([0.5 * np.eye(2), 0.5 * np.eye(2)]), "reducible"),
        (lambda: DiscreteMap([[[1.2]], [[-0.2]]]), "negative"),
        (lambda: ContinuousMap([[[-1.0]], [[0.9]]]), "sum to zero"),
        (lambda: ContinuousMap([[[-1.0, -0.5], [0.0, -1.0]], [[1.5, 0.0], [1.0, 0.0]]]), "negative"),
        (lambda: map_sources.interrupted_bernoulli(1.0, 1.0), "rate"),
        (lambda: map_sources.interrupted_bernoulli(0.1, 0.1), "scv must be at least 0.72"),
        (lambda: map_sources.modulated_bernoulli(np.eye(1), [1.2]), "probabilities"),
        (lambda: map_sources.modulated_poisson(np.zeros((1, 1)), [1.0, 2.0]), "rates"),
        (lambda: map_sources.two_state_transition(0.5, 2.0), "mean_first"),
        (lambda: map_sources.two_state_generator(0.5, 0.0), "mean_second"),
        (lambda: map_sources.poisson(1.0, [0.5, 0.5]), "batch_size"),
        (lambda: superpose(map_sources.poisson(1.0), map_sources.bernoulli(0.5)), "both"),
    ],
)
def test_impossible_arrivals_are_refused(call, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        call()
