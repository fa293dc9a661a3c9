"""Shared by several figures of Chen and others (2004): both counts of blocks, thresholds, hops over time.

The paper gives a coded packet of s payload bits s/15 blocks; a block of 15 bits carries ten of them, so s/10
is meant. "As printed" here takes whole blocks and the sizes of its table 1 (a DM5 of 227 bytes), which gives
its thresholds to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from btqueue.baseband import packet_type, packet_types
from btqueue.baseband.packets import FEC_BLOCK_BITS, PacketType
from btqueue.channel import coded_error_rate, goodput_crossing, packet_error_rate
from btqueue.plotting import PALETTE, axis_label
from btqueue.reproduction.claims.chen_2004.systems import HOPS, LINKS
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.work import Work
from btqueue.scenario import Scenario
from btqueue.scenario.library import models_folder
from btqueue.simulator.statistics.series import time_series

TYPES = packet_types(["DH5", "DM5", "DH3", "DM3", "DH1", "DM1"])
SAMPLE_S = 10.0
PRINTED_BYTES = {"DM5": 227}
"""Payloads that the paper's tables 1 and 2 print differently."""
COUNTS = {"as printed, s/15 blocks": True, "as meant, s/10 blocks": False}


def error_rate(packet: PacketType, ber: np.ndarray, *, printed: bool) -> np.ndarray:
    """Return the packet error rate by equations 1 and 2, with either count of blocks."""
    if not printed or not packet.coded:
        return packet_error_rate(packet, ber)
    bits = 8 * PRINTED_BYTES.get(packet.name, packet.payload_bytes)
    return coded_error_rate(bits // FEC_BLOCK_BITS, ber)


def thresholds(work: Work, *, printed: bool) -> list[float]:
    """Return the bit error rates at which the best type changes: as in table 3, or by s/10 blocks."""
    adaptive = work.scenario("adaptive-1").link
    if printed:
        return list(adaptive.adaptation_thresholds)
    chosen = [packet_type(name) for name in adaptive.adaptation_packets]
    return [float(goodput_crossing(one, other)) for one, other in pairwise(chosen)]


def mark_thresholds(
    axes: Axes, values: Sequence[float], texts: Sequence[str] = (), *, low: bool = False
) -> None:
    """Draw a vertical line at each threshold, with a text at the top, or at the bottom if *low*."""
    for place, value in enumerate(values):
        axes.axvline(value, color="#555555", linestyle=(0, (5, 3)), linewidth=0.9, zorder=1)
        text = texts[place] if place < len(texts) else f"{value:.5g}"
        axes.annotate(
            text, (value, 0.0 if low else 1.0), xycoords=axes.get_xaxis_transform(), rotation=90,
            xytext=(-2, 3 if low else -2), textcoords="offset points", ha="right",
            va="bottom" if low else "top", fontsize=7, color="#444444",
        )  # fmt: skip


def trace_path() -> str:
    """Return the file of link qualities that stands in for the measured trace."""
    return str(models_folder() / "chen-2004" / "link-quality.txt")


def over_time(
    work: Work,
    scenario: Callable[[str, int], Scenario],
    *,
    note: str,
    finish: Callable[[Axes], object] | None = None,
) -> Figure:
    """Return goodput in each ten seconds, regular and adaptive, in a panel for each number of hops.

    Args:
        work: the workbench.
        scenario: by link ("regular", "adaptive") and hops.
        note: small print.
        finish: called with each panel's axes.
    """
    panels, shares = [], []
    for letter, hops in zip("abc", HOPS, strict=True):
        drawn, series, means = [], [], []
        for link in LINKS:
            chosen = work.scenario(scenario(link, hops))
            found = time_series(chosen, 0, SAMPLE_S)
            series.append(found["goodput_kbps"].values[:, 0])
            drawn.append(Curve(link, found["time"].values, mean=series[-1]))
            (answer,) = work.answers([chosen], ("solve",), what=f"{link}, hops = {hops}")
            means.append(answer["solve"].means.get("goodput_kbps", math.nan))
        shares.append(float((series[1] > series[0]).mean()))

        def marks(axes: Axes, means: Sequence[float] = tuple(means)) -> None:
            for colour, mean in zip(PALETTE, means, strict=False):
                axes.axhline(mean, color=colour, linewidth=1.1, zorder=1)
            if finish is not None:
                finish(axes)

        panels.append(
            Panel(
                drawn, axis_label("goodput_kbps"), f"({letter}) {hops} hop{'s' if hops > 1 else ''}",
                "time (s)", marks,
            )
        )  # fmt: skip
    listed = ", ".join(f"{share:.0%}" for share in shares)
    work.note(f"Adaptive above regular in {listed} of the samples over 1, 2, 4 hops.")
    return curves(panels, columns=3, size=(3.9, 3.1), title=work.citation, note=note)
