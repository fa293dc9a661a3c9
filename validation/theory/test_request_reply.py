"""The chain of CentaurusComm objects, the TCP machines, and sessions worked out by hand."""

import numpy as np
import pytest

import btqueue as bt
from btqueue.network import NoConvergence
from btqueue.network.request_reply import chain, exploration, stationary
from btqueue.network.request_reply.tcp import plan_of
from btqueue.scenario import NotBuiltYet
from btqueue.transport import request_reply_transfer as tcp
from btqueue.transport.centaurus_transaction import (
    expected_rounds,
    mean_hangs,
    mean_time,
    mean_time_without_control_loss,
    transaction_law,
    uniform_transaction,
)

TIMES = {"data_s": 0.005, "control_s": 0.010, "setup_s": 0.030}
# packets, data loss, control loss, mean (s): computed independently, confirmed by Monte Carlo to three digits
CHECKED = [
    (16, 0.1, 0.05, 1.019591),
    (64, 0.05, 0.02, 0.754864),
    (128, 0.2, 0.0, 0.937452),
    (1, 0.1, 0.05, 0.715685),
]


def transaction(packets, data_loss, control_loss):
    losses = {"data_loss": data_loss, "control_loss": control_loss}
    return uniform_transaction(packets, watchdog_s=2.0, **TIMES, **losses)


@pytest.mark.parametrize(("packets", "data_loss", "control_loss", "mean"), CHECKED)
def test_mean_of_the_chain(packets, data_loss, control_loss, mean):
    assert mean_time(transaction(packets, data_loss, control_loss)) == pytest.approx(mean, abs=6e-7)


@pytest.mark.parametrize("packets", [1, 5, 128])
@pytest.mark.parametrize("loss", [0.0, 0.03, 0.2, 0.6])
def test_closed_form_without_control_loss(packets, loss):
    closed = mean_time_without_control_loss(packets, data_loss=loss, **TIMES)
    assert mean_time(transaction(packets, loss, 0.0)) == pytest.approx(closed, rel=1e-10)
    assert mean_hangs(transaction(packets, loss, 0.0)) == 0.0


def test_rounds():
    assert expected_rounds(128, 0.2) == pytest.approx(3.872609, abs=5e-7)
    assert expected_rounds(7, 0.0) == 1.0
    assert expected_rounds(1, 0.25) == pytest.approx(4 / 3)


@pytest.mark.parametrize(("packets", "data_loss", "control_loss", "mean"), CHECKED)
def test_law_has_the_mean_of_the_chain(packets, data_loss, control_loss, mean):
    step, length = 0.005, 8192
    law = transaction_law(transaction(packets, data_loss, control_loss), step, length)
    assert law.sum() == pytest.approx(1.0, abs=1e-8)
    assert law @ np.arange(length) * step == pytest.approx(mean, abs=1e-6)


def test_law_without_losses_is_one_point():
    law = transaction_law(transaction(4, 0.0, 0.0), 0.005, 64)
    assert law[(30 + 30 + 20 + 20) // 5] == pytest.approx(1.0, abs=1e-8)


def one(kind, **values):
    record = np.zeros(1, kind).view(np.recarray)[0]
    for name, value in values.items():
        record[name] = value
    return record


class Sender:
    """A sender on its own: what it sends because of what happens, as pairs of number and time."""

    def __init__(self, **changes):
        usual = {"receive_window": 8, "initial_window": 1.0, "initial_ssthresh": 64.0, "initial_rto": 3.0}
        self.rules = one(tcp.RULES, **usual | {"min_rto": 1.0, "max_rto": 64.0, "backoff": True} | changes)
        self.record, self.timed, self.samples = one(tcp.SENDER), np.zeros(64), np.zeros(64)
        tcp.open_sender(self.rules, self.record)

    def write(self, segments, now):
        self.record.written += segments
        return self.fitting(now)

    def fitting(self, now):
        return [self.sent(self.record.nxt, now) for _ in range(tcp.fitting(self.rules, self.record))]

    def sent(self, number, now):
        tcp.note_sent(self.record, self.timed, number, now)
        return int(number), now

    def acknowledge(self, number, echo, now):
        again = tcp.acknowledge(self.rules, self.record, self.timed, self.samples, number, echo, now)
        first = [] if again == tcp.NO_SEGMENT else [self.sent(again, now)]
        return first + self.fitting(now)

    def expire(self, now):
        tcp.expire(self.rules, self.record, now)
        return self.fitting(now)


def receiver():
    record = one(tcp.RECEIVER)
    tcp.open_receiver(record)
    return record, np.zeros(64, bool)


def test_slow_start_doubles_up_to_the_receive_window():
    sender, bursts = Sender(), []
    sent, now = sender.write(40, 0.0), 0.0
    while sent:
        bursts.append(len(sent))
        now += 0.1
        answers = [sender.acknowledge(number + 1, at, now) for number, at in sent]
        sent = [segment for answer in answers for segment in answer]
    assert bursts == [1, 2, 4, 8, 8, 8, 8, 1]


@pytest.mark.parametrize(("lost", "fast"), [(1, [1]), (0, [])])
def test_fast_retransmit_and_timeout(lost, fast):
    """RFC 6582: of the first segment of all, duplicates prove nothing, for `recover` stands before it."""
    sender, (receiving, early) = Sender(initial_window=6.0), receiver()
    rules = one(tcp.RULES, ack_every=1)
    again = []
    for number, at in sender.write(6, 0.0):
        if number != lost:
            tcp.take(rules, receiving, early, number, at, 0.1)
            tcp.note_acknowledged(receiving)
            again += sender.acknowledge(receiving.expected, receiving.echo, 0.2)
    assert [number for number, _ in again] == fast
    assert sender.record.fast_retransmits == len(fast)
    rto = sender.record.rto
    assert [number for number, _ in sender.expire(9.0)] == [lost]
    assert (sender.record.cwnd, sender.record.rto, sender.record.timeouts) == (1.0, 2 * rto, 1)
    assert (sender.record.doublings, sender.record.deadline) == (1, 9.0 + 2 * rto)


def test_no_round_trip_is_taken_of_a_segment_sent_twice():
    """Karn: without time stamps; the timeout stays doubled until a segment sent once is acknowledged."""
    sender = Sender()
    sender.write(2, 0.0)
    sender.expire(3.0)
    assert [number for number, _ in sender.acknowledge(1, 3.0, 4.0)] == [1]
    assert (sender.record.sampled, sender.record.rto, sender.record.doublings) == (0, 6.0, 1)
    sender.acknowledge(2, 4.0, 6.0)
    assert (sender.record.sampled, sender.samples[0]) == (1, 2.0)
    assert (sender.record.rto, sender.record.doublings) == (2.0 + 4 * 1.0, 0)


def test_delayed_acknowledgement():
    rules, (receiving, early) = one(tcp.RULES, ack_every=2, ack_delay=0.2), receiver()
    assert not tcp.take(rules, receiving, early, 0, 0.0, 1.0)
    assert receiving.deadline == 1.2
    assert tcp.take(rules, receiving, early, 1, 0.0, 1.1)
    assert receiving.expected == 2


def test_what_came_too_early_fills_up():
    rules, (receiving, early) = one(tcp.RULES, ack_every=2, ack_delay=0.2), receiver()
    for number in (2, 1, 2):
        assert tcp.take(rules, receiving, early, number, 0.0, 1.0)
    assert (receiving.expected, receiving.held) == (0, 2)
    assert tcp.take(rules, receiving, early, 0, 0.0, 1.1), "a gap is filled: at once"
    assert (receiving.expected, receiving.held) == (3, 0)


def test_one_segment_each_way_by_hand():
    """Two trips: 72 and 104 bytes at 10 Mbit/s, 1 ms each way, 0.5 ms of processing on average."""
    solved = bt.solve(bt.load("avancha-2002/ethernet").with_(traffic__reply_bytes=64))
    trips = 2 * (0.001 + 0.0005) + 8 * (72 + 104) / 10e6
    assert float(solved.session_time_s[0]) == pytest.approx(trips, rel=1e-9)
    assert float(solved.session_time_sd_s[0]) == pytest.approx(0.001 / np.sqrt(6), rel=1e-3)


def test_bluetooth_session_by_hand():
    """33 slots: from the request that waits behind an acknowledgement to the last fragment of the reply."""
    solved = bt.solve(bt.load("avancha-2002/bluetooth-tcp"))
    assert float(solved.session_time_s[0]) == pytest.approx(33 * 625e-6, rel=1e-9)


@pytest.mark.parametrize("name", ["wlan-tcp", "wlan-centaurus", "bluetooth-tcp", "bluetooth-centaurus"])
def test_session_time_grows_with_the_reply(name):
    sizes = (64, 512, 2048, 8192)
    scenarios = [bt.load(f"avancha-2002/{name}").with_(traffic__reply_bytes=size) for size in sizes]
    times = [float(bt.solve(scenario).session_time_s[0]) for scenario in scenarios]
    assert times == sorted(times)


def test_the_chain_is_balanced_and_says_what_it_replaced():
    solved = bt.solve(bt.load("avancha-2002/cdpd-tcp"))
    assert solved.attrs["converged"]
    # the balance is exact to 1e-8; what is left is the share of stages that was replaced, for this loss
    assert 1e-8 < solved.attrs["residual"] < 0.01
    order = [float(solved[f"session_time_p{percent}_s"][0]) for percent in (50, 90, 95, 99)]
    assert order == sorted(order)


def lossy(**link):
    data = bt.load("avancha-2002/cdpd-tcp").to_dict()
    data["network"]["outside_links"][0].update(link)
    return type(bt.load("avancha-2002/cdpd-tcp")).from_dict(data)


@pytest.mark.parametrize("name", ["cdpd-tcp", "bluetooth-tcp"])
def test_compiled_futures_are_those_of_python(name):
    """To the bit: probabilities, times and round trips of all futures of the first stages."""
    scenario = bt.load(f"avancha-2002/{name}").with_(traffic__request_bytes=700)
    found = []
    for step in (exploration.follow, exploration.follow.function):
        search = chain.Search(plan_of(scenario), 1)
        for states in ([0], [1, 2]):
            least = np.full(len(states), 1e-3)
            step(
                search.net, search.course, search.branches, search.examples, search.found,
                np.array(states[: int(search.counts["states"])]), least,
            )  # fmt: skip
        found.append((search.found, int(search.counts["futures"])))
    (one_side, count), (other, same) = found
    assert count == same > 1
    for left, right in zip(one_side, other, strict=True):
        assert left.tobytes() == right.tobytes()


def test_visits_of_a_chain_by_hand():
    """From 0 to 1 or 2, from there back; 1 stays half of the time: visits as 1 to 2 x 0.3 to 0.7."""
    sources, targets = np.array([0, 0, 1, 1, 2]), np.array([1, 2, 1, 0, 0])
    likely = np.array([0.3, 0.7, 0.5, 0.5, 1.0])
    visits = chain.visits_of(stationary.arrivals(sources, targets, 3), likely, 3, 1e-13)
    np.testing.assert_allclose(visits, np.array([1.0, 0.6, 0.7]) / 2.3, rtol=1e-10)


def test_a_stand_in_agrees_in_the_most_exact_key():
    keys = np.array([[1, 9, 5], [2, 8, 5], [3, 7, 5], [4, 8, 5], [6, 0, 5], [7, 0, 0]])
    followed = np.array([True, True, True, False, False, False])
    closed = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert list(stationary.substitutes(keys, followed, closed)) == [0, 1, 2, 1, 0, 0]


CONTINUOUS = {
    "block errors 0.3 %": lambda x: lossy(loss=0.003 * x),
    "block errors 2 %": lambda x: lossy(loss=0.02 * x).with_(traffic__request_bytes=1024),
    "pause": lambda x: lossy().with_(traffic__pause_s=1.3 * x),
    "delay": lambda x: lossy(delay_s=0.9137 * x).with_(traffic__request_bytes=1024),
    "rate": lambda x: lossy(rate_kbps=18.37 * x).with_(traffic__request_bytes=1024),
}


@pytest.mark.parametrize("key", CONTINUOUS)
def test_central_differences_agree(key):
    """Of two steps. Away from the delays and rates at which the order of two events changes."""
    for metric in ("goodput_kbps", "session_time_s"):
        slopes, middle = [], float(bt.solve(CONTINUOUS[key](1.0))[metric][0])
        for step in (1e-3, 1e-4):
            above, below = (float(bt.solve(CONTINUOUS[key](1.0 + h))[metric][0]) for h in (step, -step))
            slopes.append((above - below) / (2 * step) / middle)
        assert slopes[0] == pytest.approx(slopes[1], rel=1e-3, abs=1e-5), metric


def test_the_first_timeout_is_forgotten():
    """In the long run nothing depends on it: no stage is one of the first session."""
    first, other = (lossy().with_(transport__initial_rto_s=rto) for rto in (3.0, 5.0))
    assert float(bt.solve(first).goodput_kbps[0]) == float(bt.solve(other).goodput_kbps[0])


def test_refused_by_name():
    scenario = bt.load("avancha-2002/cdpd-tcp")
    for change in ({"transport__variant": "sack"}, {"transport__piggyback": True}):
        with pytest.raises(Exception, match=next(iter(change)).replace("transport__", "")):
            bt.solve(scenario.with_(**change))


@pytest.mark.parametrize("loss", [{"loss": 1.0}, {"loss": 0.0, "loss_back": 1.0}])
def test_sessions_over_a_link_that_loses_all_are_refused(loss):
    link = {"name": "x", "from": "a", "to": "b", "loss_back": 0.0} | loss
    network = {
        "topology": "custom",
        "piconet_list": [{"name": "idle", "central": "c", "peripherals": ["p"]}],
        "outside_links": [link],
        "flows": [{"from": "a", "to": "b"}],
    }
    tables = {"network": network, "traffic": {"source": "request-reply"}}
    with pytest.raises(NotBuiltYet, match="less than 1, so that sessions end"):
        bt.solve(bt.Scenario.from_dict(tables))


def test_sessions_that_take_years_have_no_answer():
    slow = bt.load("avancha-2002/cdpd-tcp").to_dict(resolved=False)
    slow["network"]["outside_links"][0]["rate_kbps"] = 1e-9
    with pytest.raises(NoConvergence, match="sessions take years"):
        bt.solve(bt.Scenario.from_dict(slow))
