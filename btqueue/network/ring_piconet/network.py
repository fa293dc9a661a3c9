"""What the models of connections need to know of a ring piconet besides its `Ring`."""

from dataclasses import dataclass, replace
from math import inf

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.scenario import Scenario

EMPTY_FRAME_S = 2 * SLOT_S
"""POLL and NULL (s)."""
NO_LIMIT = 1 << 30


@dataclass(frozen=True)
class RingNetwork:
    """One piconet of n peripherals; the k-th sends to the next one, through the central.

    It has the names of `btqueue.network.scatternet.network.Scatternet`, so that what is known of closed
    populations and of losses on the radio holds for both.

    Attributes:
        ring: how segments are cut, priced, buffered and polled.
    """

    ring: Ring
    piconets: int = 1

    @property
    def peripherals(self) -> int:
        """Peripherals n; every one is the source of a flow."""
        return self.ring.peripherals

    @property
    def flows(self) -> int:
        """Flows of the network."""
        return self.ring.peripherals

    @property
    def idle_period_s(self) -> float:
        """Polling cycle with nothing to send (s)."""
        return self.peripherals * EMPTY_FRAME_S

    @property
    def air_capacity(self) -> float:
        """Segments per second and flow that the slots can carry."""
        return self.ring.air_capacity

    def without_limits(self) -> "RingNetwork":
        """Return the network with room for everything and tokens for everyone."""
        ring = replace(self.ring, buffer=NO_LIMIT, baseband=NO_LIMIT, token_rate=inf)
        return replace(self, ring=ring)


def network_of(scenario: Scenario) -> RingNetwork:
    """Read the network off a scenario that the model covers."""
    return RingNetwork(ring_of(scenario))
