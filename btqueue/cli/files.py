"""The files that commands write: complete, or not there at all."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from btqueue.cli.exits import BadInput
from btqueue.scenario import METRICS, Scenario
from btqueue.study import provenance

RESULTS = {".nc": "netCDF", ".csv": "CSV"}
SERIES = {**RESULTS, ".png": "picture", ".svg": "picture"}
"""Formats by suffix."""
INTERRUPTED_MARK = "interrupted"
"""Attribute of a dataset, or column of a CSV file, that says how far an interrupted run came."""

Writer = Callable[[Path, xr.Dataset, Scenario], None]


@dataclass(frozen=True)
class Target:
    """A file that can be written; make it with `checked`."""

    path: Path
    option: str

    @classmethod
    def checked(cls, path: Path, option: str = "--out", suffixes: Mapping[str, str] | None = None) -> Target:
        """Return the target at *path*, which may exist already.

        Args:
            path: where to write.
            option: of the command line, for messages.
            suffixes: those allowed, and what each stands for; netCDF and CSV by default.

        Raises:
            BadInput: if the suffix is unknown, *path* is a folder, or its folder is missing or read-only.
        """
        suffixes = suffixes or RESULTS
        if path.suffix.lower() not in suffixes:
            known = " or ".join(f"{suffix} ({format})" for suffix, format in suffixes.items())
            raise BadInput(f"{option} {path}: must end in {known}, so that the format is clear")
        if path.is_dir():
            raise BadInput(f"{option} {path}: is a folder, give a file")
        if not path.parent.is_dir():
            raise BadInput(f"{option} {path}: there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK):
            raise BadInput(f"{option} {path}: the folder {path.parent} cannot be written to")
        return cls(path.resolve(), option)

    def write(self, dataset: xr.Dataset, scenario: Scenario) -> None:
        """Write *dataset*.

        Raises:
            BadInput: if the file system refuses; the target is then as it was.
        """
        with self.replaced() as part:
            WRITERS[self.path.suffix.lower()](part, dataset, scenario)

    @contextmanager
    def replaced(self) -> Iterator[Path]:
        """Yield a path beside the target to write to; move it there when the block has ended without error.

        Raises:
            BadInput: if the file system refuses; the target is then as it was.
        """
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            try:
                yield part
                os.replace(part, self.path)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            raise BadInput(
                f"{self.option} {self.path}: cannot be written ({error.strerror or error})"
            ) from None


def _write_netcdf(path: Path, dataset: xr.Dataset, scenario: Scenario) -> None:
    """Write netCDF with the scenario and the provenance in the attributes."""
    made_with = {f"provenance_{key}": value for key, value in provenance(scenario).items()}
    attrs = {"scenario": json.dumps(scenario.to_dict()), **made_with, **dataset.attrs}
    storable = {key: _storable(value) for key, value in attrs.items() if value is not None}
    dataset.drop_attrs(deep=False).assign_attrs(storable).to_netcdf(path, engine="h5netcdf")


def _storable(value: Any) -> Any:
    """Return an attribute that netCDF can hold: truth as 0 or 1, lists and tables as JSON."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    return json.dumps(value) if isinstance(value, list | tuple | dict) else value


def _write_csv(path: Path, dataset: xr.Dataset, scenario: Scenario) -> None:
    """Write one row a metric of a comparison, else one row a value; an empty field where there is none.

    What is left of an interrupted run has a last column that says so in every row.
    """
    rows = _comparison_rows(dataset) if "metric" in dataset.dims else _value_rows(dataset)
    if INTERRUPTED_MARK in dataset.attrs:
        rows = _marked(rows, str(dataset.attrs[INTERRUPTED_MARK]))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _marked(rows: Iterator[list[Any]], mark: str) -> Iterator[list[Any]]:
    yield [*next(rows), INTERRUPTED_MARK]
    for row in rows:
        yield [*row, mark]


def _comparison_rows(comparison: xr.Dataset) -> Iterator[list[Any]]:
    columns = ("model", "simulation", "ci95", "relative_difference", "inside")
    yield ["metric", "unit", *columns]
    for name in comparison["metric"].values:
        row = comparison.sel(metric=name)
        yield [name, str(row["units"].item()), *(_field(row[column].item()) for column in columns)]


def _value_rows(dataset: xr.Dataset) -> Iterator[list[Any]]:
    """Yield one row a value; metrics in the order of the vocabulary, other variables after them."""
    order = ("replication", "time", "flow", "link", "queue")
    dims = [*(d for d in order if d in dataset.dims), *(str(d) for d in dataset.dims if d not in order)]
    yield ["metric", "unit", *dims, "value"]
    others = [name for name in dataset.data_vars if name not in METRICS]
    for name in [*(name for name in METRICS if name in dataset), *others]:
        values = dataset[name]
        for place in np.ndindex(values.shape):
            labels = {
                dim: values[dim].values[index].item() for dim, index in zip(values.dims, place, strict=True)
            }
            labelled = [labels.get(dim, "") for dim in dims]
            yield [name, values.attrs.get("units", ""), *labelled, _field(values.values[place].item())]


def _field(value: Any) -> Any:
    return "" if isinstance(value, float) and np.isnan(value) else value


def _write_figure(path: Path, dataset: xr.Dataset, scenario: Scenario, format: str) -> None:
    """Draw a time series."""
    from btqueue.plotting import house_style, series_figure

    with house_style():
        series_figure(dataset, scenario.title).savefig(path, format=format)


WRITERS: dict[str, Writer] = {
    ".nc": _write_netcdf,
    ".csv": _write_csv,
    ".png": partial(_write_figure, format="png"),
    ".svg": partial(_write_figure, format="svg"),
}
"""By suffix."""
