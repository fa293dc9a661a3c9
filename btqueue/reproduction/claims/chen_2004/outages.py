"""Section III: how long TCP stays idle after an outage."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from btqueue.reproduction.claims.chen_2004.systems import model
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.record import Comparison
from btqueue.simulator.statistics.series import time_series

OUTAGES_S = (0.5, 2.0, 5.0, 10.0, 20.0)


def idle_after_an_outage(engine: Engine, backoff: bool) -> list[float]:
    """Seconds from the begin of an outage, without link-level repetition, until data arrive again."""
    engine.only_simulated("course over time")
    step, before = 0.1, 300
    resumed = []
    with TemporaryDirectory() as folder:
        for outage in OUTAGES_S:
            path = Path(folder) / f"outage-{outage:g}-{backoff}.txt"
            lost = round(outage / step)
            path.write_text("\n".join(["0"] * before + ["0.5"] * lost + ["0"] * 900), "utf-8")
            scenario = model(
                "trace-regular",
                radio__trace_file=str(path),
                radio__trace_quantity="ber",
                link__arq="none",
                transport__rto_backoff=backoff,
                run__duration_s=100,
            )
            arrived = time_series(scenario, 0, step).goodput_kbps.values[before + 1 :, 0] > 0
            resumed.append(float(step * (1 + np.argmax(arrived))))
    return resumed


def seconds(times) -> str:
    """Return times as text."""
    return ", ".join(f"{time:.3g}" for time in times)


def idle_senders(engine: Engine) -> Comparison:
    """Timeouts of a segment come 1, 3, 7, 15 and 31 s after the first loss; without back-off every second."""
    doubled, constant = idle_after_an_outage(engine, True), idle_after_an_outage(engine, False)
    idle = [end - outage for end, outage in zip(doubled, OUTAGES_S, strict=True)]
    parts = {
        "back-off leaves the sender idle": idle[-1] > 5 and idle[-1] == max(idle),
        "grows": idle[1:] == sorted(idle[1:]),
        "not without back-off": all(end - t <= 1.2 for end, t in zip(constant, OUTAGES_S, strict=True)),
    }
    return Comparison(
        f"outages of {seconds(OUTAGES_S)} s are over for TCP after {seconds(doubled)} s, "
        f"without back-off {seconds(constant)} s",
        parts,
    )
