"""Write link-quality.txt: a made-up link quality, as the measured trace of Chen 2004 was never published.

    python models/chen-2004/make_link_quality.py

Of the measurement is known: five minutes, one whole number every 100 ms, two CSR devices 5 m apart, 802.11b
stations near by. The levels here are our choice: clear spells (quality 249 to 255) and shorter spells of
interference (219 to 247: bit error rates of 2e-4 to 9e-4), exponential with means of 6 s and 3 s. Within a
spell the quality stays near one level.
"""

from pathlib import Path

import numpy as np

STEP_S, LENGTH_S = 0.1, 300.0
MEAN_S = {True: 6.0, False: 3.0}
LEVELS = {True: (250, 255), False: (220, 246)}


def link_qualities(seed: int) -> np.ndarray:
    """Return the link quality (whole numbers) of each step."""
    rng = np.random.default_rng(seed)
    qualities: list[int] = []
    clear = True
    while len(qualities) < LENGTH_S / STEP_S:
        low, high = LEVELS[clear]
        steps = 1 + int(rng.exponential(MEAN_S[clear]) / STEP_S)
        around = rng.integers(low, high + 1)
        qualities += [int(np.clip(around + rng.integers(-1, 2), low - 1, 255)) for _ in range(steps)]
        clear = not clear
    return np.array(qualities[: round(LENGTH_S / STEP_S)])


if __name__ == "__main__":
    lines = ["# Synthetic link quality, one value every 100 ms; written by make_link_quality.py"]
    lines += [str(quality) for quality in link_qualities(2004)]
    Path(__file__).with_name("link-quality.txt").write_text("\n".join(lines) + "\n", "utf-8")
