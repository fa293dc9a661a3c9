"""Networks of one structure share their rows, and nothing of one scenario is left in another one."""

import json
import os
import signal
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from commands import python
from every_key import BASES, changes_of
from thesis import thesis

from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError
from btqueue.simulator import simulate, simulate_many
from btqueue.simulator.construction.state import POOLS, Skeleton, empty_network, keep
from btqueue.simulator.records.arrays import State
from btqueue.simulator.replications import Interrupted


def contents(scenario: Scenario) -> str:
    """Return the records of a network: as a replication begins with them, and as metrics read them."""
    keep.cache_clear()
    try:
        network = empty_network(scenario)
    except (ScenarioError, NotBuiltYet) as refused:
        return str(refused)
    whole = State(network.packed).arrays()
    given = {name: getattr(network.state, name) for name in network.state.apart}
    found = [
        {name: len(array) if name in POOLS else np.asarray(array).tolist() for name, array in arrays.items()}
        for arrays in (whole, given)
    ]
    return json.dumps(found, default=np.ndarray.tolist)


QUICK = ("chain", "wire with losses", "sessions", "link")
"""Bases whose keys are changed in every run of the tests; the others are for the long tests."""


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.long) for one in BASES]
)
def test_other_numbers_of_any_key_give_the_network_that_is_built_from_nothing(name):
    scenarios = [one for change in changes_of(name) for one in (change.after, change.before)]

    def built_anew(scenario):
        Skeleton.of.cache_clear()
        return contents(scenario)

    alone = [built_anew(scenario) for scenario in scenarios]
    Skeleton.of.cache_clear()
    for scenario, expected in zip(scenarios, alone, strict=True):
        same = contents(scenario) == expected  # pytest would show differences of long texts for minutes
        assert same, scenario.to_toml()
    found = Skeleton.of.cache_info()
    assert found.hits > found.misses, "most of the keys are numbers"


SHORT: dict[str, Any] = {"run__duration_s": 3.0, "run__warmup_s": 1.0, "run__replications": 3}
ONE_STRUCTURE = [
    thesis().with_(**SHORT, traffic__load_kbps=load, polling__limit=limit, run__seed=seed, radio__ber=ber)
    for load, limit, seed, ber in (
        (40.0, 2, 1, 0.0),
        (180.0, 9, 2, 2e-4),
        (90.0, 1, 3, 1e-3),
        (10.0, 30, 4, 0.0),
    )
]
ANOTHER = thesis().with_(**SHORT, network__peripherals=3, polling__limit=7)


def numbers(results) -> dict[str, Any]:
    return {name: np.asarray(one.values).tolist() for name, one in results.metrics.items()}


def in_a_process_of_its_own(scenario: Scenario) -> dict[str, Any]:
    code = (
        "import json, sys, numpy as np, btqueue as bt; "
        "found = bt.simulate(bt.Scenario.from_dict(json.loads(sys.argv[1]))).metrics; "
        "print(json.dumps({name: np.asarray(one.values).tolist() for name, one in found.items()}))"
    )
    done = python("-c", code, json.dumps(scenario.to_dict(resolved=False)), NUMBA_DISABLE_JIT="0")
    return json.loads(done.stdout)


def same(one: Any, other: Any) -> bool:
    return json.dumps(one) == json.dumps(other)  # NaN is equal to itself there


def interrupting():
    """Return a progress function that sends Ctrl-C once."""
    seen = []

    def progress(share):
        seen.append(share)
        if len(seen) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)

    return progress


def varied() -> Iterable[Scenario]:
    """Yield scenarios of one structure, again and again in another order, and one of another structure."""
    for turn in range(len(ONE_STRUCTURE)):
        yield from ONE_STRUCTURE[turn:] + ONE_STRUCTURE[:turn]
        yield ANOTHER


def test_scenarios_by_turns_and_in_threads_have_the_results_of_processes_of_their_own():
    expected = {id(one): in_a_process_of_its_own(one) for one in (*ONE_STRUCTURE, ANOTHER)}
    assert len({json.dumps(one) for one in expected.values()}) == len(expected), "numbers make a difference"
    for scenario in varied():
        with pytest.raises(ScenarioError):  # raised while the network is built
            simulate(scenario.with_(transport__mss_bytes=60_000, link__packets=["DM1"]))
        with pytest.raises(Interrupted):
            other = scenario.with_(traffic__load_kbps=170.0, run__replications=50)
            simulate(other, progress=interrupting())
        assert same(numbers(simulate(scenario)), expected[id(scenario)])
    several = list(varied())
    for scenario, found in zip(several, simulate_many(several, threads=4), strict=True):
        assert same(numbers(found), expected[id(scenario)])
