"""`sweep`: a scenario at many points, through one engine or both, as one labelled dataset.

    >>> from btqueue import load
    >>> from btqueue.study.sweep import sweep
    >>> found = sweep(load("chen-2004/adaptive-1"), over={"transport.receive_window_segments": [5, 10]})
    >>> found.goodput_kbps.dims
    ('transport.receive_window_segments',)

With `out`, every finished point is on disk at once (`sweep_store`), and a sweep that was ended in whatever
way goes on where it was when the same call is made again.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import xarray as xr

from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.expressions import parse_metric
from btqueue.scenario.topology import topology
from btqueue.simulator.scope import require_simulated
from btqueue.study.checked_answers import CheckedPoints, check_points
from btqueue.study.evaluate import ENGINES, Engine, PointResult
from btqueue.study.many_points import map_points
from btqueue.study.points import Numbered, Over, Points, Progress, grid
from btqueue.study.provenance import attributes
from btqueue.study.sweep_files import IN_THE_WAY, assemble, checked_target, finished_result, write_sweep
from btqueue.study.sweep_store import Journal, Memory, StoreError, definition, journal_path


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a sweep.

    Attributes:
        finished: number of points that are finished.
        partial: a dataset with these points, if they are not on disk.
    """

    def __init__(self, finished: int, partial: xr.Dataset | None) -> None:
        super().__init__("interrupted")
        self.finished, self.partial = finished, partial


def sweep(
    scenario: Scenario,
    over: Over,
    *,
    engine: Literal["auto", "simulate", "both"] = "auto",
    metrics: Sequence[str] = (),
    check: bool = False,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    notes: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Evaluate a scenario at many points.

    Args:
        scenario: that the points change.
        over: values by dotted key; every combination is a point: ``{"polling.limit": range(1, 11)}``. All
            points share a seed, so that differences between points are less noisy than the points are.
        engine: "auto" (theory; a point at which that does not stand is simulated until it is known, see
            `btqueue.study.evaluate.simulated_to_precision`), "simulate" or "both" (theory alone beside
            simulation).
        metrics: metrics, or quantities such as ``"goodput_kbps[sensors]"``, which become variables of this
            name; ``"p95(delay_s, sensors)"`` becomes the variable ``"max(delay_p95_s, sensors)"``. With
            "auto", a point at which theory gives one of the metrics no value is simulated, too.
        check: with "auto", check a twentieth of the points of theory, five at least, by simulation, and
            simulate all points around those that are not confirmed (`btqueue.study.checked_answers`).
        out: file for the result: .nc (netCDF) or .csv.
        force: replace a regular file that is there, and kept points of another sweep.
        workers: processes at once, all cores by default.
        cluster: address of a dask scheduler, in place of own processes.
        progress: called after each point.
        notes: called with each message to the user.

    Returns:
        Dataset as `btqueue.study.sweep_files.assemble` describes. A point that fails is NaN, with its
        reason in `failure`. Attributes: scenario, sweep (both JSON), answered, failed, checks (JSON, where
        points were checked: how many, how far off theory was, and where), and provenance_*. The values do not
        depend on workers, on the cluster, or on how often the sweep was interrupted.

    Raises:
        ScenarioError: a key or value is wrong, or no point at all is a scenario that an engine can run.
        StoreError: `out` cannot be used: damaged, of another sweep, being written by another process, or the
            disk is full; nothing is overwritten, finished points are kept.
        Unwritten: a `StoreError` that holds the complete result.
        MissingPackage: a package for the cluster is not installed.
        SweepInterrupted: by Ctrl-C; finished points are kept.
    """
    target = None if out is None else checked_target(Path(out))
    if engine not in (known := {"auto": ENGINES[:1], "simulate": ENGINES[1:], "both": ENGINES}):
        raise ScenarioError(f'engine is "auto", "simulate" or "both", not {engine!r}')
    engines: tuple[Engine, ...] = known[engine]
    check = check and engines == ("solve",)
    chosen, quantities = grid(over), [parse_metric(text, "--metric", scenario) for text in metrics]
    names = [one.name for one in quantities] if engine == "auto" else []
    named = {*names, *(str(one) for one in quantities if str(one) != one.name)}
    require_one_point(scenario, chosen, engines)
    what = definition(scenario, chosen, engines, checked=check, metrics=sorted(named))
    say = notes or (lambda message: None)
    ask = partial(
        map_points,
        scenario,
        chosen,
        engines=engines,
        workers=workers,
        cluster=cluster,
        metrics=names,
        quantities=quantities,
    )
    finish = partial(_finished, scenario, chosen, engines, what)
    tell = progress or (lambda done, total: None)

    def fill(kept: Memory | Journal) -> xr.Dataset:
        """Evaluate the points that are not kept yet; return the dataset, and write it if there is a file."""
        count = len(chosen)
        try:
            tell(len(kept.done), count)
            with closing(ask(numbers=[n for n in range(count) if n not in kept.done])) as results:
                for result in results:
                    kept.add(result)
                    tell(len(kept.done), count)
            checked = check_points(chosen, kept.results(), ask, say) if check else None
            dataset = finish(kept.results, checked)
            if target is not None:
                write_sweep(target, dataset, replace=force)
            return dataset
        except KeyboardInterrupt:
            partial_result = finish(kept.results) if isinstance(kept, Memory) and kept.done else None
            raise SweepInterrupted(len(kept.done), partial_result) from None

    if target is None:
        return fill(Memory())
    kept = journal_path(target)
    found = None if force else finished_result(target, what)
    if found is not None:
        say(f"{target}: is complete already, nothing was computed")
        if kept.exists():
            with Journal(kept, what) as journal:
                journal.remove()
        return found
    with Journal(kept, what, anew=force) as journal:
        for note in journal.notes:
            say(note)
        if journal.done:
            say(f"{len(journal.done):,} of {len(chosen):,} points were finished before: going on from there")
        if len(journal.done) < len(chosen) and not force and target.exists():  # so it cannot be this sweep's
            raise StoreError(f"{target}: exists already and is not replaced; {IN_THE_WAY}")
        dataset = fill(journal)
        journal.remove()
    return dataset


def require_one_point(scenario: Scenario, points: Numbered, engines: Sequence[Engine]) -> None:
    """Make sure that at least one point is a scenario that at least one of the engines can run.

    Raises:
        ScenarioError: none is; with the message for the first point and the first engine.
    """
    first: ScenarioError | None = None
    for number, engine in product(range(len(points)), engines):
        try:
            changed = scenario.changed(points[number])
            if engine == "simulate":
                require_simulated(changed)
            return
        except ScenarioError as error:
            first = first or error
    assert first is not None
    if len(points) == 1:
        raise first
    heading, problem = f"none of the {len(points):,} points can be run; the first: ", first.problems[0]
    raise type(first)(replace(problem, message=heading + problem.message))


def _finished(
    scenario: Scenario,
    points: Points,
    engines: Sequence[Engine],
    what: Mapping[str, Any],
    results: Callable[[], Iterable[PointResult]],
    checked: CheckedPoints | None = None,
) -> xr.Dataset:
    known = {} if checked is None else checked.results
    dataset = assemble(points, engines, lambda: (known.get(one.number, one) for one in results()))
    if checked is not None:
        dataset.attrs["checks"] = json.dumps(checked.summary(points))
    labels = topology(scenario).flow_labels()
    if "group" in labels and dataset.sizes.get("flow") == len(labels["group"]):
        dataset = dataset.assign_coords(group=("flow", labels["group"]))
    failed = dataset["failure"].values != ""
    if len(engines) > 1:
        failed = failed.all(axis=0)
    return dataset.assign_attrs(
        {
            "sweep": json.dumps(what),
            "answered": int((~failed).sum()),
            "failed": int(failed.sum()),
            **attributes(scenario),
        }
    )


def failures(dataset: xr.Dataset) -> dict[str, int]:
    """Return how many points failed for each reason, the most frequent first; by engine if there are two."""
    failed, counts = dataset["failure"], Counter[str]()
    for prefix, reasons in (
        [(f"{engine}: ", failed.sel(engine=engine)) for engine in dataset["engine"].values]
        if "engine" in dataset.dims
        else [("", failed)]
    ):
        counts.update(f"{prefix}{reason}" for reason in map(str, reasons.values.flat) if reason)
    return dict(counts.most_common())
