"""Points on a cluster: the same work as in own processes, sent out by dask.distributed (extra `cluster`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack
from typing import Any

from btqueue.scenario import Scenario
from btqueue.simulator.traces.extras import require
from btqueue.study.evaluate import (
    Engine,
    Failure,
    Numbered,
    PointResult,
    available_cores,
    environment,
    evaluate_point,
    failed_point,
)
from btqueue.study.many_points import as_finished
from btqueue.study.provenance import versions

AHEAD = 4
"""Points sent out for each thread of the cluster before the first of them has come back."""


class ClusterError(ValueError):
    """The cluster cannot be used; the message says why."""


def map_on_cluster(
    base: Scenario,
    points: Numbered,
    engines: Sequence[Engine],
    numbers: Sequence[int],
    cluster: str,
    workers: int | None,
) -> Generator[PointResult]:
    """Yield the points as the cluster finishes them; see `btqueue.study.many_points.map_points`.

    A point whose worker dies is sent to another one; how often, the scheduler decides (a local one: once).

    Raises:
        MissingPackage: dask.distributed is not installed.
        ClusterError: there is no scheduler at that address, or a worker has other versions than this process,
            so that its numbers could differ.
    """
    distributed = require("distributed", "sweeps on a cluster", "cluster")
    with ExitStack() as closing:
        if cluster == "local":
            client = closing.enter_context(_local_client(closing, workers or available_cores()))
        else:
            try:
                client = closing.enter_context(distributed.Client(cluster, timeout=10, set_as_default=False))
            except (OSError, ValueError, TypeError) as error:
                raise ClusterError(
                    f"--cluster {cluster}: no dask scheduler answers there ({error})"
                ) from None
        data, known, executor = base.to_dict(resolved=False), versions(), client.get_executor(pure=False)

        def submit(number: int) -> Future[PointResult]:
            work = (data, number, dict(points[number]), tuple(engines), known)
            return executor.submit(evaluate_elsewhere, *work)

        ahead = AHEAD * max(1, sum(client.nthreads().values()))
        for number, future in as_finished(submit, numbers, ahead=ahead):
            try:  # a result that was lost with its worker is waited for until another one has computed it
                yield future.result()
            except distributed.KilledWorker:
                failure = Failure("worker", "the workers that it was sent to have died")
                yield failed_point(number, engines, failure)
            except CancelledError:
                why = "the cluster was lost; finished points are kept if there is a file"
                raise ClusterError(why) from None


def _local_client(closing: ExitStack, workers: int) -> Any:
    """Return a client of a cluster on this machine that ends with *closing*.

    Its processes are started from scratch: they do not import the user's main program. Like own workers they
    must not look for modules in the working directory; dask lets them inherit this process's environment.
    """
    import distributed
    from distributed.deploy.subprocess import SubprocessCluster

    no_dashboard: Any = None  # documented, but the annotation of the parameter leaves it out
    theirs = environment()
    before = {name: os.environ.pop(name, None) for name in theirs}
    os.environ.update(theirs)
    try:
        cluster = closing.enter_context(
            SubprocessCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=no_dashboard,
                scheduler_kwargs={"allowed_failures": 1},
                silence_logs=logging.ERROR,
            )
        )
    finally:
        for name in theirs:
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if value is not None})
    return distributed.Client(cluster, set_as_default=False)


def evaluate_elsewhere(
    data: Mapping[str, Any],
    number: int,
    changes: Mapping[str, Any],
    engines: Sequence[Engine],
    known: Mapping[str, str],
) -> PointResult:
    """Evaluate a point in a worker of a cluster.

    Raises:
        ClusterError: the worker has other versions than the process that asks.
    """
    here = versions()
    if different := [
        f"{name} {here.get(name)}, not {known[name]}" for name in known if here.get(name) != known[name]
    ]:
        raise ClusterError(f"a worker of the cluster has {', '.join(different)}: results could differ")
    return evaluate_point(Scenario.from_dict(data), number, changes, engines, threads=1)
