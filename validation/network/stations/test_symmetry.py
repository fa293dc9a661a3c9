"""Flows that are equal by symmetry have one answer, and the answer is that of asking each of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesis import thesis

from btqueue.network.stations import laws
from btqueue.network.stations.model import answer
from btqueue.network.stations.network import alike, network_of
from btqueue.scenario.traits import in_tables


def classes(**changes) -> list[int]:
    return alike(network_of(in_tables(thesis().with_(**changes))))


def test_another_load_or_direction_is_another_class():
    flows: list[dict] = [{"from": "c1", "to": f"p1.{n}"} for n in range(1, 5)]
    flows[2]["load_kbps"] = 5.0
    assert classes(network__peripherals=4, network__flows=flows) == [0, 0, 2, 0]
    mixed = [*flows[:2], {"from": "p1.3", "to": "c1"}, {"from": "p1.4", "to": "c1"}]
    assert classes(network__peripherals=4, network__flows=mixed) == [0, 0, 2, 2]
    both = [
        flow for n in (1, 2) for flow in ({"from": "c1", "to": f"p1.{n}"}, {"from": f"p1.{n}", "to": "c1"})
    ]
    assert classes(network__peripherals=2, network__flows=both) == [0, 1, 0, 1]


@settings(max_examples=12, deadline=None)
@given(
    st.integers(2, 6), st.sampled_from(["ring", "downlink", "uplink"]), st.floats(10.0, 150.0),
    st.sampled_from(["poisson", "greedy", "periodic"]), st.sampled_from([1, 5]), st.sampled_from([0.0, 2e-5]),
)  # fmt: skip
def test_the_answer_is_that_of_asking_every_flow(stations, flows, load, source, limit, ber):
    scenario = in_tables(
        thesis(radio={"model": "constant", "ber": ber}, link={"arq": "unlimited"}).with_(
            network__peripherals=stations, network__flows=flows, traffic__load_kbps=load,
            traffic__source=source, polling__limit=limit,
        )
    )  # fmt: skip
    grouped = answer(scenario)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laws, "alike", lambda network: list(range(len(network.flows))))
        each = answer(scenario)[0]
    for name, values in each.items():
        if isinstance(values, dict):  # of queues, by their names
            assert grouped[name] == pytest.approx(values, rel=1e-5, abs=1e-12), name
            continue
        assert np.asarray(grouped[name]) == pytest.approx(np.asarray(values), rel=1e-5, abs=1e-12), name
