"""CentaurusComm between two ends: its dialogue, its bitmaps, and what a lost message costs."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_network import DELAY, NOTHING, REQUESTER, RESPONDER, Network

CLIENT, SERVER = 0, 1
REQUEST = "client OBJ, server PROCEED, client 0, client 1, client 2, client DONE, server ACK"
REPLY = "client NOPE, server OBJ, client PROCEED, server 0, server 1, server DONE, client ACK"
GOODBYE = "client OBJ, server PROCEED, client 0, client DONE, server ACK, client NOPE"


def names(plain):
    kinds = ("OBJ", "PROCEED", "REJ", "NOPE", "DONE", "OBJECT_ACK")
    return {getattr(plain.records, name): name.removeprefix("OBJECT_") for name in kinds}


def dialogue(plain, network, since=0):
    """Return what was sent as "client OBJ", "server 0" (a data packet), ..."""
    ends = {REQUESTER: "client", RESPONDER: "server"}
    said = []
    for entry in network.sent[since:]:
        segment = entry.segment
        control = segment.kind == plain.records.CONTROL
        what = names(plain)[int(segment.message)] if control else segment.number
        said.append(f"{ends[int(segment.flow)]} {what}")
    return said


def one_session(network):
    client = network.sim.flow_statistics[REQUESTER]
    network.run(until=900 * DELAY, done=lambda: client.sessions == 1 and at_rest(network))
    assert at_rest(network)
    return network


def at_rest(network):
    """Whether both ends have nothing to send and owe nothing: the exchange is over."""
    session = network.session
    return not any(session.busy) and (session.outgoing == NOTHING).all() and not network.travelling


def data_sent(plain, network):
    """Return how many data packets left, both ways."""
    return sum(entry.segment.kind == plain.records.DATA for entry in network.sent)


def without_the_ack_of_the_request(plain):
    """Play up to that loss; return the network and how many segments have left."""
    network, lost = Network(plain), []

    def lose(segment):
        hit = not lost and segment.message == plain.records.OBJECT_ACK and segment.flow == RESPONDER
        if hit:
            lost.append(segment)
        return hit

    network.lose = lose
    network.run(done=lambda: len(lost) == 1)
    return network, len(network.sent)


def assert_two_messages_a_session(plain, network):
    offers = [
        (int(entry.segment.session), int(entry.segment.flow))
        for entry in network.sent
        if entry.segment.message == plain.records.OBJ
    ]
    assert len(offers) == len(set(offers)), "an end offered twice in one session"


def test_the_dialogue_of_figure_3(plain):
    network = one_session(Network(plain))
    assert ", ".join(dialogue(plain, network)) == f"{REQUEST}, {REPLY}, {GOODBYE}"
    sent = [entry.segment for entry in network.sent]
    assert [segment.session for segment in sent] == [1] * 14 + [3] * 6, "good-bye: a new session"
    assert [one.layout for one in sent if one.kind == plain.records.DATA] == [0, 0, 0, 2, 2, 1]


def test_the_session_time_is_that_of_eight_one_way_trips(plain):
    network = one_session(Network(plain))
    client, server = network.sim.flow_statistics
    assert (client.session_time_sum, client.session_time_squares) == (8 * DELAY, (8.0 * DELAY) ** 2)
    assert network.sim.delay_histogram[REQUESTER].sum() == 1
    assert (client.bytes_delivered, server.bytes_delivered) == (3 * 64 + 32, 2 * 128)
    assert (client.messages_delivered, server.messages_delivered) == (2, 1)
    assert (client.delivered_in_order, server.delivered_in_order) == (4, 2)
    assert client.delay_sum == (3 + 3) * DELAY, "request and good-bye: OBJ, PROCEED, then the data"
    assert client.timeouts == server.timeouts == 0


def test_early_data_saves_a_round_trip_for_every_message(plain):
    network = one_session(Network(plain, early_data=True))
    assert network.sim.flow_statistics[REQUESTER].session_time_sum == (8 - 2 * 2) * DELAY
    assert dialogue(plain, network)[:5] == ["client OBJ", "client 0", "client 1", "client 2", "client DONE"]
    assert data_sent(plain, network) == 3 + 2 + 1


@pytest.mark.parametrize("early_data", [False, True])
@settings(max_examples=20)
@given(packets=st.integers(1, 128), data=st.data())
def test_a_message_of_n_packets_of_which_k_are_lost_takes_n_plus_k(plain, early_data, packets, data):
    losses = data.draw(st.sets(st.integers(0, packets - 1)))
    network = Network(plain, request=packets, early_data=early_data)
    still = set(losses)

    def lose(segment):
        hit = segment.kind == plain.records.DATA and segment.number in still
        still.discard(int(segment.number)) if hit else None
        return hit

    network.lose = lose
    client = network.sim.flow_statistics[REQUESTER]
    network.run(done=lambda: client.messages_delivered == 1)
    assert data_sent(plain, network) == packets + len(losses)
    assert client.segments_retransmitted == len(losses)
    assert client.duplicates_received == client.timeouts == 0


@pytest.mark.parametrize("early_data", [False, True])
@settings(max_examples=20)
@given(seed=st.integers(0, 10**9), loss=st.sampled_from([0.05, 0.3]), worker=st.sampled_from([0, 300_000]))
def test_whatever_is_lost_exchanges_go_on_and_no_recorded_packet_is_sent_again(
    plain, early_data, seed, loss, worker
):
    draw = random.Random(seed)
    network = Network(plain, request=9, reply=5, early_data=early_data, worker_period=worker)
    network.lose = lambda segment: draw.random() < loss
    statistics = network.sim.flow_statistics
    network.run(until=10**6 * DELAY, done=lambda: statistics[REQUESTER].sessions == 2)
    assert statistics[REQUESTER].sessions == 2
    assert not statistics.duplicates_received.any()
    assert_two_messages_a_session(plain, network)


def test_a_message_that_is_held_already_is_rejected(plain):
    network, before = without_the_ack_of_the_request(plain)
    one_session(network)
    resumed = dialogue(plain, network, before)
    assert resumed[:4] == ["client OBJ", "server REJ", "client NOPE", "server OBJ"]
    assert network.sim.flow_statistics[REQUESTER].messages_delivered == 2, "not the request twice"


def test_of_two_sessions_begun_at_once_both_ends_follow_the_higher(plain):
    network, before = without_the_ack_of_the_request(plain)
    for end in (CLIENT, SERVER):
        plain.state_machine.on_watchdog(network.sim, 0, end, network.now)
        network.send()
    one_session(network)
    assert [entry.segment.session for entry in network.sent[before : before + 3]] == [3, 2, 3]
    followed = "client OBJ, server OBJ, server REJ, client NOPE, server OBJ"
    assert ", ".join(dialogue(plain, network, before)[:5]) == followed
    assert network.sim.flow_statistics[REQUESTER].sessions == 1


@pytest.mark.parametrize(("offered", "number"), [(0, 1), (1, 2)])
def test_an_end_that_has_offered_a_message_needs_another_session_for_the_next(plain, offered, number):
    network = Network(plain)
    sim, session = network.sim, network.session
    plain.state_machine.join(sim, 0, SERVER, 1)
    plain.state_machine.enter(sim, 0, SERVER, plain.state_machine.NOPE_RECEIVED, network.now)
    session.outgoing[SERVER], session.offered[SERVER] = 2, offered
    offer = sim.segments[plain.state_machine.next_output(sim, RESPONDER, network.now)]
    assert (offer.message, offer.session) == (plain.records.OBJ, number)


def test_the_worker_hands_over_a_data_packet_in_each_period(plain):
    period = 7 * DELAY
    network = one_session(Network(plain, worker_period=period))
    request = [entry.at for entry in network.sent if entry.segment.flow == REQUESTER][1:5]
    assert request == [2 * DELAY + turn * period for turn in range(4)], "three packets, then DONE"


def test_a_lost_session_is_given_up_and_its_reply_no_longer_accepted(plain):
    network = Network(plain, application_timeout=100 * DELAY)
    network.lose = lambda segment: segment.flow == RESPONDER and network.now < 100 * DELAY
    # the server gets the request by early data only, so that its reply waits when the client gives up
    network.session.early_data = True
    network.run(done=lambda: network.sim.flow_statistics[REQUESTER].sessions == 1)
    client, server = network.sim.flow_statistics
    assert client.sessions_lost == 1
    assert client.session_time_sum < 100 * DELAY, "counted from the second request"
    assert network.session.exchange == 2
    assert server.messages_delivered == 1, "the reply to the first request is rejected"
    assert_two_messages_a_session(plain, network)
    assert not network.sim.flow_statistics.duplicates_received.any()
