"""Request-reply-goodbye sessions of one connection: TCP or CentaurusComm over a way of links."""

from btqueue.network.request_reply.centaurus import answer_centaurus
from btqueue.network.request_reply.tcp import answer_tcp
from btqueue.scenario import Scenario


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    return (answer_centaurus if scenario.transport.protocol == "centaurus" else answer_tcp)(scenario)
