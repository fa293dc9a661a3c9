"""The segments that Nagle's algorithm makes of a stream: conservation, limits, and the bare rule played."""

import random
from math import exp

import numpy as np
import pytest
from beside import near_simulation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import btqueue as bt
from btqueue.network.stations.nagle import Path, Source, between_short, cut, written


def path(round_trip_s: float, **changes) -> Path:
    """Return a way that takes this time for any segment, and no service at all."""
    usual = Path(round_trip_s, 0.0, 1e-9, 0.0, 1e6, 1, 0.0)
    return usual._replace(**changes)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(20, 4000), st.floats(0.1, 60.0), st.sampled_from([0.0, 0.5, 0.9]), st.booleans(),
    st.floats(0.005, 0.3), st.sampled_from([1, 2]),
)  # fmt: skip
def test_every_byte_is_sent_once(size, rate, more, periodic, round_trip_s, every):
    source = Source(size, rate, 0.0 if periodic else more, periodic)
    found = cut(source, 1000, path(round_trip_s, every=every, delay_s=0.2 * (every - 1)))
    assert sum(length * count for length, count in found.sizes) == pytest.approx(size, rel=1e-3)
    assert all(0.0 < length <= 1000.0 and count >= 0.0 for length, count in found.sizes)
    assert 0.0 <= found.released <= 1.0 + 1e-9 and 0.0 <= found.clocked <= 1.0 + 1e-9


@pytest.mark.parametrize("size", [100, 999, 1000, 1500, 2500])
def test_messages_far_apart_are_cut_each_by_itself(size):
    found = dict(cut(Source(size, 1e-4, 0.0, False), 1000, path(0.1)).sizes)
    whole, rest = divmod(size, 1000)
    expected = {1000.0: float(whole)} if whole else {}
    if rest:
        expected[float(rest)] = 1.0
    found = {round(length, 3): count for length, count in found.items() if count > 1e-3}
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("messages", [0.2, 1.0, 5.0])
def test_messages_that_never_fill_a_segment_share_rounds(messages):
    """Poisson messages at rate a with a round trip R: a round takes a R + exp(-a R) of them on average."""
    found = cut(Source(10, messages / 0.1, 0.0, False), 1000, path(0.1))
    assert found.bytes == pytest.approx(10.0 * (messages + exp(-messages)), rel=1e-6)


@pytest.mark.parametrize("law", [cut, between_short])
def test_a_released_segment_that_is_acknowledged_at_once_releases_no_other(law):
    """One is let out where a message was written in the round trip of a segment that was not let out."""
    found = law(Source(10, 20.0, 0.0, False), 1000, path(0.1, soon_s=0.1))
    written_meanwhile = 1.0 - exp(-2.0)
    assert found.released == pytest.approx(written_meanwhile / (1.0 + written_meanwhile), rel=1e-3)
    assert sum(length * count for length, count in found.sizes) == pytest.approx(10.0, rel=1e-3)


def played(size: int, rate: float, seed: int, *, minshall: bool = False) -> float:
    """Return the mean bytes of a segment of a sender that obeys the rule, by its events."""
    full, trip_s = 1000, 0.1
    draw, waiting, segments, back = random.Random(seed), 0, 0, []
    comes = draw.expovariate(rate)
    sent = left = 2000
    while left or back:
        if back and (not left or back[0] <= comes):
            now = back.pop(0)
        else:
            now, waiting, left = comes, waiting + size, left - 1
            comes += draw.expovariate(rate)
        while waiting >= full:
            waiting, segments = waiting - full, segments + 1
            if not minshall:
                back.append(now + trip_s)
        if waiting and not back:
            waiting, segments = 0, segments + 1
            back.append(now + trip_s)
    return sent * size / segments


@pytest.mark.parametrize("minshall", [False, True])
@pytest.mark.parametrize(("size", "rate"), [(300, 20.0), (700, 10.0), (1300, 8.0), (2600, 4.0)])
def test_poisson_streams_against_the_rule_played(size, rate, minshall):
    """Within 1 %, beside the 99.9 % interval of 20 runs: eight false alarms in a thousand."""
    law = between_short if minshall else cut
    found = law(Source(size, rate, 0.0, False), 1000, path(0.1)).bytes
    batches = np.array([played(size, rate, seed, minshall=minshall) for seed in range(20)])
    half_width = stats.t.ppf(0.9995, 19) * stats.sem(batches)
    assert abs(found - batches.mean()) <= 0.01 * found + half_width


@pytest.mark.parametrize(("size", "more", "hold_s"), [(1460, 0.0, 0.01), (4096, 0.6, 0.2), (2500, 0.0, 2.0)])
def test_with_minshalls_change_all_bytes_of_a_message_are_sent(size, more, hold_s):
    found = between_short(Source(size, 5.0, more, False), 1000, path(hold_s))
    assert sum(length * count for length, count in found.sizes) == pytest.approx(size, rel=1e-9)


def test_with_minshalls_change_and_no_delay_each_message_has_its_own_segments():
    found = dict(between_short(Source(2500, 5.0, 0.0, False), 1000, path(1e-9)).sizes)
    assert found == {500.0: pytest.approx(1.0), 1000.0: pytest.approx(2.0)}


@pytest.mark.parametrize("discipline", ["1-limited", "exhaustive"])
def test_acknowledgements_of_short_segments_find_no_short_segment_behind_theirs(discipline):
    """Within 2 % of simulated round trips: with data in half of the frames they were 7 % too long."""
    keys = {
        "network.flows": [{"from": "c1", "to": "p1.1"}], "link.packets": ["DM5", "DM3"],
        "traffic.message_bytes": 256, "traffic.load_kbps": 110.0, "transport.nagle": "minshall",
        "transport.delayed_ack": False, "polling.discipline": discipline, "run.duration_s": 300,
    }  # fmt: skip
    near_simulation(bt.Scenario().changed(keys), rtt_s=0.02)


@pytest.mark.parametrize("within", [False, True])
def test_messages_of_a_time_are_a_poisson_number_of_geometric_bursts(within):
    """Bursts of this time by their number, and the rest of the burst in which it begins."""
    source, seconds, counts = Source(100, 30.0, 0.6, False), 0.2, np.arange(60)
    bursts = stats.poisson.pmf(np.arange(60), source.rate * (1.0 - source.more) * seconds)
    law = np.eye(60)[0] * bursts[0]
    for number in range(1, 60):
        law += bursts[number] * stats.nbinom.pmf(counts - number, number, 1.0 - source.more)
    if within:
        law = np.convolve(stats.geom.pmf(counts, 1.0 - source.more), law)[:60]
    np.testing.assert_allclose(written(source, seconds, 60, within=within), law, atol=1e-12)


STAR = {
    "link.packets": ["DH5", "DH1"], "transport.delayed_ack": False, "traffic.message_bytes": 100,
    "run.duration_s": 300,
}  # fmt: skip


@pytest.mark.parametrize("load", [80.0, 148.0])
def test_short_messages_beside_a_full_window_settle_at_the_round_trip_of_shared_segments(load):
    """Messages alone would overload the link. With full segments round trips were 52 % too long."""
    flows = [{"from": "p1.1", "to": "c1", "law": "greedy"}, {"from": "p1.2", "to": "c1", "load_kbps": load}]
    scenario = bt.Scenario().changed(STAR | {"network.flows": flows})
    law, simulated = (one(scenario) for one in (bt.solve, bt.simulate))
    for name, tolerance in (("goodput_kbps", 0.03), ("rtt_s", 0.05)):
        expected = np.asarray(simulated[name], float).mean(axis=0)
        assert np.asarray(law[name], float) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("load", [100.0, 260.0])
def test_messages_that_wait_for_room_in_the_window_share_segments_without_nagles_algorithm(load):
    """Messages alone carry 130 kbit/s; beyond, the goodput is right and the round trip in doubt."""
    flows = [{"from": "p1.1", "to": "c1", "load_kbps": load}]
    keys = {"network.peripherals": 1, "network.flows": flows, "transport.nagle": False}
    found = bt.solve(bt.Scenario().changed(STAR | keys))
    assert float(found["goodput_kbps"][0]) == pytest.approx(load, rel=1e-6)
    assert found.attrs["stands"] == (load < 130.0)
