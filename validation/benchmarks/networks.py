"""Scenarios of the benchmarks that no paper asks for: many piconets, a TCP flow over an outside link."""

import btqueue as bt

PERIPHERALS = 7


def many_piconets(devices):
    """Return a network of this many devices, 8 to a piconet, each peripheral sending to the next of its
    own."""
    piconets, flows = [], []
    for number in range(devices // (PERIPHERALS + 1)):
        members = [f"p{number}.{place}" for place in range(PERIPHERALS)]
        piconets.append({"name": f"{number}", "central": f"c{number}", "peripherals": members})
        flows += [
            {"from": members[place], "to": members[(place + 1) % PERIPHERALS]} for place in range(PERIPHERALS)
        ]
    scenario = bt.load("venugopal-2006/piconet")
    return scenario.with_(
        network__topology="custom",
        network__piconet_list=piconets,
        network__flows=flows,
        traffic__source="greedy",
    )


def tcp_over_a_link(*, rate_kbps, delay_ms, loss):
    """Return a greedy TCP flow between two hosts on an outside link; an idle piconet stands beside it."""
    scenario = bt.load("venugopal-2006/piconet")
    link = {"name": "link", "from": "a", "to": "b", "rate_kbps": rate_kbps, "delay_s": delay_ms / 1000}
    return scenario.with_(
        network__topology="custom",
        network__relay="segment",
        network__piconet_list=[{"name": "idle", "central": "a", "peripherals": ["p"]}],
        network__outside_links=[{**link, "loss": loss, "loss_back": 0.0, "header_bytes": 2}],
        network__flows=[{"from": "a", "to": "b"}],
        flow_control__enabled=False,
        traffic__source="greedy",
        transport__receive_window_segments=64,
    )
