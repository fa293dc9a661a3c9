"""What the air does to packets: the table ``[radio]``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from btqueue.scenario.fields import BitErrorRate, Name, PositiveSeconds, Probability, Seconds, Table


class Radio(Table):
    """The error process of the radio links.

    The Gilbert-Elliott defaults are the radio of chapter 6 of Venugopal 2006.
    """

    model: Literal["perfect", "constant", "gilbert-elliott", "alternating", "trace"] = Field(
        default="perfect", description="law of the bit error rate over time"
    )
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
    period_s: PositiveSeconds = Field(default=1.0, description="time in each state of the alternating model")
    trace_file: Name | None = Field(default=None, description="file with the trace, one value a line")
    trace_step_s: PositiveSeconds = Field(default=0.1, description="time between two values of the trace")
    trace_quantity: Literal["ber", "link-quality"] = Field(default="ber", description="what the trace holds")
