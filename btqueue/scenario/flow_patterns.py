"""Who sends to whom under each pattern of flows."""

from __future__ import annotations

from collections.abc import Iterator

from btqueue.scenario.network import Flow, Network


def flows_of(network: Network) -> tuple[Flow, ...]:
    """Return every flow of *network*, of its pattern or as listed, whether active or not."""
    if not isinstance(network.flows, str):
        return network.flows
    return tuple(Flow(source=source, target=target) for source, target in _pattern(network))


def active_flows(network: Network) -> tuple[Flow, ...]:
    """Return the flows that are not switched off."""
    flows = flows_of(network)
    return flows if network.active_flows == "all" else flows[: network.active_flows]


def _pattern(network: Network) -> Iterator[tuple[str, str]]:
    """Yield sender and receiver of each flow of a pattern; bridges neither send nor receive."""
    piconets = [network.own_peripherals(k) for k in range(1, network.piconets + 1)]
    match network.flows:
        case "ring":  # from each peripheral to the next of its piconet; a lone one to itself
            for names in piconets:
                yield from zip(names, [*names[1:], names[0]], strict=True)
        case "pairs":  # both ways: of a piconet, or between the first and the last piconet
            here, there = piconets[0], piconets[-1]
            if network.topology == "piconet":
                here, there = here[0::2], here[1::2]
            for one, other in zip(here, there, strict=False):
                yield from ((one, other), (other, one))
        case "downlink":
            yield from ((f"c{k}", name) for k, names in enumerate(piconets, start=1) for name in names)
        case "uplink":
            yield from ((name, f"c{k}") for k, names in enumerate(piconets, start=1) for name in names)
        case "end-to-end":
            yield "n0", f"n{network.hops}"
