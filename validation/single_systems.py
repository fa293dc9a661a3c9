"""The models of single systems, asked for themselves; what they do not cover is answered by stations."""

import xarray as xr

from btqueue.network.models import covering, problems
from btqueue.network.solve import gate
from btqueue.scenario import NotBuiltYet, Scenario
from btqueue.scenario.scope import in_tables


def require_model(scenario: Scenario) -> None:
    """Make sure that a model of a single system covers the scenario.

    Raises:
        NotBuiltYet: none does; it names what the model that comes closest does not cover.
    """
    if covering(in_tables(scenario)) is None:
        raise NotBuiltYet(problems(scenario))


def by_model(scenario: Scenario) -> xr.Dataset:
    """Return the answer of the model of a single system that covers the scenario.

    Raises:
        NotBuiltYet: none does.
        NoConvergence: it has no answer.
    """
    require_model(scenario)
    name = covering(in_tables(scenario))
    assert name is not None
    return gate(in_tables(scenario), name).to_dataset()
