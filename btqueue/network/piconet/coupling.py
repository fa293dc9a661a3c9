"""The rates of flows, the queues that they meet, and TCP's answer to both.

Flows that see the same are one class. A class sends its load if its windows allow that; else its windows go
round as fast as slots and tokens let them (`saturation`), or radio errors hold it back: then it sends at the
rate at which TCP's law gives the same, at the round trip that this rate makes. That rate falls as the round
trip grows, so there is one. The logarithms of the rates of all classes are the unknowns of one system, which
Newton's method solves. Derivatives are those of the solution, by the implicit function theorem.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.baseband import SLOT_S
from btqueue.network.piconet.air import Passage, Question, passage
from btqueue.network.piconet.bucket import (
    Bucket,
    Control,
    Missing,
    Polled,
    bucket,
    missing,
    polled_loss,
    queue_loss,
)
from btqueue.network.piconet.lone import BACK, DATA, DATA_ON, EMPTY_FRAME, Ways, lone_ways
from btqueue.network.piconet.ports import UP
from btqueue.network.piconet.saturation import (
    Window,
    closed_rate,
    saturated_slots,
    token_capacity,
    vegas_window,
    window,
)
from btqueue.network.piconet.sources import Answers, Batch, answers_of, batches
from btqueue.network.piconet.structure import LARGEST_QUEUE, Class, Inputs, Structure
from btqueue.network.piconet.tails import NONE, Tail, longest
from btqueue.network.piconet.trains import (
    Packets,
    Sent,
    beside_neighbours,
    failure_rates,
    survival,
    transmissions,
)
from btqueue.queueing.implicit import Evaluated, at_root, unevaluated
from btqueue.queueing.single.two_speed_server import two_speed_server
from btqueue.transport.tcp_law import LawRates, TcpLaw, law_rates

LEAST = 1e-3
"""Share of its capacity that a flow sends where its round trip without queueing is asked for."""
AT_MOST = 0.995
"""Share of its capacity that a flow offers to open queues at most: beyond, they say nothing."""
TOLERANCE = 1e-10
"""Relative change of a rate in the last iteration."""
MOST_ITERATIONS = 100
LONGEST, FURTHER, BACK_AGAIN = 3.0, 1.5, 0.4
"""Largest change of the logarithm of a rate in a step; its growth from step to step, and after a turn."""
LOAD, WINDOW, RADIO = 0.0, 1.0, 2.0
"""What decides the rate of a class."""
LIMITED = 1e-9
"""Relative difference of a rate from the load above which the load does not decide."""
FLATTEST = -0.1
"""Slope at least, for the first steps."""
ROUNDING = 1e-12
"""Change of the logarithm of a rate that says nothing of a slope."""
MOST_FRAMES = 256
"""Frames of a visit to a short queue that are followed: longer ones end then."""
RARE = 1e-12
"""Timeouts of a segment below which there are none."""
MOST_STOPPED = 0.95
"""Share of the time that a connection waits for its timer, at most."""
LEVELS_OF_QUEUE = LARGEST_QUEUE + 4


Rates = tuple[Array, Array]
"""Segments and acknowledgements a second: of the flows, (F,), or at a port."""


class Seen(NamedTuple):
    """What a flow of a class sees in open queues.

    Attributes:
        rtt_s, delay_s: mean round trip, and time of a message from sender to receiver.
        held_s: of the round trip, for which the receiver holds the acknowledgement back.
        service_s: by how much each segment of its own that is not answered makes the next one later.
        spacing_s: time from own segment to own segment where all flows of its port have some waiting.
        crossing_s: round trip without waits behind others of its port.
        overflow, refused: share of its segments that the queue and the token buffer damage.
        cycle_s: mean time from visit to visit.
        residual: of the iterations inside.
    """

    rtt_s: Array
    delay_s: Array
    held_s: Array
    service_s: Array
    spacing_s: Array
    crossing_s: Array
    overflow: Array
    refused: Array
    cycle_s: Array
    residual: Array


class Limits(NamedTuple):
    """What holds a flow of a class back.

    Attributes:
        capacity: segments a second that slots and tokens carry of it.
        cycle_s: polling cycle if all flows of the class are saturated (s).
        rate: segments a second that its window lets it send.
        window: see `Window`.
        flows: that share what is scarce.
        by_tokens: 1 if tokens are scarcer than slots, else 0.
        in_bucket: share of segments lost if the token buffer were always full.
    """

    capacity: Array
    cycle_s: Array
    rate: Array
    window: Window
    flows: Array
    by_tokens: Array
    in_bucket: Array


class Point(NamedTuple):
    """The network at some rates; arrays by class (C,).

    Attributes:
        seen: the open queues.
        limits: what holds flows back.
        rates: segments a second that a flow delivers, as far as load, window and radio allow; that it sends
            if nothing answers it.
        offered: segments a second that it sends, with what TCP repeats, as far as open queues carry it.
        limited: what decides.
    """

    seen: Seen
    limits: Limits
    rates: Array
    offered: Array
    limited: Array


class Tcp(NamedTuple):
    """What TCP makes of a path.

    Attributes:
        rates: those of a greedy connection.
        rtt_s: round trip that it makes.
        rounds: round trips of a delivered segment, while the timer is not waited for.
        stalled_s, expiries: time of waiting for the timer, and expiries, of a delivered segment.
    """

    rates: LawRates
    rtt_s: Array
    rounds: Array
    stalled_s: Array
    expiries: Array


class Network(NamedTuple):
    """The map from the rates of the classes to what they see, and to what they may send.

    Attributes:
        structure: the piconet.
        law: TCP's, where segments can be lost on the radio.
        inputs: numbers.
        sent: transmissions of a segment and of an acknowledgement on a hop.
        success, ack_success: (C,) probability that a segment gets over the radio, or an acknowledgement.
        success_of_flow: (F,) the same of segments.
        ways: (C, ...) of lone segments.
    """

    structure: Structure
    law: TcpLaw | None
    inputs: Inputs
    sent: tuple[Sent, Sent]
    success: Array
    ack_success: Array
    success_of_flow: Array
    ways: Ways

    def most(self) -> Array:
        """Segments a second that a lone flow could send in all slots."""
        data, ack = self.sent
        slots = data.mean * data.mean_slots + self.structure.answered * ack.mean * ack.mean_slots
        return 1.0 / (slots * self.structure.slot_s)

    @property
    def wanted(self) -> Array:
        """(C,) segments that a flow's rate counts, of those that are sent: without transport all of them."""
        return self.success if self.structure.answered else jnp.ones_like(self.success)

    def seen(self, offered: Array, one: Class, ways: Ways) -> Seen:
        """Return what a flow of a class sees if (F,) flows offer so many segments a second.

        Tokens and the port are two queues in a row: the longer wait counts (`tails`). Packets that tokens
        space out need less of the air after them. A window lets a segment out when one comes back: so its
        time is at most that in which a window of segments passes the slower queue.
        """
        structure, inputs = self.structure, self.inputs
        window = self.of(inputs.window, one) if structure.answered else jnp.full((), jnp.inf)
        found, cycle = passage(self.question(offered, one, ways, window))
        return self.put_together(offered, one, found, cycle, jnp.zeros(()), jnp.zeros(()))

    def put_together(
        self, offered: Array, one: Class, found: Passage, cycle: Array, waited_s: Array, longer_s: Array
    ) -> Seen:
        """Return what a flow sees that crosses the air so.

        Args:
            offered: (F,) segments a second of the flows.
            one: the class of the flow.
            found: its passage.
            cycle: from visit to visit (slots).
            waited_s: further wait behind others of its port, as far as its window allows that.
            longer_s: further time of its own.
        """
        structure, inputs = self.structure, self.inputs
        window = self.of(inputs.window, one) if structure.answered else jnp.full((), jnp.inf)
        held = self.answers(offered)
        slot_s, sent = structure.slot_s, (offered, offered * held.share)
        own_s = found.bare * slot_s
        # until the next message is in the queue of the port, and then until its segments have crossed
        held_s = one.member @ held.wait_s * (1.0 - jnp.minimum(one.member @ offered * own_s, AT_MOST))
        held_s = held_s + one.member @ held.behind * own_s
        processing_s = inputs.jitter_s / 2.0 + inputs.layers_s  # the former uniform from 0
        before_s = processing_s + found.delay * slot_s + longer_s
        places, in_bursts = self.places(one), found.bursty > 0.0
        bounded = jnp.isfinite(places) & ~in_bursts
        room_s = jnp.where(bounded, jnp.where(bounded, places, 0.0) * found.frame * slot_s, jnp.inf)
        tokens, token_turn_s = self._tokens(sent, one, found)
        # the last one of a message
        behind = found.wait + self.of(self.batch.fixed, one) * found.service
        last = Tail.of(found.load, behind * slot_s, room_s)
        delay = before_s + longest(last, tokens, jnp.asarray(jnp.inf)) + waited_s
        rtt = jnp.full((), jnp.nan)
        if structure.answered:
            alone = before_s + processing_s + found.answer * slot_s + held_s
            most = found.longest(alone, jnp.maximum(found.turn * slot_s, token_turn_s), window)
            port_back = Tail.of(found.load_back, found.wait_back * slot_s)
            rtt = alone + longest(port_back, self._tokens_back(sent, one), most - alone)
            wait = jnp.where(in_bursts, found.wait_in_bursts(window), found.wait)
            rtt = rtt + longest(Tail.of(found.load, wait * slot_s, room_s), tokens, most - rtt) + waited_s
            # a window of one lets the next segment out when the one before is answered
            busy = jnp.minimum(one.member @ offered * rtt, AT_MOST)
            drawn, fixed = self.of(self.batch.drawn, one), self.of(self.batch.fixed, one)
            queue = busy * (0.5 + drawn + fixed) / (1.0 - busy) + drawn + 2.0 * fixed
            others = before_s + (1.0 - found.share) * found.wait * slot_s + waited_s
            delay = jnp.where(window > 1.0, delay, others + queue * rtt)
        return Seen(
            rtt_s=rtt,
            delay_s=delay,
            held_s=held_s,
            service_s=found.bare * slot_s,
            spacing_s=found.service * slot_s / found.share,
            crossing_s=(found.delay + found.answer) * slot_s,
            overflow=self._overflow(offered, one, found),
            refused=self._bucket(sent, one.ports[DATA]).train_loss,
            cycle_s=cycle * slot_s,
            residual=found.residual,
        )

    def question(self, offered: Array, one: Class, ways: Ways, window: Array) -> Question:
        """Ask what a flow of a class sees if (F,) flows offer so many segments a second."""
        structure, held = self.structure, self.answers(offered)
        return Question(
            structure,
            self.sent,
            offered,
            acks=held.share,
            batch=jax.tree.map(lambda of_class: structure.class_of @ of_class, self.batch),
            regular=structure.class_of @ structure.source.regular,
            one=one,
            ways=ways,
            clocked=held.clocked,
            window=window,
        )

    @property
    def batch(self) -> Batch:
        """In which the segments of each class come, (C,)."""
        source = self.structure.source
        return batches(source, self.inputs.scv, self.inputs.load / source.segments * SLOT_S)

    def answers(self, offered: Array) -> Answers:
        """Return what receivers make of the segments of (F,) flows that offer so many a second."""
        delivered, structure = offered * self.success_of_flow, self.structure
        unused = 1.0 - structure.class_of.sum(axis=1)
        segments = structure.class_of @ structure.source.segments + unused
        data, ack = self.sent
        own_s, delay_s = data.mean * (data.mean_slots + 1.0) * structure.slot_s, self.inputs.ack_delay_s
        found = answers_of(delivered, segments, structure.ack_every, delay_s, own_s, structure.ack_clock)
        # An acknowledgement that layers hold for a cycle comes to its port at any time, one that they do not
        # hold with its segment. In between: a part of the acknowledgements, in proportion.
        frames = self.crossed(data.mean * (data.mean_slots + 1.0), ack.mean * (ack.mean_slots + 1.0), found)
        busy = jnp.minimum(delivered @ frames * structure.slot_s, AT_MOST)
        cycle_s = EMPTY_FRAME * structure.stations * structure.slot_s / (1.0 - busy)
        apart = jnp.minimum(self.inputs.layers_s / cycle_s, 1.0)
        return found._replace(clocked=jnp.maximum(apart, found.clocked))

    def crossed(self, data: Array, ack: Array, held: Answers) -> Array:
        """Return the sum over the hops of a segment, and over its share of an acknowledgement's, (F,)."""
        hops = self.structure.at_port.sum(axis=-1)  # (F, 4)
        return hops[:, :BACK].sum(-1) * data + hops[:, BACK:].sum(-1) * held.share * ack

    def of(self, values: Array, one: Class) -> Array:
        """Return the value of a class among those of all, (C,)."""
        return one.member @ (self.structure.class_of @ values)

    def _entering(self, sent: Rates, port: Array) -> Rates:
        """Return the segments and acknowledgements a second that come to a port from a host."""
        enter = self.structure.at_port @ port  # (F, 4)
        return enter[:, DATA] @ sent[0], self.sent[0].success * enter[:, BACK] @ sent[1]

    def _missing(self, sent: Rates, port: Array) -> Missing:
        structure = self.structure
        prices = jnp.stack([structure.data.tokens, structure.ack.tokens]) / self.inputs.token_rate
        return missing(jnp.stack(self._entering(sent, port)), prices)

    def _tokens(self, sent: Rates, one: Class, found: Passage) -> tuple[Tail, Array]:
        """Return the wait of a segment for tokens, and the time from segment to segment that they allow (s).

        The first packets go ahead while the last one waits: that one has less air before it.
        """
        structure, inputs = self.structure, self.inputs
        if not structure.tokens:
            return NONE, jnp.zeros(())
        data_rate, ack_rate = self._entering(sent, one.ports[DATA])
        count, price = structure.data.count, structure.data.tokens
        saved_s = (found.delay - structure.stations) * (count - 1.0) / count * structure.slot_s
        needed = jnp.maximum(price / count, price - saved_s * inputs.token_rate)
        packets = data_rate * count + ack_rate * structure.ack.count
        spent = (data_rate * price + ack_rate * structure.ack.tokens) / inputs.token_rate
        room_s = inputs.buffer * spent / packets
        tail = self._missing(sent, one.ports[DATA]).beyond(
            (inputs.bucket_bytes - needed) / inputs.token_rate, room_s
        )
        return tail, spent / data_rate

    def _tokens_back(self, sent: Rates, one: Class) -> Tail:
        """Return the wait of an acknowledgement for tokens (s)."""
        structure, inputs = self.structure, self.inputs
        if not structure.tokens:
            return NONE
        after_s = (inputs.bucket_bytes - structure.ack.tokens) / inputs.token_rate
        return self._missing(sent, one.ports[BACK]).beyond(after_s, jnp.asarray(jnp.inf))

    def _bucket(self, sent: Rates, port: Array) -> Bucket:
        """Return the bucket of a port."""
        structure, inputs = self.structure, self.inputs
        if not structure.tokens:
            return Bucket(jnp.zeros(()), jnp.zeros(()))
        control = Control(inputs.token_rate, inputs.bucket_bytes, inputs.buffer)
        return bucket(control, structure.data, structure.ack, *self._entering(sent, port), structure.levels)

    def waiting_for_tokens(self, offered: Array) -> Array:
        """Return the packets that wait for tokens at a station, averaged over the stations."""
        of_flows, ports = self.structure.class_of @ offered, self.structure.at_port.shape[-1]
        up = jnp.eye(ports)[UP::2]
        sent = of_flows, of_flows * self.answers(of_flows).share
        waiting = jax.vmap(lambda port: self._bucket(sent, port).packets)(up)
        return waiting.sum() / self.structure.stations

    def _overflow(self, offered: Array, one: Class, found: Passage) -> Array:
        """Share of the segments of which the queue of their port refuses a packet.

        A queue that windows cannot fill refuses none.
        """
        structure, inputs = self.structure, self.inputs
        if not structure.queues:
            return jnp.zeros(())
        first = structure.at_port[:, DATA] @ one.ports[DATA]
        places = self.places(one)
        most = (
            jnp.inf
            if not structure.answered
            else (first @ (structure.class_of @ inputs.window)) * structure.data.count
        )
        short = (places < most) & (places <= LARGEST_QUEUE)
        crossing = structure.at_port[:, :2].sum(axis=1) @ one.ports[DATA]
        service_s = found.service * structure.slot_s / self.sent[0].mean
        lost = queue_loss(
            crossing @ offered, self.sent[0].law, service_s, jnp.where(short, places, 1.0), LEVELS_OF_QUEUE
        )
        return jnp.where(short, lost, 0.0)

    def refused(self, one: Class, limits: Limits) -> Array:
        """Return the share of segments without transport that a short queue of a saturated class refuses."""
        structure, data = self.structure, self.sent[0]
        frame, turn = data.mean_slots + 1.0, limits.cycle_s / structure.slot_s
        limit, alike = jnp.asarray(structure.limit, float), one.flows.sum() - 1.0
        at_port = structure.at_port[:, DATA] @ one.ports[DATA]
        loads = jnp.where(jnp.isfinite(self.inputs.load), self.inputs.load, 0.0)
        places = jnp.minimum(self.places(one), LARGEST_QUEUE)
        queue = Polled(
            rate=at_port @ (structure.class_of @ loads) * structure.slot_s,
            law=data.law,
            frame=frame,
            empty=jnp.full((), EMPTY_FRAME),
            limit=jnp.minimum(limit, places) if structure.closes else limit,
            places=places,
            away=jnp.maximum(turn - limit * frame * (1.0 + alike), 0.0),
            alike=alike,
        )
        return polled_loss(queue, size=LARGEST_QUEUE, frames=MOST_FRAMES)

    def places(self, one: Class) -> Array:
        """Return the packets that the first queue of a class holds."""
        way = one.ports[DATA].reshape(-1, 2).sum(axis=0)
        return jnp.where(way > 0.0, self.inputs.places, 0.0).sum()

    def capacity(self, rates: Array, one: Class, held: Array) -> Limits:
        """Return what slots and tokens allow a class without windows, beside the others at their rates.

        Classes that are not held back by their load share the rest, each port as much as the next one.

        Args:
            rates: (F,) segments a second: see `Point`.
            one: the class.
            held: (F,) whether the load does not decide.
        """
        structure, inputs = self.structure, self.inputs
        own = one.flows > 0.0
        others = jnp.where(own, 0.0, rates)
        sharing = jnp.where(own | held, 1.0, 0.0)
        first = structure.at_port[:, DATA]
        shares = sharing / jnp.maximum(first @ (sharing @ first), 1.0)
        share = one.member @ shares
        windows = structure.class_of @ inputs.window
        answered = jnp.clip(
            windows, 1.0, structure.ack_every
        )  # by one acknowledgement, where windows are full
        acks = jnp.where(sharing > 0.0, 1.0 / answered, self.answers(others).share)
        relayed = structure.at_port[:, DATA_ON].sum(-1) > 0.0
        turns = jnp.where(
            structure.answered & (windows <= structure.ack_every) & ~relayed, 1.0 / answered, 0.0
        )
        slots = saturated_slots(
            structure, self.sent, shares, jnp.where(sharing > 0.0, 0.0, others), acks, turns * sharing
        )
        tokens = token_capacity(structure, inputs, one, others, acks)
        by_tokens = tokens < slots.capacity * share
        rate = jnp.minimum(slots.capacity * share, tokens)
        queue = self.places(one)
        # where tokens are scarce they are not saved
        room = jnp.where(by_tokens, inputs.buffer, queue) / structure.data.count
        flows = jnp.where(by_tokens, 1.0, shares.sum() / share)
        own_window = self.of(inputs.window, one)
        room = window(own_window, room)
        in_bucket = jnp.where(
            structure.tokens, window(own_window, inputs.buffer / structure.data.count).loss, 0.0
        )
        return Limits(rate, slots.cycle_s, rate, room, flows, jnp.where(by_tokens, 1.0, 0.0), in_bucket)

    def at(self, logs: Array) -> Point:
        """Return the network where classes deliver and offer rates of these logarithms, (2C,).

        A window goes round in the time that a segment takes when its own class sends next to nothing.
        """
        structure, inputs = self.structure, self.inputs
        rates, offered = jnp.exp(logs).reshape(2, -1)
        of_flows, all_sent = structure.class_of @ rates, structure.class_of @ offered
        held = jax.lax.stop_gradient(structure.class_of @ (rates < inputs.load * (1.0 - LIMITED))) > 0.0
        can = jax.vmap(self.capacity, (None, 0, None))(of_flows, structure.classes, held)
        alone = jnp.where(structure.classes.flows > 0.0, LEAST * can.capacity[:, None], all_sent)
        asked = jnp.stack([jnp.broadcast_to(all_sent, alone.shape), alone])  # (2, C, F)
        by_class = jax.vmap(self.seen)
        both = jax.vmap(by_class, (0, None, None))(asked, structure.classes, self.ways)
        seen, seen_alone = (jax.tree.map(lambda leaf, k=k: leaf[k], both) for k in range(2))
        limits = self._limits(can, seen_alone)
        by_window = limits.rate * self.wanted
        most = jnp.minimum(inputs.load, by_window)
        why = jnp.where(inputs.load <= by_window, LOAD, WINDOW)
        allowed = most
        if structure.lossy:
            moving_s = seen.rtt_s - seen.held_s
            radio = jax.vmap(self.tcp)(moving_s, seen.spacing_s, self.success, self.ack_success).rates.goodput
            allowed, why = jnp.minimum(most, radio), jnp.where(radio < most, RADIO, why)
        lost = lost_in_buffers(limits, seen, why) if structure.answered else jnp.zeros_like(most)
        sent = jnp.minimum(allowed / self.wanted / (1.0 - lost), AT_MOST * limits.capacity)
        return Point(seen, limits, allowed, sent, why)

    def _limits(self, can: Limits, alone: Seen) -> Limits:
        """Return what windows let classes send."""
        if not self.structure.answered:
            return can._replace(window=Window(jnp.full_like(can.rate, jnp.inf), jnp.zeros_like(can.rate)))
        structure, inputs = self.structure, self.inputs
        lone_s = alone.rtt_s - alone.held_s
        # an acknowledgement that cannot go on in the visit of its segment waits for all others' visits
        waits = (structure.classes.route.up == 0.0) | (self.sent[0].fills_last > 0.5)
        waits = waits | (inputs.layers_s > 0.0)
        idle_s = (self.ways.back.slots.sum(-1) + self.ways.back.rest) * structure.slot_s
        base_s = jnp.where(waits, jnp.maximum(lone_s, 1.0 / can.rate), idle_s)
        held = vegas_window(base_s, 1.0 / can.rate, inputs.alpha, inputs.beta, inputs.gamma)
        mean = jnp.where(structure.vegas > 0.0, jnp.minimum(can.window.mean, held), can.window.mean)
        service_s = 1.0 / (can.flows * can.rate)
        elsewhere_s = jnp.maximum(lone_s - service_s, 0.0)
        closed = jax.vmap(partial(closed_rate, most=structure.customers))
        rate = closed(can.flows * mean, service_s, elsewhere_s) / can.flows
        # a window that is answered as a whole goes back and forth
        answered = jnp.minimum(mean, structure.ack_every)
        turn_s = lone_s + (answered - 1.0) * alone.service_s
        if structure.ack_clock:
            waits = jnp.ceil(turn_s / inputs.ack_delay_s) * inputs.ack_delay_s
            waits = waits if structure.ack_clock == "tick" else turn_s + inputs.ack_delay_s
            turn_s = jnp.where(mean < structure.ack_every, waits, turn_s)
        alternates = (inputs.window <= structure.ack_every) & (can.window.loss == 0.0)
        alternates = alternates & (structure.classes.route.relayed == 0.0)
        rate = jnp.where(alternates, jnp.minimum(answered / turn_s, can.rate), rate)
        return can._replace(rate=rate, window=can.window._replace(mean=mean))

    def tcp(self, rtt_s: Array, spacing_s: Array, success: Array, ack_success: Array) -> Tcp:
        """Return what a greedy connection makes of a round trip and the losses of the radio.

        A segment costs round trips, while the timer is not waited for, and waits for it. In a round trip
        a window is under way, which takes at least their spacing at a busy port. The round trip is without
        what the receiver holds its acknowledgement back.
        """
        inputs, law = self.inputs, self.law
        assert law is not None  # lossy

        def rates(rtt_s: Array, min_rto_s: Array) -> LawRates:
            return law_rates(
                law,
                1.0 - success,
                1.0 - ack_success,
                rtt_s=rtt_s,
                min_rto_s=min_rto_s,
                max_rto_s=inputs.max_rto_s,
                backoff=inputs.backoff,
                ack_delay_s=inputs.ack_delay_s if self.structure.ack_clock else 0.0,
            )

        rto_s = jnp.maximum(inputs.min_rto_s, rtt_s)
        _, rounds = jax.jvp(
            lambda rtt_s: 1.0 / rates(rtt_s, rto_s).goodput, (rtt_s,), (jnp.ones_like(rtt_s),)
        )
        rtt_s = jnp.maximum(rtt_s, spacing_s / rounds)
        found = rates(rtt_s, inputs.min_rto_s)
        stalled_s = jnp.maximum(1.0 / found.goodput - rounds * rtt_s, 0.0)
        return Tcp(found, rtt_s, rounds, stalled_s, found.timeouts / found.goodput)

    def behind_stalls_s(self, seen: Seen, tcp: Tcp, rate: Array) -> Array:
        """Return how much longer a round trip is since messages pile up while the timer is waited for.

        A connection is a server that stops at each timeout and else sends a window in a round trip, as fast
        as its port allows. Of what piled up, there is in the network what of a window exceeds a round trip.

        Args:
            seen: by a flow of a class.
            tcp: what TCP makes of that.
            rate: segments a second that the flow delivers.
        """
        data = self.sent[0]
        size = (1.0 + data.variance / data.mean**2) / 2.0
        stop_s = tcp.stalled_s / jnp.maximum(tcp.expiries, RARE)
        stopped = jnp.minimum(rate * tcp.stalled_s, MOST_STOPPED)
        stops = rate * jnp.maximum(tcp.expiries, RARE) / (1.0 - stopped)
        speed = 1.0 / jnp.maximum(seen.spacing_s, seen.crossing_s * tcp.rounds)
        moves = jnp.stack([stops, 1.0 / jnp.maximum(stop_s, RARE)])
        waiting = jnp.maximum(1.0 / tcp.rounds - seen.crossing_s / seen.spacing_s, 0.0)
        speeds = jnp.stack([speed, jnp.zeros_like(speed)])
        queue = two_speed_server(rate, speeds, moves, size)
        steady = two_speed_server(rate, jnp.stack([speed, speed]), moves, size)
        more = queue.work(waiting) - steady.work(waiting)
        return jnp.where(tcp.expiries > RARE, jnp.maximum(more, 0.0) * seen.spacing_s, 0.0)


class System(NamedTuple):
    """What is solved: a piconet, TCP's law where segments can be lost on the radio, and numbers."""

    structure: Structure
    law: TcpLaw | None
    inputs: Inputs


class Solved(NamedTuple):
    """The fixed point.

    Attributes:
        network: that was solved.
        point: where it stands.
        residual: largest relative change of a rate by one more iteration.
    """

    network: Network
    point: Point
    residual: Array


def solve_rates(system: System) -> Solved:
    """Return the network at the rates that loads, windows and radio errors allow."""
    network = network_of(*system)
    point, residual = at_root(short_of, _search, network)
    return Solved(network, point, jnp.abs(residual).max())


def network_of(structure: Structure, law: TcpLaw | None, inputs: Inputs) -> Network:
    """Say how often trains are sent, and what gets through."""
    share, errors = _error_rates(structure, inputs)
    data, ack = (
        _sent(structure, packets, share, errors[:, kind])
        for kind, packets in enumerate((structure.data, structure.ack))
    )
    hops = 1.0 + structure.classes.route.relayed
    whole = data.success
    if structure.fading == "tries":
        stays = inputs.radio.good_s, inputs.radio.bad_s
        once = survival(
            structure.data, errors[:, 0], stays, structure.limit, _away_s(structure, inputs, data)
        )
        whole = jnp.where(structure.most_transmissions == 1.0, once, whole)
    success = whole**hops
    ack_success = ack.success**hops if structure.answered else jnp.ones_like(hops)
    unused = 1.0 - structure.class_of.sum(axis=1)
    of_flow = structure.class_of @ success + unused
    if structure.lossy or (structure.errors and not structure.answered):
        through = (
            _sent(structure, packets, share, errors[:, kind], delivered=True)
            for kind, packets in enumerate((structure.data, structure.ack))
        )
    else:
        through = data, ack
    arriving, answer = through
    answer = answer if structure.answered else None
    ways = jax.vmap(lambda route: lone_ways(route, arriving, answer, structure.idle, structure.limit))(
        structure.classes.route
    )
    return Network(structure, law, inputs, (data, ack), success, ack_success, of_flow, ways)


def _sent(
    structure: Structure, packets: Packets, share: Array, errors: Array, *, delivered: bool = False
) -> Sent:
    """Return the transmissions of a train over the states of the radio, (S,), with error rates (S, K)."""
    sizes = structure.most_transmissions, structure.limit, structure.transmissions
    found = jax.vmap(lambda each: transmissions(packets, each, *sizes, delivered=delivered))(errors)
    weights = share * jnp.maximum(found.success, RARE) if delivered else share
    mean = jax.tree.map(lambda leaf: jnp.einsum("s,s...->...", weights / weights.sum(), leaf), found)
    return mean._replace(success=share @ found.success)


def _away_s(structure: Structure, inputs: Inputs, data: Sent) -> Array:
    """Return the mean time between two visits of a station that sends data without acknowledgements."""
    rates = structure.class_of.sum(axis=0) @ jnp.where(jnp.isfinite(inputs.load), inputs.load, 0.0)
    train = data.mean * (data.mean_slots + 1.0) - EMPTY_FRAME * data.full_visits
    busy = jnp.minimum(rates * structure.slot_s * train, AT_MOST)
    of_others = EMPTY_FRAME * (structure.stations - 1.0)
    return structure.slot_s * of_others / (1.0 - busy)


def short_of(logs: Array, network: Network) -> tuple[Point, Array]:
    """Return the network at given logarithms of rates, and by how much they are short, (2C,)."""
    point = network.at(logs)
    return point, jnp.log(jnp.concatenate([point.rates, point.offered])) - logs


class _Secant(NamedTuple):
    """The state of the search: where it goes on, and from where; the step to there and its bound; turns."""

    logs: Array
    last: Evaluated
    step: Array
    longest: Array
    count: Array


def _search(network: Network) -> Evaluated:
    """Find rates that are what is allowed: the secant method for each, with shorter steps after a turn.

    What is allowed falls with what is delivered: a slope of -1 or below. What is offered grows with losses,
    which it makes: a slope above -1, but negative, or nothing would be delivered.
    """
    start = jnp.log(jnp.minimum(network.inputs.load, network.most()))
    start = jnp.concatenate([start, start])

    def unfinished(state: _Secant) -> Array:
        return (jnp.abs(state.step).max() > TOLERANCE) & (state.count < MOST_ITERATIONS)

    def improve(state: _Secant) -> _Secant:
        logs, (_, (_, last)), moved, longest, count = state
        point, short = short_of(logs, network)
        told = jnp.abs(moved) > ROUNDING
        slope = jnp.where(told & (count > 0), (short - last) / jnp.where(told, moved, 1.0), -1.0)
        wanted = -short / jnp.minimum(slope, FLATTEST)
        turned = (wanted * moved < 0.0) & (count > 0)
        longest = jnp.where(turned, BACK_AGAIN * longest, jnp.minimum(FURTHER * longest, LONGEST))
        step = jnp.clip(wanted, -longest, longest)
        return _Secant(logs + step, (logs, (point, short)), step, longest, count + 1)

    ones = jnp.ones_like(start)
    begin = _Secant(start, unevaluated(short_of, start, network), ones, LONGEST * ones, jnp.zeros((), int))
    return jax.lax.while_loop(unfinished, improve, begin).last


def lost_in_buffers(limits: Limits, seen: Seen, why: Array) -> Array:
    """Return the share of its segments that full buffers damage: not more than if they were always full.

    Windows that never empty are clocked by what is scarce. Loads come in bursts, which fill a bucket's buffer
    also where tokens are not scarce.
    """
    always = jnp.where(why == LOAD, jnp.maximum(limits.window.loss, limits.in_bucket), limits.window.loss)
    return jnp.minimum(always, 1.0 - (1.0 - seen.overflow) * (1.0 - seen.refused))


def _error_rates(structure: Structure, inputs: Inputs) -> tuple[Array, Array]:
    """(S,) share of the trains, and (S, 2, K) error rates on one hop: of data, and of acknowledgements.

    What is repeated for ever needs the long-run mean of the radio's states alone; what is given up after some
    tries is given up in the state in which it was sent.
    """
    radio = inputs.radio
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), structure.data, structure.ack)
    if not structure.errors:
        return jnp.ones(1), jnp.zeros((1, *both.slots.shape))
    ber = jnp.stack([radio.ber_good, radio.ber_bad])[:, None]
    by_state = beside_neighbours(both, failure_rates(both, ber))
    share = jnp.stack([radio.good_s, radio.bad_s]) / (radio.good_s + radio.bad_s)
    if structure.fading == "tries":
        return share, by_state
    given = jnp.isfinite(radio.per)
    per = beside_neighbours(both, jnp.where(given, radio.per, 0.0))
    return jnp.ones(1), jnp.where(given, per, jnp.einsum("s,skp->kp", share, by_state))[None]
