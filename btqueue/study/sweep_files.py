"""The dataset of a sweep from its finished points, and its files: netCDF and CSV.

A netCDF file can be read again; CSV has one row a point. A result that can be read again carries
a seal, the SHA-256 of all bytes of its file, in the attribute `seal`. It is looked at before anything else:
the libraries below follow damaged lengths and addresses into endless loops and huge arrays.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from btqueue.files import UnusableFile, read_bytes, require_writable, written_whole
from btqueue.scenario import METRICS, describe
from btqueue.scenario.problems import closest
from btqueue.study.comparison import metric_name
from btqueue.study.evaluate import PARTS, Engine, PointResult
from btqueue.study.points import Points
from btqueue.study.sweep_store import StoreError, Unwritten, journal_path, what_differs

if TYPE_CHECKING:
    import pandas as pd

NOTES: dict[str, tuple[type, Any]] = {
    "converged": (np.int8, -1),
    "residual": (float, math.nan),
    "iterations": (np.int64, -1),
    "events": (np.int64, -1),
    "replications": (np.int64, -1),
    "warmup_s": (float, math.nan),
}
"""Notes that become variables, with type and the value where there is none."""
TEXTS = ("failure", "warnings", "answered_by", "why", "method", "check")
"""Variables in words; all but the first two are left out where no point has any."""


def assemble(
    points: Points, engines: Sequence[Engine], results: Callable[[], Iterable[PointResult]]
) -> xr.Dataset:
    """Return one dataset with a dimension for each key.

    Variables, NaN where a point has no answer:

    - each metric, in its unit: the mean over replications and over flows (links, queues);
    - `<metric>_ci95`: half-width of its 95 % interval over replications, from the simulator;
    - `<metric>_per_flow` (`_per_link`, `_per_queue`) and `<metric>_per_flow_ci95`: the same for each flow, if
      all points have equally many flows, and more than one;
    - `failure`: why a point has no answer, empty if it has one; `warnings` of the engine; `answered_by`
      ("theory" or "simulation"), `why` (theory's doubts, or why it has no answer), `method` and `check` (of
      theory by simulation, where there was one); and numbers
      that say how an answer was found (converged, residual, iterations; events, replications, warmup_s).

    With both engines there is a first dimension "engine".

    Args:
        points: points of the sweep.
        engines: that were run.
        results: function that yields the finished points, in any order. It is called twice, so that the
            points need not all be in memory.
    """
    parts = _parts(results())
    dims, shape = ("engine", *points.keys), (len(engines), *points.shape)
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    texts = {name: np.full(shape, "", object) for name in TEXTS}
    texts["failure"][:] = "not evaluated"

    def put(name: str, where: tuple[Any, ...], value: Any, *part: str) -> None:
        kind, missing = NOTES.get(name, (float, math.nan))
        if name not in variables:
            sizes = (*shape, *(len(parts[one]) for one in part))
            variables[name] = (*dims, *part), np.full(sizes, missing, kind)
        variables[name][1][where] = value

    for result in results():
        place = np.unravel_index(result.number, points.shape)
        for row, engine in enumerate(engines):
            answer, where = result.answers[engine], (row, *place)
            for name, value in answer.metrics.items():
                known = not math.isnan(value.ci95) or value.ci95s
                put(name, where, value.mean)
                if known:
                    put(f"{name}_ci95", where, value.ci95)
                if value.part in parts:
                    labels, each = parts[value.part], f"{name}_per_{value.part}"
                    queues = answer.names["queue"] if value.part == "queue" else ()
                    along = [labels.index(queue) for queue in queues] or slice(None)
                    put(each, (*where, along), value.means, value.part)
                    if known:
                        put(f"{each}_ci95", (*where, along), value.ci95s or math.nan, value.part)
            for name in NOTES.keys() & answer.notes.keys():
                put(name, where, answer.notes[name])
            texts["failure"][where] = "" if answer.failure is None else str(answer.failure)
            for name in TEXTS[1:]:
                found = answer.notes.get(name, "")
                texts[name][where] = found if isinstance(found, str) else "; ".join(found)
    suffixes = ["", *(f"_per_{part}" for part in PARTS)]
    order = [f"{name}{suffix}{ci95}" for name in METRICS for suffix in suffixes for ci95 in ("", "_ci95")]
    quantities = [name for name in variables if name not in (*order, *NOTES)]
    found = {name: variables[name] for name in (*order, *quantities, *NOTES) if name in variables}
    told = (name for name, text in texts.items() if name in TEXTS[:2] or any(one for one in text.flat))
    found |= {name: (dims, texts[name].astype(str)) for name in told}
    dataset = xr.Dataset(found, _coordinates(points, engines, parts))
    return _described(dataset if len(engines) > 1 else dataset.isel(engine=0, drop=True))


def _parts(results: Iterable[PointResult]) -> dict[str, list[str]]:
    """Return the names along the dimension of each part that the points have in common.

    Queues are matched by name. Flows and links are matched by their number, so all points must have equally
    many. Names are in the order of the points, whatever the order in which these were finished.
    """
    first: dict[str, dict[tuple[str, ...], int]] = {part: {} for part in PARTS}
    for result in results:
        for answer in result.answers.values():
            for part, names in answer.names.items():
                first[part][names] = min(first[part].get(names, result.number), result.number)
    found = {}
    for part, places in first.items():
        in_order = sorted(places, key=places.__getitem__)
        sizes = {len(names) for names in in_order}
        if part == "queue":
            found[part] = list(dict.fromkeys(name for names in in_order for name in names))
        elif len(sizes) == 1 and sizes != {1}:
            numbered = [str(number) for number in range(1, len(in_order[0]) + 1)]
            found[part] = list(in_order[0]) if len(in_order) == 1 else numbered
    return {part: names for part, names in found.items() if names}


def _coordinates(points: Points, engines: Sequence[Engine], parts: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the values of keys, the engines, and the numbers and names of flows, links and queues."""
    found: dict[str, Any] = {**points.coordinates(), "engine": list(engines)}
    for part, names in parts.items():
        if part == "queue":
            found["queue"] = names
        else:
            found[part] = np.arange(1, len(names) + 1)
            found[f"{part}_name"] = (part, names)
    return found


def _described(dataset: xr.Dataset) -> xr.Dataset:
    """Put units and names on metrics, also of single flows, links and queues, and on quantities."""
    dataset = describe(dataset)
    for name, variable in dataset.data_vars.items():
        base, per, _ = str(name).partition("_per_")
        if per and base in METRICS:
            variable.attrs |= {"units": METRICS[base].unit, "long_name": METRICS[base].long_name}
        stem = str(name).removesuffix("_ci95")
        if stem not in METRICS and (base := metric_name(stem)) in METRICS:
            variable.attrs |= {"units": METRICS[base].unit, "long_name": stem}
    return dataset


FORMATS = {".nc": "netCDF", ".csv": "CSV"}
"""By suffix."""
READABLE = ".nc"
"""The suffix of the format that holds all of a result."""
SEAL = re.compile(rb"btqueue-sha256:[0-9a-f]{64}")
OPEN_SEAL = b"btqueue-sha256:" + b"0" * 64
"""Stands in the attribute while the digest is taken, and is replaced by it, which is as long."""
REMEDY = "it is left as it is; move it away to compute it anew"
IN_THE_WAY = "delete it or give another name, or replace it (--force, force=True)"


def checked_target(path: Path) -> Path:
    """Return *path*, if nothing shows that the result of a sweep cannot be written to it.

    Raises:
        StoreError: the suffix is unknown, or the folder is missing or read-only.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(f"{known} ({format})" for known, format in FORMATS.items())
        guess = closest(suffix, FORMATS) if suffix else None
        hint = f"; did you mean {path.with_suffix(guess).name}?" if guess else ""
        raise StoreError(f"{path}: must end in {known}, so that the format is clear{hint}")
    try:
        require_writable(path, replace=True)  # what may be there is looked at later
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    return path.parent.resolve() / path.name


def finished_result(path: Path, definition: Mapping[str, Any]) -> xr.Dataset | None:
    """Return the result of the same sweep if *path* holds it already, None if there is nothing.

    Raises:
        StoreError: there is something else, which is left as it is: a damaged file, another sweep.
    """
    if not os.path.lexists(path):
        return None
    if path.suffix.lower() != READABLE:
        if journal_path(path).exists():
            return None  # perhaps of this sweep, killed before the journal was removed: `write_sweep` knows
        raise StoreError(f"{path}: exists already and is not replaced; {IN_THE_WAY}")
    found = read_sweep(path)
    try:
        there = json.loads(found.attrs["sweep"])
    except ValueError as error:
        raise StoreError(f"{path}: its attribute sweep is no JSON ({error}); {REMEDY}") from None
    if differences := what_differs(there, definition):
        raise StoreError(
            f"{path}: holds another sweep and is not replaced: {'; '.join(differences[:5])}; {IN_THE_WAY}"
        )
    return found


def read_sweep(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read the result of a sweep from netCDF, and check that nothing of it is damaged.

    Raises:
        StoreError: it cannot be read, is no sweep's result, or a byte has changed since it was written.
    """
    path = Path(path)
    try:
        content = read_bytes(path, path.stat().st_size)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror or error})") from None
    except UnusableFile as error:
        raise StoreError(f"{path}: {error}") from None
    if not (seals := SEAL.findall(content)):
        why = "is damaged, or no result of a sweep by this version (it has no seal)"
        raise StoreError(f"{path}: {why}; {REMEDY}")
    if seals != [_seal(content)]:
        raise StoreError(f"{path}: is damaged: it has changed since it was written; {REMEDY}")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as opened:
            found = opened.load()
    except ImportError:
        raise
    except Exception as error:  # HDF5 and xarray raise whatever they stumble over
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise StoreError(f"{path}: cannot be read ({reason}); {REMEDY}") from None
    if not {"sweep", "seal"} <= found.attrs.keys():
        raise StoreError(f"{path}: is no result of a sweep; {REMEDY}")
    del found.attrs["seal"]
    return found


def _seal(content: bytes) -> bytes:
    """Return the seal of a file, as if its own were still open."""
    open_content = SEAL.sub(OPEN_SEAL, content)
    total = hashlib.sha256(b"\n%d\n" % len(open_content) + open_content)
    return b"btqueue-sha256:" + total.hexdigest().encode()


def write_sweep(path: Path, dataset: xr.Dataset, *, replace: bool = False) -> None:
    """Write the result of a sweep in the format of the suffix; complete, or not at all.

    Raises:
        Unwritten: the disk refuses, or another file is there and *replace* is false; *path* is as it was
            before.
    """
    written = False
    try:
        with written_whole(path, replace=replace) as part:
            if path.suffix.lower() == READABLE:
                write_netcdf(part, dataset.assign_attrs(seal=OPEN_SEAL.decode()))
                content = part.read_bytes()
                part.write_bytes(content.replace(OPEN_SEAL, _seal(content), 1))
            else:
                table(dataset).to_csv(part, index=False)
            written = path.is_file() and not path.is_symlink() and filecmp.cmp(part, path, shallow=False)
    except OSError as error:
        if written and isinstance(error, FileExistsError):
            return  # by a process that was killed before it could remove the journal
        raise Unwritten(
            f"{path}: cannot be written ({error.strerror or error}); all points are kept in "
            f"{journal_path(path)}, and the same sweep only has to write them",
            dataset,
        ) from None


def table(dataset: xr.Dataset) -> pd.DataFrame:
    """Return one row a point (and engine), with a column for each key, metric, interval, flow and note.

    A value of one flow, link or queue stands in a column with its name, as ``goodput_kbps[p1.1>c1]``, or,
    where names are not unique, with its number, as ``goodput_kbps[flow 2]``.
    """
    import pandas as pd

    inner = ("flow", "link", "queue")
    outer = sorted((str(dim) for dim in dataset.dims if dim not in inner), key=lambda dim: dim != "engine")
    places = np.indices([dataset.sizes[dim] for dim in outer]).reshape(len(outer), -1)
    columns = {dim: dataset[dim].values[place] for dim, place in zip(outer, places, strict=True)}
    for name, values in dataset.data_vars.items():
        part = next((dim for dim in inner if dim in values.dims), None)
        if part is None:
            columns[str(name)] = values.transpose(*outer).values.ravel()
            continue
        base, _, kind = str(name).partition(f"_per_{part}")
        labels = dataset[part].values.tolist()
        names = dataset[f"{part}_name"].values.tolist() if f"{part}_name" in dataset.coords else labels
        if len(set(names)) < len(names):
            names = [f"{part} {label}" for label in labels]
        for label, called in zip(labels, names, strict=True):
            one = values.sel({part: label}).transpose(*outer)
            columns[f"{base}[{called}]{kind}"] = one.values.ravel()
    return pd.DataFrame(columns)


def write_netcdf(path: Path, dataset: xr.Dataset) -> None:
    """Write netCDF.

    Raises:
        OSError: the file system refuses.
    """
    # By way of memory: on a full disk HDF5 leaves open files behind, which fail again when collected.
    path.write_bytes(dataset.to_netcdf(engine="h5netcdf"))
