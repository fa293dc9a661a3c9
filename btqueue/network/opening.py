"""How a connection begins, for the models that follow connections."""

from btqueue.scenario import Scenario
from btqueue.transport.newreno_sender import Sender


def new_sender(scenario: Scenario) -> Sender:
    """Return a sender with the scenario's parameters."""
    transport = scenario.transport
    return Sender(
        receive_window=transport.receive_window_segments,
        ssthresh=float(transport.initial_ssthresh_segments),
        min_rto=transport.min_rto_s,
        max_rto=transport.max_rto_s,
        rto=transport.initial_rto_s,
        backoff=transport.rto_backoff,
        cwnd=float(transport.initial_window_segments),
    )
