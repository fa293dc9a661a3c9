"""A shared medium as an exact recursion: its ports in turn, one packet at a time.

Parts of the compiled loop in `bulk_transfer.steps`; a medium is a `TRANSMITTER` record.
"""

from math import inf

from btqueue.network.bulk_transfer.events import TRANSMITTED, append, schedule, take_first
from btqueue.network.bulk_transfer.rules import NONE
from btqueue.transport.compilation import part


@part
def offer_to_medium(state, rules, number, item, now):
    """Queue an item at a port; return whether there is a place. The one on the wire takes none."""
    port, queue = rules.ports[number], state.queues[number]
    own = state.transmitters[port.medium]
    if queue.waiting - (own.serving == number) >= port.places:
        return False
    append(queue, state.items, item)
    if own.serving == NONE:
        start(state, rules, port.medium, now)
    return True


@part
def transmitted(state, rules, medium):
    """End the transmission in progress; return the item and when it is at the far side."""
    own = state.transmitters[medium]
    number, now = own.serving, own.time
    item = take_first(state.queues[number], state.items)
    start(state, rules, medium, now)
    return item, now + rules.ports[number].delay_s


@part
def start(state, rules, medium, now):
    """Begin the next transmission, if anything waits."""
    own, path = state.transmitters[medium], rules.media[medium]
    for step in range(path.ports):
        place = (own.turn + step) % path.ports
        number = rules.media_ports[medium, place]
        if state.queues[number].waiting > 0:
            own.serving, own.turn = number, (place + 1) % path.ports
            item = state.items[state.queues[number].first]
            size = rules.layouts[item.layout].ip_bytes + path.header_bytes
            own.time = now + 8 * size / path.bits_per_s
            schedule(state, own.time, TRANSMITTED, medium)
            return
    own.serving, own.time = NONE, inf
