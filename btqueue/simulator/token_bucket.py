"""L2CAP flow control as a token bucket (Venugopal 2006, section 1.1 and table 3.1).

Packets wait in a buffer of S for tokens, which gather at a constant rate up to the bucket's depth; the packet
at the head leaves for the uplink queue, of L packets, as soon as the bucket holds its price. A full buffer
refuses the packet, or, if `whole_segments`, every packet of its segment; a full uplink queue refuses the
packet.
"""

from btqueue.simulator.compilation import compiled
from btqueue.simulator.l2cap import finish_packet
from btqueue.simulator.packet_queue import offer, serve
from btqueue.simulator.records import TOKEN_BUFFER, UPLINK
from btqueue.simulator.timers import schedule


@compiled
def queue_of(sim, kind, peripheral):
    """Return the index of a peripheral's token buffer, uplink or downlink queue."""
    return kind * sim.central[0].peripherals + peripheral


@compiled
def token_timer(peripheral):
    """Return the number of a peripheral's token timer; 0 is the central's, two belong to each peripheral."""
    return 1 + 2 * peripheral


@compiled
def accrue(bucket, now):
    """Add the tokens of the time since the last look, up to the depth."""
    missing = bucket.depth - bucket.tokens
    elapsed = now - bucket.updated_at
    # Compare before multiplying: rate * elapsed of a long idle spell could pass 2^63.
    if bucket.rate > 0 and elapsed > missing // bucket.rate:
        bucket.tokens = bucket.depth
    else:
        bucket.tokens += bucket.rate * elapsed
    bucket.updated_at = now


@compiled
def enter_baseband(sim, peripheral, packet, now):
    """Hand a packet to the uplink queue, or lose it there."""
    flow = sim.segments[sim.packets[packet].segment].flow
    statistics = sim.flow_statistics[flow]
    statistics.offered_to_baseband += 1
    if offer(sim, queue_of(sim, UPLINK, peripheral), packet, now):
        sim.central[0].waiting += 1
    else:
        statistics.refused_at_baseband += 1
        finish_packet(sim, packet, True)


@compiled
def wait_for_tokens(sim, peripheral, now):
    """Set the timer for the instant at which the head packet's price will be there."""
    bucket = sim.buckets[peripheral]
    head = sim.queues[queue_of(sim, TOKEN_BUFFER, peripheral)].head
    missing = sim.packets[head].tokens - bucket.tokens
    schedule(sim, token_timer(peripheral), now + (missing + bucket.rate - 1) // bucket.rate)


@compiled
def admit_packet(sim, peripheral, packet, now):
    """Let a packet pass at once if nobody waits and the tokens are there; else it waits, or is refused."""
    bucket = sim.buckets[peripheral]
    flow = sim.segments[sim.packets[packet].segment].flow
    statistics = sim.flow_statistics[flow]
    statistics.offered_to_token_buffer += 1
    if not bucket.enabled:
        enter_baseband(sim, peripheral, packet, now)
        return
    buffer = queue_of(sim, TOKEN_BUFFER, peripheral)
    nobody_waits = sim.queues[buffer].length == 0
    if nobody_waits:
        accrue(bucket, now)
        if bucket.tokens >= sim.packets[packet].tokens:
            bucket.tokens -= sim.packets[packet].tokens
            enter_baseband(sim, peripheral, packet, now)
            return
    if not offer(sim, buffer, packet, now):
        statistics.refused_at_token_buffer += 1
        finish_packet(sim, packet, True)
    elif nobody_waits:
        wait_for_tokens(sim, peripheral, now)


@compiled
def has_room_for(sim, peripheral, layout, now):
    """Whether a segment of this layout fits as a whole: tokens for its first packets, places for the rest."""
    bucket = sim.buckets[peripheral]
    buffer = sim.queues[queue_of(sim, TOKEN_BUFFER, peripheral)]
    passing = 0
    if buffer.length == 0:
        accrue(bucket, now)
        tokens = bucket.tokens
        while passing < layout.count and tokens >= layout.tokens[passing]:
            tokens -= layout.tokens[passing]
            passing += 1
    return layout.count - passing <= buffer.limit - buffer.length


@compiled
def on_tokens(sim, peripheral, now):
    """The head packet's tokens have come: release it, and all that the rest pays for."""
    bucket = sim.buckets[peripheral]
    buffer = queue_of(sim, TOKEN_BUFFER, peripheral)
    accrue(bucket, now)
    while sim.queues[buffer].length > 0:
        head = sim.queues[buffer].head
        if bucket.tokens < sim.packets[head].tokens:
            wait_for_tokens(sim, peripheral, now)
            return
        bucket.tokens -= sim.packets[head].tokens
        enter_baseband(sim, peripheral, serve(sim, buffer, now), now)
