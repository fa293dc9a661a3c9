"""The vocabulary of results: one name, unit and meaning for each metric, whoever computes it."""

from __future__ import annotations

from collections import ChainMap, UserDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, cast

from btqueue.text_files import table_beside

if TYPE_CHECKING:
    import numpy as np
    import xarray


class Metric(NamedTuple):
    """A metric: a row of `metrics.csv`.

    Attributes:
        unit: of its values; "1" for shares and counts.
        long_name: heading.
        description: meaning.
        of: kind of the things that have a value each: flow, link, queue, or the network.
        table: whether short tables show it, or only tables of all metrics.
    """

    unit: str
    long_name: str
    description: str
    of: Literal["flow", "link", "queue", "network"]
    table: Literal["short", "all"]


PERCENTILES = (50, 90, 95, 99)
"""Of which round trips, delays and sessions have metrics."""


UNITS = {
    "_per_s": "1/s", "_per_h": "1/h", "_per_bit": "uJ/bit", "_kbps": "kbit/s", "_s": "s", "_ma": "mA",
    "_bytes": "byte", "_packets": "packet", "_segments": "segment",
}  # fmt: skip
"""Units by the end of the name of a metric or a key."""


def unit_of(name: str) -> str:
    """Return the unit of a metric or a key, which the end of its name says; "" if it does not."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {
        (name := row.pop("metric")): Metric(unit_of(name) or "1", **cast(Any, row))
        for row in table_beside("btqueue.scenario", "metrics.csv")
    }
)
"""Every metric by name, in the order in which reports show them."""


PERCENTILE_OF: Final = MappingProxyType(
    {
        (f"p{percent}", metric): f"{metric.removesuffix('_s')}_p{percent}_s"
        for percent in PERCENTILES
        for metric in ("rtt_s", "delay_s", "session_time_s")
    }
)
"""The metric that is a percentile of another one, by the name of the percentile and of the other one."""

EVENT_METRICS: Final = (
    "exchanges_per_event", "air_share", "events_missed", "disconnections_per_h", "current_ma",
)  # fmt: skip
"""Metrics of links of Bluetooth Low Energy."""
LINK_METRICS: Final = frozenset(name for name, metric in METRICS.items() if metric.of == "link")
"""Metrics with one value for each link between a central and a peripheral."""
OF_THE_NETWORK: Final = frozenset(name for name, metric in METRICS.items() if metric.of == "network")
NOT_OF_FLOWS: Final = frozenset(name for name, metric in METRICS.items() if metric.of != "flow")
"""Metrics without a value for each flow."""


MOST_SHOWN = 4
"""Metrics in the line that stands for results."""


class Variable(NamedTuple):
    """An array with the names of its dimensions, and its attributes."""

    dims: tuple[str, ...]
    values: np.ndarray
    attrs: Mapping[str, Any] | None = None


Later = Mapping[str, Callable[[], Any]]
"""How to compute values, by name."""


class Computed(UserDict[str, Any]):
    """Values by name, some of them computed when they are read first."""

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        later: Later | None = None,
        more: Callable[[], Later] | None = None,
    ) -> None:
        """Take the values that are known, and functions that compute the others, in this order.

        `more` returns the functions of values whose names are not known yet: it is called if one is read.
        """
        self._later, self._more = dict(later or {}), more
        self.data = {**(values or {}), **dict.fromkeys(self._later)}

    def _all(self) -> dict[str, Any]:
        """Return `data` with all names."""
        if self._more is not None:
            new = {name: compute for name, compute in self._more().items() if name not in self.data}
            self._later |= new
            self.data |= dict.fromkeys(new)
            self._more = None
        return self.data

    def __getitem__(self, name: str) -> Any:
        """Return the value, computed now if it is asked for the first time."""
        if name not in self.data:
            self._all()
        if name in self._later and name in self.data:
            self[name] = self._later[name]()
        return self.data[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._later.pop(name, None)
        self.data[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values: functions need not travel to other processes."""
        return Computed, (dict(self),)

    def __copy__(self) -> Computed:
        return Computed(dict(self))


@dataclass(frozen=True)
class Results:
    """The results of an engine: read like an `xarray.Dataset`, which is made when it is needed.

    A metric is a `DataArray`, `results["rtt_s"]` or `results.rtt_s`; every other member of a dataset is
    there, too. Metrics, labels and the dataset are computed when they are read first, because all of them
    together take longer than many a simulation. `to_dataset` returns the dataset itself, for functions that
    accept no other class (`xarray.concat`).

    Attributes:
        metrics: by name, in the metric's unit, of dimensions (replication?, flow or link or queue?).
        coords: labels of the dimensions.
        attrs: how the results were found.
    """

    as_html: ClassVar[Callable[[Results], str] | None] = None
    """Writes the table for a notebook; tables belong to studies, which the front of the package knows."""

    metrics: Mapping[str, Variable]
    coords: Mapping[str, Variable]
    attrs: MutableMapping[str, Any]

    @property
    def variables(self) -> Mapping[str, Variable]:
        """Metrics and labels."""
        return ChainMap(cast(Any, self.metrics), cast(Any, self.coords))

    @property
    def sizes(self) -> Mapping[str, int]:
        """Length of each dimension."""
        every = [*self.coords.values(), *self.metrics.values()]
        return {dim: size for one in every for dim, size in zip(one.dims, one.values.shape, strict=True)}

    def to_dataset(self) -> xarray.Dataset:
        """Return a dataset with units and descriptions."""
        return self._dataset.copy()

    @cached_property
    def _dataset(self) -> xarray.Dataset:
        import xarray

        metrics = {name: _with_units(name, one) for name, one in self.metrics.items()}
        return xarray.Dataset(metrics, dict(self.coords), self.attrs)

    def equals(self, other: Any) -> bool:
        """Whether names and values are equal; see `xarray.Dataset.equals`."""
        return self._dataset.equals(_plain(other))

    def identical(self, other: Any) -> bool:
        """Whether names, values and attributes are equal; see `xarray.Dataset.identical`."""
        return self._dataset.identical(_plain(other))

    def __getitem__(self, name: Any) -> Any:
        """Return a metric or label as a `DataArray`, or a dataset for a list of names."""
        if not isinstance(name, str) or name not in self.metrics:
            return self._dataset[name]
        import xarray

        dims, values, attrs = _with_units(name, self.metrics[name])
        labels = {label: one for label, one in self.coords.items() if set(one.dims) <= set(dims)}
        return xarray.DataArray(values, labels, dims, name, attrs)

    def __getattr__(self, name: str) -> Any:
        """Return a metric, or any other member of the dataset."""
        if name.startswith("_"):
            raise AttributeError(name)  # copying and pickling ask for names that must not be made up
        return self[name] if name in self.metrics else getattr(self._dataset, name)

    def __contains__(self, name: object) -> bool:
        return name in self.metrics or name in self.coords

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        """Return title, sizes and the means of the first metrics, in a line."""
        import numpy

        sizes = ", ".join(f"{count} {dim}{'s' * (count != 1)}" for dim, count in self.sizes.items())
        first = list(self.metrics)[:MOST_SHOWN]
        means = [f"{name} {float(numpy.mean(self.metrics[name].values)):.4g}" for name in first]
        more = [f"{len(self.metrics) - len(first)} more"] if len(self.metrics) > len(first) else []
        title = f" {title!r}" if (title := self.attrs.get("title")) else ""
        return f"<Results{title}: {sizes}; {', '.join([*means, *more])}>"

    def _repr_html_(self) -> str:
        shown = type(self).as_html
        return self._dataset._repr_html_() if shown is None else shown(self)


def _plain(results: Any) -> Any:
    return results.to_dataset() if isinstance(results, Results) else results


def _with_units(name: str, variable: Variable) -> tuple[tuple[str, ...], np.ndarray, dict[str, Any]]:
    dims, values, attrs = variable
    return dims, values, _attributes(name) | dict(attrs or {})


def describe(dataset: xarray.Dataset) -> xarray.Dataset:
    """Return *dataset* with ``units``, ``long_name`` and ``description`` set on every known metric.

    A variable ``<metric>_ci95`` (half-width of a 95 % interval) gets the unit of its metric. Variables that
    are no metrics are left as they are.
    """
    described = dataset.copy()
    for name, variable in described.variables.items():
        variable.attrs.update(_attributes(str(name)))
    return described


def _attributes(name: str) -> dict[str, str]:
    """Return unit, heading and meaning of a known metric, or of the half-width of its interval."""
    base = name.removesuffix("_ci95")
    if base not in METRICS:
        return {}
    known = METRICS[base]
    heading = known.long_name if base == name else f"{known.long_name}, 95 % half-width"
    return {"units": known.unit, "long_name": heading, "description": known.description}
