"""The file of `--out`: netCDF or CSV, complete or not there at all."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from btqueue.cli.exits import BadInput
from btqueue.scenario import METRICS, Scenario
from btqueue.study import provenance


@dataclass(frozen=True)
class Target:
    """A file that can be written; make it with `checked`."""

    path: Path

    @classmethod
    def checked(cls, path: Path) -> Target:
        """Return the target at *path*, which may exist already.

        Raises:
            BadInput: if the suffix is unknown, *path* is a folder, or its folder is missing or read-only.
        """
        if path.suffix.lower() not in WRITERS:
            raise BadInput(f"--out {path}: must end in .nc (netCDF) or .csv, so that the format is clear")
        if path.is_dir():
            raise BadInput(f"--out {path}: is a folder, give a file")
        if not path.parent.is_dir():
            raise BadInput(f"--out {path}: there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK):
            raise BadInput(f"--out {path}: the folder {path.parent} cannot be written to")
        return cls(path.resolve())

    def write(self, dataset: xr.Dataset, scenario: Scenario) -> None:
        """Write *dataset* beside the target first and move it there when it is complete.

        Raises:
            BadInput: if the file system refuses; the target is then as it was.
        """
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            try:
                WRITERS[self.path.suffix.lower()](part, dataset, scenario)
                os.replace(part, self.path)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            raise BadInput(f"--out {self.path}: cannot be written ({error.strerror or error})") from None


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
    """Write one row a metric of a comparison, else one row a value; an empty field where there is none."""
    rows = _comparison_rows(dataset) if "metric" in dataset.dims else _value_rows(dataset)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _comparison_rows(comparison: xr.Dataset) -> Iterator[list[Any]]:
    columns = ("model", "simulation", "ci95", "relative_difference", "inside")
    yield ["metric", "unit", *columns]
    for name in comparison["metric"].values:
        row = comparison.sel(metric=name)
        yield [name, str(row["units"].item()), *(_field(row[column].item()) for column in columns)]


def _value_rows(dataset: xr.Dataset) -> Iterator[list[Any]]:
    dims = [dim for dim in ("replication", "flow", "queue") if dim in dataset.dims]
    yield ["metric", "unit", *dims, "value"]
    for name in (name for name in METRICS if name in dataset):
        values = dataset[name]
        for place in np.ndindex(values.shape):
            labels = {
                dim: values[dim].values[index].item() for dim, index in zip(values.dims, place, strict=True)
            }
            labelled = [labels.get(dim, "") for dim in dims]
            yield [name, METRICS[name].unit, *labelled, _field(values.values[place].item())]


def _field(value: Any) -> Any:
    return "" if isinstance(value, float) and np.isnan(value) else value


WRITERS: dict[str, Callable[[Path, xr.Dataset, Scenario], None]] = {".nc": _write_netcdf, ".csv": _write_csv}
"""By suffix."""
