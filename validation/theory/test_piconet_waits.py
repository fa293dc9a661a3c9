"""Waits of the piconet: two queues in a row, buffers, windows, missing tokens, relayed segments."""

from functools import cache
from itertools import pairwise
from math import exp, factorial, inf

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polled_air import passages_of
from scipy.integrate import quad

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.piconet.air import Passage
from btqueue.network.piconet.bucket import missing
from btqueue.network.piconet.model import Plan
from btqueue.network.piconet.tails import NONE, Tail, longest
from btqueue.queueing._precision import in_float64

DATA, ACK = (5, 5, 5, 5, 3), 3
tails = st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 10.0), st.sampled_from([inf, 0.5, 3.0, 20.0]))


@in_float64
def longer(first: tuple, second: tuple, most: float = inf) -> float:
    one, other = (Tail(*map(jnp.asarray, law)) for law in (first, second))
    return float(longest(one, other, jnp.asarray(most)))


def beyond(law: tuple, time: float) -> float:
    """P(wait > time) of a finite dam."""
    share, mean, room = law
    if time >= room:
        return 0.0
    cut = share * exp(-room / mean)
    return (share * exp(-time / mean) - cut) / (1.0 - cut)


@settings(max_examples=60, deadline=None)
@given(tails, tails)
def test_the_longer_wait_of_queues_with_endless_room_is_an_integral(first, second):
    first, second = (*first[:2], inf), (*second[:2], inf)
    ends = np.concatenate([[0.0], np.geomspace(1e-3, 400.0, 30)])
    wanted = sum(
        quad(lambda t: max(beyond(first, t), beyond(second, t)), start, end)[0]
        for start, end in pairwise(ends)
    )
    found = longer(first, second)
    assert found == pytest.approx(wanted, rel=1e-5)
    alone = [share * mean for share, mean, _ in (first, second)]
    assert max(alone) * (1 - 1e-9) <= found <= sum(alone) * (1 + 1e-9)
    assert found == pytest.approx(longer(second, first), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(tails, st.floats(0.0, 30.0))
def test_a_wait_is_cut_by_its_room_and_by_a_window(law, most):
    wanted, _ = quad(lambda t: beyond(law, t), 0.0, min(most, law[2], 400.0), limit=500)
    assert longer(law, (0.0, 0.0, inf), most) == pytest.approx(wanted, rel=1e-6, abs=1e-12)


def test_the_longer_wait_has_derivatives_where_a_queue_is_empty():
    with jax.enable_x64(True):
        one = Tail(*map(jnp.asarray, (0.3, 2.0, inf)))
        slope = jax.grad(lambda mean: longest(Tail(one.share, mean, one.room), NONE, jnp.asarray(inf)))
        assert float(slope(jnp.asarray(2.0))) == pytest.approx(0.3, rel=1e-12)
        none = jax.grad(lambda mean: longest(Tail(one.share * 0.0, mean, one.room), NONE, jnp.asarray(inf)))
        assert float(none(jnp.asarray(2.0))) == 0.0


@in_float64
def missing_of(rates: tuple[float, float], prices: tuple[float, float]) -> tuple[float, float]:
    found = missing(jnp.asarray(rates), jnp.asarray(prices))
    return float(found.share), float(found.decay)


@pytest.mark.parametrize("used", [0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize(("prices", "allowed"), [(1.0, 0.1), (1.5, 0.03), (2.0, 0.01), (4.0, 0.01)])
def test_missing_tokens_of_equal_segments(used, prices, allowed):
    """The mean workload of M/D/1 beyond a depth, by A. Erlang's law (1909): the decay has its limit."""
    share, decay = missing_of((used, 0.0), (1.0, 0.1))

    def below(time: float) -> float:
        return (1.0 - used) * sum(
            (-used * (time - k)) ** k / factorial(k) * exp(used * (time - k)) for k in range(int(time) + 1)
        )

    mean = used / (2.0 * (1.0 - used))
    wanted = mean - quad(lambda time: 1.0 - below(time), 0.0, prices, points=[1.0, 2.0, 3.0])[0]
    assert share * exp(-decay * prices) / decay == pytest.approx(wanted, rel=allowed)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 0.99), st.floats(0.0, 1.0), st.floats(0.01, 0.99))
def test_the_decay_of_missing_tokens_is_a_root(used, acknowledged, price):
    rates = (used / (1.0 + acknowledged * price), acknowledged * used / (1.0 + acknowledged * price))
    share, decay = missing_of(rates, (1.0, price))
    assert sum(x * np.expm1(decay * d) for x, d in zip(rates, (1.0, price), strict=True)) == pytest.approx(
        decay, rel=1e-9
    )
    assert 0.0 < share <= 1.0 + 1e-9


def test_nothing_is_missing_where_nobody_comes():
    assert missing_of((0.0, 0.0), (1.0, 0.1))[0] == 0.0


def ring(stations: int, limit: int, **changes) -> bt.Scenario:
    """Stations that send to the next one, with room for everything."""
    common = {
        "network.flows": "ring", "network.peripherals": stations, "polling.limit": limit,
        "link.arq": "unlimited", "flow_control.enabled": False, "flow_control.baseband_packets": 200,
    }  # fmt: skip
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return bt.load("venugopal-2006/piconet").changed(common | dotted)


@in_float64
def seen(scenario: bt.Scenario, shares: np.ndarray) -> Passage:
    """What the first flow sees of the air if flows offer so many segments a slot."""
    plan = Plan(scenario, apart=False)
    system = plan.system({})
    offered = jnp.zeros(system.structure.at_port.shape[0]).at[: shares.size].set(shares) / SLOT_S
    return jax.tree.map(lambda leaf: leaf[0], passages_of(system, offered)[0])


@pytest.mark.parametrize(("stations", "limit"), [(2, 5), (7, 5), (7, 1), (4, 10), (3, 3)])
def test_a_lone_backlog_moves_by_a_cycle_of_its_own(stations, limit):
    """In an idle piconet a segment waits for each one before it as long as saturated flows take for one."""
    lone = ring(stations, limit, network__flows=[{"from": "p1.1", "to": "p1.2"}])
    greedy = bt.solve(lone.with_(traffic__source="greedy"))
    slots = 11.68 / float(greedy["goodput_kbps"].mean()) / SLOT_S
    assert float(seen(lone, np.array([1e-9])).service) == pytest.approx(slots, rel=1e-6)


@pytest.mark.parametrize(("stations", "limit", "slots"), [(2, 3, 66), (2, 5, 68), (7, 2, 101), (7, 5, 93)])
def test_an_acknowledgement_may_fill_the_visit_of_its_data(stations, limit, slots):
    """Round trips of a lone segment, played below: one empty frame less where it does."""
    found = seen(ring(stations, limit), np.full(stations, 1e-12))
    assert float(found.delay + found.answer) == pytest.approx(slots, abs=1e-4)
    starts = np.arange(0.25, 2 * stations, 0.5)
    played = np.mean([played_round_trip(stations, limit, start, None) for start in starts])
    assert played == pytest.approx(slots, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(("stations", "limit"), [(2, 1), (2, 5), (2, 10), (4, 5)])
def test_light_traffic_of_a_ring(stations, limit):
    """A second segment delays the first one, played at all offsets: to 10 %, the closure's error."""
    starts, offsets = np.arange(0.25, 2 * stations, 1.0), np.arange(-300.0, 300.0, 1.7)
    alone = {start: played_round_trip(stations, limit, start, None) for start in starts}
    played = sum(
        played_round_trip(stations, limit, start, (flow, start + offset)) - alone[start]
        for flow in range(stations)
        for start in starts
        for offset in offsets
    )
    played *= 1.7 / starts.size

    def whole(rate: float) -> float:
        found = seen(ring(stations, limit), np.full(stations, rate))
        return float(found.delay + found.answer + found.wait + found.wait_back)

    assert (whole(1e-7) - whole(1e-9)) / (1e-7 - 1e-9) == pytest.approx(played, rel=0.1)


@cache
def played_round_trip(stations: int, limit: int, start: float, other: tuple[int, float] | None) -> float:
    """Play a segment of flow 0 of a ring, and perhaps one of another flow, frame by frame (slots).

    The segment comes so long after the central begins to poll the first station in an idle cycle.
    """
    queues: list[dict] = [{"down": [], "up": []} for _ in range(stations)]
    begin = 2.0 * stations * 300
    came = [(0, begin + start)] + ([(other[0], begin + other[1])] if other else [])
    waiting, arrived = dict(enumerate(came)), [0] * len(came)
    clock, station = begin - 2.0 * stations * 250, 0
    while True:
        for _ in range(limit):
            down = queues[station]["down"].pop(0) if queues[station]["down"] else None
            end = clock + (down[1] if down else 1)
            for number, (flow, time) in sorted(waiting.items(), key=lambda item: item[1][1]):
                if flow == station and time < end:
                    queues[station]["up"] += [(number, slots, True) for slots in DATA]
                    del waiting[number]
            up = queues[station]["up"].pop(0) if queues[station]["up"] else None
            clock = end + (up[1] if up else 1)
            if down and down[2]:
                arrived[down[0]] += 1
                if arrived[down[0]] == len(DATA):  # answered in a later frame
                    queues[station]["up"].append((down[0], ACK, False))
            elif down and down[0] == 0:
                return end - begin - start
            if up:
                queues[(station + (1 if up[2] else -1)) % stations]["down"].append(up)
            if not (down or up):
                break
        station = (station + 1) % stations


@pytest.mark.parametrize("flows", ["uplink", "downlink", "ring"])
def test_a_window_is_full_at_most(flows):
    """With a window of one nobody waits for own segments; round trips grow with the window."""
    loads = {"uplink": 100.0, "downlink": 100.0, "ring": 55.0}
    found = [
        bt.solve(
            ring(4, 5, network__flows=flows, transport__receive_window_segments=window,
                 traffic__load_kbps=loads[flows])
        )
        for window in (1, 2, 4, 8, 60)
    ]  # fmt: skip
    rtt = [float(one["rtt_s"].mean()) for one in found]
    assert rtt == sorted(rtt)
    assert rtt[0] < rtt[-1]
    for window, one in zip((1, 2, 4, 8, 60), found, strict=True):
        under_way = one["goodput_kbps"] / 11.68 * one["rtt_s"]
        assert float(under_way.max()) <= window * (1 + 1e-6)
