"""Connections that are followed: rings, scatternets and transfers."""

from btqueue.scenario import Scenario
from grids.systems import rings, scatternets, transfers

SYSTEMS = {"ring": rings, "scatternet": scatternets, "transfer": transfers}


def points() -> list[tuple[str, Scenario]]:
    """Return the points of all systems by name: the system's, then the point's."""
    return [
        (f"{system}: {name}", scenario)
        for system, grid in SYSTEMS.items()
        for name, scenario in grid.points()
    ]


def group(name: str) -> str:
    """Return under which heading a point is counted besides all of them."""
    system, _, own = name.partition(": ")
    grid = SYSTEMS[system]
    return f"{system}: {grid.group(own)}" if hasattr(grid, "group") else system


REASONS = """
* **Several limit cycles** on a saturated perfect radio, and of several flows through one buffer: a run of the
  simulator stays in one cycle for minutes; three runs of the follower are three samples, and a warning gives
  their range. Most of the wrong timeouts are here.
* **Error-prone radio with two states.** Long pauses after several timeouts are rare and decide: goodput has a
  standard error of 3 to 8 % in what is followed, which the residual says, and of 1 to 4 % in the simulator.
* **Timeouts below about 0.03 per second** are few in what is followed, and few in what is simulated.
"""
