"""The residual life of a renewal process at a given age."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.residual_renewal import mean_renewals_before, renewal_mass, residual_laws

TWO_OR_THREE = lattice.from_points({2: 0.4, 3: 0.6})


def by_definition(spacing, age):
    """Pr(R = r | A = age) = sum_{j < age} u_j f(age - j + r), from the renewal mass by its recursion."""
    mass = [1.0]
    for time in range(1, age + 1):
        mass.append(sum(spacing[k] * mass[time - k] for k in range(1, min(time, len(spacing) - 1) + 1)))
    law = np.zeros(len(spacing))
    for j in range(age):
        for residual in range(len(spacing)):
            if age - j + residual < len(spacing):
                law[residual] += mass[j] * spacing[age - j + residual]
    return law, np.array(mass)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5), st.integers(1, 11))
def test_laws_are_those_of_the_definition(weights, age):
    weights = np.pad(weights, (0, 5 - len(weights)))
    spacing = np.concatenate([[0.0], weights / weights.sum()])
    law, mass = by_definition(spacing, age)
    found = residual_laws(spacing, 12)[age]
    assert found == pytest.approx(law[: len(found)], abs=1e-15)
    assert law[len(found) :].sum() == pytest.approx(0.0, abs=1e-15)
    assert renewal_mass(spacing, 12)[: age + 1] == pytest.approx(mass, abs=1e-15)


def test_laws_sum_to_one():
    assert residual_laws(TWO_OR_THREE, 500).sum(axis=1) == pytest.approx(np.ones(500), abs=1e-12)


def test_old_processes_have_the_equilibrium_residual():
    old = residual_laws(TWO_OR_THREE, 300)[-1]
    # a renewal at the age itself counts as 0: residual r there is r + 1 slots seen from the slot before
    assert old[:3] == pytest.approx(np.asarray(lattice.equilibrium_residual(TWO_OR_THREE))[:3], abs=1e-12)
    assert renewal_mass(TWO_OR_THREE, 300)[-1] == pytest.approx(1 / 2.6, abs=1e-12)


def test_geometric_spacing_has_no_memory():
    law = lattice.geometric(4.0)
    found = residual_laws(law, 20)
    assert found[1:, :40] == pytest.approx(np.tile(0.25 * 0.75 ** np.arange(40), (19, 1)), abs=1e-12)
    assert renewal_mass(law, 20)[1:] == pytest.approx(np.full(19, 0.25), abs=1e-12)


def test_a_constant_spacing_is_a_clock():
    found = residual_laws(lattice.point(3), 8)
    assert np.argmax(found, axis=1).tolist() == [3, 2, 1, 0, 2, 1, 0, 2]
    assert mean_renewals_before(found).tolist() == [0, 0, 0, 0, 1, 1, 1, 2]


def test_a_first_time_of_its_own():
    # a first spacing without its two wasted slots is the same process seen two slots later
    tour = lattice.from_points({2: 0.5, 5: 0.5})
    spacing = np.concatenate([[0.0, 0.0], tour])
    delayed = residual_laws(spacing, 30, first=tour)
    assert delayed == pytest.approx(np.asarray(residual_laws(spacing, 32))[2:, : delayed.shape[1]], abs=1e-15)
    assert residual_laws(TWO_OR_THREE, 5, first=lattice.point(0))[1] == pytest.approx([0.0, 0.4, 0.6][:3])


def test_renewals_add_up():
    # by Wald, the last renewal before or at age a plus the residual: E[N] E[f] = a + E[R]
    laws = residual_laws(TWO_OR_THREE, 60)
    ages = np.arange(1, 60)
    renewals = np.asarray(mean_renewals_before(laws))[1:] + 1.0  # up to and with the first at or after a
    assert renewals * 2.6 == pytest.approx(ages + np.asarray(lattice.mean(laws))[1:], rel=1e-13)


def test_gradient():
    def mean_residual(share):
        spacing = jnp.array([0.0, 0.0, 1.0, 0.0]) * share + jnp.array([0.0, 0.0, 0.0, 1.0]) * (1 - share)
        return lattice.mean(residual_laws(spacing, 10)[9])

    with jax.enable_x64(True):
        slope = jax.grad(mean_residual)(0.4)
        step = 1e-5
        difference = (mean_residual(0.4 + step) - mean_residual(0.4 - step)) / 2 / step
        assert float(slope) == pytest.approx(float(difference), rel=1e-6)


@pytest.mark.parametrize(
    ("spacing", "ages", "message"),
    [
        ([0.5, 0.5], 5, "spacing must give no probability to zero"),
        ([0.0, 0.5], 5, "spacing must sum to one"),
        ([0.0, 1.0], 0, "number of ages"),
    ],
)
def test_bad_arguments_are_named(spacing, ages, message):
    with pytest.raises(ValueError, match=message):
        residual_laws(np.array(spacing), ages)
