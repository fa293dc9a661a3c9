"""What the models need to know of two piconets that a walk-in bridge joins."""

from dataclasses import dataclass

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.scenario import Scenario

PICONETS = 2
EMPTY_FRAME_S = 2 * SLOT_S
"""POLL and NULL, or a POLL that nobody answers and the slot for its answer (s)."""


@dataclass(frozen=True)
class Scatternet:
    """Two piconets of n peripherals and a bridge; the k-th peripherals send to each other, both ways.

    Attributes:
        ring: how segments are cut, priced and buffered at a peripheral, and how often it is polled; the same
            in a ring piconet.
        bridge_limit: most frames of an exchange with the bridge.
        exchanges: how many of them make a stay: one more than the cycles that the bridge stays for.
        switch_s: mean time of a switch between the piconets.
        piconets: their number; every segment takes two hops in each.
    """

    ring: Ring
    bridge_limit: int
    exchanges: int
    switch_s: float
    piconets: int = PICONETS

    @property
    def peripherals(self) -> int:
        """Peripherals n of each piconet; every one is the source of a flow."""
        return self.ring.peripherals

    @property
    def flows(self) -> int:
        """Flows of the network."""
        return PICONETS * self.peripherals

    @property
    def idle_cycle_s(self) -> float:
        """Polling cycle of a piconet with nothing to send, the bridge elsewhere."""
        return (self.peripherals + 1) * EMPTY_FRAME_S

    @property
    def idle_period_s(self) -> float:
        """Most time from one coming of the bridge to the next, with nothing to send anywhere."""
        return PICONETS * (self.idle_cycle_s + 2 * EMPTY_FRAME_S)

    @property
    def air_capacity(self) -> float:
        """Segments per second and flow that the slots of a piconet can carry, if no poll were wasted.

        Each piconet carries two of the four hops of each of the 2 n flows.
        """
        return 1.0 / (self.flows * self.ring.exchange_slots * SLOT_S)


def scatternet_of(scenario: Scenario) -> Scatternet:
    """Read the scatternet off a scenario that the model covers."""
    polling, ring = scenario.polling, ring_of(scenario)
    share = ring.peripherals * polling.limit
    single = polling.discipline == "1-limited"
    return Scatternet(
        ring=ring,
        bridge_limit=polling.bridge_limit or (1 if single else share),
        exchanges=1 + (polling.residence_cycles if polling.residence == "cycle" else 0),
        switch_s=SLOT_S if polling.switch_delay else 0.0,
    )
