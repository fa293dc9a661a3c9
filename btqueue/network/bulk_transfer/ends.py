"""Senders and receivers with the parameters of a scenario."""

from btqueue.network.bulk_transfer.path import FlowPath
from btqueue.network.bulk_transfer.receiver import Receiver
from btqueue.network.bulk_transfer.sender import Sender, Timer
from btqueue.scenario.transport import Transport


def new_sender(transport: Transport, path: FlowPath) -> Sender:
    """Return a sender with the scenario's parameters."""
    timer = Timer(transport.initial_rto_s, transport.min_rto_s, transport.max_rto_s, transport.rto_backoff)
    return Sender(
        path.variant,
        path.window,
        timer,
        transport.timestamps,
        float(transport.initial_window_segments),
        float(transport.initial_ssthresh_segments),
    )


def new_receiver(transport: Transport, every: int | None = None) -> Receiver:
    """Return a receiver with the scenario's parameters, or one that acknowledges every so many segments."""
    usual = transport.ack_every_segments if transport.delayed_ack else 1
    return Receiver(usual if every is None else every, transport.ack_delay_s, transport.sack_blocks)
