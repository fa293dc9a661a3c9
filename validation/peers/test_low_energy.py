"""Measured and calculated values of Bluetooth Low Energy (`low_energy.json`), simulated by public keys.

A row is met within its tolerance, or within three standard errors where chance has a part: one row of 370
would be missed by chance.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import btqueue as bt
from btqueue.scenario import Scenario

DATA = json.loads((Path(__file__).parent / "low_energy.json").read_text(encoding="utf-8"))
ROWS = [row for kind in ("measured", "calculated") for row in DATA[kind] if row.get("counted", True)]
BY_CHANCE = ("hand-errors", "hand-delay", "hand-shading")
OFTEN = {"run.replications": 10}
"""Rows of random errors, arrivals or phases: their own replications, or so many."""
QUICK = (
    *("sdc-coc-2000-30", "softdevice-1M-7.5", "macos-coc-492-15", "nimble-acl-2", "hand-turns-2"),
    *("hand-coc-2M-100-1280-4", "hand-air-coded-s8-251", "hand-links-20-50-2.5", "hand-current-100-4"),
    *("hand-errors-1M-7.5-0.0001", "hand-delay-downlink-100-9"),
)


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=row["id"], marks=() if row["id"] in QUICK else pytest.mark.long) for row in ROWS],
)
def test_row(row: dict[str, Any]) -> None:
    scenario = Scenario().changed({**DATA["base"], **row["keys"]})
    by_chance = row["id"].startswith(BY_CHANCE)
    if by_chance and scenario.run.replications < OFTEN["run.replications"]:
        scenario = scenario.changed(OFTEN)
    found = bt.simulate(scenario)[row["metric"]].values
    means = found.reshape(len(found), -1).mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means)) if by_chance else 0.0
    low, high = np.ravel(row["value"])[[0, -1]]
    slack = 3.0 * error + row["tolerance"] * high
    assert low - slack <= means.mean() <= high + slack
