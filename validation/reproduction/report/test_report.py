"""Claims judged by stand-in engines, what is kept of them, and the report that comes of it."""

import json
import re

import numpy as np
import pytest
import xarray as xr

from btqueue.cli.validate_report import WRITERS, report_of, report_targets
from btqueue.reproduction.answer_cache import Store
from btqueue.reproduction.claims.engines import Engine, NoAnswer
from btqueue.reproduction.claims.record import NO_MODEL, Judged, Part, claims_of
from btqueue.reproduction.report import sentences
from btqueue.reproduction.report.judging import ARITHMETIC, judge_all, judge_one, path_of
from btqueue.reproduction.report.outcomes import Outcome, Seen, counts
from btqueue.scenario import Scenario

PAPER = "venugopal-2006"
RECORD, SULIMAN = claims_of(PAPER), claims_of("suliman-2005")
TESTBED = SULIMAN["III.D-first-dupacks"]


class StandIn(Engine):
    """Goodput is 360 kbit/s over the peripherals; as a model it knows piconets alone."""

    def __init__(self, *, simulates: bool, replications: int = 10) -> None:
        super().__init__()
        self.name, self.is_simulator = ("simulate" if simulates else "solve"), simulates
        self.replications = replications if simulates else 1
        self.runs = 0

    def run(self, scenario: Scenario) -> xr.Dataset:
        self.runs += 1
        if not self.is_simulator and scenario.network.topology != "piconet":
            raise NoAnswer("piconets only")
        noise = np.random.default_rng(self.runs).normal(size=(self.replications, 1))
        goodput = 360 / scenario.network.peripherals + (noise if self.is_simulator else 0.0)
        flows = np.ones((1, scenario.network.peripherals))
        return xr.Dataset({"goodput_kbps": (("replication", "flow"), goodput * flows)})


@pytest.fixture
def engines():
    return StandIn(simulates=True), StandIn(simulates=False)


@pytest.fixture
def store(kept):
    return Store()


def wanted(*ids):
    return [(PAPER, RECORD[name]) for name in ids]


def judged(engines, store, *ids):
    simulator, model = engines
    return judge_all(wanted(*ids), simulator, model, store)


def test_both_engines_judge_a_claim(engines, store):
    (one,) = judged(engines, store, "goodput-falls-with-n")
    assert (one.verdict, one.solved.judged.verdict) == ("reproduced", "reproduced")
    assert [part.label for part in one.simulated.judged.parts] == ["", "jitter"]
    assert [part.label for part in one.solved.judged.parts] == [""]
    assert one.solved.judged.parts[0].seen == "180 > 90 > 60"


def test_a_scenario_is_answered_once(engines, store):
    judged(engines, store, "goodput-4", "goodput-falls-with-n", "goodput-6")
    assert [engine.runs for engine in engines] == [8, 5]  # with two other readings of goodput-4


def test_a_claim_is_judged_at_the_peak_as_a_ratio_and_other_readings_do_not_count(engines):
    claim = {"id": "made up", "kind": "value", "verdict": "reproduced", "metric": "goodput_kbps"}
    claim |= {"scenario": f"{PAPER}/piconet-6", "word": "about", "value": 3.0}
    claim |= {"peak": {"key": "network.peripherals", "values": [4, 2, 3]}}  # most with 2: 180 kbit/s
    claim |= {"over": {"set": ["network.peripherals=6"]}}
    claim |= {"readings": {"whole segments": ["flow_control.drop=segment"]}}
    seen = judge_one(PAPER, claim, engines[1]).judged
    found = [(part.label, part.holds, part.counts) for part in seen.parts]
    assert found == [("", True, True), ("whole segments", True, False)]
    assert judge_one(PAPER, claim | {"value": 2.0}, engines[1]).judged.verdict == "not reproduced"


def test_a_claim_outside_the_models_says_why(engines, store):
    (one,) = judged(engines, store, "scatternet-goodput-falls-with-n")
    assert not one.modelled
    assert sentences.model_verdict(one) == NO_MODEL
    assert [line.text for line in sentences.solved_lines(one)] == ["piconets only"]


def test_tests_arithmetic_and_what_an_engine_does_not_give_are_no_verdict_of_a_model(engines):
    missing = judge_one(PAPER, RECORD["rtt-2"], engines[1])
    assert missing.judged.unanswered == ["the model of this network gives no rtt_s"]
    simulated, solved = (judge_one(PAPER, RECORD["switch-delay"], engine).judged for engine in engines)
    test = "test_bridges.py::test_a_switch_takes_up_to_two_slots"
    assert (simulated.verdict, simulated.parts[0].seen) == ("in part", f"checked by test {test}")
    assert solved.parts == ()
    arithmetic = SULIMAN["III.A-bdp"]
    simulated, solved = (judge_one("suliman-2005", arithmetic, engine).judged for engine in engines)
    assert (simulated.verdict, solved.unanswered) == ("reproduced", [ARITHMETIC])


def test_what_is_left_to_the_testbed_runs_nothing(engines):
    seen = judge_one("suliman-2005", TESTBED, engines[0])
    assert Outcome("suliman-2005", TESTBED, seen, seen).verdict == "testbed-only"
    assert engines[0].runs == 0


def test_finished_claims_are_known_and_not_judged_again(engines, store):
    first = judged(engines, store, "goodput-4")
    told = []
    again = StandIn(simulates=True), StandIn(simulates=False)
    second = judge_all(wanted("goodput-4", "goodput-6"), *again, store, told.append)
    assert second[0].simulated.to_plain() == first[0].simulated.to_plain()
    assert [progress.kept for progress in told] == [True, False]
    assert [engine.runs for engine in again] == [2, 1]


def found(store, claim, engine):
    return store.get(path_of(PAPER, claim, engine), Seen.from_plain)


def test_what_is_kept_is_found_again_for_the_same_checks_until_it_is_damaged(engines, store, kept):
    judged(engines, store, "goodput-4")
    claim = RECORD["goodput-4"]
    assert found(store, claim | {"reason": "another", "statement": "in other words"}, engines[0])
    assert found(store, claim | {"rel_tol": 0.2}, engines[0]) is None
    assert found(Store(), claim, engines[1]) is not None
    assert found(Store(fresh=True), claim, engines[0]) is None
    for path in kept.rglob("*.json"):
        path.write_text("{")
    assert found(store, claim, engines[0]) is None


def test_ctrl_c_keeps_what_is_done(engines, store, monkeypatch):
    simulator = engines[0]
    run = simulator.run

    def interrupted(scenario):
        if scenario.network.peripherals == 6:
            raise KeyboardInterrupt
        return run(scenario)

    monkeypatch.setattr(simulator, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        judged(engines, store, "goodput-4", "goodput-6")
    assert found(store, RECORD["goodput-4"], simulator)
    assert found(store, RECORD["goodput-6"], simulator) is None


def outcome(verdict_holds, solved_holds):
    both = [Seen(Judged((Part("", holds, "seen"),))) for holds in (verdict_holds, solved_holds)]
    return Outcome(PAPER, RECORD["goodput-4"], *both)


def test_the_share_is_of_what_can_be_checked():
    nothing = Seen(Judged(()))
    listed = [outcome(True, True), outcome(True, None), outcome(False, True)]
    found = counts([*listed, Outcome("suliman-2005", TESTBED, nothing, nothing)])
    assert (found.total, found.checkable, found.shares()[0]) == (4, 3, 2 / 3)
    assert (found.solved.total(), found.shares(solved=True), found.agree) == (2, (1.0, 1.0), 1)
    assert sentences.other_by_model(listed) == [listed[2]]


def test_the_files_hold_every_claim_with_its_verdicts_and_the_page_needs_no_other(engines, store, tmp_path):
    ids = ("goodput-4", "goodput-falls-with-n", "scatternet-goodput-2", "pcss-misses", "switch-delay")
    report = report_of(judged(engines, store, *ids), wall_s=1.0)
    targets = report_targets(tmp_path, force=False)
    for target in targets:
        target.write(WRITERS, report)
    page, text, content = (target.path.read_text("utf-8") for target in targets)
    data = json.loads(content)
    assert [one["id"] for one in data["papers"][PAPER]["claims"]] == [o.claim["id"] for o in report.outcomes]
    assert data["counts"]["claims"] == 5
    for one in report.outcomes:
        assert one.claim["statement"].rstrip(".")[:40] in text
        assert f'id="{PAPER}-{one.claim["id"]}"' in page
    assert "Only some of the claims" in text
    assert "Not the verdict on record: venugopal-2006 goodput-4" in text  # the stand-in has 90 kbit/s
    assert "2.3.1-lwrr" not in page and "MP - 1 cycles" in page  # misprints are in words
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    links = set(re.findall(r'href="#([^"]+)"', page))
    assert links and links <= set(re.findall(r'id="([^"]+)"', page))
    assert "$" not in page.replace("$ in our copy", "")
    for verdict in ("reproduced", "in part", "not simulated", NO_MODEL):
        assert f'<b class="{verdict.replace(" ", "-")}">{verdict}</b>' in page
