"""Answers of both engines at many points, each kept on disk as soon as it is known.

A point is a scenario and an engine. Its file lies in a cache folder under a digest of the sources of that
engine, and is named by a digest of all else that the answer depends on: the resolved scenario with its seed
and replications, the files that it names, and the versions of packages. So figures that share points compute
them once, and work that was interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from btqueue.caches import cache_folder
from btqueue.reproduction.answer_cache import Store, digest_of, source_digest
from btqueue.scenario import Scenario
from btqueue.study.evaluate import Answer, Engine, PointResult, evaluate
from btqueue.study.points import Points
from btqueue.study.sweep_store import definition, from_plain, to_plain

LASTING = ("scenario", "not built", "no convergence")
"""Kinds of failures that are answers, too, and are kept."""

Progress = Callable[[int, int], None]
"""Called with the number of points that are finished, and of all points."""


class ComputationFailed(RuntimeError):
    """An engine failed by a bug, or its process died."""


def _path(scenario: Scenario, engine: Engine) -> Path:
    return cache_folder("points", f"{engine}-{source_digest(engine)}") / f"{_key(scenario, engine)}.json"


def answers(
    scenarios: Sequence[Scenario], engines: Sequence[Engine], store: Store, progress: Progress | None = None
) -> list[dict[Engine, Answer]]:
    """Return the engines' answers to scenarios; a point without an answer holds the reason.

    Args:
        scenarios: the points.
        engines: "solve", "simulate", or both.
        store: where answers are looked up and kept.
        progress: called at the start and after each point.

    Raises:
        ComputationFailed: an engine failed by a bug, or its process died.
        KeyboardInterrupt: by Ctrl-C; all answers before are in the store.
    """
    found = [_found(scenario, engines, store) for scenario in scenarios]
    missing = [place for place, one in enumerate(found) if len(one) < len(engines)]
    done = len(scenarios) - len(missing)
    report = progress or (lambda *_: None)
    report(done, len(scenarios))
    for count, place in enumerate(missing, start=1):
        for engine in engines:
            if engine not in found[place]:
                answer = evaluate(scenarios[place], "theory" if engine == "solve" else engine, threads=None)
                if answer.failure is not None and answer.failure.kind not in LASTING:
                    raise ComputationFailed(f"{engine}: {answer.failure}")
                store.keep(_path(scenarios[place], engine), to_plain(PointResult(0, {engine: answer})))
                found[place][engine] = answer
        report(done + count, len(scenarios))
    return found


def _found(scenario: Scenario, engines: Sequence[Engine], store: Store) -> dict[Engine, Answer]:
    """Return the answers that are kept."""
    kept: dict[Engine, Answer] = {}
    for engine in engines:
        point = store.get(_path(scenario, engine), from_plain)
        if point is not None:
            kept |= point.answers
    return kept


def _key(scenario: Scenario, engine: Engine) -> str:
    """Return the digest of everything the answer depends on beside the sources."""
    what = definition(scenario, Points((), ()), (engine,))
    for scenario_as in ("scenario", "written"):
        what[scenario_as].pop("title", None)
    return digest_of(what)[:32]
