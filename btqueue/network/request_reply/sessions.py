"""Request, reply, good-bye over a TCP connection: one future of a session, from a loss to the next choice.

`Sessions` joins the two ends of a connection (`transport.request_reply_transfer`) by a timetable of the way
between them. It runs until a packet may be lost, and lets the caller choose; and it stops at *stages*, the
moments at which little is under way: the start of a session, and each expiry of a retransmission timer. What
matters at a stage is its `key`; `request_reply.chain` makes a Markov chain of them.
"""

from math import inf, log

from btqueue.network.request_reply.plan import CLIENT, SERVER, Option, Plan, Record
from btqueue.network.request_reply.route import Chain, Parcel
from btqueue.network.request_reply.way import Timetable
from btqueue.transport.request_reply_transfer import MessageReceiver, MessageSender, Sent

RTO_AFTER_LOST_SYN = 3_000_000_000
"""Least timeout (ns) of a connection whose SYN was repeated (RFC 6298, section 5.7)."""

WINDOW_STEP = 0.5
TIMEOUT_STEP = 0.2
PENDING_STEP = 0.1
"""How finely stages with losses are told apart: windows (segments), logarithms of times of the timer, and
times of what is under way (shares of the least timeout)."""


class Sessions:
    """Both ends of the connection and all that is under way between them."""

    def __init__(self, plan: Plan) -> None:
        """A new connection; the first session begins at time 0."""
        self.plan, self.table = plan, Timetable(plan.way)
        self.senders = [MessageSender(plan.rules) for _ in range(2)]
        self.receivers = [MessageReceiver(plan.rules) for _ in range(2)]
        self.epoch, self.phase, self.goal, self.base = 0, "pause", 0, (0, 0)
        self.wake = [inf, inf]
        self.open, self.connecting_since, self.syn_rto = not plan.handshake, 0, 0.0
        self.action: tuple = ("begin",)
        self.since, self.chain, self.repeated, self.late = 0, Chain(), 0.0, [0.0, 0.0]
        self.sent_bytes = [0, 0]
        self.left: dict[tuple[int, int], float] = {}  # repeated slots before a segment was sent
        self.started: int | None = None
        self.finished: int | None = None
        self.connected: int | None = None

    def begin_stage(self) -> None:
        """Begin to count anew, and do that for which the last stage ended."""
        self.since = self.table.now
        self.started = self.finished = self.connected = None
        self.chain, self.repeated, self.late = Chain(), 0.0, [0.0, 0.0]
        self.sent_bytes = [0, 0]
        for sender in self.senders:
            sender.resent = sender.timeouts = sender.fast_retransmits = 0
            sender.samples = []
        kind, *which = self.action
        if kind == "begin":
            self._begin()
        elif kind == "syn":
            self._repeat_syn()
        else:
            flow = which[0]
            self._send(flow, self.senders[flow].expire(self.table.now), Chain())

    def copy(self) -> "Sessions":
        """Return the same, with a future of its own."""
        other = Sessions.__new__(Sessions)
        vars(other).update(vars(self))
        other.table = self.table.copy()
        other.senders = [sender.copy() for sender in self.senders]
        other.receivers = [receiver.copy() for receiver in self.receivers]
        other.wake, other.late, other.left = self.wake.copy(), self.late.copy(), self.left.copy()
        other.sent_bytes = self.sent_bytes.copy()
        return other

    def record(self) -> Record:
        """Return what has happened in this stage."""
        one, two = self.senders
        return Record(
            self.table.now - self.since, self.started, self.finished, self.chain, self.repeated,
            (self.late[0], self.late[1]),
            self.connected, (self.sent_bytes[0], self.sent_bytes[1]),
            (one.resent, two.resent), (one.timeouts, two.timeouts),
            (one.fast_retransmits, two.fast_retransmits), (tuple(one.samples), tuple(two.samples)),
        )  # fmt: skip

    def run(self) -> list[Option] | None:
        """Go on until something has to be chosen, and return the options; or to the next stage (None)."""
        while True:
            kind, what = self.table.step()
            if kind == "arrived":
                self.arrived(what)
            elif kind == "sent":
                loss = what.form.losses[what.direction][what.hop]
                return [Option(1.0 - loss, what, None), Option(loss, None, None)]
            elif kind == "handed":
                parcel, outcomes = what
                return [Option(probability, parcel, delay) for probability, delay in outcomes]
            elif kind == "alarm" and self._on_alarm(*what):
                return None

    def take(self, option: Option) -> None:
        """Go on with one of the options."""
        if option.delay_ns is not None and option.parcel is not None:
            self.table.release(option.parcel, option.delay_ns)
        elif option.parcel is not None:
            kind, what = self.table.go_on(option.parcel)
            if kind == "arrived":
                self.arrived(what)

    # ------------------------------------------------------------------------------------------- the protocol

    def arrived(self, parcel: Parcel) -> None:
        """Take a segment at its last node."""
        kind, epoch, *content = parcel.content
        now, direction = self.table.now, parcel.direction
        if epoch != self.epoch:
            return
        if kind == "ack":
            self._take_acknowledgement(1 - direction, content[0], content[1], parcel.chain)
        elif kind == "syn":
            self.table.hand(SERVER, self.plan.small, ("synack", epoch), parcel.chain)
        elif kind == "synack":
            if not self.open:
                self._connected(parcel.chain)
        else:
            receiver = self.receivers[direction]
            due = receiver.take(content[0], now)
            self._application(direction, parcel.chain)
            if epoch == self.epoch and due:
                self._acknowledge(direction, parcel.chain)
            elif epoch == self.epoch and receiver.deadline < inf and receiver.waiting == 1:
                self.table.alarm(int(receiver.deadline), ("ack", epoch, direction))

    def _take_acknowledgement(self, flow: int, number: int, echo: float, chain: Chain) -> None:
        sender = self.senders[flow]
        timed, oldest = len(sender.samples), sender.una
        segments = sender.acknowledge(number, echo, self.table.now)
        if len(sender.samples) > timed and chain.frames:
            self.late[flow] += chain.repeated_slots - self.left.get((flow, oldest), 0.0)
        self._send(flow, segments, chain)

    def _acknowledge(self, flow: int, chain: Chain) -> None:
        answer = self.receivers[flow].acknowledgement()
        self.table.hand(1 - flow, self.plan.small, ("ack", self.epoch, *answer), chain)

    def _send(self, flow: int, segments: list[Sent], chain: Chain) -> None:
        forms, user_bytes = self.plan.data[flow], self.plan.user_bytes[flow]
        for sent in segments:
            form = forms[sent.number % len(forms)]
            self.sent_bytes[flow] += user_bytes[sent.number % len(forms)]
            if chain.frames:
                self.left[flow, sent.number] = chain.repeated_slots
            self.table.hand(flow, form, ("data", self.epoch, sent), chain)
        deadline = self.senders[flow].deadline
        if deadline < self.wake[flow]:
            self.wake[flow] = deadline
            self.table.alarm(int(deadline) + 1, ("timer", self.epoch, flow))

    def _write(self, flow: int, segments: int, chain: Chain) -> None:
        sent = self.senders[flow].write(segments, self.table.now)
        self.goal = self.senders[flow].written
        self._send(flow, sent, chain)

    def _application(self, flow: int, chain: Chain) -> None:
        """Data have come: if the message under way is whole, answer it (Avancha 2002, section 4.4.1)."""
        if self.receivers[flow].expected < self.goal:
            return
        plan, now = self.plan, self.table.now
        if self.phase == "request" and flow == CLIENT:
            self.phase = "reply"
            self._write(SERVER, plan.reply, chain)
        elif self.phase == "reply" and flow == SERVER:
            self.finished, self.chain = now - self.since, chain
            if plan.goodbye:
                self.phase = "goodbye"
                self._write(CLIENT, plan.goodbye, chain)
            else:
                self._finish(chain)
        elif self.phase == "goodbye" and flow == CLIENT:
            self._finish(chain)

    def _finish(self, chain: Chain) -> None:
        self.phase, self.repeated = "pause", chain.repeated_slots
        self.left = {}
        if self.plan.handshake:
            self._forget_connection()
        self.table.alarm(self.table.now + self.plan.pause, ("begin", self.epoch))

    def _forget_connection(self) -> None:
        """Replace the connection by a closed one; what it has under way is ignored."""
        self.epoch += 1
        for flow in (CLIENT, SERVER):
            old, new = self.senders[flow], MessageSender(self.plan.rules)
            for name in ("resent", "timeouts", "fast_retransmits", "samples"):
                setattr(new, name, getattr(old, name))
            self.senders[flow], self.receivers[flow] = new, MessageReceiver(self.plan.rules)
        self.wake, self.open = [inf, inf], False

    # ----------------------------------------------------------------------------------------------- the time

    def _on_alarm(self, kind: str, epoch: int, *which: int) -> bool:
        """Do what is due; return whether a new stage begins."""
        if epoch != self.epoch:
            return False
        if kind == "ack":
            receiver = self.receivers[which[0]]
            if receiver.deadline <= self.table.now:
                self._acknowledge(which[0], Chain())
            return False
        self.action = (kind, *which)
        if kind == "timer":
            return self._is_due(which[0])
        return kind == "begin" or not self.open

    def _begin(self) -> None:
        self.table.forget_chains()
        self.base = (self.senders[CLIENT].written, self.senders[SERVER].written)
        if self.open:
            self._request(Chain())
        else:
            self.phase, self.connecting_since = "connecting", self.table.now
            self.syn_rto = self.plan.rules.initial_rto
            self._send_syn()

    def _request(self, chain: Chain) -> None:
        self.phase, self.started = "request", self.table.now - self.since
        self._write(CLIENT, self.plan.request, chain)

    def _send_syn(self) -> None:
        self.table.hand(CLIENT, self.plan.small, ("syn", self.epoch), Chain())
        self.table.alarm(self.table.now + int(self.syn_rto), ("syn", self.epoch))

    def _repeat_syn(self) -> None:
        self.syn_rto = min(2 * self.syn_rto, self.plan.rules.max_rto)
        self._send_syn()

    def _connected(self, chain: Chain) -> None:
        self.open = True
        self.connected = self.table.now - self.connecting_since
        sender = self.senders[CLIENT]
        if self.syn_rto == self.plan.rules.initial_rto:
            sender.measure(self.connected)
        else:
            sender.rto = max(sender.rto, RTO_AFTER_LOST_SYN)
        self._request(Chain(0, chain.frames))

    def _is_due(self, flow: int) -> bool:
        """Whether the timer has expired; else let it be looked at again when it may."""
        self.wake[flow] = inf
        if self.senders[flow].deadline > self.table.now:
            self._send(flow, [], Chain())
            return False
        return True

    # ---------------------------------------------------------------------------------------- the next stage

    def key(self) -> tuple:
        """Return what of the present moment matters for the future, rounded if anything can be lost."""
        ends = tuple(self._end_key(flow) for flow in (CLIENT, SERVER))
        entries, queues, serving, places, grid = self.table.pending(self._describe)
        if self.plan.lossy:
            step = self.plan.rules.min_rto * PENDING_STEP
            entries = tuple((round(after / step), *what) for after, *what in entries)
            places = ()
        return self.phase, self.action, ends, (entries, queues, serving, places, grid), self._syn_key()

    def coarse_keys(self) -> list[tuple]:
        """Return what matters most of this moment besides `patience`, in keys that say less and less."""
        ends = list(zip(self.senders, self.receivers, self.base, strict=True))
        left = tuple(sender.written - sender.una for sender, _, _ in ends)
        had = tuple(receiver.expected - base for _, receiver, base in ends)
        windows = tuple(self._window(flow) // 2 for flow in (CLIENT, SERVER))
        found = (self.phase, self.action)
        return [(*found, left, had, windows), (*found, left), found]

    def patience(self) -> tuple[float, float]:
        """Return the timeouts of both ends, as logarithms."""
        return log(self.senders[CLIENT].rto), log(self.senders[SERVER].rto)

    @property
    def in_session(self) -> bool:
        """Whether the request has been written and its reply is not complete, before the next action."""
        return self.phase in ("request", "reply")

    def _syn_key(self) -> tuple:
        return () if self.open else (round(self.syn_rto), self.table.now - self.connecting_since)

    def _describe(self, parcel: Parcel) -> tuple:
        kind, epoch, *content = parcel.content
        if kind == "ack":
            content = [content[0] - self.base[1 - parcel.direction]]
        elif kind == "data":
            content = [content[0].number - self.base[parcel.direction]]
        return kind, epoch == self.epoch, *content, parcel.direction, parcel.hop

    def _window(self, flow: int) -> int:
        """Return the window in steps, no larger than matters; after an expiry, the flight that it halves."""
        sender = self.senders[flow]
        if self.action == ("timer", flow):
            return max(sender.flight, 4)
        return round(min(sender.cwnd, self.plan.largest_burst(flow) + 1.0) / WINDOW_STEP)

    def _end_key(self, flow: int) -> tuple:
        sender, receiver, base = self.senders[flow], self.receivers[flow], self.base[flow]
        numbers = sender.una - base, sender.highest - base, sender.written - base
        have = receiver.expected - base, tuple(sorted(n - base for n in receiver.early)), receiver.waiting
        found = self._window(flow), numbers, have
        if self.action != ("timer", flow):
            threshold = min(sender.ssthresh, self.plan.largest_burst(flow) + 1.0)
            recover = sender.recover - base if sender.recover >= sender.una - 1 else None
            found += (threshold, sender.recovering, recover, min(sender.duplicates, 3), sender.nxt - base)
        if not self.plan.lossy:
            return *found, tuple((n - base, at and self.table.now - at) for n, at in sender.timed.items())
        rto, known = (round(log(time or 1.0) / TIMEOUT_STEP) for time in (sender.rto, sender.smoothed))
        if self.action == ("timer", flow):  # everything under way is sent again, and not timed
            return *found, rto, known
        timer = 0 if sender.deadline == inf else round(4 * (sender.deadline - self.table.now) / sender.rto)
        twice = tuple(sorted(n - base for n, at in sender.timed.items() if at is None))
        return *found, rto, known, twice, timer
