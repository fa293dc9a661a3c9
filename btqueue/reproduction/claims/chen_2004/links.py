"""Section IV: a single link against equations 3 and 4."""

from __future__ import annotations

from btqueue.reproduction.claims.chen_2004.systems import model
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import interval, shown, within
from btqueue.reproduction.claims.record import Comparison
from btqueue.scenario import Scenario

EQUATION_4 = {
    "DH5": (723.2, 551.41, 186.3, 47.96),
    "DM5": (477.87, 477.81, 476.38, 471.96),
    "DH3": (585.6, 505.84, 281.59, 135.36),
    "DM3": (387.2, 387.17, 386.55, 384.61),
}
"""Throughput (kbit/s) by equation 4 with 224 bytes in a DM5, at the bit error rates of EQUATION_4_BERS."""
EQUATION_4_BERS = (0.0, 1e-4, 5e-4, 1e-3)


def one_link(packet: str, ber: float) -> Scenario:
    """Return a saturated link of full packets of one type; acknowledgements come back without the radio."""
    payload = {"DH5": 339, "DM5": 224, "DH3": 183, "DM3": 121}[packet]
    return model(
        "regular-1",
        radio__ber=ber,
        link__adaptation="fixed",
        link__packets=(packet,),
        link__node_buffer_bytes=100_000,
        traffic__message_bytes=payload - 44,
        transport__mss_bytes=payload - 44,
        transport__ack_path="direct",
    )


def attempts(engine: Engine) -> Comparison:
    """The three levels of equation 3 with DH5 packets; the relative tolerance is 1 %."""
    parts, seen = {}, []
    for ber in EQUATION_4_BERS[1:]:
        expected = 1 / (1 - ber) ** 2712
        found = engine.sample(one_link("DH5", ber), "transmissions_per_packet")
        parts[f"bit error rate {ber:g}"] = within(found, 0.99 * expected, 1.01 * expected)
        seen.append(f"{shown(found)} for {expected:.3f}")
    return Comparison(", ".join(seen), parts)


def link_throughput(engine: Engine) -> Comparison:
    """Equation 4 within 0.5 %, user bytes of the packets."""
    parts, errors = {}, {}
    for packet, values in EQUATION_4.items():
        for ber, expected in zip(EQUATION_4_BERS, values, strict=True):
            scenario = one_link(packet, ber)
            headers = (scenario.transport.mss_bytes + 44) / scenario.transport.mss_bytes
            found = headers * engine.sample(scenario, "goodput_kbps")
            errors[packet, ber] = abs(float(found.mean()) / expected - 1)
            parts[f"{packet} at {ber:g}"] = errors[packet, ber] < 0.005 + interval(found)[1] / expected
    worst = max(errors, key=lambda place: errors[place])
    return Comparison(f"largest error {errors[worst]:.1%} ({worst[0]} at {worst[1]:g})", parts)
