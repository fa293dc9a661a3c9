"""States of a radio drawn beforehand, for runs in which they have to be known or begin late."""

import numpy as np


def fading(generator: np.random.Generator, total_s: float, step_s: float, clean_s: float = 0.0) -> np.ndarray:
    """Return whether a link's radio is in its bad state, at the beginning of every step.

    The stays are exponential, with the means of chapter 5 (437.5 and 55.8 ms); the radio is good until
    `clean_s`.
    """
    bad = np.zeros(round(total_s / step_s), bool)
    at, is_bad = clean_s, bool(generator.random() < 0.0558 / (0.0558 + 0.4375))
    while at < total_s:
        stay = generator.exponential(0.0558 if is_bad else 0.4375)
        bad[round(at / step_s) : round((at + stay) / step_s)] = is_bad
        at, is_bad = at + stay, not is_bad
    return bad
