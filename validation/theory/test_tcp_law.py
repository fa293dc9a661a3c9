"""TCP as a law: its tables are the chains', at fresh points, in their derivatives and at their limits."""

import itertools
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from make_tcp_laws import Law, laws, nodes, tabulated
from tcp_chains.chain import compile_chain
from tcp_chains.lockstep import lockstep_rates, segment_cost
from tcp_chains.loss_process import LossProcess
from tcp_chains.lumping import lump
from tcp_chains.newreno_chain import Variant
from wires import LARGE_WINDOW

from btqueue.transport import NoLaw, law, law_rates
from btqueue.transport.tcp_law import TABLES, UNIT, Receiver

RTT, RTO, CAP = 0.1, 1.0, 64.0
VARIANTS = ("tahoe", "reno", "newreno", "sack")
rates_of = jax.jit(law_rates)
slopes_of = jax.jit(jax.grad(lambda losses, tables: jnp.log(law_rates(tables, *losses, rtt_s=RTT).goodput)))


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@cache
def chain(variant, window, receiver=Receiver.AT_ONCE, timestamps=True):
    found = compile_chain(window, variant=Variant(variant), receiver=receiver, timestamps=timestamps)
    return lump(found)


def exact(variant, window, p, q, *, receiver=Receiver.AT_ONCE, timestamps=True, rtt=RTT, delay=0.0):
    """Rates of the chain: goodput, timeouts, fast retransmits, transmissions and window."""
    cost = segment_cost(chain(variant, window, receiver, timestamps), LossProcess.independent(p, q))
    waits = cost.stages @ np.minimum(RTO * 2.0 ** np.arange(len(cost.stages)), CAP)
    seconds = rtt * cost.rounds + waits + delay * cost.delays
    events = np.array([1.0, cost.stages.sum(), cost.fast_retransmits]) / seconds
    return np.array([*events, cost.sends, cost.window])


def tabulated_rates(variant, window, p, q, *, rtt=RTT, delay=0.0, **kind):
    found = rates_of(
        law(variant, window, **kind), p, q, rtt_s=rtt, min_rto_s=RTO, max_rto_s=CAP, ack_delay_s=delay
    )
    return np.array(found[1:])


def random_losses(seed, count):
    """Losses that a radio may have: those of acknowledgements are the smaller ones."""
    random = np.random.default_rng(seed)
    p = np.exp(random.uniform(np.log(1e-4), np.log(0.95), count))
    return np.stack([p, np.minimum(p * random.uniform(0.0, 1.0, count), 0.6)], axis=1)


@pytest.mark.parametrize(("variant", "window"), [*itertools.product(VARIANTS, (1, 2, 3, 4, 6))])
def test_the_tables_are_the_chains(variant, window):
    for p, q in random_losses(1, 12):
        truth, found = exact(variant, window, p, q), tabulated_rates(variant, window, p, q)
        assert found == pytest.approx(truth, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_largest_usual_window(variant):
    for p, q in random_losses(2, 6):
        truth, found = exact(variant, 8, p, q), tabulated_rates(variant, 8, p, q)
        assert found == pytest.approx(truth, rel=5e-4, abs=1e-9)


@pytest.mark.parametrize("window", [1, 2, 4, 6])
def test_without_timestamps_backoffs_last_longer(window):
    for p, q in random_losses(3, 8):
        truth = exact("newreno", window, p, q, timestamps=False)
        assert tabulated_rates("newreno", window, p, q, timestamps=False) == pytest.approx(
            truth, rel=2e-4, abs=1e-9
        )


@pytest.mark.parametrize("window", [1, 3, 6])
def test_timestamps_change_the_stages_of_timeouts_and_nothing_else(window):
    for p, q in random_losses(4, 4):
        with_them, without = (
            segment_cost(chain("newreno", window, timestamps=stamped), LossProcess.independent(p, q))
            for stamped in (True, False)
        )
        assert without.stages.sum() == pytest.approx(with_them.stages.sum(), rel=1e-9)
        assert without._replace(stages=with_them.stages)[2:] == pytest.approx(with_them[2:], rel=1e-9)
        assert without.rounds == pytest.approx(with_them.rounds, rel=1e-9)


@pytest.mark.parametrize(
    ("window", "receiver"), [*itertools.product((1, 2, 3, 6), (Receiver.LONG_TIMER, Receiver.SHORT_TIMER))]
)
def test_delayed_acknowledgements(window, receiver):
    """Far from the change-over from a long timer to a short one, each is the chain of its own."""
    rtt, delay = (0.001, 0.4) if receiver is Receiver.LONG_TIMER else (0.5, 0.01)
    for p, q in random_losses(5, 6):
        truth = exact("newreno", window, p, q, receiver=receiver, rtt=rtt, delay=delay)
        found = tabulated_rates("newreno", window, p, q, rtt=rtt, delay=delay, delayed_ack=True)
        assert found == pytest.approx(truth, rel=2e-3, abs=1e-7)


def test_a_window_of_one_is_stop_and_wait():
    """Renewal: a timeout follows each loss, waits double; a delayed ACK waits if it is not lost."""
    p, q, delay = 0.3, 0.1, 0.2
    fail = 1.0 - (1.0 - p) * (1.0 - q)
    waits = [sum(fail**k * min(b ** min(k - 1, 60) * RTO, CAP) for k in range(1, 2000)) for b in (2.0, 1.0)]
    at_once = law("newreno", 1)
    for backoff, seconds in zip((2.0, 1.0), waits, strict=True):
        found = rates_of(at_once, p, q, rtt_s=RTT, min_rto_s=RTO, max_rto_s=CAP, backoff=backoff)
        assert float(found.seconds) == pytest.approx(seconds + RTT, rel=1e-6)
        assert float(found.timeouts) == pytest.approx(fail / (1.0 - fail) / (seconds + RTT), rel=1e-6)
    found = rates_of(law("newreno", 1, delayed_ack=True), p, q, rtt_s=RTT, ack_delay_s=delay)
    assert float(found.seconds) == pytest.approx(waits[0] + RTT + (1.0 - q) * delay, rel=1e-6)


def test_a_doubled_timeout_lasts_until_a_segment_needs_no_second_try():
    """Karn with a window of one: a backoff ends if a segment and the next one get through at once."""
    p, q = 0.2, 0.05
    fail = 1.0 - (1.0 - p) * (1.0 - q)
    stages = segment_cost(chain("newreno", 1, timestamps=False), LossProcess.independent(p, q)).stages
    assert stages[1:6] / stages[:5] == pytest.approx([1.0 - (1.0 - fail) ** 2] * 5, rel=1e-9)


@pytest.mark.parametrize(
    ("variant", "window", "rtt", "rto", "cap", "p", "q"),
    [
        ("newreno", 6, 0.1, 1.0, 64.0, 0.1, 0.02),
        ("sack", 5, 0.02, 0.3, 8.0, 0.3, 0.1),
        ("tahoe", 4, 0.15, 1.2, 2.0, 0.02, 0.01),
        ("reno", 6, 0.1, 1.0, 64.0, 0.6, 0.3),
    ],
)
def test_times_enter_linearly(variant, window, rtt, rto, cap, p, q):
    """Seconds of a delivered segment: exact where no timer gets older than it lasts."""
    truth = lockstep_rates(
        window=window, loss=LossProcess.independent(p, q), rtt=rtt, min_rto=rto, max_rto=cap, variant=variant
    )
    cost = segment_cost(chain(variant, window), LossProcess.independent(p, q))
    timers = cost.stages @ np.minimum(rto * 2.0 ** np.arange(len(cost.stages)), cap)
    assert rtt * cost.rounds + timers == pytest.approx(1.0 / truth.goodput, rel=1e-10)
    assert cost.window == pytest.approx(truth.mean_window_found, rel=1e-10)


@pytest.mark.parametrize("p", [0.01, 0.05, 0.1, 0.3])
def test_the_stated_error_of_a_timeout_as_short_as_the_round_trip(p):
    truth = lockstep_rates(window=8, loss=LossProcess.independent(p, 0.2 * p), rtt=2.0, min_rto=1.0)
    found = rates_of(law("newreno", 8), p, 0.2 * p, rtt_s=2.0, min_rto_s=1.0)
    assert 1.0 <= float(found.goodput) / truth.goodput < 1.02


@pytest.mark.parametrize(("window", "variant"), [(1, "sack"), (5, "tahoe"), (10, "reno"), (64, "newreno")])
def test_without_losses_the_window_goes_round_and_derivatives_exist(window, variant):
    tables = law(variant, window)

    found = rates_of(tables, 0.0, 0.0, rtt_s=RTT)
    assert float(found.goodput) == pytest.approx(window / RTT, rel=1e-12)
    assert (float(found.timeouts), float(found.fast_retransmits)) == (0.0, 0.0)
    assert float(found.transmissions) == float(found.window) / window == 1.0
    by_p, by_q = np.asarray(slopes_of(np.zeros(2), tables))
    assert by_p < 0.0 and np.isfinite(by_q)


def test_nothing_gets_through_a_dead_path_and_nothing_breaks():
    found = rates_of(law("newreno", 8), 1.0, 1.0, rtt_s=RTT)
    assert all(np.isfinite(value) for value in found)
    assert float(found.goodput) < 1e-9


@pytest.mark.parametrize(("variant", "window"), [("newreno", 4), ("sack", 6), ("tahoe", 6)])
def test_derivatives_are_those_of_the_chain(variant, window):
    tables = law(variant, window)
    for p, q in np.clip(random_losses(6, 5), 1e-3, 0.7):
        truth = []
        for axis in range(2):
            step = 2e-3 * np.eye(2)[axis] * (p, q)[axis]
            values = [np.log(exact(variant, window, *((p, q) + k * step))[0]) for k in (-2, -1, 1, 2)]
            truth.append((values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * step[axis]))
        found = np.asarray(slopes_of(np.array([p, q]), tables))
        assert np.abs(found - truth).max() < 1e-4 * np.linalg.norm(truth)


def test_one_program_serves_all_windows_and_variants():
    traced = []

    @jax.jit
    @jax.vmap
    def goodput(tables, p):
        traced.append(p)
        return law_rates(tables, p, rtt_s=RTT).goodput

    kinds = [("newreno", 8), ("tahoe", 3), ("sack", 10), ("newreno", 40)]
    for first, second in itertools.permutations(kinds, 2):
        pair = jax.tree.map(lambda *values: jnp.stack(values), law(*first), law(*second))
        both = goodput(pair, np.array([0.05, 0.2]))
        alone = [
            rates_of(law(*first), 0.05, rtt_s=RTT).goodput,
            rates_of(law(*second), 0.2, rtt_s=RTT).goodput,
        ]
        assert np.asarray(both) == pytest.approx(np.asarray(alone), rel=1e-10)
    assert len(traced) == 1


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"variant": "vegas", "window": 8}, "variant"),
        ({"variant": "newreno", "window": 65}, "receive_window_segments"),
        ({"variant": "sack", "window": 11}, "receive_window_segments"),
        ({"variant": "newreno", "window": 0}, "receive_window_segments"),
        ({"variant": "newreno", "window": 9, "delayed_ack": True}, "delayed_ack"),
    ],
)
def test_what_is_not_tabulated_is_refused_by_key(arguments, key):
    with pytest.raises(NoLaw) as refusal:
        law(**arguments)
    assert refusal.value.key == key


@pytest.mark.parametrize("loss", LARGE_WINDOW)
def test_large_windows_are_within_their_stated_error(loss):
    found = rates_of(law("newreno", 64), loss, rtt_s=RTT)
    assert 0.94 < float(found.goodput) / LARGE_WINDOW[loss][0] < 1.01


@pytest.mark.parametrize("loss", [0.001, 0.03, 0.1, 0.3])
def test_goodput_does_not_fall_with_the_window(loss):
    goodputs = [float(rates_of(law("newreno", w), loss, rtt_s=RTT).goodput) for w in range(4, 65)]
    assert np.all(np.diff(goodputs) > -0.005 * np.array(goodputs[1:]))


@pytest.mark.parametrize("wanted", [Law("newreno", 4), Law("tahoe", 3), Law("sack", 4, Receiver.LONG_TIMER)])
def test_shipped_tables_come_from_the_chain_at_their_nodes(wanted):
    """At a node a table is the chain's own value; a handful of nodes of some tables is solved again."""
    places = nodes(wanted)[:: len(nodes(wanted)) // 7]
    delayed = wanted.receiver is not Receiver.AT_ONCE
    rtt, delay = (0.001, 0.4) if delayed else (RTT, 0.0)
    for u, v in places:
        p, q = -np.expm1(-u), -np.expm1(-v)
        point = (wanted.variant, wanted.window, p, q)
        truth = exact(*point, receiver=wanted.receiver, rtt=rtt, delay=delay)
        found = tabulated_rates(*point, delayed_ack=delayed, rtt=rtt, delay=delay)
        assert found == pytest.approx(truth, rel=2e-5, abs=1e-9)


@pytest.mark.parametrize("wanted", [Law("newreno", 2), Law("sack", 1, Receiver.SHORT_TIMER)])
def test_tables_are_made_again(wanted):
    assert_made_again(wanted)


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("window", [4, 8, 10])
def test_the_documented_errors(variant, window):
    """Of goodput and timeouts, median and worst, at 200 points that nobody has looked at before."""
    points = random_losses(20261122, 200)
    truth = np.array([exact(variant, window, p, q)[:2] for p, q in points])
    found = np.array([tabulated_rates(variant, window, p, q)[:2] for p, q in points])
    errors = np.abs(found / truth - 1.0)
    assert np.median(errors, axis=0).max() < 2e-6
    assert errors.max() < (1e-5 if window == 4 else 1e-3)


@pytest.mark.long
@pytest.mark.parametrize("wanted", [*laws()], ids=lambda wanted: wanted.name)
def test_all_tables_are_made_again(wanted):
    assert_made_again(wanted)


def assert_made_again(wanted):
    """Rounding differs between machines; what matters of it is far below the tables' error."""
    with np.load(TABLES) as archive:
        for part, values in tabulated(wanted).items():
            unit = UNIT if values.dtype == np.int32 else 1.0
            assert archive[f"{wanted.name}.{part}"] * unit == pytest.approx(values * unit, abs=1e-6)
