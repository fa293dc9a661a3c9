"""Whether 95 % intervals of `simulate` hold the mean as often as they say, for everything that is random.

The mean comes from a reference with another seed and a hundred times the simulated time of an answer, so that
its own error is a tenth of a half-width and costs less than a hundredth of the coverage. What an answer need
not resolve (`NEGLIGIBLE`) is granted: the goodput of a recorded source differs by the edges of a run alone.
"""

import numpy as np
import pytest
from scipy import stats
from thesis import thesis_of

from btqueue.simulator import simulate
from btqueue.simulator.statistics.doubts import NEGLIGIBLE
from btqueue.simulator.statistics.student import student_half_width

SEEDS = 40
RUN = {"run__duration_s": 60.0, "run__warmup_s": 30.0, "run__replications": 10}
REFERENCE = {"run__duration_s": 3000.0, "run__warmup_s": 60.0, "run__replications": 20, "run__seed": 10**6}
SCATTERNET = {"network": {"topology": "scatternet"}, "traffic": {"load_kbps": 30.0}}
CROWD = {"network": {"topology": "scatternet", "piconets": 3}, "traffic": {"load_kbps": 20.0}}
PICONET = {"traffic": {"load_kbps": 40.0}}
JITTER = {"run__jitter_s": 0.002}
COMPLETE = {"polling__residence": "complete", **JITTER}
SNIFF, PCSS = ({"polling__bridge_schedule": name} for name in ("sniff", "pcss"))
ERRORS = {"radio__model": "constant", "radio__ber": 2e-5, "link__arq": "unlimited"}
FADING = {"radio__model": "gilbert-elliott", "link__arq": "unlimited"}

CASES = {
    # schedules of bridges
    "walk-in": (SCATTERNET, {}),
    "walk-in, cycle": (SCATTERNET, {"polling__residence": "cycle", **JITTER}),
    "walk-in, complete": (SCATTERNET, COMPLETE),
    "walk-in, MS": (SCATTERNET, {"network__bridge": "MS"}),
    "walk-in, alignment": (SCATTERNET, {"polling__switch_delay": True}),
    "walk-in, complete, overload": (SCATTERNET, {**COMPLETE, "traffic__load_kbps": 60.0}),
    "sniff": (SCATTERNET, SNIFF),
    "sniff, overload": (SCATTERNET, {**SNIFF, "traffic__load_kbps": 100.0, **JITTER}),
    "pcss": (SCATTERNET, {**PCSS, "traffic__load_kbps": 10.0}),
    "pcss, two bridges": (CROWD, {**PCSS, "traffic__load_kbps": 5.0}),
    "pcss, overload": (SCATTERNET, PCSS),
    # sources
    "poisson": (PICONET, {}),
    "ibp": (PICONET, {"traffic__source": "ibp"}),
    "greedy": (PICONET, {"traffic__source": "greedy", **FADING}),
    "periodic": (PICONET, {"traffic__source": "periodic"}),
    "periodic, two-way": (PICONET, {"traffic__source": "periodic", "traffic__two_way": True}),
    "request-reply": (PICONET, {"traffic__source": "request-reply", "traffic__pause_s": 0.05, **ERRORS}),
    "file": (PICONET, {"traffic__source": "file", "traffic__file_period_s": 10.0, **ERRORS}),
    # radios
    "constant": (PICONET, ERRORS),
    "constant, per": (PICONET, {"radio__model": "constant", "radio__per": 0.02, "link__arq": "unlimited"}),
    "constant, no repetition": (PICONET, {"radio__model": "constant", "radio__per": 0.002}),
    "gilbert-elliott per link": (PICONET, FADING),
    "gilbert-elliott per piconet": (PICONET, {**FADING, "radio__fading": "per-piconet"}),
    "alternating": (PICONET, {**FADING, "radio__model": "alternating"}),
    "trace": (PICONET, {**FADING, "radio__model": "trace"}),
    "interferers": (PICONET, {"radio__interferers": 2, "link__arq": "unlimited"}),
    # disciplines that draw
    "prc-lwrr": (PICONET, {"polling__discipline": "prc-lwrr", "network__peripherals": 4}),
}
OVERLOADED = {name for name in CASES if "overload" in name}
"""Their delays grow for ever, which they are warned of."""

METRICS = ("goodput_kbps", "rtt_s")
OF_MANY = {**REFERENCE, "run__duration_s": 150.0, "run__replications": 500}
"""A reference of many replications: periodic sources keep their phases, however long one lasts."""
PRECISIONS = {"goodput_kbps": 0.02, "rtt_s": 0.05, "rtt_p95_s[1]": 0.1}
"""Quantities for which short runs are added, and the relative precision asked for."""


PHASES = "a periodic source keeps its phase for a whole run"
SKEWED = pytest.mark.xfail(reason="few colliding phases skew the law: stops too early")


def scenario_of(name, folder):
    tables, changes = CASES[name]
    arrivals, trace = folder / "arrivals.txt", folder / "trace.txt"
    arrivals.write_text("".join(f"{0.37 * k:.2f} {600 + 40 * (k % 20)}\n" for k in range(27)))
    trace.write_text("".join(f"{1e-6 * (1 + 40 * (k % 10 == 3))}\n" for k in range(100)))
    files = {"traffic__arrival_file": str(arrivals)} if name == "file" else {}
    files |= {"radio__trace_file": str(trace)} if name == "trace" else {}
    return thesis_of(tables).with_(**{**changes, **files, **RUN})


def answers(scenario):
    """Return means and half-widths of the metrics, shape (2, metrics, seeds), and what was warned of."""
    found, warnings = [], []
    for seed in range(1, SEEDS + 1):
        result = simulate(scenario.with_(run__seed=seed), threads=2)
        values = [result[name].mean("flow").values for name in METRICS]
        found.append([[one.mean() for one in values], [student_half_width(one) for one in values]])
        warnings.append(result.attrs["warnings"])
    return np.moveaxis(np.array(found), 0, 2), warnings


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_the_mean_as_often_as_they_say(name, tmp_path):
    scenario = scenario_of(name, tmp_path)
    reference = simulate(scenario.with_(**REFERENCE), threads=2)
    (means, widths), warnings = answers(scenario)
    # false-alarm rate 1 % over all cases and metrics, if the coverage is 95 %
    least = stats.binom.ppf(0.01 / len(CASES) / len(METRICS), SEEDS, 0.95)
    for metric, mean, width in zip(METRICS, means, widths, strict=True):
        truth = float(reference[metric].mean())
        assert np.sum(np.abs(mean - truth) <= np.maximum(width, NEGLIGIBLE * truth)) >= least, metric
    if name not in OVERLOADED:
        # false-alarm rate 0.1 % over all cases, if 1 % of the answers are warned of; a source that keeps its
        # phase is no alarm but a fact of its scenario
        most = stats.binom.isf(0.001 / len(CASES), SEEDS, 0.01)
        alarms = [[one for one in each if not one.startswith(PHASES)] for each in warnings]
        assert sum(map(bool, alarms)) <= most, [each for each in alarms if each]
        assert name.startswith("periodic") or alarms == warnings


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SKEWED if name == "periodic" else ()) for name in CASES]
)
def test_runs_until_a_precision_hold_the_mean_as_often_as_they_say(name, tmp_path):
    scenario = scenario_of(name, tmp_path)
    reference = simulate(scenario.with_(**OF_MANY), threads=2)
    # false-alarm rate 1 % over all cases and quantities, if the coverage is 95 %
    least = stats.binom.ppf(0.01 / len(CASES) / len(PRECISIONS), SEEDS, 0.95)
    for quantity, precision in PRECISIONS.items():
        values = reference[quantity.removesuffix("[1]")]
        truth = float((values[:, 0] if quantity.endswith("[1]") else values).mean())
        run = {"run__duration_s": 20.0, "run__replications": 4, "run__precision": precision}
        asked = scenario.with_(**run, run__precision_of=quantity)
        known = [simulate(asked.with_(run__seed=seed), threads=2).attrs for seed in range(1, SEEDS + 1)]
        held = [abs(one["estimate"] - truth) <= max(one["half_width"], NEGLIGIBLE * truth) for one in known]
        assert sum(held) >= least, quantity
