"""How long and how often a scenario is simulated: ``[run]``."""

from __future__ import annotations

from typing import Literal

from btqueue.scenario.fields import PositiveSeconds, Seconds, Table, key


class Run(Table):
    """Length, repetition and randomness of the simulation, which the models ignore."""

    duration_s: PositiveSeconds = key(480.0, "simulated time that is measured, after the warm-up")
    warmup_s: Seconds | Literal["auto"] = key(
        60.0, "simulated time before measuring starts; auto: found in the measured series (MSER-5)"
    )
    replications: int = key(10, "independent repetitions", ge=1, le=100_000)
    seed: int = key(1, "seed of all random streams", ge=0, le=2**63 - 1)
    precision: float | None = key(
        None,
        "repeat until the 95 % interval of `precision_of` is this narrow: half-width over mean",
        gt=0,
        lt=1,
    )
    precision_of: str = key(
        "goodput_kbps",
        "which quantity `precision` is for: a metric, as its mean over flows or of one flow "
        "(`delay_p95_s[2]`), or an expression as `dimension` reads them",
        min_length=1,
        max_length=300,
    )
    limit_cpu_s: PositiveSeconds | None = key(
        None, "CPU time of all replications together after which the simulation ends with what it has"
    )
    jitter_s: float = key(0.0, "largest random processing delay at each sender (uniform from 0)", ge=0, le=1)
