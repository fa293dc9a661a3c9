"""How long and how often a scenario is simulated: ``[run]``."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from btqueue.scenario.fields import PositiveSeconds, Seconds, Table


class Run(Table):
    """Length, repetition and randomness of the simulation, which the models ignore."""

    CHOICES: ClassVar[tuple[str, ...]] = ("solver",)

    duration_s: PositiveSeconds = Field(
        default=480.0, description="simulated time that is measured, after the warm-up"
    )
    warmup_s: Seconds | Literal["auto"] = Field(
        default=60.0,
        description="simulated time before measuring starts; auto: found in the measured series (MSER-5)",
    )
    replications: int = Field(default=10, ge=1, le=100_000, description="independent repetitions")
    intervals: Literal["auto", "replications", "batch-means"] = Field(
        default="auto",
        description="confidence intervals from replications, or from batches of a single one; auto: "
        "replications if there are several",
    )
    seed: int = Field(default=1, ge=0, le=2**63 - 1, description="seed of all random streams")
    precision: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="repeat until the 95 % interval of `precision_of` is this narrow: half-width over mean",
    )
    precision_of: str = Field(
        default="goodput_kbps",
        min_length=1,
        max_length=300,
        description="which quantity `precision` is for: a metric, as its mean over flows or of one flow "
        "(`delay_p95_s[2]`), or an expression as `dimension` reads them",
    )
    limit_cpu_s: PositiveSeconds | None = Field(
        default=None,
        description="CPU time of all replications together after which the simulation ends with what it has",
    )
    solver: Literal["auto", "analytic", "followed"] = Field(
        default="auto", description="read for the sake of old files, and changes nothing"
    )
    jitter_s: float = Field(
        default=0.0, ge=0, le=1, description="largest random processing delay at each sender (uniform from 0)"
    )
