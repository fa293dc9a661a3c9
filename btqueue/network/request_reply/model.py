"""Request-reply-goodbye sessions of one connection: TCP or CentaurusComm over a way of links.

The way is a row of outside links, each with rate, delay, header, buffer, losses by packet or by block, half
duplex or sharing a medium, and at most one Bluetooth hop whose packets are repeated until they arrive. Nobody
else sends on it, so that nothing is random but losses, repeated packets and processing delays; between them
all is determined and followed exactly (`request_reply.way`).

- TCP: `request_reply.tcp`, a Markov chain of the stages between losses.
- CentaurusComm: `request_reply.centaurus`, trips in a row, or an absorbing chain for each object.

Source of the system: Avancha et al., Computer Networks 40 (2002).
"""

from btqueue.network.request_reply.centaurus import answer_centaurus
from btqueue.network.request_reply.tcp import answer_tcp
from btqueue.scenario import Scenario


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    return (answer_centaurus if scenario.transport.protocol == "centaurus" else answer_tcp)(scenario)
