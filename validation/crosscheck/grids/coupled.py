"""The ring piconet's points with bit errors, asked of the analytic model, and others of that kind."""

from btqueue.scenario import Scenario
from grids import ring_piconet


def points() -> list[tuple[str, Scenario]]:
    """Return the ring's points with bit errors and without voice, then others of the same kind."""
    found = [
        (name, scenario)
        for name, scenario in [*ring_piconet.points(), *_others()]
        if scenario.radio.model != "perfect" and scenario.voice.packet == "none"
    ]
    return [(name, scenario.with_(run__solver="analytic")) for name, scenario in found]


def _others() -> list[tuple[str, Scenario]]:
    """Return points with other windows, timeouts, buffers and fading than the thesis has."""
    _, usual = ring_piconet.point(2, 160, 25, 5, 250, errors=True)
    changes = {
        "window 4": {"transport__receive_window_segments": 4},
        "timeouts of 0.5 s": {"transport__min_rto_s": 0.5},
        "one channel": {"radio__fading": "per-piconet"},
        "limit 1": {"polling__limit": 1},
        "slow fading": {"radio__good_s": 4.0, "radio__bad_s": 0.5},
    }
    return [(f"others, load 160, n=2, {name}", usual.with_(**change)) for name, change in changes.items()]


def group(name: str) -> str:
    """Return under which heading a point is counted besides all of them."""
    return name.split(", load")[0]


REASONS = """
* **Rare errors** (bit error rates of 1e-6 and 3e-6). Windows outgrow the chain's, queues fill, and messages
  come one by one: round trips come out up to 39 % long. An answer warns of it.
* **A lone peripheral** has both hops and the acknowledgement on one link: goodput 5 % low.
* **Timeouts above their floor** follow an estimate of the deviation that lags behind growing round trips.
"""
