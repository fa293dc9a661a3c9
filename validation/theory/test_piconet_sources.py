"""Sources, delayed acknowledgements and polling of a piconet of queues: exact values, limits, scope."""

from itertools import combinations
from math import factorial, inf, prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson
from single_systems import by_model

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.models import MODELS
from btqueue.network.piconet import sources
from btqueue.network.piconet.bucket import Polled, polled_loss, queue_loss
from btqueue.network.piconet.disciplines import visits_of
from btqueue.network.piconet.saturation import vegas_window
from btqueue.network.piconet.sources import Source, batches, growth, within
from btqueue.network.piconet.structure import LARGEST_QUEUE
from btqueue.scenario.polling import Polling
from btqueue.scenario.scope import problems_of

answers = jax.jit(sources.answers, static_argnames="tick")
always_polled = jax.jit(polled_loss, static_argnames=("size", "frames"))
alone_loss = jax.jit(queue_loss, static_argnames="size")
LOSSY = {"link__arq": "none", "radio__model": "constant", "radio__ber": 1e-5}
SHARES = st.lists(st.floats(0.0, 0.3), min_size=1, max_size=7)
SLOTS, ACK = 23 + 5, 3 + 1
"""Of a segment of five packets in frames of their own, and of its acknowledgement."""


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


def star(**changes) -> bt.Scenario:
    """Clients that send to their access point, with repetition and room for everything."""
    common = {
        "network.flows": "uplink", "link.arq": "unlimited", "flow_control.enabled": False,
        "flow_control.baseband_packets": 400, "traffic.load_kbps": 50.0,    }  # fmt: skip
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return bt.load("venugopal-2006/piconet").changed(common | dotted)


def mean(scenario: bt.Scenario, metric: str) -> float:
    found = bt.solve(scenario)
    assert found.attrs["model"] == "piconet"
    return float(found[metric].mean())


# ------------------------------------------------------------------------------------------ delayed answers


@given(st.floats(0.01, 60.0), st.integers(1, 9), st.booleans())
def test_delayed_answers_count_segments(rate, every, tick):
    """From the law of the segments in a timer, or since a tick."""
    delay = 0.2
    number = np.arange(200)
    law, beyond = poisson.pmf(number, rate * delay), poisson.sf(number, rate * delay)
    if tick:
        sent, waiting = law @ np.ceil(number / every), beyond[number % every != 0].sum() / rate
        share, wait = sent / (rate * delay), waiting / sent
    else:
        more = law @ np.minimum(number, every - 1)
        share, wait = 1.0 / (1.0 + more), more / rate
    found = answers(*(jnp.asarray(x) for x in (rate, 1.0, float(every), delay, 0.0)), tick=tick)
    assert float(found.share) == pytest.approx(share, rel=1e-8)
    assert float(found.wait_s) == pytest.approx(wait, rel=1e-8, abs=1e-12)


def answered(gap, segments: int, every: int, delay: float, tick: bool) -> np.ndarray:
    """Follow messages that come at once after such gaps: a row of each acknowledgement.

    Of its wait, its segments, whether a clock sent it, and how many segments of one message are ahead of its
    first, or are waited for.
    """
    rows, held, start, place, due = [], 0, 0.0, 0, inf
    for message, now in enumerate(np.cumsum(gap)):
        if held and due <= now:
            rows.append((due - start, held, 1.0, place))
            held = 0
        for own in range(segments):
            if not held:
                start, place, begun = now, own, message
                due = (now // delay + 1.0) * delay if tick else now + delay
            held += 1
            if held == every:
                waited_for = own - place if begun == message else own + 1
                rows.append((now - start, held, 0.0, place + waited_for))
                held = 0
    return np.array(rows)


@pytest.mark.parametrize(
    ("rate", "segments", "every"),
    [(5.0, 1, 2), (9.0, 2, 3), (6.0, 3, 2), (2.0, 5, 3), (4.0, 2, 7), (1.0, 9, 4)],
)
@pytest.mark.parametrize("tick", [False, True])
def test_delayed_answers_of_messages_are_those_of_followed_ones(rate, segments, every, tick):
    """Within 4.5 standard errors of 20 batches: one false alarm in 60 runs of its 48 comparisons."""
    rng = np.random.default_rng(1)
    rows = answered(rng.exponential(1.0 / rate, 10_000), segments, every, 0.2, tick)
    found = answers(*(jnp.asarray(float(x)) for x in (rate, segments, every, 0.2, 0.0)), tick=tick)
    behind = float(found.behind) + (segments - 1.0) / 2.0
    for value, column in zip((found.wait_s, 1.0 / found.share, found.clocked, behind), rows.T, strict=True):
        means = np.array([batch.mean() for batch in np.array_split(column, 20)])
        error = means.std(ddof=1) / 20**0.5
        assert float(value) == pytest.approx(means.mean(), abs=4.5 * error + 1e-9)


def test_a_tick_parts_messages():
    """Two segments fill an acknowledgement, but not if a tick falls between them."""
    apart_s, rate, delay = 0.01, 5.0, 0.2
    found = answers(*(jnp.asarray(x) for x in (rate, 2.0, 2.0, delay, apart_s)), tick=True)
    whole = answers(*(jnp.asarray(x) for x in (rate, 2.0, 2.0, delay, 0.0)), tick=True)
    assert (float(whole.share), float(whole.wait_s)) == pytest.approx((0.5, 0.0), abs=1e-12)
    parted = rate * apart_s  # chance that a period begins within a message, and that it ends there
    sent = rate * delay + parted * (1.0 - parted)  # one more if either, not both
    assert float(found.share) * 2.0 * rate * delay == pytest.approx(sent)
    assert float(found.wait_s) == pytest.approx(parted * delay / sent)


# ---------------------------------------------------------------------------------------------------- sources


@given(SHARES)
def test_periodic_streams_beget_falling_factorials_of_work(shares):
    expected = sum(
        factorial(j) * sum(prod(c) for c in combinations(shares, j)) for j in range(len(shares) + 1)
    )
    found = growth(jnp.array(shares), jnp.ones(len(shares)))
    assert float(found) == pytest.approx(expected, rel=1e-9)
    if (total := sum(shares)) < 0.9:
        assert float(found) <= 1.0 / (1.0 - total) * (1.0 + 1e-9)  # Poisson streams are never more regular
        assert float(growth(jnp.array(shares), jnp.zeros(len(shares)))) == pytest.approx(1.0 / (1.0 - total))


def test_two_periodic_streams_before_a_third():
    """The wait that a message finds, over all phases of two others: (s / 2) (growth - 1)."""
    service, steps = 0.3, 600
    phases = (np.arange(steps) + 0.5) / steps  # time since they came, of a period 1
    first, second = np.meshgrid(phases, phases)
    late, early = np.minimum(first, second), np.maximum(first, second)
    work = np.maximum(np.maximum(service - (early - late), 0.0) + service - late, 0.0)
    found = growth(jnp.full(2, service), jnp.ones(2))
    assert work.mean() == pytest.approx(service / 2 * (float(found) - 1.0), rel=1e-4)


def test_a_flush_timeout_matters_where_segments_are_old():
    """Next to none is seven times as old as the mean; without errors nothing is given up at all."""
    noisy = {"radio__model": "constant", "radio__ber": 3e-5}
    late = star(link__flush_timeout_s=1.0, **noisy)
    assert mean(late, "rtt_s") == mean(star(**noisy), "rtt_s")
    with pytest.raises(NoConvergence, match="flush_timeout_s"):
        by_model(late.with_(link__flush_timeout_s=0.05))
    assert mean(star(link__flush_timeout_s=0.01), "rtt_s") == mean(star(), "rtt_s")


def test_a_batch_of_one_is_a_poisson_source():
    rate = 0.01
    source = Source(jnp.ones(1), jnp.zeros(1), jnp.ones(1))
    alone = batches(source, jnp.asarray(2.0 * (1.0 - rate) ** 2 - 1.0 + rate), jnp.full(1, rate))
    assert alone.ahead == pytest.approx(0.0, abs=1e-12)
    bursts = batches(source, jnp.asarray(20.0), jnp.full(1, rate))
    assert float(bursts.ahead[0]) == pytest.approx(21.0 / 2.0 - 1.0, rel=0.05)  # (scv - 1) / 2, nearly


@given(st.integers(1, 30), st.integers(1, 40))
def test_a_window_lets_segments_of_a_message_out(size, window):
    ahead = np.minimum(np.arange(size), window - 1).mean()
    assert float(within(jnp.asarray((size - 1) / 2), jnp.asarray(float(window)))) == pytest.approx(ahead)
    assert float(within(jnp.asarray((size - 1) / 2), jnp.asarray(inf))) == pytest.approx((size - 1) / 2)


def test_a_lone_periodic_flow_never_waits():
    lone = star(network__peripherals=1, traffic__source="periodic", run__jitter_s=0.001)
    times = [mean(lone.with_(traffic__load_kbps=load), "rtt_s") for load in (20, 200, 400)]
    assert times[1:] == pytest.approx(times[:1] * 2, rel=1e-6)


def test_bursts_of_bursty_sources_wait_behind_themselves():
    # an acknowledged window of 8: in long bursts each segment waits for seven others
    long = star(traffic__source="ibp", traffic__scv=2000.0, traffic__load_kbps=5.0)
    alone = mean(star(traffic__load_kbps=0.01), "rtt_s")
    seconds = mean(long, "rtt_s")
    assert 0.9 * 8 * (SLOTS + 2) * SLOT_S < seconds < 8 * (SLOTS + ACK) * SLOT_S + alone
    poisson_like = mean(long.with_(traffic__scv=1.0), "rtt_s")
    assert poisson_like == pytest.approx(mean(star(traffic__load_kbps=5.0), "rtt_s"), rel=0.01)


# ---------------------------------------------------------------------------------------------- stop and wait


@pytest.mark.parametrize("flows", ["uplink", "downlink"])
@pytest.mark.parametrize(("window", "delayed"), [(1, False), (2, True)])
def test_a_window_that_is_answered_as_a_whole(flows, window, delayed):
    """No frames are shared, and each exchange ends with an empty frame: played by hand."""
    found = bt.solve(
        star(network__flows=flows, traffic__source="greedy", transport__receive_window_segments=window,
             transport__delayed_ack=delayed)
    )  # fmt: skip
    slots = 2 * (window * SLOTS + ACK + 2)
    assert float(found["goodput_kbps"].mean()) == pytest.approx(window * 11.68 / (slots * SLOT_S), rel=1e-6)
    assert float(found["rtt_s"].mean()) == pytest.approx(slots * SLOT_S, rel=1e-6)


@pytest.mark.parametrize("flows", ["uplink", "downlink"])
def test_one_link_with_a_window_of_one(flows):
    """30 slots of data, 6 of the acknowledgement, and an empty frame: simulated exactly so."""
    lone = star(
        network__peripherals=1, network__flows=flows, link__packets=["DH5", "DH1"],
        transport__receive_window_segments=1, traffic__source="greedy",
    )  # fmt: skip
    assert float(bt.solve(lone)["rtt_s"][0]) == pytest.approx(38 * SLOT_S, rel=1e-9)


def test_a_window_of_one_serves_messages_one_segment_a_round_trip():
    """Alone: a round trip for each segment before the last. At load: Pollaczek and Khinchin's wait."""
    one = {"network__peripherals": 1, "transport__receive_window_segments": 1}
    found = {number: bt.solve(star(**one, traffic__message_bytes=number * 1460, traffic__load_kbps=1e-3))
             for number in (1, 4)}  # fmt: skip
    apart = float(found[4]["delay_s"][0] - found[1]["delay_s"][0])
    assert apart == pytest.approx(3.0 * float(found[1]["rtt_s"][0]), rel=1e-4)
    busy = bt.solve(star(**one, traffic__load_kbps=100.0))
    service_s, rate = float(busy["rtt_s"][0]), 100.0 / 11.68
    wait_s = rate * service_s**2 / 2.0 / (1.0 - rate * service_s)
    rest_s = float(found[1]["rtt_s"][0] - found[1]["delay_s"][0])
    assert float(busy["delay_s"][0]) == pytest.approx(wait_s + service_s - rest_s, rel=0.02)


def test_no_more_than_a_window_is_ahead_of_a_segment():
    """However many messages wait at their sender: W - 1 own segments at most, of 30 slots each."""
    for window in (2, 3, 5):
        long = star(traffic__message_bytes=20 * 1460, traffic__load_kbps=200.0, network__peripherals=1,
                    transport__receive_window_segments=window)  # fmt: skip
        lone = star(traffic__load_kbps=1e-3, network__peripherals=1)
        apart = mean(long, "rtt_s") - mean(lone, "rtt_s")
        assert 0.0 < apart < (window - 1) * (SLOTS + ACK) * SLOT_S


def test_odd_windows_wait_for_their_pair():
    found = bt.solve(star(traffic__source="greedy", transport__receive_window_segments=3,
                          transport__delayed_ack=True))  # fmt: skip
    assert float((found["rtt_s"] * found["goodput_kbps"]).mean()) == pytest.approx(4 * 11.68, rel=1e-6)


# ------------------------------------------------------------------------------------------------------ Vegas


@given(st.floats(0.05, 20.0))
def test_vegas_lets_alpha_to_beta_segments_wait(pipe):
    window = float(vegas_window(jnp.asarray(pipe), jnp.ones(()), *map(jnp.asarray, (1.0, 3.0, 1.0))))
    assert 1.0 - 1e-9 <= window - pipe <= 3.0 + 1e-9


# --------------------------------------------------------------------------------------------------- polling


def test_gated_service_lies_between_exhaustive_and_limited_to_one():
    delays = [
        mean(star(network__peripherals=4, traffic__load_kbps=60.0, polling__discipline=name), "delay_s")
        for name in ("exhaustive", "gated", "1-limited")
    ]
    assert delays == sorted(delays)


@pytest.mark.parametrize("name", ["gated", "fep", "lwrr", "prc-lwrr", "slq", "ldq"])
def test_one_station_is_polled_the_same_by_all(name):
    one, other = (visits_of(Polling(discipline=d), 1, 1, 30.0) for d in (name, "exhaustive"))
    for field in one._fields:
        assert np.all(getattr(one, field) == getattr(other, field)), field


def test_weights_of_one_are_cyclic_order():
    weighted = visits_of(Polling(discipline="lwrr", max_weight=1), 4, 4, 30.0)
    cyclic = visits_of(Polling(discipline="e-limited"), 4, 4, 30.0)
    assert np.all(weighted.polls == cyclic.polls)
    assert weighted.missed_up == cyclic.missed_up
    assert weighted.missed_down == pytest.approx(cyclic.missed_down)


# ---------------------------------------------------------------------------------------------- short queues


@pytest.mark.parametrize("places", [10, 23])
@pytest.mark.parametrize("load", [0.7, 1.0])
def test_a_queue_that_is_always_polled_is_a_queue(places, load):
    # but for the thousandth of a slot that an empty frame takes here
    law = np.array([0.0, 0.0, 0.25, 0.0, 0.0, 0.75])
    rate = load / (law @ np.arange(6)) / 6.0
    queue = Polled(*map(jnp.asarray, (rate, law, 6.0, 1e-3, 4.0, float(places), 0.0, 0.0)))
    alone = always_polled(queue, size=LARGEST_QUEUE, frames=8)
    same = alone_loss(*map(jnp.asarray, (rate, law, 6.0, places)), size=64)
    assert float(alone) == pytest.approx(float(same), rel=1e-3)


def test_what_is_offered_beyond_the_slots_is_refused():
    """Packets leave as fast as slots carry them, and of a segment only if all of it got in."""
    found = bt.solve(
        star(transport__protocol="none", traffic__load_kbps=3000.0, flow_control__baseband_packets=20)
    )
    packets = 1.0 / (2 * 6.0 * SLOT_S)  # about, of the longest
    assert 0.0 < float(found["goodput_kbps"].mean()) < packets / 5 * 11.68 * 1.2
    assert float(found["segment_loss"].mean()) > 0.9


# ---------------------------------------------------------------------------------------------------- scope


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (LOSSY | {"transport__delayed_ack": True, "transport__ack_clock": "tick"}, "transport.ack_clock"),
        ({"traffic__source": "periodic", "traffic__phase": "aligned"}, "traffic.phase"),
        ({"traffic__message_bytes": 3000}, "traffic.message_bytes"),
        ({"polling__discipline": "fep", "network__flows": "ring"}, "polling.discipline"),
        ({"polling__discipline": "slq", "traffic__source": "greedy"}, "polling.discipline"),
        ({"traffic__start_s": 100.0, "run__warmup_s": 50.0}, "traffic.start_s"),
    ],
)  # fmt: skip
def test_not_covered(changes, key):
    assert [problem.key for problem in problems_of(MODELS["piconet"], star(**changes))] == [key]


@pytest.mark.parametrize(
    "changes",
    [
        {"transport__delayed_ack": True, "transport__ack_clock": "tick"},
        {"transport__variant": "vegas"},
        {"traffic__source": "periodic"},
        {"traffic__source": "ibp", "traffic__two_way": True},
        {"traffic__message_bytes": 2920},
        {"polling__discipline": "ldq"},
        {"traffic__start_s": 5.0, "run__warmup_s": 50.0},
        {"transport__limited_transmit": True},
        LOSSY | {"transport__delayed_ack": True},
    ],
)
def test_covered(changes):
    assert not problems_of(MODELS["piconet"], star(**changes))


def test_vegas_answers_losses_where_it_does_not_decide():
    """Greedy flows had 60 % too much goodput; carried loads are those of NewReno, with a warning."""
    vegas = star(**LOSSY | {"transport__variant": "vegas", "traffic__load_kbps": 20.0})
    found, other = (bt.solve(one) for one in (vegas, vegas.with_(transport__variant="newreno")))
    assert found["goodput_kbps"].values == pytest.approx(other["goodput_kbps"].values)
    assert any('variant = "vegas"' in text for text in found.attrs["warnings"])
    with pytest.raises(NoConvergence, match="vegas"):
        by_model(vegas.with_(traffic__source="greedy"))
