"""Errors and interference on the air: the table ``[radio]``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from btqueue.scenario.fields import BitErrorRate, Name, PositiveSeconds, Probability, Seconds, Table, listed

ErrorModel = Literal["perfect", "constant", "gilbert-elliott", "alternating", "trace"]
TraceQuantity = Literal["ber", "link-quality"]

KEYS_OF_MODEL: dict[ErrorModel, frozenset[str]] = {
    "perfect": frozenset(),
    "constant": frozenset({"ber", "per"}),
    "gilbert-elliott": frozenset({"ber_good", "ber_bad", "good_s", "bad_s"}),
    "alternating": frozenset({"ber_good", "ber_bad", "period_s"}),
    "trace": frozenset({"trace_file", "trace_step_s", "trace_quantity"}),
}
"""The keys that each model of the radio reads."""


class RadioLink(Table):
    """The radio of one link of the network, where it differs from the others."""

    node: Name = Field(description="peripheral at the end of the link; of a bridge: each of its links")
    direction: Literal["up", "down", "both"] = Field(
        default="both", description="towards the central, towards the peripheral, or both"
    )
    model: ErrorModel | None = Field(default=None, description="radio.model of this link")
    ber: BitErrorRate | None = Field(default=None, description="radio.ber of this link; stands for per, too")
    per: Probability | None = Field(default=None, description="radio.per of this link; stands for ber, too")
    ber_good: BitErrorRate | None = Field(default=None, description="radio.ber_good of this link")
    ber_bad: BitErrorRate | None = Field(default=None, description="radio.ber_bad of this link")
    good_s: Seconds | None = Field(default=None, description="radio.good_s of this link")
    bad_s: Seconds | None = Field(default=None, description="radio.bad_s of this link")
    period_s: PositiveSeconds | None = Field(default=None, description="radio.period_s of this link")
    trace_file: Name | None = Field(default=None, description="radio.trace_file of this link")
    trace_step_s: PositiveSeconds | None = Field(default=None, description="radio.trace_step_s of this link")
    trace_quantity: TraceQuantity | None = Field(
        default=None, description="radio.trace_quantity of this link"
    )

    @property
    def overrides(self) -> dict[str, Any]:
        """The keys of `[radio]` that are given for this link, with their values."""
        return self.model_dump(exclude={"node", "direction"}, exclude_none=True)

    def applied_to(self, radio: Radio) -> Radio:
        """Return the radio of this link; its `ber` stands in place of a common `per`, and the reverse."""
        own = self.overrides
        if "per" in own:
            own.setdefault("ber", 0.0)
        elif "ber" in own or own.get("model", "constant") != "constant":
            own["per"] = None
        return radio.model_copy(update={**own, "links": ()})


class Radio(Table):
    """The error process of the radio links.

    The Gilbert-Elliott defaults are the radio of chapter 6 of Venugopal 2006.
    """

    model: ErrorModel = Field(default="perfect", description="law of the bit error rate over time")
    ber: BitErrorRate = Field(default=0.0, description="bit error rate of the constant model")
    per: Probability | None = Field(
        default=None,
        description="packet error rate of the constant model, equal for all packet types, in place of ber",
    )
    ber_good: BitErrorRate = Field(default=6.8979e-6, description="bit error rate of the good state")
    ber_bad: BitErrorRate = Field(default=1.263e-4, description="bit error rate of the bad state")
    good_s: Seconds = Field(default=0.4375, description="mean stay in the good state")
    bad_s: Seconds = Field(default=0.0558, description="mean stay in the bad state")
    bits: Literal["payload", "on-air"] = Field(
        default="payload",
        description="bits that can be hit: user payload only, or also access code, headers, CRC and FEC",
    )
    fading: Literal["per-link", "per-piconet"] = Field(
        default="per-link",
        description="one error process for each central-peripheral link, or one for the whole piconet",
    )
    period_s: PositiveSeconds = Field(
        default=1.0,
        description="time in each state of the alternating model, good first: a fixed schedule from time 0 "
        "on, the same for every link and replication",
    )
    trace_file: Name | None = Field(
        default=None,
        description="file with the trace, one value a line, played from time 0 on and repeated: a fixed "
        "schedule, the same for every link and replication",
    )
    trace_step_s: PositiveSeconds = Field(default=0.1, description="time between two values of the trace")
    trace_quantity: TraceQuantity = Field(default="ber", description="quantity of the trace's values")
    links: tuple[RadioLink, ...] = listed((), "links whose radio differs", most=100_000)
    interferers: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="fully loaded piconets near by, not simulated, that hit packets on the same channel",
    )
    colocated: bool = Field(
        default=False,
        description="the simulated piconets disturb each other on the same channel, too; their slots begin "
        "together",
    )
