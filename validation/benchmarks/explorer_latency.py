"""How soon `btqueue explore` redraws a curve while a slider is dragged.

`python validation/benchmarks/explorer_latency.py [SCENARIO ...]` drags sliders as the page does: as soon as a
first curve is there it is dropped for the next position. A second run finds compiled models.
"""

import asyncio
import json
import sys
import time

import numpy as np

import btqueue as bt
from btqueue.cli.engines import keep_compiled_models
from btqueue.explorer.controls import axis_of, controls
from btqueue.explorer.curves import Desk, places_between
from btqueue.explorer.messages import told_curve

SCENARIOS = (
    "venugopal-2006/piconet",
    "venugopal-2006/piconet-4",
    "venugopal-2006/piconet-errors",
    "chen-2004/adaptive-1",
)
KEYS = ("polling.limit", "flow_control.token_rate_kbps", "transport.receive_window_segments", "radio.ber_bad")
POSITIONS = 40


async def dragged(name: str) -> None:
    """Print the times of one scenario."""
    scenario, desk = bt.load(name), Desk()
    found = controls(scenario)
    axis = axis_of(found)
    places = places_between(axis["low"], axis["high"], False)
    await desk.answer(scenario)  # as the command does before it shows the page
    async for _ in desk.curve(scenario, axis["along"], places):
        pass
    firsts, sizes, wholes = [], [], []
    for control in found:
        if control.key not in KEYS or control.low is None or control.high is None:
            continue
        positions = np.linspace(control.low, control.high, POSITIONS)
        for position in [round(one) if control.whole else float(f"{one:.4g}") for one in positions]:
            begin = time.perf_counter()
            curves = desk.curve(scenario.changed({control.key: position}), axis["along"], places)
            curve = await anext(curves)
            json.dumps(told_curve(curve))
            firsts.append(1000 * (time.perf_counter() - begin))
            sizes.append(len(curve.answers))
            if position != positions[-1]:
                await curves.aclose()
        async for _ in curves:
            pass
        wholes.append(time.perf_counter() - begin)
    desk.close()
    print(
        f"{name}: {len(firsts)} positions; first curve after {np.median(firsts):.0f} ms (median), "
        f"{np.percentile(firsts, 95):.0f} ms (95th percentile), {max(firsts):.0f} ms (longest), with "
        f"{np.median(sizes):.0f} points solved (median; fewest {min(sizes)}); "
        f"all points after {np.median(wholes):.1f} s"
    )


if __name__ == "__main__":
    keep_compiled_models()
    for wanted in sys.argv[1:] or SCENARIOS:
        asyncio.run(dragged(wanted))
