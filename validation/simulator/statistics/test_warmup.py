import numpy as np
import pytest

from btqueue.simulator.statistics.warmup import find_warm_up, marginal_standard_errors


def noisy(mean, seed=3):
    return mean + np.random.default_rng(seed).normal(scale=0.5, size=len(mean))


def test_a_start_from_far_away_is_cut_off_where_it_ends():
    series = noisy(np.where(np.arange(1000) < 100, 0.0, 10.0))
    # the step is twenty standard deviations high: no cut but the one just at it is close to best
    assert find_warm_up(series, step_s=0.1) == pytest.approx(10.0)


def test_a_stationary_series_loses_little():
    """By chance the rule drops more than a fifth of one series in 800 (counted over 10,000 of them).

    More than 3 in 100 have a probability of 1e-5.
    """
    random = np.random.default_rng(11)
    cuts = [find_warm_up(random.normal(size=1000), 1.0) for _ in range(100)]
    assert sum(cut is None or cut > 200 for cut in cuts) <= 3


@pytest.mark.parametrize("late", [0.1 * np.arange(1000), np.where(np.arange(1000) < 700, 0.0, 10.0)])
def test_a_series_that_grows_or_changes_in_its_second_half_has_no_stationary_part(late):
    assert find_warm_up(noisy(late), step_s=0.1) is None


def test_marginal_standard_errors_are_those_of_their_definition():
    series = np.random.default_rng(2).normal(50, 1, size=63)
    batches = series[:60].reshape(12, 5).mean(axis=1)
    expected = [np.sum((batches[d:] - batches[d:].mean()) ** 2) / (12 - d) ** 2 for d in range(7)]
    np.testing.assert_allclose(marginal_standard_errors(series), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("series", "words"),
    [
        *((short, "at least 50") for short in (np.ones(49), np.ones((50, 2)), np.array([]))),
        (np.append(np.ones(60), np.nan), "not numbers"),
    ],
)
def test_too_little_to_judge_and_missing_values_are_refused(series, words):
    with pytest.raises(ValueError, match=words):
        find_warm_up(series, 0.1)
