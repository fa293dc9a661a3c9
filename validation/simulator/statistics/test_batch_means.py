import numpy as np
import pytest
from scipy import signal, stats

from btqueue.simulator.statistics.batch_means import interval


def autoregressive(length, runs, memory, mean, seed):
    """Independent stationary series x' = memory x + noise around a mean, shape (length, runs)."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=(length, runs))
    noise[0] /= np.sqrt(1 - memory**2)
    return mean + signal.lfilter([1.0], [1.0, -memory], noise, axis=0)


def test_the_interval_of_a_correlated_series_covers_the_mean_as_often_as_it_says():
    runs, mean = 600, 7.0
    result = interval(autoregressive(10_000, runs, 0.8, mean, seed=5))
    covered = np.sum(np.abs(result.mean - mean) <= result.half_width)
    # false-alarm rate 0.1 % if the coverage is 95 %
    low, high = stats.binom.interval(0.999, runs, 0.95)
    assert low <= covered <= high


def test_batches_by_hand():
    # batch means 2, 4, 9: mean 5, sample variance 13
    result = interval(np.array([1.0, 3.0, 4.0, 4.0, 8.0, 10.0]), batches=3)
    assert result.mean == 5.0
    assert result.half_width == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt(13 / 3))


def test_what_does_not_fill_the_batches_is_dropped_at_the_start():
    values = np.random.default_rng(1).normal(size=40)
    with_rest = interval(np.concatenate([[1e6, -1e6, 5e5], values]))
    assert with_rest.mean == pytest.approx(interval(values).mean)
    assert with_rest.half_width == pytest.approx(interval(values).half_width)


@pytest.mark.parametrize(("length", "batches"), [(19, 20), (100, 1), (0, 20)])
def test_too_few_values_or_batches_are_refused(length, batches):
    with pytest.raises(ValueError, match="do not fill"):
        interval(np.ones(length), batches=batches)
