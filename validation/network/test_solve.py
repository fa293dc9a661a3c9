"""The answer of `solve` where nothing is damaged, and what it does not depend on."""

import pytest
from beside import average

import btqueue as bt

PICONET = bt.load("venugopal-2006/piconet")


def test_an_error_rate_of_zero_is_a_perfect_radio():
    """Another model answers where segments may be lost, so that round trips differ a little."""
    light = PICONET.with_(traffic__load_kbps=40)
    perfect = bt.solve(light)
    zero = {"radio__ber_good": 0.0, "radio__ber_bad": 0.0}
    for other in (
        light.with_(radio__model="constant", radio__ber=0.0),
        light.with_(radio__model="gilbert-elliott", **zero),
    ):
        answer = bt.solve(other)
        assert answer.attrs["stands"]
        for name, tolerance in {"goodput_kbps": 1e-6, "rtt_s": 0.05, "cycle_s": 0.01}.items():
            assert average(answer, name) == pytest.approx(average(perfect, name), rel=tolerance), name


def test_run_parameters_do_not_matter():
    one, other = PICONET.with_(run__seed=1), PICONET.with_(run__seed=99, run__replications=3)
    assert bt.solve(one).equals(bt.solve(other))


def test_fairness_compares_connections_and_not_requests_with_replies():
    """Jain's index over the six flows would be 0.53, with 38.4 = 1.16 + 37.2 kbit/s for each client."""
    clients = bt.Scenario.from_dict(
        {
            "network": {"peripherals": 3, "flows": "uplink"},
            "traffic": {"source": "request-reply"},
            "run": {"duration_s": 20, "replications": 2},
        }
    )
    for answer in (bt.solve(clients), bt.simulate(clients)):
        assert answer.fairness.values.ravel() == pytest.approx(1.0, abs=1e-4)
    # a second client of the first peripheral shares its link: the rates of connections differ
    flows = [{"from": f"p1.{n}", "to": "c1"} for n in (1, 1, 2)]
    unequal = clients.with_(network__flows=flows, network__peripherals=2)
    for answer in (bt.solve(unequal), bt.simulate(unequal)):
        goodput = answer.goodput_kbps.values.reshape(-1, 6)
        of_connections = goodput[:, :3] + goodput[:, 3:]
        squares = 3 * (of_connections**2).sum(axis=1)
        assert answer.fairness.values.ravel() == pytest.approx(of_connections.sum(axis=1) ** 2 / squares)
