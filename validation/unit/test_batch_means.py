import numpy as np
import pytest
from scipy import signal, stats

from btqueue.simulator.batch_means import batch_observations, interval, relative_half_width

METHODS = ["overlapping", "non-overlapping"]


def autoregressive(length, runs, memory, mean, seed):
    """Independent stationary series x' = memory x + noise around a mean, shape (length, runs)."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=(length, runs))
    noise[0] /= np.sqrt(1 - memory**2)
    return mean + signal.lfilter([1.0], [1.0, -memory], noise, axis=0)


@pytest.mark.parametrize("method", METHODS)
def test_the_interval_of_a_correlated_series_covers_the_mean_as_often_as_it_says(method):
    runs, mean = 600, 7.0
    result = interval(autoregressive(10_000, runs, 0.8, mean, seed=5), method)
    covered = np.sum(np.abs(result.mean - mean) <= result.half_width)
    # false-alarm rate 0.1 % if the coverage is 95 %
    low, high = stats.binom.interval(0.999, runs, 0.95)
    assert low <= covered <= high


def test_taking_correlated_values_for_independent_would_be_noticed():
    runs, mean = 600, 7.0
    series = autoregressive(10_000, runs, 0.8, mean, seed=5)
    half_width = 1.96 * series.std(axis=0, ddof=1) / 100
    assert (
        np.sum(np.abs(series.mean(axis=0) - mean) <= half_width) < stats.binom.interval(0.999, runs, 0.95)[0]
    )


def test_batches_side_by_side_by_hand():
    # batch means 2, 4, 9: mean 5, sample variance 13
    result = interval(np.array([1.0, 3.0, 4.0, 4.0, 8.0, 10.0]), "non-overlapping", batches=3)
    assert result.mean == 5.0
    assert result.half_width == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt(13 / 3))


def test_overlapping_batches_by_hand():
    # batches of two: means 2, 3.5, 4, 6, 9 around 5
    values = np.array([1.0, 3.0, 4.0, 4.0, 8.0, 10.0])
    squares = 9 + 2.25 + 1 + 1 + 16
    variance = 2 / (5 * 4) * squares
    result = interval(values, "overlapping", batches=3)
    assert result.half_width == pytest.approx(stats.t.ppf(0.975, 3) * np.sqrt(variance))


@pytest.mark.parametrize("method", METHODS)
def test_what_does_not_fill_the_batches_is_dropped_at_the_start(method):
    values = np.random.default_rng(1).normal(size=40)
    with_rest = interval(np.concatenate([[1e6, -1e6, 5e5], values]), method)
    assert with_rest.mean == pytest.approx(interval(values, method).mean)
    assert with_rest.half_width == pytest.approx(interval(values, method).half_width)


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_series_has_no_uncertainty(method):
    result = interval(np.full((100, 2), 3.0), method)
    assert np.all(result.mean == 3.0)
    assert np.all(result.half_width == 0.0)
    assert relative_half_width(np.full(100, 3.0), method) == 0.0


def test_a_mean_of_zero_has_no_relative_width():
    assert relative_half_width(np.tile([-1.0, 1.0], 50)) == np.inf


@pytest.mark.parametrize(("length", "batches"), [(19, 20), (100, 1), (0, 20)])
def test_too_few_values_or_batches_are_refused(length, batches):
    with pytest.raises(ValueError, match="do not fill"):
        interval(np.ones(length), batches=batches)


def test_observations_are_means_of_stretches():
    series = np.arange(14.0).reshape(7, 2)
    assert batch_observations(series, 3).tolist() == [[3.0, 4.0], [7.0, 8.0], [11.0, 12.0]]
    with pytest.raises(ValueError, match="do not fill"):
        batch_observations(series, 8)
