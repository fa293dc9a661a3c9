"""TCP beside ns-3.44: 1000 s of bulk transfer over one link, 247 set-ups (README.md).

A row agrees if goodput is within 3 % and retransmissions are within 10 %, or the difference is less than both
95 % half-widths together. Seeds are fixed. Had both programs the same means, one of the two numbers of a row
would disagree by chance with a probability of about 0.006 (normal law and equal standard errors: the
half-widths together are 2 * 1.96 / sqrt(2) = 2.77 standard errors of the difference) where the intervals are
wider than 3 % and 10 %, else of less.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student
from tcp_link import rules_of_ns3, run

RUNS = 8
"""Runs of a row with random losses; a row without them is the same each time."""
FEW = 3
"""Retransmissions that may be more or less where ns-3 has hardly any."""

TABLE = json.loads((Path(__file__).parent / "ns3_tcp.json").read_text())
ROWS = [dict(zip(TABLE["columns"], row, strict=True)) for row in TABLE["rows"]]

RULES_3_AND_4 = (
    "NextSeg, rules 3 and 4 of RFC 6675: with the receive window used up, segments not yet reported are sent"
    " again here; ns-3 sends nothing then. Without these rules here the row agrees."
)
EXPLAINED = {
    ("Vegas", 700000, 100, 5, 0.01, 8, 1): RULES_3_AND_4,
    ("Vegas", 700000, 100, 5, 0.05, 8, 1): RULES_3_AND_4,
    ("Vegas", 700000, 100, 5, 0.05, 0, 0): (
        "Without SACK ns-3 guesses which segments have arrived and sends the first hole again in the same"
        " recovery: a fifth of its retransmissions are of segments that had arrived. In twelve more runs ns-3"
        " has 318 kbit/s (standard error 3), 2 % more than here."
    ),
    ("Vegas", 700000, 5, 25, 0.05, 0, 1): (
        "Not explained: 3.2 % instead of 3 %, also where the acknowledgement that ends slow start after"
        " a timeout does not open the window, as in ns-3 (`transport.timeout_exit_holds`)."
    ),
}
"""Rows that disagree, and why, as far as that is known."""


def name_of(row: dict) -> tuple:
    return tuple(row[key] for key in ("variant", "rate", "delay_ms", "queue", "per", "rwnd", "sack"))


def mean_and_half_width(values: list[float]) -> tuple[float, float]:
    count = len(values)
    if count == 1:
        return values[0], 0.0
    return float(np.mean(values)), float(
        student.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count)
    )


def difference(row: dict, quantity: str, values: list[float]) -> tuple[float, float]:
    """Return by how much `values` differ from the row's mean, and both half-widths together."""
    mean, half_width = mean_and_half_width(values)
    return abs(mean - row[quantity]), half_width + (row[quantity + "_ci95"] or 0.0)


def played(row: dict) -> list[dict[str, float]]:
    return [run(row, number, **rules_of_ns3(row)) for number in range(RUNS if row["per"] else 1)]


def agrees(row: dict, runs: list[dict[str, float]]) -> bool:
    goodput, interval = difference(row, "goodput_bps", [each["goodput_bps"] for each in runs])
    if goodput > max(0.03 * row["goodput_bps"], interval):
        return False
    again, interval = difference(row, "retransmissions", [each["retransmissions"] for each in runs])
    return again <= max(0.1 * row["retransmissions"], interval, FEW)


QUICK = [
    ("LinuxReno", 250000, 20, 5, 0, 8, 1),
    ("LinuxReno", 700000, 5, 5, 0, 0, 1),
    ("LinuxReno", 700000, 100, 25, 0.05, 0, 1),
    ("LinuxReno", 700000, 20, 5, 0.01, 8, 1),
    ("NewReno", 250000, 100, 5, 0, 0, 1),
    ("NewReno", 250000, 100, 25, 0.05, 8, 0),
    ("NewReno", 250000, 5, 5, 0.05, 8, 0),
    ("NewReno", 700000, 20, 25, 0.01, 0, 1),
    ("NewReno", 700000, 5, 25, 0.05, 8, 1),
    ("NewReno", 700000, 5, 5, 0.01, 8, 0),
    ("NewReno", 700000, 100, 25, 0, 8, 0),
    ("NewReno", 250000, 5, 25, 0.2, 0, 1),
    ("Vegas", 250000, 100, 25, 0.01, 0, 1),
    ("Vegas", 250000, 20, 25, 0.05, 8, 1),
    ("Vegas", 250000, 5, 25, 0.05, 0, 0),
    ("Vegas", 700000, 100, 5, 0, 0, 0),
    ("Vegas", 700000, 20, 5, 0.01, 8, 0),
    ("Vegas", 700000, 5, 5, 0.05, 8, 1),
]


@pytest.mark.parametrize("name", QUICK, ids=str)
def test_goodput_and_retransmissions_agree_with_ns3(name):
    rows = [row for row in ROWS if name_of(row) == name]
    assert rows
    assert all(agrees(row, played(row)) for row in rows)


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row["per"] == 0 and row["queue_drops"] > 0 and row["variant"] == "NewReno"],
    ids=lambda row: str((*name_of(row), "prr" if row["prr"] else "")),
)
def test_newreno_over_a_full_queue_loses_the_same_packets(row):
    # Nothing is random: the saw-tooth is the same, to one tooth in a hundred.
    ours = run(row, 0, **rules_of_ns3(row))
    assert abs(ours["queue_drops"] - row["queue_drops"]) <= max(2, 0.011 * row["queue_drops"])


@pytest.mark.long
def test_nineteen_rows_of_twenty_agree_and_the_others_are_explained():
    missed = {name_of(row) for row in ROWS if not agrees(row, played(row))}
    assert missed <= EXPLAINED.keys()
    assert len(missed) <= 0.05 * len(ROWS)
