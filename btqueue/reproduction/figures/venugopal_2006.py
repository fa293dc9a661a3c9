"""The radio of chapter 5 of the thesis: its states are drawn before a run, so that a figure can show them."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.fading import fading
from btqueue.reproduction.figures.work import Work
from btqueue.scenario import Scenario

RATES_GOOD_BAD = (6.8979e-5, 1.263e-3)
"""Bit error rates of chapter 5 in the good and the bad state (table 3.1)."""


def with_fading(
    work: Work, scenario: Scenario, *, seed: int, step_s: float, clean_s: float = 0.0
) -> tuple[Scenario, dict[str, np.ndarray]]:
    """Return a scenario whose links follow states that were drawn beforehand, and the states.

    Args:
        work: the workbench, which keeps the files.
        scenario: a piconet.
        seed: of the states.
        step_s: between two states.
        clean_s: the radio is perfect until then.

    Returns:
        The scenario; by node, whether the radio of its link is bad, shape (steps,).
    """
    total_s = scenario.run.duration_s + float(scenario.run.warmup_s)
    generator = np.random.default_rng(seed)
    clean = np.arange(round(total_s / step_s)) * step_s < clean_s
    states, links = {}, []
    for number in range(1, scenario.network.peripherals + 1):
        node = f"p1.{number}"
        states[node] = fading(generator, total_s, step_s, clean_s)
        rates = np.where(states[node], RATES_GOOD_BAD[1], RATES_GOOD_BAD[0])
        file = work.trace_file(np.where(clean, 0.0, rates))
        links.append({"node": node, "model": "trace", "trace_file": file, "trace_step_s": step_s})
    return scenario.changed({"radio.model": "perfect", "radio.links": links}), states
