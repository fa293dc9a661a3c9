"""The queueing model of the first piconet of a scenario, drawn from the queues that the simulator sets up."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from btqueue.plotting import PALETTE
from btqueue.reproduction.figures.diagrams import arrow, blank, box, queue
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology

ROW = 0.95
"""Height of a member of the piconet (inches)."""


def queueing_model(scenario: Scenario, title: str) -> Figure:
    """Return a figure of one piconet: members left, the polling central right, their queues between them.

    Above, to the right, goes the uplink: token buffer and queue of the member; below, to the left, the
    downlink queue that the central has for it.

    Args:
        scenario: whose first piconet is drawn.
        title: heading.
    """
    from btqueue.simulator.construction.state import new_state
    from btqueue.simulator.traces.names import queue_names

    plan = topology(scenario)
    central = plan.nodes[plan.piconets[0].central]
    names = set(queue_names(new_state(scenario, 0), scenario))
    members = [plan.nodes[member] for member in plan.piconets[0].members]
    height = ROW * len(members) + 0.5
    figure, axes = blank(8.6, height, title)
    middle = height / 2
    polling = scenario.polling
    text = f"{central}\npolls in turn,\n{polling.discipline},\nM = {polling.limit}"
    box(axes, (7.7, middle), text, width=1.3, height=min(height - 0.4, 1.6), fill="#e8eef3")
    for row, member in enumerate(members):
        _member(axes, scenario, member, central, names, height - 0.3 - ROW * (row + 0.5), middle)
    return figure


def _member(
    axes: Axes, scenario: Scenario, member: str, central: str, names: set[str], y: float, middle: float
) -> None:
    """Draw a member with its queues."""
    limits = scenario.flow_control
    is_bridge = f"{member}>{central} token_buffer" not in names
    box(axes, (0.8, y), f"{member}\n(bridge)" if is_bridge else member, width=1.0, height=0.6)
    up, down = y + 0.17, y - 0.21
    towards = middle + 0.3 * (y - middle)
    start = (1.3, up)
    if not is_bridge:
        arrow(axes, start, (2.0, up), shrink=0)
        queue(axes, (2.4, up), f"S = {limits.buffer_packets}", width=0.8, height=0.26, below=False)
        box(axes, (3.35, up), f"{limits.token_rate_kbps:g} kbit/s", width=0.85, height=0.24, size=6.5)
        arrow(axes, (2.8, up), (2.92, up), shrink=0)
        start = (3.78, up)
    if f"{member}>{central} uplink" in names:
        arrow(axes, start, (4.6, up), shrink=0)
        room = polling_room(scenario) if is_bridge else f"L = {limits.baseband_packets}"
        queue(axes, (5.0, up), room, width=0.8, height=0.26, below=False)
        arrow(axes, (5.4, up), (7.05, towards + 0.12), shrink=0)
    if f"{central}>{member} downlink" in names:
        axes.plot([7.05, 5.6], [towards - 0.12, down], color=PALETTE[1], linewidth=1.1)
        arrow(axes, (5.6, down), (4.75, down), colour=PALETTE[1], shrink=0)
        queue(axes, (4.35, down), width=0.8, height=0.26, leftward=True)
        arrow(axes, (3.95, down), (1.3, down), "downlink", colour=PALETTE[1], shrink=0, aside=-0.08)


def polling_room(scenario: Scenario) -> str:
    """Return the size of a bridge's buffer, in words."""
    room = scenario.polling.bridge_buffer_packets
    return f"{room} packets" if room is not None else "n M packets"
