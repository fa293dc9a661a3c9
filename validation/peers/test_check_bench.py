"""`btqueue check` on right runs of other programs, which must raise no alarm, and on planted faults.

Each fault must raise an alarm, and the first sentence about its cause must name it. The names were written
before the checks ran. Seeds are fixed. The chance of any false alarm is 1 % for each right run in which
something is random, that is at most 16 % in all should the simulator's random numbers change.
"""

import json

import pytest
import right_runs
from planted_faults import FAULTS, FILE

from btqueue.study.check import check

RIGHT = right_runs.runs()
PLANTED = json.loads(FILE.read_text("utf-8"))
NOT_NAMED = {
    "two duplicates for three": "no key says how many duplicates are a loss",
    "token price by actual bytes": "M = 7 fits a little better; the price is the second cause",
}


def test_there_are_twenty_of_each():
    assert len(RIGHT) == 20
    assert len(FAULTS) == len(PLANTED) == 21


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_run_raises_no_alarm(name):
    results, scenario = RIGHT[name]
    report = check(results, scenario, solve=None)
    assert report.agrees, [one.sentence for one in (*report.inconsistent, *report.differing)]


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.xfail(reason=NOT_NAMED[name], strict=True) if name in NOT_NAMED else ()
        )
        for name in FAULTS
    ],
)
def test_a_planted_fault_is_named(name):
    report = checked(name)
    first = [one.sentence for one in report.inconsistent] + [one.sentence for one in report.causes[:1]]
    assert any(FAULTS[name].words in sentence for sentence in first), first


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_raises_an_alarm(name, monkeypatch):
    from btqueue.study.check import verdicts

    monkeypatch.setattr(verdicts, "likely_causes", lambda *_: ((), 0))
    assert not checked(name).agrees


def checked(name):
    fault = FAULTS[name]
    results = right_runs.several(PLANTED[name])
    return check(results, fault.claimed, solve=None, tolerance=fault.tolerance)
