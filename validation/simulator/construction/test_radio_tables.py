"""Tables of the radio: error rates and levels of every model, traces, interference, types chosen."""

from typing import Any

import numpy as np
import pytest

from btqueue.baseband import PACKET_TYPES
from btqueue.channel import (
    ber_from_link_quality,
    best_packet,
    link_quality,
    packet_error_rate,
    reply_error_rate,
)
from btqueue.scenario import ScenarioError
from btqueue.scenario.link import Link
from btqueue.scenario.radio import Radio

APT = ("DH5", "DM5", "DM3", "DM1")
"""The types of Chen and others (2004), whose thresholds are the defaults."""


TWO_TYPES: dict[str, Any] = {"packets": ("DH5", "DH3")}


@pytest.fixture(scope="session")
def tables(plain):
    """`tables(radio, ..., **link)`: the tables of these radios on a link, of two packet types by default."""
    return lambda *radios, **link: plain.radio_tables.radio_tables(radios, Link(**{**TWO_TYPES, **link}))


def trace_radio(path, text, **keys):
    path.write_text(text)
    return Radio(model="trace", trace_file=str(path), **keys)


def test_on_air_errors_hit_poll_and_null_too(tables):
    table = tables(Radio(model="constant", ber=1e-3, bits="on-air"), packets=("DM3",))
    expected = [packet_error_rate(PACKET_TYPES["DM3"], 1e-3, bits="on-air"), reply_error_rate(1e-3)]
    assert table.error_rates[0].tolist() == [float(rate) for rate in expected]
    assert table.error_rates[0, 1] > 0


def test_a_fixed_packet_error_rate_is_the_same_for_all_and_of_no_account_in_another_model(tables):
    radio = Radio(model="constant", per=0.3)
    assert tables(radio).error_rates.tolist() == [[0.3, 0.3, 0.3]]
    assert tables(radio).channels[0].lossy
    # a link that overrides the model of a radio with `per`
    assert not tables(radio.model_copy(update={"model": "perfect"})).error_rates.any()


def test_distinct_values_of_a_trace_become_levels(tmp_path, tables):
    text = "# header\n1e-3\n\n0 # quiet\n 1e-3\n0.5\n"
    table = tables(trace_radio(tmp_path / "trace", text, trace_step_s=0.25, bits="on-air"))
    channel = table.channels[0]
    assert table.bers.tolist() == [0, 1e-3, 0.5]
    assert table.trace_levels.tolist() == [1, 0, 1, 2]
    assert table.level_quality.tolist() == [255, 215, link_quality(0.5)]
    assert (channel.trace_first, channel.trace_length, channel.step) == (0, 4, 250_000_000)


@pytest.mark.parametrize(
    ("text", "quantity", "why"),
    [
        ("0\n\n-1e-9\n", "ber", "line 3.*bit error rate"),
        ("0.51", "ber", "line 1.*bit error rate"),
        ("# x\n0,5\n", "ber", "line 2"),
        ("nan", "ber", "line 1"),
        ("0\ninf", "link-quality", "line 2"),
        ("255.5", "link-quality", "line 1.*link quality"),
        ("# nothing\n\n", "ber", "no value"),
    ],
)
def test_mistakes_in_a_trace_are_named_with_file_and_line(tmp_path, tables, text, quantity, why):
    radio = trace_radio(tmp_path / "noise.txt", text, trace_quantity=quantity)
    with pytest.raises(ScenarioError, match=rf"noise.txt.*{why}"):
        tables(radio)


@pytest.mark.parametrize("name", ["DH1", "DM3", "DH5", "3-DH5"])
@pytest.mark.parametrize("interferers", [0, 1, 7])
def test_interference_is_the_mean_over_all_phases(plain, name, interferers):
    on_air_us, slot_us, neighbour_us = PACKET_TYPES[name].air_time_us, 625, 366
    survivals = []
    for phase in range(slot_us):  # the neighbour's packets begin half a microsecond after whole ones
        starts = np.arange(-1, 8) * slot_us + phase + 0.5
        met = np.count_nonzero((starts < on_air_us) & (starts + neighbour_us > 0))
        survivals.append((78 / 79) ** met)
    exact = 1 - np.mean(survivals) ** interferers
    rate = plain.radio_tables.interference_rate(np.array([on_air_us]), interferers)
    assert rate == pytest.approx([exact], rel=1e-12, abs=1e-15)


def test_interference_adds_to_the_errors_of_the_channel(tables):
    quiet, alone, both = (
        tables(Radio(model="constant", bits="on-air", ber=ber, interferers=interferers)).error_rates
        for ber, interferers in ((1e-4, 0), (0.0, 5), (1e-4, 5))
    )
    assert 1 - both == pytest.approx((1 - quiet) * (1 - alone), rel=1e-12)
    assert alone[0, -1] == pytest.approx(1 - (1 - 492 / 625 / 79) ** 5, rel=1e-12)  # POLL: at most one packet


@pytest.mark.parametrize(
    ("ber", "name"),
    [
        *((0.0, "DH5"), (0.00015289, "DH5"), (0.0001529, "DM5"), (0.0060794, "DM5")),
        *((0.0060795, "DM3"), (0.0157812, "DM3"), (0.0157813, "DM1"), (0.5, "DM1")),
    ],
)
def test_a_threshold_is_the_lowest_rate_of_the_next_type(tables, ber, name):
    table = tables(Radio(model="constant", ber=ber), packets=APT, adaptation="thresholds")
    assert APT[table.type_for_level[0]] == name


def test_types_by_link_quality_change_where_the_paper_says(tables):
    # Chen and others (2004), with whole numbers: DH5 down to 249, DM5 to 208, DM3 to 196, DM1 below
    chosen = tables(Radio(), packets=APT, adaptation="thresholds").type_for_quality
    names = np.array(APT)[chosen]
    assert names[[255, 249, 248, 208, 207, 196, 195, 0]].tolist() == [
        "DH5", "DH5", "DM5", "DM5", "DM3", "DM3", "DM1", "DM1"
    ]  # fmt: skip
    assert (np.diff(chosen) <= 0).all()


@pytest.mark.parametrize("bits", ["payload", "on-air"])
def test_the_best_type_is_that_of_highest_goodput(tmp_path, tables, bits):
    bers = np.geomspace(1e-6, 0.1, 60)
    names = ("DH1", "DM1", "DH3", "DM3", "DH5", "DM5")
    radio = trace_radio(tmp_path / "trace", "\n".join(map(repr, bers.tolist())), bits=bits)
    table = tables(radio, packets=names, adaptation="best")
    kinds = [PACKET_TYPES[name] for name in names]
    assert [names[k] for k in table.type_for_level] == [best_packet(kinds, b, bits=bits).name for b in bers]
    assert len(set(table.type_for_level.tolist())) == 4
    qualities = ber_from_link_quality(np.arange(256))
    best = [best_packet(kinds, b, bits=bits).name for b in qualities]
    assert [names[k] for k in table.type_for_quality] == best
