"""Answers for the page: a first curve at once, then all of its points, then simulated ones behind them.

The first curve is a sketch: one short simulated run a point, which takes milliseconds where theory may take a
second. Theory follows, a point after the other: two threads would take turns, since most of theory is Python.
A simulation that takes the place of theory, where theory does not stand, follows in another thread, so
that no slider waits for it. Answers are kept: a slider that goes back finds its curve finished. A request
that is dropped leaves at most two points under way.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from btqueue.explorer.controls import changes_to_try, effect
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.topology import own_length
from btqueue.study.evaluate import Answer, Engine, available_cores, evaluate, failure_of
from btqueue.study.points import scenario_with

POINTS = 50
"""Of a curve."""

FIRST_S = 0.05
"""After so long (s) the first curve is sent, with the points that are there by then."""

AGAIN_S = 0.25
"""Time (s) between two curves that are not yet complete."""

RANKED_S = 2.0
"""Time (s) after which the keys are sorted by the effects that are known by then."""

SIMULATED = 7
"""Simulated points of a curve."""

MOST_KEPT = 20_000
"""Answers that are kept; the oldest go first."""


class Curve(NamedTuple):
    """Points along one key.

    Attributes:
        places: values of the key.
        answers: the answer at `places[n]`, by n; answers still to come are missing.
        wall_s: seconds since the curve was asked for.
        drafts: how many of the answers are theory's where it does not stand; simulations will replace them.
        sketched: numbers of the answers that are of one short run; theory will replace them.
    """

    places: tuple[float, ...]
    answers: dict[int, Answer]
    wall_s: float
    drafts: int = 0
    sketched: frozenset[int] = frozenset()

    @property
    def complete(self) -> bool:
        """Whether every place has its last answer, or its failure."""
        return len(self.answers) == len(self.places) and not (self.drafts or self.sketched)


class Desk:
    """Solves and simulates for the page, the latest request first, and remembers its answers."""

    def __init__(self) -> None:
        """Start with nothing known."""
        threads = {"solve": 2, "simulate": 1, "sketch": 1}
        self._pools = {name: ThreadPoolExecutor(count, name) for name, count in threads.items()}
        self._known: dict[tuple[Engine, Scenario], Answer] = {}

    def close(self) -> None:
        """Begin no further point."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    async def answer(self, scenario: Scenario, engine: Engine = "solve", *, sketch: bool = False) -> Answer:
        """Return an engine's answer for a scenario; failures are answers, too."""
        if (known := self._known.get((engine, scenario))) is not None:
            return known
        pool = self._pools["sketch" if sketch else "solve" if engine == "theory" else "simulate"]
        return await asyncio.get_running_loop().run_in_executor(pool, self._found, scenario, engine)

    def _found(self, scenario: Scenario, engine: Engine) -> Answer:
        """Answer and remember it, in a thread: also for a request that was dropped meanwhile."""
        found = evaluate(scenario, engine, threads=max(1, available_cores() // 2))
        self._known[engine, scenario] = found
        if len(self._known) > MOST_KEPT:
            self._known.pop(next(iter(self._known)), None)
        return found

    async def curve(
        self, scenario: Scenario, key: str, places: tuple[float, ...]
    ) -> AsyncGenerator[Curve, None]:
        """Yield a curve along a key: sketched, then by theory, then simulated where theory does not stand.

        The first curve has the points, two at least, that `FIRST_S` allows.
        """
        began, order = time.perf_counter(), spread_order(len(places))
        due = began + FIRST_S
        found = await self._sketch(scenario, key, {number: places[number] for number in order})
        sketched, drafts = set(found), set[int]()
        waiting: deque[tuple[int, Engine]] = deque((number, "theory") for number in order)
        under_way: dict[asyncio.Task[Answer], tuple[int, Engine]] = {}
        done: set[asyncio.Task[Answer]] = set()

        def curve() -> Curve:
            return Curve(places, dict(found), time.perf_counter() - began, len(drafts), frozenset(sketched))

        try:
            if len(found) > 1:
                yield curve()
                due = time.perf_counter() + AGAIN_S
            while waiting or under_way:
                # A point that takes long must hold up neither the others nor their picture.
                if waiting and (not under_way or (not done and len(under_way) < 2)):
                    number, engine = waiting.popleft()
                    asked = self.answer_at(scenario, key, places[number], engine)
                    under_way[asyncio.ensure_future(asked)] = number, engine
                drawable = sum(one.failure is None for one in found.values()) >= 2
                left = max(0.0, due - time.perf_counter()) if drawable else FIRST_S
                done, _ = await asyncio.wait(under_way, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    (number, engine), answer = under_way.pop(task), task.result()
                    drafts.discard(number)
                    sketched.discard(number)
                    if engine == "theory" or not answer.failure:
                        found[number] = answer
                    if engine == "theory" and (answer.failure or answer.notes.get("why")):
                        drafts.add(number)
                        waiting.append((number, "precise"))
                if drawable and time.perf_counter() >= due and (waiting or under_way):
                    yield curve()
                    due = time.perf_counter() + AGAIN_S
            yield curve()
        finally:
            for task in under_way:
                task.cancel()

    async def _sketch(self, scenario: Scenario, key: str, places: dict[int, float]) -> dict[int, Answer]:
        """Return short simulated runs at the first places, as many as `FIRST_S` allows, two at least.

        After four times that there may be fewer. There are none where theory's answer is known already, where
        loads have a schedule, flows begin late or files are played, which cannot be shortened, and where the
        simulator does not cover a scenario.
        """
        found, due = dict[int, Answer](), time.perf_counter() + FIRST_S
        length_s = scenario.run.duration_s / 8
        short = {"run.duration_s": length_s, "run.warmup_s": length_s / 4, "run.precision": None}
        with suppress(TimeoutError):
            async with asyncio.timeout(4 * FIRST_S):
                for number, value in places.items():
                    whole = scenario_with(scenario, {key: value})
                    if whole is None or own_length(whole) or ("theory", whole) in self._known:
                        break
                    one = whole.changed({**short, "run.replications": 1})
                    answer = await self.answer(one, "simulate", sketch=True)
                    if answer.failure:
                        break
                    found[number] = answer
                    if len(found) > 1 and time.perf_counter() > due:
                        break
        return found

    async def answer_at(self, scenario: Scenario, key: str, value: float, engine: Engine = "solve") -> Answer:
        """Return an engine's answer for the scenario with one key changed."""
        try:
            return await self.answer(scenario.changed({key: value}), engine)
        except ScenarioError as error:
            return Answer(failure=failure_of(error))

    async def effects(self, scenario: Scenario) -> AsyncGenerator[dict[str, float]]:
        """Yield the effects of the keys that have been tried: first after `RANKED_S`, at last of all keys.

        The wait before the next effects doubles each time. Keys that the scenario's file gives are tried
        first.
        """
        base, found = await self.answer(scenario), dict[str, float]()
        began, wait_s = time.perf_counter(), RANKED_S
        every = changes_to_try(scenario)
        for key in sorted(every, key=lambda key: bool(scenario.origin(key))):
            valid = filter(None, (scenario_with(scenario, change) for change in every[key]))
            others = [await self.answer(one) for one in valid]
            found[key] = effect(base, others)
            if time.perf_counter() > began + wait_s:
                yield found
                wait_s *= 2.0
        yield found


def places_between(low: float, high: float, whole: bool, count: int = POINTS) -> tuple[float, ...]:
    """Return values of a key from low to high, whole numbers fewer where there are no more.

    They are even, or even in their logarithms where the ends span two decades, as the page draws them.
    """
    spaced = np.geomspace if 0 < 100 * low <= high else np.linspace
    numbers = spaced(low, high, count).tolist()
    if whole:
        return tuple(dict.fromkeys(round(number) for number in numbers))
    return tuple(float(f"{number:.6g}") for number in numbers)


def spread_order(count: int) -> list[int]:
    """Return the numbers below *count*: the middle and the ends first, then middles of the widest gaps."""
    found = list(dict.fromkeys([count // 2, 0, count - 1]))[:count]
    gaps = [(0, count // 2), (count // 2, count - 1)]
    for low, high in gaps:  # which grows
        if high - low > 1:
            middle = (low + high) // 2
            found.append(middle)
            gaps += [(low, middle), (middle, high)]
    return found
