"""The chain of CentaurusComm objects, the TCP machines, and sessions worked out by hand."""

import numpy as np
import pytest

import btqueue as bt
from btqueue.transport.centaurus_transaction import (
    expected_rounds,
    mean_hangs,
    mean_time,
    mean_time_without_control_loss,
    transaction_law,
    uniform_transaction,
)
from btqueue.transport.request_reply_transfer import MessageReceiver, MessageSender, Rules, Sent

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


def rules(**changes):
    usual = {"receive_window": 8, "initial_window": 1.0, "initial_ssthresh": 64.0, "initial_rto": 3.0}
    return Rules(**(usual | {"min_rto": 1.0, "max_rto": 64.0, "timestamps": False} | changes))


def test_slow_start_doubles_up_to_the_receive_window():
    sender, bursts = MessageSender(rules()), []
    sent, now = sender.write(40, 0.0), 0.0
    while sent:
        bursts.append(len(sent))
        now += 0.1
        answers = [sender.acknowledge(segment.number + 1, segment.at, now) for segment in sent]
        sent = [segment for answer in answers for segment in answer]
    assert bursts == [1, 2, 4, 8, 8, 8, 8, 1]


@pytest.mark.parametrize(("lost", "fast"), [(1, [1]), (0, [])])
def test_fast_retransmit_and_timeout(lost, fast):
    """RFC 6582: of the first segment of all, duplicates prove nothing, for `recover` stands before it."""
    sender, receiver = MessageSender(rules(initial_window=6.0)), MessageReceiver(rules())
    again = []
    for segment in sender.write(6, 0.0):
        if segment.number != lost:
            receiver.take(segment, 0.1)
            again += sender.acknowledge(*receiver.acknowledgement(), 0.2)
    assert [segment.number for segment in again] == fast
    assert sender.fast_retransmits == len(fast)
    rto = sender.rto
    assert [segment.number for segment in sender.expire(9.0)] == [lost]
    assert (sender.cwnd, sender.rto, sender.timeouts) == (1.0, 2 * rto, 1)


def test_delayed_acknowledgement():
    receiver = MessageReceiver(rules(ack_every=2, ack_delay=0.2))
    assert not receiver.take(Sent(0, 0.0), 1.0)
    assert receiver.deadline == 1.2
    assert receiver.take(Sent(1, 0.0), 1.1)
    assert receiver.acknowledgement()[0] == 2


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
    assert 0.0 <= solved.attrs["residual"] < 1e-8
    order = [float(solved[f"session_time_p{percent}_s"][0]) for percent in (50, 90, 95, 99)]
    assert order == sorted(order)


def test_refused_by_name():
    lossy = bt.load("avancha-2002/cdpd-tcp")
    for change in ({"transport__variant": "sack"}, {"transport__piggyback": True}):
        with pytest.raises(Exception, match=next(iter(change)).replace("transport__", "")):
            bt.solve(lossy.with_(**change))
