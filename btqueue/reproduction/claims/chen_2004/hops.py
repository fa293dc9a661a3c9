"""Section V: goodput over 1, 2 and 4 hops, regular and adaptive."""

from __future__ import annotations

from btqueue.reproduction.claims.chen_2004.systems import BERS, FIRST_THRESHOLD, HOPS, goodput, model, series
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import exceeds, listed, rising, same, shown, within
from btqueue.reproduction.claims.record import Comparison


def two_hops_halve(engine: Engine) -> Comparison:
    """Two hops through one central carry half of one hop, as they share its slots."""
    goodputs = [goodput(engine, "regular", hops, 0.0) for hops in HOPS]
    rates = ", ".join(shown(one, 4) for one in goodputs)
    ratio = goodputs[1] / goodputs[0]
    return Comparison(
        f"{rates} kbit/s over 1, 2, 4 hops: half is {ratio.mean():.3f}",
        {"two hops": within(ratio, 0.45, 0.55)},
    )


def four_hops_as_two(engine: Engine) -> Comparison:
    """Four hops carry as much as two."""
    ratio = goodput(engine, "regular", 4, 0.0) / goodput(engine, "regular", 2, 0.0)
    return Comparison(f"{ratio.mean():.3f} of it", {"four hops": within(ratio, 0.95, 1.05)})


def adaptation_wins(engine: Engine) -> Comparison:
    """Better at each bit error rate above the first threshold, the same below it."""
    parts, seen = {}, []
    for hops in HOPS:
        pairs = [
            (goodput(engine, "adaptive", hops, ber), goodput(engine, "regular", hops, ber), ber)
            for ber in BERS
        ]
        parts[f"{hops} hops, above"] = all(exceeds(a, r) for a, r, ber in pairs if ber > FIRST_THRESHOLD)
        parts[f"{hops} hops, below"] = all(same(a, r) for a, r, ber in pairs if ber < FIRST_THRESHOLD)
        at = [pair for pair in pairs if pair[2] in (2e-4, 5e-4, 1e-3)]
        seen.append(f"{hops}: {', '.join(f'{a.mean():.0f} against {r.mean():.0f}' for a, r, _ in at)}")
    return Comparison(
        f"kbit/s at 2e-4, 5e-4, 1e-3, hops {'; '.join(seen)}; the same below the first threshold", parts
    )


def gain_grows(engine: Engine) -> Comparison:
    """Its advantage grows with the bit error rate."""
    parts, seen = {}, []
    for hops in HOPS:
        gains = [
            goodput(engine, "adaptive", hops, ber) / goodput(engine, "regular", hops, ber)
            for ber in BERS
            if ber > FIRST_THRESHOLD
        ]
        parts[f"{hops} hops"] = rising(gains)
        seen.append(f"{hops}: {listed(gains, '.1f')}")
    return Comparison(f"adaptive over regular from 2e-4 to 1e-3, hops {'; '.join(seen)}", parts)


def regular_starves(engine: Engine) -> Comparison:
    """At a bit error rate of about 0.001 the regular link carries next to nothing."""
    parts, shares = {}, []
    for hops in HOPS:
        share = goodput(engine, "regular", hops, 1e-3) / goodput(engine, "regular", hops, 0.0)
        parts[f"{hops} hops"] = within(share, 0.0, 0.1)
        shares.append(share)
    return Comparison(f"{listed(shares, '.3f')} of the best over 1, 2, 4 hops", parts)


def alternating(engine: Engine) -> Comparison:
    """Adaptive above regular in at least 95 % of the samples of ten seconds."""
    parts, seen = {}, []
    for hops in HOPS:
        adaptive = series(engine, model("alternating-adaptive", network__hops=hops))
        regular = series(engine, model("alternating-regular", network__hops=hops))
        parts[f"{hops} hops"] = bool((adaptive > regular).mean() >= 0.95)
        seen.append(
            f"{hops}: {adaptive.mean():.0f} against {regular.mean():.0f}, {(adaptive > regular).mean():.0%}"
        )
    return Comparison(
        f"mean kbit/s and share of samples in which adaptive is above, hops {'; '.join(seen)}", parts
    )
