"""What speaks against intervals: false-alarm rates on independent data, and every fault is seen."""

import re

import numpy as np
import pytest
from scipy import stats
from thesis import thesis

from btqueue.scenario import Scenario, load
from btqueue.scenario.metrics import Results, Variable
from btqueue.simulator import simulate
from btqueue.simulator.statistics.doubts import doubts

REPLICATIONS = 10
STEPS = thesis().with_(traffic__load_schedule=({"at_s": 100.0, "load_kbps": 5.0},))


def looked_at(halves, whole=None, scenario=None, drained: float | np.ndarray = 0.0, **other):
    """Return the warnings about replications with these halves, shape (metrics, 2, n).

    Metrics are the goodput, the round trip and the delay. A whole run has the mean of its halves by default.
    """
    surplus = np.broadcast_to(drained, REPLICATIONS)[:, None]
    names: list[str] = ["goodput_kbps", "rtt_s", "delay_s"]
    whole = halves.mean(axis=1) if whole is None else whole
    variables = {
        name: Variable(("replication", "flow"), values[:, None])
        for name, values in zip(names, whole, strict=True)
    }
    results = Results({**variables, **other}, {}, {})
    pairs = dict(zip(names, halves, strict=True))
    return doubts(results, scenario or thesis(), pairs, surplus)


def independent(seed, spread=1.0):
    """Halves without trend or memory around 100; whole runs lie near the mean of both, off at random."""
    random = np.random.default_rng(seed)
    halves = 100 + spread * random.standard_normal((3, 2, REPLICATIONS))
    return halves, halves.mean(axis=1) + 0.1 * spread * random.standard_normal((3, REPLICATIONS))


def test_sound_answers_are_hardly_ever_warned_of():
    answers = 500
    alarms = sum(bool(looked_at(*independent(seed, spread=10.0))) for seed in range(answers))
    # false-alarm rate 0.1 %
    assert alarms <= stats.binom.isf(1e-3, answers, 0.01)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("trend", r"means over flows change between the halves .*\(rtt_s from \S+ to \S+ s\).*is too short"),
        ("memory", r"halves of a replication are alike \(correlation of rtt_s (0\.9|1\.0).*run\.jitter_s"),
        ("bias", r"runs of half the length have other means \(rtt_s 1[12]\S+ in place of [91]\S+\)"),
        ("gap", r"replications in which a flow has no observation \(rtt_s in 2 of 10\)"),
    ],
)
def test_each_fault_is_named(fault, words):
    halves, whole = independent(7)
    if fault == "trend":
        halves[1, 1] += 10
        whole[1] += 5
    elif fault == "memory":
        halves[1] += np.linspace(-20, 20, REPLICATIONS)
        whole[1] += np.linspace(-20, 20, REPLICATIONS)
    elif fault == "bias":
        halves[1] += 20
    else:
        whole[1, 3:5] = np.nan
    (warning,) = looked_at(halves, whole)
    assert re.search(words, warning), warning


def test_a_bias_that_an_interval_can_bear_is_passed_over():
    halves, whole = independent(7, spread=50.0)
    whole[1] = halves[1].mean(axis=0) - 1.0  # certain, and some hundredths of the half-width
    assert looked_at(halves, whole) == []


def test_what_the_scenario_says_itself_is_not_warned_of():
    halves, _ = independent(7)
    trending, remembering = halves.copy(), halves.copy()
    trending[:, 1] += 10
    remembering += np.linspace(-20, 20, REPLICATIONS)
    assert looked_at(trending)
    assert looked_at(remembering)
    assert looked_at(trending, scenario=STEPS) == []
    assert looked_at(remembering, scenario=thesis().with_(traffic__source="periodic")) == []


def test_replications_that_are_all_equal_have_no_precision():
    halves = np.full((3, 2, REPLICATIONS), 100.0)
    (warning,) = looked_at(halves)
    assert warning.startswith("all 10 replications are identical: nothing random happened in them")
    # one metric that differs is enough
    assert looked_at(halves, fairness=Variable(("replication",), np.arange(10.0))) == []


def test_more_delivered_than_sent_is_named_where_it_is_certain_or_plain():
    halves, _ = independent(7)  # goodputs of 100, of which 0.25 of the interval's half-width are 0.1
    for drained in (0.5, np.linspace(0.4, 0.6, REPLICATIONS), np.linspace(-10.0, 15.0, REPLICATIONS)):
        found = " ".join(looked_at(halves, drained=drained))
        assert re.search(r"goodput of \S+ kbit/s, (0.5|2.5) were sent before", found), drained
    far_off = 0.5 * (np.arange(REPLICATIONS) < 9) - 3.5 * (np.arange(REPLICATIONS) == 9)
    for drained in (0.05, -5.0, np.linspace(-1.0, 1.9, REPLICATIONS), far_off):
        assert looked_at(halves, drained=drained) == [], drained
    assert looked_at(halves, drained=0.5, scenario=STEPS) == []
    wide, _ = independent(7, spread=50.0)  # a quarter of the half-width is 5
    noisy = np.linspace(-10.0, 15.0, REPLICATIONS)  # 2.5 in the mean
    assert looked_at(wide, drained=noisy) == []
    assert "were sent before" in " ".join(looked_at(wide, drained=noisy + 5.0))


SLOW_GROWTH = load("venugopal-2006/piconet").with_(
    network__peripherals=1,
    link__packets=["3-DH5", "3-DH3", "3-DH1"],
    link__arq="unlimited",
    flow_control__enabled=False,
    flow_control__baseband_packets=10_000,
    traffic__source="greedy",
    transport__receive_window_segments=200,
    run__warmup_s=20,
    run__duration_s=60,
    run__replications=3,
)
"""Nothing is lost. More is under way at 20 s than at the end: 0.7 % of the goodput."""
LATE_MESSAGE = load("avancha-2002/bluetooth-centaurus").with_(
    traffic__reply_bytes=4096, run__warmup_s=0.2, run__duration_s=0.3, run__replications=2
)


@pytest.mark.parametrize(
    "scenario",
    [SLOW_GROWTH, SLOW_GROWTH.with_(run__jitter_s=0.002), LATE_MESSAGE],
    ids=["window", "window with jitter", "message"],
)
def test_data_sent_before_the_measurement_are_its_throughput_and_named(scenario):
    for warmup_s in (scenario.run.warmup_s, 0.0):
        simulated = simulate(scenario.with_(run__warmup_s=warmup_s))
        assert (simulated.goodput_kbps <= simulated.throughput_kbps).all()
        assert any("were sent before" in warning for warning in simulated.attrs["warnings"]) == (warmup_s > 0)


def test_throughput_is_the_goodput_and_what_is_sent_again():
    simulated = simulate(SLOW_GROWTH)
    assert (simulated.throughput_kbps == simulated.goodput_kbps).all(), "nothing is sent twice"
    scenario = SLOW_GROWTH.with_(link__arq="none", radio__model="constant", radio__per=0.01)
    lossy = simulate(scenario)
    again = lossy.retransmissions_per_s * 1460 * 8 / 1000
    assert again.min() > 1
    more = lossy.throughput_kbps - lossy.goodput_kbps - again
    window_kbits = scenario.transport.receive_window_segments * 1460 * 8 / 1000
    assert more.min() > -1e-9
    assert more.max() < window_kbits / scenario.run.duration_s, "what is under way at the end"
    lossy = {"link__arq": "none", "radio__model": "constant", "radio__per": 0.01, "run__replications": 3}
    scenario = load("venugopal-2006/piconet").with_(transport__protocol="none", **lossy)
    datagrams = simulate(scenario.with_(run__duration_s=30.0, run__warmup_s=1.0))
    delivered = datagrams.throughput_kbps * (1 - datagrams.segment_loss)
    assert (delivered > datagrams.goodput_kbps * (1 - 1e-12)).all(), "datagrams that are lost were sent, too"


def test_runs_without_warm_up_are_warned_of():
    # each of 20 seeds is
    scenario = load("venugopal-2006/scatternet-2").with_(run__duration_s=10.0, run__warmup_s=0.0)
    warnings = simulate(scenario.with_(run__replications=10)).attrs["warnings"]
    assert any("the warm-up is too short" in warning for warning in warnings)


@pytest.mark.parametrize(("warmup_s", "least"), [(30.0, 1.2), (128.0, 1.0)])
def test_a_flow_that_gets_nothing_has_fewer_timeouts_once_its_timer_has_doubled(warmup_s, least):
    """On a radio that carries nothing a timer expires every 64 s in the end, 400 s hold 6 or 7 of them."""
    radio = {"radio.model": "constant", "radio.per": 1.0, "link.arq": "none", "traffic.source": "greedy"}
    run = {"run.duration_s": 400.0, "run.warmup_s": warmup_s, "run.replications": 2}
    found = simulate(thesis().changed(radio | run))
    warned = any("its timer doubles for up to 128 s" in one for one in found.attrs["warnings"])
    assert warned == (warmup_s < 128.0)
    assert (found["timeouts_per_s"].values * 64.0 >= least * 0.9).all()


@pytest.mark.parametrize("source", ["periodic", "poisson"])
def test_quantiles_of_constant_phases_are_named_as_means_over_phases(source):
    """A bound of 200 ms on the 95 % quantile held for an interval of 250 ms, where 22 % of runs exceed it."""
    found = simulate(
        Scenario(
            link={"bearer": "le"},
            le={"interval_s": 0.25, "ip": "none"},
            transport={"protocol": "none"},
            network={"peripherals": 1, "flows": "uplink"},
            traffic={"source": source, "load_kbps": 0.32, "message_bytes": 40},
            run={"duration_s": 100.0, "warmup_s": 10.0, "replications": 10},
        )
    )
    warned = [one for one in found.attrs["warnings"] if "means of the runs' quantiles" in one]
    assert bool(warned) == (source == "periodic")
    worst = float(found["delay_p95_s"].max())
    assert worst > 0.2 > float(found["delay_p95_s"].mean()) or source == "poisson"
    assert not warned or f"up to {worst:.3g} s" in warned[0]
