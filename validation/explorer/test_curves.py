"""Curves of the page: their order, first forms, and the controls and their ranking."""

import asyncio
import threading
import time
from functools import partial

import numpy as np
import pytest

import btqueue as bt
from btqueue.explorer import curves as module
from btqueue.explorer.controls import axis_of, changes_to_try, controls, effect
from btqueue.explorer.curves import Curve, Desk, places_between, spread_order
from btqueue.explorer.messages import told_answer, told_curve, told_scenario
from btqueue.study.evaluate import Answer, Failure
from btqueue.study.provenance import plain
from btqueue.study.summary import Estimate


def answer(**means):
    return Answer({name: Estimate(mean) for name, mean in means.items()})


def test_every_point_comes_once_the_middle_and_the_ends_first():
    for count in (0, 1, 2, 3, 4, 7, 50):
        order = spread_order(count)
        assert sorted(order) == list(range(count))
        assert set(order[:3]) == ({count // 2, 0, count - 1} if count else set())


def test_failures_leave_gaps_and_are_told():
    failed = Answer(failure=Failure("no convergence", "it swings"))
    told = told_curve(Curve((1.0, 2.0), {0: answer(rtt_s=1.0), 1: failed}, 0))
    assert (plain(told["metrics"]["rtt_s"]), told["problem"]) == ([1.0, None], "no convergence: it swings")


PICONET = bt.load("venugopal-2006/piconet")


NO_SKETCH = Answer(failure=Failure("not built", "none"))


def drawn(monkeypatch, evaluate, key, places, seen):
    """Return the answers of each curve that is drawn with this evaluation; `seen` is awaited after each."""

    async def draw():
        desk, found = Desk(), []
        async for curve in desk.curve(PICONET, key, places):
            found.append(dict(curve.answers))
            await seen()
        desk.close()
        return found

    monkeypatch.setattr(module, "FIRST_S", 0.01)
    monkeypatch.setattr(
        module,
        "evaluate",
        lambda changed, engine, threads: evaluate(changed) if engine == "theory" else NO_SKETCH,
    )
    return asyncio.run(draw())


def test_where_theory_does_not_stand_it_is_a_draft_until_the_simulation_is_there(monkeypatch):
    drawn = threading.Event()

    def evaluate(changed, engine, threads):
        limit = changed.polling.limit
        if engine == "theory":
            return Answer({"rtt_s": Estimate(limit)}, notes={"why": ["a law doubts it"] if limit > 2 else []})
        if engine == "simulate":
            return Answer(failure=Failure("not built", "no sketch"))
        assert engine == "precise" and limit > 2 and drawn.wait(30)
        if limit == 5:  # which the simulator does not cover: theory's answer stays
            return Answer(failure=Failure("not built", "none"))
        return Answer({"rtt_s": Estimate(10 * limit)}, notes={"answered_by": "simulation"})

    async def draw():
        desk, told = Desk(), []
        async for curve in desk.curve(PICONET, "polling.limit", (1, 2, 3, 4, 5)):
            told.append(told_curve(curve))
            if len(curve.answers) == 5:
                drawn.set()
        desk.close()
        return told

    monkeypatch.setattr(module, "evaluate", evaluate)
    *_, draft, last = asyncio.run(draw())
    assert (draft["metrics"]["rtt_s"][:2], draft["complete"]) == ([1, 2], False) and draft["drafts"] > 0
    assert (last["metrics"]["rtt_s"], last["complete"]) == ([1, 2, 30, 40, 5], True)
    assert (last["drafts"], last["simulated"]) == (0, 2)


def test_the_first_curve_is_one_short_run_a_point_until_theory_is_there(monkeypatch):
    seen, runs = threading.Event(), set()

    def evaluate(changed, engine, threads):
        if engine == "theory":
            assert seen.wait(30)
        else:
            runs.add((changed.run.replications, changed.run.duration_s, changed.run.warmup_s))
        return Answer({"rtt_s": Estimate(changed.polling.limit / (1 if engine == "theory" else 10))})

    async def draw(desk):
        told = []
        async for curve in desk.curve(PICONET, "polling.limit", (1, 2, 3)):
            told.append(told_curve(curve))
            seen.set()
        return told

    async def twice():
        desk = Desk()
        found = await draw(desk), await draw(desk)
        desk.close()
        return found

    monkeypatch.setattr(module, "evaluate", evaluate)
    monkeypatch.setattr(module, "FIRST_S", 5.0)  # however slow the machine is
    (first, *_, last), again = asyncio.run(twice())
    assert (first["metrics"]["rtt_s"], first["sketched"], first["complete"]) == ([0.1, 0.2, 0.3], 3, False)
    assert first["kinds"] == ["short run"] * 3
    assert (last["metrics"]["rtt_s"], last["kinds"], last["complete"]) == ([1, 2, 3], ["solved"] * 3, True)
    assert runs == {(1, PICONET.run.duration_s / 8, PICONET.run.duration_s / 32)}
    assert all(one["kinds"] == ["solved"] * 3 for one in again[-1:]) and not again[0]["sketched"]


def test_keys_are_sorted_while_they_are_tried_and_those_of_the_file_are_tried_first(monkeypatch):
    def evaluate(changed, engine, threads):
        return answer(goodput_kbps=changed.polling.limit)

    async def ranked():
        desk = Desk()
        found = [dict(effects) async for effects in desk.effects(PICONET)]
        desk.close()
        return found

    monkeypatch.setattr(module, "evaluate", evaluate)
    monkeypatch.setattr(module, "RANKED_S", 1e-9)
    first, *_, last = asyncio.run(ranked())
    assert len(first) < len(last) == len(changes_to_try(PICONET)) and not PICONET.origin(next(iter(first)))
    assert [key for key, effect in last.items() if effect] == ["polling.limit"]


def test_the_first_curve_does_not_wait_for_a_slow_point_and_the_last_has_all(monkeypatch):
    slow = threading.Event()

    def evaluate(changed):
        assert changed.polling.limit != 3 or slow.wait(30)
        return answer(rtt_s=float(changed.polling.limit))

    async def seen():
        slow.set()

    first, *_, last = drawn(monkeypatch, evaluate, "polling.limit", (1, 2, 3, 4, 5), seen)
    assert 2 not in first and len(first) >= 2
    assert [last[n].means["rtt_s"] for n in range(5)] == [1, 2, 3, 4, 5]


def test_a_curve_becomes_complete_however_slowly_it_is_taken(monkeypatch):
    def evaluate(changed):
        time.sleep(0.005)
        return answer(rtt_s=changed.traffic.load_kbps)

    for name in ("FIRST_S", "AGAIN_S"):
        monkeypatch.setattr(module, name, 0.01)
    seen = partial(asyncio.sleep, 0.05)  # all that is under way ends meanwhile
    places = places_between(10, 90, False)
    first, *_, last = drawn(monkeypatch, evaluate, "traffic.load_kbps", places, seen)
    assert len(first) < len(last) == len(places)


def test_sliders_go_no_further_than_the_scenario_takes():
    found = {control.key: control for control in controls(PICONET)}
    assert axis_of(list(found.values())) == {"along": "traffic.load_kbps", "low": 40.0, "high": 640.0}
    assert found["radio.model"].choices[0] == "perfect" and found["radio.model"].low is None
    assert not any(key.startswith("run.") and key != "run.jitter_s" for key in found)
    for control in found.values():
        for value in (control.low, control.high) if control.low is not None else control.choices:
            PICONET.changed({control.key: value})  # raises if it is refused


def test_effects_count_shares_of_four_metrics():
    base = answer(goodput_kbps=100.0, rtt_s=1.0, segment_loss=0.0, timeouts_per_s=0.0)
    assert effect(base, [base]) == 0
    assert effect(base, [answer(goodput_kbps=50.0, rtt_s=1.0)]) == pytest.approx(0.5 / 4)
    assert effect(base, [answer(segment_loss=0.1), answer(rtt_s=4.0)]) == pytest.approx((1 + 0.75) / 4)
    assert effect(base, [Answer(failure=Failure("error", "none"))]) == 0


@pytest.mark.parametrize("name", bt.scenario.list_models())
def test_the_page_starts_with_every_scenario_that_comes_along(name):
    scenario = bt.load(name)
    turned = controls(scenario)
    axis = axis_of(turned)
    scenario.changed({axis["along"]: axis["high"]})
    assert told_scenario(scenario, turned)["network"]["nodes"]


def test_flows_that_differ_have_a_line_a_group():
    one = Estimate(2.1, 0.1, "flow", (1.1, 2.0, 3.1), (), (), np.array([[1.0, 2.0, 3.0], [1.2, 2.0, 3.2]]))
    answers = {0: Answer({"goodput_kbps": one})}
    told = told_curve(Curve((1.0,), answers, 0), ("download", "sensors", "sensors"))
    assert told["metrics"]["goodput_kbps download"] == [1.1]
    assert told["metrics"]["goodput_kbps sensors"] == pytest.approx([2.55])
    goodput = told_answer(answers[0], ("download", "sensors", "sensors"))["metrics"]["goodput_kbps"]
    # Student's half-width of 2.5 and 2.6: 12.706 times 0.05
    sensors = [goodput[part]["sensors"] for part in ("parts", "intervals")]
    assert sensors == pytest.approx([2.55, 12.706 * 0.05], rel=1e-4)
    assert "goodput_kbps sensors" not in told_curve(Curve((1.0,), answers, 0))["metrics"]
