"""What other readings of open points would change."""

from __future__ import annotations

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.johansson_2000.systems import capacity, model
from btqueue.reproduction.claims.judgement import interval, shown

READINGS = {
    "as in the scenarios": {},
    "DH1 only, as section 4.2 says": {"link__packets": ("DH1",)},
    "DH5 only": {"link__packets": ("DH5",)},
    "acknowledgement bit lost with its packet": {"link__arq_feedback": "lossy"},
    "TCP and IP delays of 1 ms": {"transport__tcp_delay_s": 1e-3, "transport__ip_delay_s": 1e-3},
    "least timeout 0.2 s in place of 1 s": {"transport__min_rto_s": 0.2},
    "Vegas once in a round trip (Linux)": {"transport__vegas_adjustment": "per-rtt"},
    "slow start left at three segments too many": {"transport__gamma": 3.0},
}
"""Other readings of open points, as changes of the scenarios."""


def reading(engine: Engine, changes: dict) -> list[str]:
    """Return saturated goodputs (kbit/s, one way and both ways) and the delay (ms) at load 0.3, PEP 0.3."""
    at = {"radio__per": 0.3, **changes}
    kbps = 0.3 * float(capacity(engine, "symmetric", 0.3).mean())
    one_way = engine.sample(model("asymmetric"), "goodput_kbps", **at)
    both = engine.sample(model("symmetric"), "goodput_kbps", **at)
    delay = engine.sample(model("smooth", traffic__load_kbps=kbps), "acknowledged_delay_s", **at)
    overloaded = kbps > 0.9 * interval(both)[0]
    return [shown(one_way, 4), shown(both, 4), "overload" if overloaded else shown(1000 * delay, 4)]


def readings(engine: Engine) -> list[list[str]]:
    """Return what other readings would change."""
    return [[name, *reading(engine, changes)] for name, changes in READINGS.items()]
