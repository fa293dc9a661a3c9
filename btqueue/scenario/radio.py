"""Errors and interference on the air: the table ``[radio]``."""

from __future__ import annotations

from typing import Any, Literal, get_args

from btqueue.scenario.fields import (
    BitErrorRate,
    Name,
    PositiveSeconds,
    Probability,
    Seconds,
    Table,
    cases_of,
    key,
    listed,
    with_own_keys,
)
from btqueue.scenario.link import CLASSIC

ErrorModel = Literal["perfect", "constant", "gilbert-elliott", "alternating", "trace"]

CONSTANT = {"radio.model": ("constant",)}
FADING = {"radio.model": ("gilbert-elliott",)}
TWO_STATES = {"radio.model": ("gilbert-elliott", "alternating")}
TRACE = {"radio.model": ("trace",)}


class ErrorProcess(Table):
    """The error process of a radio link.

    The Gilbert-Elliott defaults are the radio of chapter 6 of Venugopal 2006.
    """

    model: ErrorModel = key("perfect", "law of the bit error rate over time")
    ber: BitErrorRate = key(0.0, "bit error rate of the constant model", CONSTANT)
    per: Probability | None = key(
        None,
        "packet error rate of the constant model, equal for all packet types, in place of ber",
        CONSTANT,
    )
    ber_good: BitErrorRate = key(6.8979e-6, "bit error rate of the good state", TWO_STATES)
    ber_bad: BitErrorRate = key(1.263e-4, "bit error rate of the bad state", TWO_STATES)
    good_s: Seconds = key(0.4375, "mean stay in the good state", FADING)
    bad_s: Seconds = key(0.0558, "mean stay in the bad state", FADING)
    period_s: PositiveSeconds = key(
        1.0,
        "time in each state of the alternating model, good first: a fixed schedule from time 0 on, the same "
        "for every link and replication",
        {"radio.model": ("alternating",)},
    )
    trace_file: Name | None = key(
        None,
        "file with the trace, one value a line, played from time 0 on and repeated: a fixed schedule, the "
        "same for every link and replication",
        TRACE,
    )
    trace_step_s: PositiveSeconds = key(0.1, "time between two values of the trace", TRACE)
    trace_quantity: Literal["ber", "link-quality"] = key("ber", "quantity of the trace's values", TRACE)


KEYS_OF_MODEL: dict[ErrorModel, frozenset[str]] = {
    model: frozenset(
        name
        for name in ErrorProcess.model_fields
        if any(model in case.get("radio.model", ()) for case in cases_of(ErrorProcess, name))
    )
    for model in get_args(ErrorModel)
}
"""The keys that each model of the radio reads."""


class LinkEnd(Table):
    """One link of the network, or one direction of it."""

    node: Name = key(..., "peripheral at the end of the link; of a bridge: each of its links")
    direction: Literal["up", "down", "both"] = key(
        "both", "towards the central, towards the peripheral, or both"
    )


_WithErrors: Any = with_own_keys(LinkEnd, ErrorProcess, said="radio.{name} of this link")


class RadioLink(_WithErrors):
    """The radio of one link where it differs from the others; its `ber` stands for `per`, and the reverse."""

    @property
    def overrides(self) -> dict[str, Any]:
        """The keys of `[radio]` that are given for this link, with their values."""
        return self.model_dump(exclude={"node", "direction"}, exclude_none=True)

    def applied_to(self, radio: Radio) -> Radio:
        """Return the radio of this link; its `ber` replaces a common `per`, and its `per` a common `ber`."""
        own = self.overrides
        if "per" in own:
            own.setdefault("ber", 0.0)
        elif "ber" in own or own.get("model", "constant") != "constant":
            own["per"] = None
        return radio.model_copy(update={**own, "links": ()})


class Radio(ErrorProcess):
    """The error process of the radio links."""

    bits: Literal["payload", "on-air"] = key(
        "payload",
        "bits that can be hit: user payload only, or also access code, headers, CRC and FEC",
        {"errors": (True,)},
    )
    fading: Literal["per-link", "per-piconet"] = key(
        "per-link", "one error process for each central-peripheral link, or one for the whole piconet"
    )
    links: tuple[RadioLink, ...] = listed((), "links whose radio differs", most=100_000)
    interferers: int = key(
        0,
        "fully loaded piconets near by, not simulated, that hit packets on the same channel",
        CLASSIC,
        ge=0,
        le=1000,
    )
