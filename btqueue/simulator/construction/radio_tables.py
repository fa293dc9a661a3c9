"""The tables that the radio is simulated with: packet types, levels of bit error rate, packet error rates.

Every distinct setting of the radio owns a block of levels: one for a constant channel, two for a channel with
a good and a bad state, one for each distinct value of a trace. A level has a bit error rate, the packet error
rate of every type, a link quality, and the packet type that adaptation would choose.

Piconets nearby that are not simulated (`interferers`) raise all packet error rates:
`btqueue.channel.interference`.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from btqueue.baseband import PacketType, packet_types
from btqueue.baseband.packets import PREFIX_US
from btqueue.baseband.voice import ESCO_PACKETS
from btqueue.channel import (
    ber_from_link_quality,
    link_quality,
    packet_error_rate,
    reply_error_rate,
    spared_by_neighbour,
)
from btqueue.scenario.link import Link
from btqueue.scenario.radio import Radio
from btqueue.scenario.recordings import read_trace
from btqueue.simulator.records.arrays import FIELDS
from btqueue.simulator.records.conventions import SECOND, SLOT, nanoseconds
from btqueue.simulator.records.nodes import ALTERNATING, CONSTANT, TRACE, TWO_STATE, channel_dtype
from btqueue.simulator.records.packets import packet_type_dtype

NS_A_MICROSECOND = 1000
"""Tables of packets are in microseconds, the simulator's clock is in nanoseconds."""
MODELS = {
    "perfect": CONSTANT,
    "constant": CONSTANT,
    "gilbert-elliott": TWO_STATE,
    "alternating": ALTERNATING,
    "trace": TRACE,
}


@dataclass(frozen=True, kw_only=True)
class RadioTables:
    """The tables of packets and of the radio.

    Attributes:
        packet_types: records of the packet types, shape (types,); types of `link.packets` come first, those
            of voice links last.
        bers: bit error rate of each level, shape (levels,).
        error_rates: packet error rate of each type, and of POLL and NULL, shape (levels, types + 1).
        level_quality: link quality of each level, shape (levels,).
        trace_levels: levels of all traces, one after the other, counted from the first of their radio.
        type_for_level: type that adaptation chooses at each level, shape (levels,).
        type_for_quality: type that adaptation chooses at each reported link quality, shape (256,).
        channels: a channel record for each radio, without random streams, shape (radios,).
    """

    packet_types: np.recarray
    bers: np.ndarray
    error_rates: np.ndarray
    level_quality: np.ndarray
    trace_levels: np.ndarray
    type_for_level: np.ndarray
    type_for_quality: np.ndarray
    channels: np.recarray

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The tables as arrays of a state, where the error rates of POLL and NULL come first."""
        names = ("trace_levels", "level_quality", "type_for_level", "type_for_quality")
        found = {name: np.asarray(getattr(self, name), FIELDS[name][0]) for name in names}
        rates = np.roll(self.error_rates, 1, axis=1)
        return found | {"error_rates": rates, "packet_types": self.packet_types}

    @cached_property
    def channel_fields(self) -> list[dict[str, object]]:
        """The fields of a channel of each radio."""
        names = self.channels.dtype.names or ()
        return [dict(zip(names, one, strict=True)) for one in self.channels.tolist()]


def radio_tables(radios: Sequence[Radio], link: Link, voice: str = "none") -> RadioTables:
    """Return the tables for the distinct settings of the radio; the first is for the network as a whole.

    Packets of extended voice links (`voice`) are the last type, which no data use.

    Tables without traces, whose files may change, are kept: the points of a study have them in common.

    Raises:
        ScenarioError: a trace file cannot be read or holds other text than values.
    """
    frozen: Any = tuple(radios), link, voice  # and so hashable
    traces = any(radio.model == "trace" for radio in radios)
    return _tables(*frozen) if traces else _kept_tables(*frozen)


def _tables(radios: Sequence[Radio], link: Link, voice: str) -> RadioTables:
    types = types_of(link)
    if voice in ESCO_PACKETS:
        types = *types, ESCO_PACKETS[voice]
    common = levels_and_channels(radios, lambda bers, radio: error_rates(types, bers, radio))
    chosen = np.zeros(256, np.int64)  # without adaptation nobody reads them
    if link.adaptation != "fixed":
        qualities = ber_from_link_quality(np.arange(256))
        chosen = chosen_types(link, types, qualities, error_rates(types, qualities, radios[0]))
    return RadioTables(
        packet_types=packet_type_records(types_of(link)),
        type_for_level=chosen_types(link, types, common["bers"], common["error_rates"]),
        type_for_quality=chosen,
        **common,
    )


def levels_and_channels(
    radios: Sequence[Radio], rates_at: Callable[[np.ndarray, Radio], np.ndarray]
) -> dict[str, Any]:
    """Return the fields of `RadioTables` that do not depend on the choice of packet types.

    Args:
        radios: the distinct settings of the radio.
        rates_at: packet error rates at bit error rates, shape (levels, types + 1).
    """
    bers, qualities, traces = zip(*map(levels_of, radios), strict=True)
    rates = [rates_at(own, radio) for own, radio in zip(bers, radios, strict=True)]
    channels = np.zeros(len(radios), channel_dtype).view(np.recarray)
    channels.first_level = np.cumsum([0, *map(len, bers)])[:-1]
    channels.trace_first = np.cumsum([0, *map(len, traces)])[:-1]
    channels.trace_length = [*map(len, traces)]
    channels.lossy = [bool(np.any(own)) for own in rates]
    for index, radio in enumerate(radios):
        _set_up_channel(channels[index], radio)
    return {
        "bers": np.concatenate(bers),
        "error_rates": np.concatenate(rates),
        "level_quality": np.concatenate(qualities),
        "trace_levels": np.concatenate(traces),
        "channels": channels,
    }


_kept_tables = lru_cache(maxsize=64)(_tables)


def types_of(link: Link) -> tuple[PacketType, ...]:
    """Return the packet types of the link: types for segmentation, then types that only adaptation uses."""
    more = link.adaptation_packets if link.adaptation == "thresholds" else ()
    return packet_types(dict.fromkeys((*link.packets, *more)))


@lru_cache(maxsize=16)
def packet_type_records(types: tuple[PacketType, ...]) -> np.recarray:
    """Return the record of each packet type; not to be changed."""
    families = list(dict.fromkeys((kind.coded, kind.bits_per_symbol) for kind in types))
    table = np.zeros(len(types), packet_type_dtype).view(np.recarray)
    table.slots = [kind.slots for kind in types]
    table.duration = table.slots * SLOT
    table.on_air = [kind.air_time_us * NS_A_MICROSECOND for kind in types]
    table.payload = [kind.payload_bytes for kind in types]
    table.family = [families.index((kind.coded, kind.bits_per_symbol)) for kind in types]
    return table


def levels_of(radio: Radio) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bit error rates and link qualities of the levels of a radio, and the level of each trace value.

    Raises:
        ScenarioError: its trace file cannot be read or holds something else than values.
    """
    if radio.model == "trace":
        values, trace = np.unique(read_trace(radio), return_inverse=True)
        if radio.trace_quantity == "link-quality":
            return ber_from_link_quality(values), values, trace
        return values, link_quality(values), trace
    bers = np.array(
        {"perfect": (0.0,), "constant": (radio.ber,)}.get(radio.model, (radio.ber_good, radio.ber_bad))
    )
    return bers, link_quality(bers), np.zeros(0, np.int64)


def error_rates(types: Sequence[PacketType], bers: np.ndarray, radio: Radio) -> np.ndarray:
    """Return the packet error rates at the bit error rates, shape (levels, types + 1).

    The last column is for POLL and NULL, which have nothing but sync word and header. A fixed `per` is that
    of every packet, whatever its length (Johansson, Kihl and Körner, NETWORKING 2000, section 4.1).
    """
    if radio.model == "constant" and radio.per is not None:
        by_channel = np.full((len(bers), len(types) + 1), radio.per)
    else:
        columns = [packet_error_rate(kind, bers, bits=radio.bits) for kind in types]
        short = reply_error_rate(bers) if radio.bits == "on-air" else np.zeros(len(bers))
        by_channel = np.stack([*columns, short], axis=1)
    on_air = np.array([*(kind.air_time_us for kind in types), PREFIX_US])
    by_neighbours = interference_rate(on_air, radio.interferers)
    return by_channel + by_neighbours - by_channel * by_neighbours


def interference_rate(on_air: np.ndarray, interferers: int) -> np.ndarray:
    """Return the probability that fully loaded neighbours spoil packets `on_air` us long."""
    return 1.0 - spared_by_neighbour(on_air) ** interferers


def chosen_types(link: Link, types: Sequence[PacketType], bers: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the type that adaptation chooses at each bit error rate, as indices into `types`.

    `thresholds`: each rate in `link.adaptation_thresholds` is the lowest at which the next of
    `link.adaptation_packets` is used. `best`: the type of `link.packets` of the largest goodput, payload
    times (1 - PER) over slots with a one-slot answer; the first of equals (Chen and others, ICC 2004,
    equation 4).
    """
    if link.adaptation == "thresholds":
        order = np.array([types.index(kind) for kind in packet_types(link.adaptation_packets)])
        return order[np.searchsorted(link.adaptation_thresholds, bers, side="right")]
    count = len(link.packets)
    rate = np.array([kind.asymmetric_kbps for kind in types[:count]])
    return np.argmax(rate * (1.0 - rates[:, :count]), axis=1)


def _set_up_channel(channel: np.record, radio: Radio) -> None:
    channel.model = MODELS[radio.model]
    channel.stationary_good = 1.0
    if radio.model == "gilbert-elliott":
        channel.stationary_good = radio.good_s / (radio.good_s + radio.bad_s)
        channel.relaxation_rate = min(1 / radio.good_s + 1 / radio.bad_s, sys.float_info.max)
        # The first look then draws from the stationary law: the far past has been forgotten.
        channel.sampled_at = -round(100 * SECOND * (radio.good_s + radio.bad_s))
    step_s = radio.trace_step_s if radio.model == "trace" else radio.period_s
    channel.step = nanoseconds(step_s)
