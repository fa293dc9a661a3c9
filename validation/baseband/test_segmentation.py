"""Both segmentation policies: published cuts, defining properties, and exhaustive search on small frames."""

import itertools
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btqueue.baseband import PACKET_TYPES, Fragment, PacketType, Segmentation, packet_types, segment

METHODS: tuple[Segmentation, ...] = ("osu", "best-fit")
frames = st.integers(1, 4000)
type_sets = st.lists(st.sampled_from(list(PACKET_TYPES.values())), min_size=1, max_size=6, unique=True)


def _names(fragments: tuple[Fragment, ...]) -> list[str]:
    return [fragment.packet.name for fragment in fragments]


def _slots(packets: list[PacketType]) -> int:
    """Slots of the packets, each with its one-slot reply."""
    return sum(packet.slots + 1 for packet in packets)


def test_a_full_tcp_segment_takes_four_dh5_and_one_dh3_and_its_acknowledgement_a_dh3() -> None:
    fragments = segment(1504, packet_types(["DH5", "DH3"]))
    assert _names(fragments) == ["DH5"] * 4 + ["DH3"]
    assert [f.carried_bytes for f in fragments] == [339] * 4 + [148]
    assert [f.padding_bytes for f in fragments] == [0] * 4 + [35]
    assert _names(segment(44, packet_types(["DH5", "DH3"]))) == ["DH3"]


def test_osu_tail_prefers_fewer_slots_to_smaller_payload() -> None:
    # 300 bytes fit DH5 (339 bytes, 5 slots) and 2-DH3 (367 bytes, 3 slots); 2-DH5 is the largest
    fragments = segment(679 + 300, packet_types(["DH5", "2-DH3", "2-DH5"]))
    assert _names(fragments) == ["2-DH5", "2-DH3"]


def test_best_fit_trades_packets_for_padding() -> None:
    types = packet_types(["DH5", "DH3", "DH1"])
    fragments = segment(1504, types, "best-fit")
    assert _names(fragments) == ["DH5"] * 4 + ["DH1"] * 6
    assert sum(f.padding_bytes for f in fragments) == 14


@given(frames, type_sets, st.sampled_from(METHODS))
def test_fragments_carry_exactly_the_frame(pdu: int, types: list[PacketType], method: Segmentation) -> None:
    fragments = segment(pdu, types, method)
    assert sum(f.carried_bytes for f in fragments) == pdu
    assert all(1 <= f.carried_bytes <= f.packet.payload_bytes for f in fragments)
    assert all(f.padding_bytes == 0 for f in fragments[:-1])
    assert all(f.packet in types for f in fragments)


@given(frames, type_sets, st.sampled_from(METHODS), st.randoms(use_true_random=False))
def test_order_of_the_allowed_types_does_not_matter(
    pdu: int, types: list[PacketType], method: Segmentation, random: Random
) -> None:
    shuffled = list(types)
    random.shuffle(shuffled)
    assert segment(pdu, shuffled, method) == segment(pdu, types, method)


@given(frames, type_sets)
def test_osu_takes_the_fewest_packets_any_cut_can(pdu: int, types: list[PacketType]) -> None:
    largest = max(t.payload_bytes for t in types)
    count = len(segment(pdu, types, "osu"))
    assert count == -(-pdu // largest)
    assert count <= len(segment(pdu, types, "best-fit"))


@given(frames, type_sets)
def test_best_fit_never_pads_more_than_osu(pdu: int, types: list[PacketType]) -> None:
    def padding(method: Segmentation) -> int:
        return sum(f.padding_bytes for f in segment(pdu, types, method))

    assert padding("best-fit") <= padding("osu")


@pytest.mark.parametrize("pdu", range(1, 121, 7))
def test_best_fit_rest_is_the_best_of_all_covers(pdu: int) -> None:
    # payloads of 121, 83, 27 and 17 bytes: every frame below 121 is all "rest"
    types = packet_types(["DM3", "3-DH1", "DH1", "DM1"])
    covers = (
        [t for t, count in zip(types, counts, strict=True) for _ in range(count)]
        for counts in itertools.product(range(2), range(3), range(6), range(9))
    )
    best = min(
        (capacity - pdu, _slots(cover))
        for cover in covers
        if (capacity := sum(t.payload_bytes for t in cover)) >= pdu
    )
    fragments = segment(pdu, types, "best-fit")
    assert (sum(f.padding_bytes for f in fragments), _slots([f.packet for f in fragments])) == best


def test_bad_input_is_named() -> None:
    types = packet_types(["DH5"])
    with pytest.raises(ValueError, match="pdu_bytes"):
        segment(0, types)
    with pytest.raises(ValueError, match="at least one packet type"):
        segment(1, [])
    unknown: Any = "greedy"
    with pytest.raises(ValueError, match="osu, best-fit"):
        segment(1, types, unknown)
