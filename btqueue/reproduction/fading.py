"""The radio of chapter 5 of the thesis, with states that are drawn before a run: figures show them."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.figures.work import trace_file
from btqueue.scenario import Scenario

GOOD_BER, BAD_BER = 6.8979e-5, 1.263e-3
GOOD_S, BAD_S = 0.4375, 0.0558
"""Bit error rates of chapter 5 in the good and the bad state, and mean stays in them (table 3.1)."""


def with_fading(
    scenario: Scenario, *, seed: int, step_s: float, clean_s: float = 0.0
) -> tuple[Scenario, dict[str, np.ndarray]]:
    """Return a piconet whose links follow states that were drawn beforehand, and the states.

    Args:
        scenario: a piconet.
        seed: seed of the states.
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
        file = trace_file(np.where(clean, 0.0, np.where(states[node], BAD_BER, GOOD_BER)))
        links.append({"node": node, "model": "trace", "trace_file": file, "trace_step_s": step_s})
    return scenario.changed({"radio.model": "perfect", "radio.links": links}), states


def fading(generator: np.random.Generator, total_s: float, step_s: float, clean_s: float = 0.0) -> np.ndarray:
    """Return whether a link's radio is in its bad state, at the beginning of every step.

    The stays are exponential; the radio is good until `clean_s`.
    """
    bad = np.zeros(round(total_s / step_s), bool)
    at, is_bad = clean_s, bool(generator.random() < BAD_S / (BAD_S + GOOD_S))
    while at < total_s:
        stay = generator.exponential(BAD_S if is_bad else GOOD_S)
        bad[round(at / step_s) : round((at + stay) / step_s)] = is_bad
        at, is_bad = at + stay, not is_bad
    return bad
