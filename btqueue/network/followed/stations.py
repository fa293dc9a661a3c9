"""Hosts, token buckets and outside links: all that an item passes besides the air.

A host holds an item for a time, then two layers take one at a time, then comes a random delay; nothing
overtakes. A token bucket lets a packet go as soon as it can pay, or refuses it. A medium serves its ports in
turn, one packet at a time; the one on the wire takes no place in its queue.
"""

from math import exp, log

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.air import enter_queue
from btqueue.network.followed.events import (
    ARRIVAL,
    DELIVERY,
    RELEASE,
    TOKENS,
    TRANSMITTED,
    count,
    finish_packet,
    lose,
    new_packet,
    schedule,
    uniform,
)
from btqueue.network.followed.world import (
    AT_BASEBAND,
    AT_BUCKET,
    AT_NODE,
    BY_OUTSIDE,
    INTACT,
    NEVER,
    NONE,
    ON_THE_WAY,
    OUTSIDE,
    TO_BASEBAND,
    TO_BUCKET,
)


@part
def leave(w, number, item):
    """Pass an item through the layers of a host down to its first port."""
    node = w.nodes[number]
    if node.delay + node.first_s + node.second_s + node.jitter == 0.0:
        enter_port(w, item)
        return
    node.free_1 = max(w.clock[0].now + node.delay, node.free_1) + node.first_s
    node.free_2 = max(node.free_1, node.free_2) + node.second_s
    delay = 0.0
    if node.jitter > 0.0:
        delay = node.jitter * uniform(w)
    node.released = max(node.released, node.free_2 + delay)
    schedule(w, node.released, RELEASE, item)


@part
def rise(w, number, item):
    """Pass an item up through the layers of its last host; return whether it is there at once."""
    node, now = w.nodes[number], w.clock[0].now
    if node.up_delay + node.up_first + node.up_second == 0.0:
        return True
    node.up_free_1 = max(now + node.up_delay, node.up_free_1) + node.up_first
    node.up_free_2 = max(node.up_free_1, node.up_free_2) + node.up_second
    schedule(w, node.up_free_2, DELIVERY, item)
    return False


@subroutine
def enter_port(w, number):
    """Let an item enter the port that is next on its way, cut into packets for the radio."""
    item, now = w.items[number], w.clock[0].now
    place = w.routes[item.hop]
    port, layout = w.ports[place], w.layouts[item.layout]
    item.parts = 0
    if port.outside:
        enter_medium(w, place, number, layout.ip)
        return
    node = w.nodes[port.node]
    no_bytes = node.held + layout.frame > node.room
    if not no_bytes:
        node.held += layout.frame
    refused = no_bytes or (port.whole == 1 and not fits(w, port, layout, now))
    item.parts = 1  # so that it stays while packets are refused
    for piece in range(layout.first_piece, layout.first_piece + layout.pieces):
        cut, new = w.pieces[piece], new_packet(w, number)
        packet = w.packets[new]
        packet.kind, packet.slots, packet.carried, packet.price = cut.kind, cut.slots, cut.carried, cut.price
        if no_bytes:
            finish_packet(w, new, AT_NODE)
            continue
        count(w, new, TO_BUCKET)
        if refused:
            node.held -= packet.carried
            finish_packet(w, new, AT_BUCKET)
        elif port.shaped:
            admit(w, place, port, new, now)
        else:
            enter_baseband(w, place, new, now)
    item.parts -= 1
    if item.parts == 0:
        lose(w, number)


@part
def enter_baseband(w, place, number, now):
    """Let a packet into the queue of its first port, or lose it there."""
    count(w, number, TO_BASEBAND)
    if not enter_queue(w, place, number, now):
        w.nodes[w.ports[place].node].held -= w.packets[number].carried
        finish_packet(w, number, AT_BASEBAND)


# ------------------------------------------------------------------------------------------- token buckets


@part
def accrue(port, now):
    """Add the tokens of the time since the last look."""
    port.tokens = min(port.depth, port.tokens + port.rate * (now - port.updated))
    port.updated = now


@part
def admit(w, place, port, number, now):
    """Let a packet pass, or wait for tokens, or refuse it."""
    packet = w.packets[number]
    if port.bucket_waiting == 0:
        accrue(port, now)
        if port.tokens >= packet.price:
            port.tokens -= packet.price
            enter_baseband(w, place, number, now)
            return
    if port.bucket_waiting >= port.buffer:
        w.nodes[port.node].held -= packet.carried
        finish_packet(w, number, AT_BUCKET)
        return
    port.bucket_age -= now
    if port.bucket_waiting == 0:
        port.bucket_first = number
        schedule(w, min(now + (packet.price - port.tokens) / port.rate, NEVER), TOKENS, place)
    else:
        w.packets[port.bucket_last].behind = number
    port.bucket_last = number
    port.bucket_waiting += 1


@subroutine
def pay(w, place):
    """The tokens for the head of a buffer are there: release it, and all that the rest pays for."""
    port, now = w.ports[place], w.clock[0].now
    accrue(port, now)
    port.tokens = max(port.tokens, float(w.packets[port.bucket_first].price))  # but for rounding
    while port.bucket_waiting > 0:
        number = port.bucket_first
        packet = w.packets[number]
        if port.tokens < packet.price:
            schedule(w, min(now + (packet.price - port.tokens) / port.rate, NEVER), TOKENS, place)
            return
        port.tokens -= packet.price
        port.bucket_first = packet.behind
        port.bucket_waiting -= 1
        port.bucket_age += now
        enter_baseband(w, place, number, now)


@part
def fits(w, port, layout, now):
    """Return whether an item fits as a whole: tokens for its first packets, places for the others."""
    if not port.shaped:
        return layout.pieces <= port.limit - port.waiting
    passing, tokens = 0, 0.0
    if port.bucket_waiting == 0:
        accrue(port, now)
        tokens = port.tokens
        while passing < layout.pieces and tokens >= w.pieces[layout.first_piece + passing].price:
            tokens -= w.pieces[layout.first_piece + passing].price
            passing += 1
    return layout.pieces - passing <= port.buffer - port.bucket_waiting


# ------------------------------------------------------------------------------------------- outside links


@part
def enter_medium(w, place, number, size):
    """Queue an item at a port of a medium, or lose it there."""
    port, now = w.ports[place], w.clock[0].now
    own, new = w.media[port.medium], new_packet(w, number)
    packet = w.packets[new]
    packet.carried = size
    if port.waiting - (own.serving == place) >= port.limit:
        finish_packet(w, new, ON_THE_WAY)
        return
    port.age -= now
    if port.waiting == 0:
        port.first = new
    else:
        w.packets[port.last].behind = new
    port.last = new
    port.waiting += 1
    if own.serving == NONE and own.up_at <= now:  # else it begins when the medium is up
        transmit(w, port.medium, now)


@subroutine
def transmitted(w, medium):
    """A transmission is over, or the medium up again; return an item that is at the far side, or NONE."""
    own, now = w.media[medium], w.clock[0].now
    place = own.serving
    if place == NONE:
        if now >= own.up_at:
            transmit(w, medium, now)
        return NONE
    port = w.ports[place]
    number = port.first
    packet = w.packets[number]
    port.first = packet.behind
    port.waiting -= 1
    port.age += now
    lost = False
    if port.loss > 0.0:
        blocks = 1
        if port.loss_block > 0:
            blocks = -(-(packet.carried + own.header) // port.loss_block)
        lost = uniform(w) >= (1.0 - port.loss) ** blocks
    transmit(w, medium, now)
    w.items[packet.owner].hop = packet.hop
    count(w, number, BY_OUTSIDE)
    item = finish_packet(w, number, OUTSIDE if lost else INTACT)
    if item == NONE or port.delay + port.jitter == 0.0:
        return item
    delay = port.delay
    if port.jitter > 0.0:
        delay -= port.jitter * log(uniform(w))
    port.released = max(port.released, now + delay)
    schedule(w, port.released, ARRIVAL, item)
    return NONE


@subroutine
def transmit(w, medium, now):
    """Begin the next transmission of a medium, or wait until it is up or something comes."""
    own = w.media[medium]
    own.serving = NONE
    for step in range(own.ports):
        turn = (own.turn + step) % own.ports
        place = w.media_ports[own.first_port + turn]
        port = w.ports[place]
        if port.waiting == 0:
            continue
        if own.down_mean > 0.0 and not is_up(w, own, now):
            schedule(w, own.up_at, TRANSMITTED, medium)
            return
        own.serving, own.turn = place, (turn + 1) % own.ports
        size = w.packets[port.first].carried + own.header
        schedule(w, min(now + size / own.rate, NEVER), TRANSMITTED, medium)
        return


@subroutine
def is_up(w, own, now):
    """Return whether a medium with interruptions is up now; if not, `up_at` says from when on."""
    if own.up_at > now:
        return False
    memory = exp((own.up_at - now) * (1.0 / own.up_mean + 1.0 / own.down_mean))
    share = own.up_mean / (own.up_mean + own.down_mean)
    if now == own.up_at or uniform(w) < share + (1.0 - share) * memory:
        own.up_at = now
        return True
    own.up_at = now - own.down_mean * log(uniform(w))
    return False
