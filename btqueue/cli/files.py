"""The files that commands write: complete, or not there at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from btqueue.cli.errors import BadInput, say
from btqueue.files import require_writable, written_whole
from btqueue.plots import FORMATS, NoFigure, save
from btqueue.scenario import METRICS, Scenario
from btqueue.study.provenance import attributes

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    Writers = Mapping[str, Callable[..., None]]
    """By suffix: functions that write a path, with further arguments."""

RESULTS = {".nc": "netCDF", ".csv": "CSV"}
REPORTS = {".json": "JSON", ".csv": "CSV"}
SERIES = {**RESULTS, ".png": "picture", ".svg": "picture"}
"""Formats by suffix."""
INTERRUPTED_MARK = "interrupted"
"""Attribute of a dataset, or column of a CSV file, that says how far an interrupted run came."""


@dataclass(frozen=True)
class Target:
    """A file that can be written; make it with `checked`."""

    path: Path
    option: str
    force: bool
    given: Path

    @classmethod
    def checked(
        cls,
        path: Path | None,
        option: str,
        suffixes: Mapping[str, str],
        *,
        force: bool = False,
    ) -> Target | None:
        """Return the target at *path*; None without a path.

        Args:
            path: where to write.
            option: option of the command line, for messages.
            suffixes: the allowed suffixes with the names of their formats.
            force: replace a regular file that is there.

        Raises:
            BadInput: if the suffix is unknown, *path* exists, or its folder is missing or read-only.
        """
        if path is None:
            return None
        if path.suffix.lower() not in suffixes:
            known = " or ".join(f"{suffix} ({format})" for suffix, format in suffixes.items())
            raise BadInput(f"{option} {path}: must end in {known}, so that the format is clear")
        try:
            require_writable(path, replace=force)
        except OSError as error:
            raise BadInput(f"{option} {path}: {_reason(error)}") from None
        return cls(path.parent.resolve() / path.name, option, force, path)

    def write(self, writers: Writers, *arguments: Any) -> None:
        """Write by the function of the target's suffix.

        Raises:
            BadInput: if the file system refuses; the target is then as it was.
        """
        with self.replaced() as part:
            writers[self.path.suffix.lower()](part, *arguments)

    def draw(self, figure: str, *arguments: Any) -> None:
        """Write a picture.

        Args:
            figure: full name of the function that draws it, which loads matplotlib.
            arguments: arguments of the function.

        Raises:
            BadInput: if there is nothing to draw, or the file system refuses; the target is then as it was.
        """
        module, _, name = figure.rpartition(".")
        try:
            drawn = getattr(import_module(module), name)(*arguments)
        except NoFigure as error:
            raise BadInput(f"{self.option} {self.path}: {error}") from None
        with self.replaced() as part:
            save(drawn, part, self.path.suffix)

    @contextmanager
    def replaced(self) -> Iterator[Path]:
        """Yield a path beside the target to write to; move it there when the block has ended without error.

        Raises:
            BadInput: if the file system refuses; the target is then as it was.
        """
        try:
            with written_whole(self.path, replace=self.force) as part:
                yield part
        except OSError as error:
            raise BadInput(f"{self.option} {self.path}: cannot be written ({_reason(error)})") from None


def _reason(error: OSError) -> str:
    hint = "; --force replaces it" if isinstance(error, FileExistsError) else ""
    return f"{error.strerror or error}{hint}"


class AnswerFirst:
    """Files beside an answer that is printed: the answer is printed even if a file cannot be written.

    Within the block, `write` and `draw` keep a failure back. The block then prints the answer, and its end
    raises the failure.
    """

    def __init__(
        self,
        out: Path | None = None,
        plot: Path | None = None,
        formats: Mapping[str, str] = RESULTS,
        *,
        force: bool = False,
    ) -> None:
        """Check the files of `--out` and `--plot`, as `Target.checked`; `written` has the finished files."""
        self.failures: list[BadInput] = []
        self.written: dict[str, str] = {}
        self.out = Target.checked(out, "--out", formats, force=force)
        self.plot = Target.checked(plot, "--plot", FORMATS, force=force)

    def write(self, writers: Writers, *arguments: Any) -> None:
        """Write the file of `--out`, if there is one."""
        if self.out is not None and self.tried(self.out.write, writers, *arguments):
            self.written["out"] = str(self.out.given)

    def draw(self, figure: str, *arguments: Any) -> None:
        """Draw the picture of `--plot`, if there is one."""
        if self.plot is not None and self.tried(self.plot.draw, figure, *arguments):
            self.written["plot"] = str(self.plot.given)

    def tried(self, writer: Callable[..., None], *arguments: Any) -> bool:
        """Call a function that writes a file; return whether it succeeded."""
        try:
            writer(*arguments)
        except BadInput as failure:
            self.failures.append(failure)
            return False
        return True

    def __enter__(self) -> AnswerFirst:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Raise the last failure and print the others; print all if the block itself raised an exception."""
        last = self.failures.pop() if self.failures and kind is None else None
        for failure in self.failures:
            say(failure)
        if last is not None:
            raise last


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a report as JSON."""
    path.write_text(json.dumps(content, indent=2, allow_nan=False), "utf-8")


def _write_netcdf(path: Path, dataset: xr.Dataset, scenario: Scenario) -> None:
    """Write netCDF with the scenario and the provenance in the attributes."""
    from btqueue.study.sweep_files import write_netcdf

    attrs = {**attributes(scenario), **dataset.attrs}
    storable = {key: _storable(value) for key, value in attrs.items() if value is not None}
    write_netcdf(path, dataset.drop_attrs(deep=False).assign_attrs(storable))


def _storable(value: Any) -> Any:
    """Return an attribute that netCDF can hold: truth as 0 or 1, lists and tables as JSON."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    return json.dumps(value) if isinstance(value, list | tuple | dict) else value


def _write_csv(path: Path, dataset: xr.Dataset, scenario: Scenario) -> None:
    """Write one row a metric of a comparison, else one row a value; an empty field where there is none.

    For an interrupted run a last column says so in every row.
    """
    if "metric" in dataset.dims:
        columns = ["metric", "unit", "model", "simulation", "ci95", "relative_difference", "inside"]
        rows = dataset.to_dataframe().reset_index().rename(columns={"units": "unit"}).reindex(columns=columns)
    else:
        rows = _value_rows(dataset)
    if INTERRUPTED_MARK in dataset.attrs:
        rows[INTERRUPTED_MARK] = str(dataset.attrs[INTERRUPTED_MARK])
    rows.to_csv(path, index=False)


def _value_rows(dataset: xr.Dataset) -> pd.DataFrame:
    """Return one row a value; metrics in the order of the vocabulary, other variables after them."""
    import pandas as pd

    order = ("replication", "time", "flow", "link", "queue")
    dims = [*(d for d in order if d in dataset.dims), *(str(d) for d in dataset.dims if d not in order)]
    others = [name for name in dataset.data_vars if name not in METRICS]
    frames = [
        dataset[name]
        .rename("value")
        .expand_dims("alone")  # so that a single number has a row, too
        .to_dataframe()
        .reset_index()
        .assign(metric=name, unit=dataset[name].attrs.get("units", ""))
        .astype(object)  # whole numbers stay whole beside empty fields
        for name in [*(name for name in METRICS if name in dataset), *others]
    ]
    named = [name for name in ("flow_name", "group") if name in dataset.coords]
    return pd.concat(frames).reindex(columns=["metric", "unit", *dims, "value", *named])


def _write_figure(path: Path, dataset: xr.Dataset, scenario: Scenario, format: str) -> None:
    from btqueue.plotting import house_style, series_figure

    with house_style():
        save(series_figure(dataset, scenario.title), path, format)


WRITERS: dict[str, Callable[..., None]] = {
    ".nc": _write_netcdf,
    ".csv": _write_csv,
    ".png": partial(_write_figure, format=".png"),
    ".svg": partial(_write_figure, format=".svg"),
}
"""Of results and of time series, by suffix."""
