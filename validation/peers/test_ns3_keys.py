"""TCP beside ns-3.44 as users can ask for it: the rows of `test_ns3_tcp`, by public keys only.

The whole simulator plays them. Acknowledgements have no SACK option on the wire, and the SYN none of its own.
The criterion and its rate of false alarms are those of `test_ns3_tcp`.
"""

import pytest
from ns3_scenario import runs_of
from test_ns3_tcp import QUICK, ROWS, RUNS, agrees, name_of


@pytest.mark.parametrize("name", QUICK, ids=str)
def test_goodput_and_retransmissions_agree_by_public_keys(name):
    rows = [row for row in ROWS if name_of(row) == name]
    assert rows
    assert all(agrees(row, runs_of(row, RUNS if row["per"] else 1)) for row in rows)


@pytest.mark.long
def test_nineteen_rows_of_twenty_agree_by_public_keys():
    missed = [name_of(row) for row in ROWS if not agrees(row, runs_of(row, RUNS if row["per"] else 1))]
    assert len(missed) <= 0.05 * len(ROWS), missed
