"""Items on their way: through the host to the first port, from port to port, and the end of the way.

Parts of the compiled loop in `bulk_transfer.steps`.
"""

from btqueue.network.bulk_transfer.events import ACK_ALARM, ALARM, RELEASE, free_item, new_item, schedule
from btqueue.network.bulk_transfer.medium import offer_to_medium
from btqueue.network.bulk_transfer.piconet import GOLDEN_RATIO, offer_to_piconet
from btqueue.network.bulk_transfer.receiver import acknowledged
from btqueue.network.bulk_transfer.rules import NONE
from btqueue.network.bulk_transfer.sender import next_number, note_sent
from btqueue.transport.compilation import part
from btqueue.transport.newreno_sender import NO_SEGMENT


@part
def emit(state, rules, flow, resend):
    """Send a segment again, if one is given, and all that the windows let out; keep the sender's alarm."""
    own, path, flight = state.senders[flow], rules.flows[flow], state.flight[flow]
    now, number = state.clock[0].now, resend
    while True:
        if number == NO_SEGMENT:
            number = next_number(own, flight)
        if number == NO_SEGMENT:
            break
        again = number < own.highest
        note_sent(own, flight, number, now)
        place = new_item(state, flow)
        segment = state.items[place]
        segment.layout, segment.number = path.first_layout + number % path.layouts, number
        segment.stamp, segment.acknowledgement = now, False
        if again:
            own.repeated_bytes += rules.layouts[segment.layout].user_bytes
        leave(state, rules, path.source, place)
        number = NO_SEGMENT
    if own.deadline < own.alarm:
        own.alarm = own.deadline
        schedule(state, own.alarm, ALARM, flow)


@part
def answer(state, rules, flow):
    """Acknowledge all that a receiver has."""
    own, early = state.receivers[flow], state.early[flow]
    acknowledged(own)
    place = new_item(state, flow)
    item = state.items[place]
    item.layout, item.number = len(rules.layouts) - 1, own.expected
    item.stamp, item.acknowledgement = own.echo, True
    item.blocks = min(own.blocks, own.most_blocks)
    for block in range(item.blocks):
        state.reports[place, block, 0] = early[block, 0]
        state.reports[place, block, 1] = early[block, 1]
    leave(state, rules, rules.flows[flow].target, place)


@part
def keep_ack_alarm(state, flow):
    """Look at a delayed acknowledgement when it has to leave."""
    own = state.receivers[flow]
    if own.deadline < own.alarm:
        own.alarm = own.deadline
        schedule(state, own.alarm, ACK_ALARM, flow)


@part
def leave(state, rules, number, item):
    """Pass the processing delay of the host, which keeps the order; then the first port."""
    if rules.jitter_s == 0.0:
        enter(state, rules, item)
        return
    node = state.nodes[number]
    node.departures += 1
    delay = rules.jitter_s * ((rules.phase + node.departures * GOLDEN_RATIO) % 1.0)
    node.released = max(node.released, state.clock[0].now + delay)
    schedule(state, node.released, RELEASE, item)


@part
def enter(state, rules, place):
    """Offer an item to the next port of its route; what finds no place there at all is lost."""
    item, now = state.items[place], state.clock[0].now
    number = rules.routes[2 * item.flow + item.acknowledgement, item.hop]
    if rules.ports[number].medium == NONE:
        offer_to_piconet(state, rules, number, place, now)
    elif not offer_to_medium(state, rules, number, place, now):
        item.damaged = True
    if item.damaged and item.parts == 0:
        lose(state, place)


@part
def lose(state, place):
    """End the way of an item that is damaged."""
    item = state.items[place]
    if not item.acknowledgement:
        state.clock[0].ended += 1
        state.senders[item.flow].ended += 1
        state.senders[item.flow].lost += 1
    free_item(state, place)


@part
def is_at_its_end(rules, item):
    """Return whether there are no ports behind the hop that an item is at."""
    return rules.routes[2 * item.flow + item.acknowledgement, item.hop] == NONE
