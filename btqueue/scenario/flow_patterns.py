"""Who sends to whom under each pattern of flows."""

from __future__ import annotations

from btqueue.scenario.network import Flow, Network


def flows_of(network: Network) -> tuple[Flow, ...]:
    """Return every flow of *network*, of its pattern or as listed, whether active or not."""
    if not isinstance(network.flows, str):
        return network.flows
    pairs = {
        "ring": ring,
        "pairs": pairs_within if network.topology == "piconet" else pairs_between,
        "downlink": downlink,
        "uplink": uplink,
        "end-to-end": end_to_end,
    }[network.flows](network)
    return tuple(Flow(source=source, target=target) for source, target in pairs)


def active_flows(network: Network) -> tuple[Flow, ...]:
    """Return the flows that are not switched off."""
    flows = flows_of(network)
    return flows if network.active_flows == "all" else flows[: network.active_flows]


def own_peripherals(network: Network) -> list[list[str]]:
    """Return the peripherals of each piconet of a standard topology, without bridges."""
    numbers = range(1, network.peripherals + 1)
    return [[f"p{k}.{i}" for i in numbers] for k in range(1, network.piconets + 1)]


def ring(network: Network) -> list[tuple[str, str]]:
    """From each peripheral to the next of its piconet, from the last to the first; a lone one to itself."""
    return [
        (names[i], names[(i + 1) % len(names)])
        for names in own_peripherals(network)
        for i in range(len(names))
    ]


def pairs_within(network: Network) -> list[tuple[str, str]]:
    """Between the first and the second peripheral both ways, the third and the fourth, and so on."""
    names = own_peripherals(network)[0]
    return _both_ways(names[0::2], names[1::2])


def pairs_between(network: Network) -> list[tuple[str, str]]:
    """Between the k-th peripherals of the first and of the last piconet, both ways."""
    piconets = own_peripherals(network)
    return _both_ways(piconets[0], piconets[-1])


def _both_ways(here: list[str], there: list[str]) -> list[tuple[str, str]]:
    return [flow for a, b in zip(here, there, strict=False) for flow in ((a, b), (b, a))]


def downlink(network: Network) -> list[tuple[str, str]]:
    """From each central to all peripherals of its piconet but bridges."""
    return [(f"c{k}", name) for k, names in enumerate(own_peripherals(network), start=1) for name in names]


def uplink(network: Network) -> list[tuple[str, str]]:
    """From every peripheral to its central."""
    return [(name, central) for central, name in downlink(network)]


def end_to_end(network: Network) -> list[tuple[str, str]]:
    """From one end of a chain to the other."""
    return [("n0", f"n{network.hops}")]
