"""Slots that voice leaves to the polling cycle, against an enumeration slot by slot."""

from types import SimpleNamespace

import numpy as np
import pytest
from beside import near_simulation
from hypothesis import given
from hypothesis import strategies as st

import btqueue as bt
from btqueue.baseband.voice import VOICE_PERIOD_SLOTS, VoiceLinks
from btqueue.simulator.records.conventions import NEVER, SECOND, SLOT, UNLIMITED
from btqueue.simulator.records.packets import ACK, DATA
from btqueue.simulator.traces import trace
from btqueue.simulator.traces.trace_files import record

RESERVATIONS = {"none": (0, 0), "1 HV3": (6, 2), "2 HV3": (6, 4), "1 HV2": (4, 2)}
NO_ROOM = {"3 HV3": (6, 6), "2 HV2": (4, 4), "1 HV1": (2, 2)}


def central(name):
    period, reserved = (RESERVATIONS | NO_ROOM)[name]
    return SimpleNamespace(voice_period=period * SLOT, voice_reserved=reserved * SLOT)


def is_free(name, tick, ticks_a_slot):
    """Whether the air is free in this tick."""
    period, reserved = RESERVATIONS[name]
    return period == 0 or tick % (period * ticks_a_slot) >= reserved * ticks_a_slot


def first_start(name, now, ticks_a_slot):
    """The first tick from `now` on with two whole slots of free air after it, found by trying each."""
    while not all(is_free(name, now + tick, ticks_a_slot) for tick in range(2 * ticks_a_slot)):
        now += 1
    return now


# Ticks of a fifth of a slot, so that times off the grid of slots occur too.
TICKS = 5
TICK = SLOT // TICKS
times = st.integers(0, 60 * TICKS)
names = st.sampled_from(sorted(RESERVATIONS))


@given(names, times)
def test_a_frame_starts_as_soon_as_two_slots_are_free(plain, name, now):
    assert plain.voice.next_start(central(name), now * TICK) == first_start(name, now, TICKS) * TICK


@given(names, times)
def test_room_is_the_free_air_from_now_on(plain, name, now):
    free = 0
    while is_free(name, now + free, TICKS) and free < 100 * TICKS:
        free += 1
    room = plain.voice.room(central(name), now * TICK)
    assert room == (UNLIMITED if name == "none" else free * TICK)


@pytest.mark.parametrize("name", NO_ROOM)
def test_voice_in_every_slot_leaves_no_visit(plain, name):
    assert plain.voice.next_start(central(name), 5 * SLOT) == NEVER


def alone(packet, **changes):
    """A sensor beside one voice link, so that each frame is of two slots and each visit one frame."""
    return bt.Scenario(
        network={"peripherals": 1, "flows": "uplink"},
        link={"packets": ["DH1"], "arq": "none"},
        polling={"limit": 1},
        voice={"packet": packet, **changes.pop("voice", {})},
        radio={"model": "constant", **changes},
        traffic={"source": "periodic", "load_kbps": 8, "message_bytes": 20},
        transport={"protocol": "none"},
        run={"duration_s": 54, "warmup_s": 5.4, "replications": 2},
    )


def frames_a_period(scenario):
    """Frames of data, or of POLL and NULL, that the simulator plays in a period of the voice link."""
    polls = bt.simulate(scenario)["polls_per_s"].to_numpy()
    return polls[:, 0] * VOICE_PERIOD_SLOTS[scenario.voice.packet] * SLOT / SECOND


@pytest.mark.parametrize(
    ("packet", "free", "window"),
    [
        ("EV3", 4, 2),
        ("EV4", 18, 6),
        ("EV5", 30, 6),
        ("2-EV3", 10, 2),
        ("3-EV3", 16, 2),
        ("2-EV5", 66, 6),
        ("3-EV5", 102, 6),
    ],
)
def test_data_have_all_slots_but_the_reserved_and_the_repeated(packet, free, window):
    """Without errors no slot of the window is used; if every packet is damaged, all of it is."""
    assert frames_a_period(alone(packet, per=0.0)) == pytest.approx(free / 2, rel=1e-3)
    assert frames_a_period(alone(packet, per=1.0)) == pytest.approx((free - window) / 2, rel=1e-3)
    without = alone(packet, per=1.0, voice={"retransmission_slots": 0})
    assert frames_a_period(without) == pytest.approx(free / 2, rel=1e-3)


def test_windows_of_several_links_follow_each_other():
    scenario = alone("2-EV3", per=1.0, voice={"links": 2, "retransmission_slots": 4})
    assert frames_a_period(scenario).tolist() == [0, 0], "4 reserved slots and 8 repeated ones"
    scenario = alone("3-EV3", per=1.0, voice={"links": 2, "retransmission_slots": 4})
    assert frames_a_period(scenario) == pytest.approx((18 - 4 - 8) / 2, rel=1e-3)


@pytest.mark.parametrize(("packet", "window"), [("2-EV3", 2), ("2-EV3", 6), ("EV5", 6), ("EV5", 16)])
def test_repetitions_take_the_slots_that_theory_says(packet, window):
    """Four standard errors: a right simulator fails once in 16,000 runs of a case."""
    per = 0.3
    scenario = alone(packet, per=per, voice={"retransmission_slots": window})
    voice = VoiceLinks(packet=packet, window=window)
    slots, chances = np.array([*voice.repeats(per, per).items()]).T
    mean = chances @ slots
    variance = chances @ (slots - mean) ** 2
    frames = frames_a_period(scenario)
    periods = len(frames) * 54 / (voice.period * SLOT / SECOND)
    error = (variance / periods) ** 0.5 / 2
    assert frames.mean() == pytest.approx((voice.gap - mean) / 2, abs=4 * error)
    solved = bt.solve(scenario)["slot_utilisation"]
    assert bt.simulate(scenario)["slot_utilisation"].mean() == pytest.approx(float(solved), rel=0.02)


def test_a_download_beside_a_call_is_as_fast_as_theory_says():
    """Gaps of ten slots hold one frame of six slots, the next must wait: half of the slots, and not 10/12."""
    scenario = bt.Scenario(
        network={"peripherals": 1, "flows": "downlink"},
        link={"packets": ["DH5"]},
        voice={"packet": "2-EV3"},
        radio={"model": "constant", "ber": 1e-4},
        run={"duration_s": 60, "warmup_s": 5, "replications": 4},
    )
    near_simulation(scenario, goodput_kbps=0.04)


def download_beside_voice(packet, rate, members):
    """Return a greedy download to the first of some members, beside a voice link."""
    keys = {
        "network.peripherals": members, "network.flows": [{"from": "c1", "to": "p1.1"}], "link.rate": rate,
        "voice.packet": packet, "traffic.source": "greedy", "run.duration_s": 60, "run.replications": 2,
    }  # fmt: skip
    return bt.Scenario().changed(keys)


@pytest.mark.parametrize("members", [1, 2, 4, 5])
def test_polls_of_idle_links_take_further_gaps_and_no_link_starves(members):
    """A gap of HV3 holds one DH3 packet with its answer, or two idle polls; visits have five packets.

    A segment takes nine gaps, and half a gap for its share of an acknowledgement. A central that spends its
    visit on POLL where data do not fit passes on for ever: with an even number of links nothing came through.
    """
    scenario = download_beside_voice("HV3", "basic", members)
    gaps = 9.5 * (1.0 + (members // 2) / 5.0)
    simulated = float(bt.simulate(scenario)["goodput_kbps"].mean())
    assert simulated == pytest.approx(1460 * 8e-3 / (gaps * 6 * 625e-6), rel=0.005)


def test_a_segment_beside_a_call_and_an_idle_link_slot_by_slot():
    """By hand: the gaps are slots 2 to 5 of every 6, and a DH3 packet with its answer fills one.

    A window of one segment of nine packets, in visits of five. Gaps 0 to 4: the first visit. Gap 5: the idle
    link is polled in two slots, and the next DH3 packet does not fit into the two that are left. Gaps 6 to 9:
    the last four packets. Gap 10: the acknowledgement of 44 bytes answers the POLL as a DH3 packet, the fifth
    frame of the visit, from slot 63 to 65. Gap 11: the idle link. The next segment begins in slot 74, 12 gaps
    behind the last, so a round trip is 72 slots of 625 microseconds. A central that spends the rest of gap 5
    on POLL and passes on meets the same rest in every gap: packet 6 is never sent.
    """
    keys = {
        "link.packets": ["DH3", "DH1"], "polling.limit": 5, "traffic.message_bytes": 1460,
        "transport.receive_window_segments": 1, "transport.mss_bytes": 1460, "transport.delayed_ack": False,
    }  # fmt: skip
    scenario = download_beside_voice("HV3", "basic", 2).changed(keys)
    sent: list[tuple[int, int]] = []
    record(scenario.with_(run__duration_s=0.1, run__warmup_s=0), more=[
        lambda log: sent.extend(
            (int(one.kind), int(one.time) // SLOT) for one in log if one.event == trace.PACKET_TRANSMITTED
        )
    ])  # fmt: skip
    round_trip = [(DATA, 6 * gap + 2) for gap in (0, 1, 2, 3, 4, 6, 7, 8, 9)] + [(ACK, 63)]
    assert sent[:20] == round_trip + [(kind, slot + 72) for kind, slot in round_trip]
    assert bt.simulate(scenario)["rtt_s"].values == pytest.approx(72 * SLOT / SECOND)


@pytest.mark.parametrize(
    ("packet", "rate", "within"),
    [("HV3", "basic", 0.02), ("HV3", "edr3", 0.02), ("2-EV3", "edr2", 0.02), ("2-EV3", "edr3", 0.03)],
)
@pytest.mark.parametrize("members", [1, 2, 4, 5])
def test_idle_links_beside_voice_cost_a_download_as_much_as_theory_says(packet, rate, within, members):
    near_simulation(download_beside_voice(packet, rate, members), goodput_kbps=within)


@pytest.mark.parametrize("discipline", ["1-limited", "gated", "e-limited", "lwrr"])
def test_a_member_whose_answer_does_not_fit_before_a_voice_slot_answers_in_the_next_gap(discipline):
    flows = [{"from": "p1.1", "to": "c1", "load_kbps": 60.0}]
    keys = {"network.peripherals": 2, "network.flows": flows, "voice.packet": "HV3", "run.duration_s": 120}
    found = bt.simulate(bt.Scenario().changed(keys | {"polling.discipline": discipline}))
    assert float(found["goodput_kbps"].mean()) == pytest.approx(60.0, rel=0.05)
