"""The scenario: everything that a network model or a simulation needs to know, checked and frozen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Self

import tomli_w
from pydantic import Field, ValidationError, model_validator

from btqueue.scenario import low_energy
from btqueue.scenario.checks import problems_between_keys
from btqueue.scenario.errors import Problem, ScenarioError, bad_value
from btqueue.scenario.fields import PRESETS, Table
from btqueue.scenario.link import PACKETS_OF_RATE, FlowControl, Link
from btqueue.scenario.low_energy import Energy, LowEnergy
from btqueue.scenario.network import ENDS, Flow, Network
from btqueue.scenario.overrides import entry_of, merged, parse_sets, without_removed
from btqueue.scenario.polling import Polling, Voice, fits_beside
from btqueue.scenario.problems import field_at, known_field, problems_of
from btqueue.scenario.radio import Radio
from btqueue.scenario.run import Run
from btqueue.scenario.traffic import Traffic
from btqueue.scenario.transport import Transport
from btqueue.text_table import TextTable


class Scenario(Table):
    """A Bluetooth network, its traffic and how to run it.

    Every key has a default; ``Scenario()`` is a piconet of two peripherals as people have it today: TCP by
    the RFCs over links that repeat lost packets.

    Raises:
        ScenarioError: on any wrong key, value or combination, with all problems at once.
    """

    title: str = Field(default="", max_length=300, description="one line that describes the scenario")
    network: Network = Network()
    radio: Radio = Radio()
    link: Link = Link()
    flow_control: FlowControl = FlowControl()
    polling: Polling = Polling()
    voice: Voice = Voice()
    le: LowEnergy = LowEnergy()
    energy: Energy = Energy()
    traffic: Traffic = Traffic()
    transport: Transport = Transport()
    run: Run = Run()

    def __init__(self, /, **data: Any) -> None:
        """Check *data* (tables as dicts or table objects) and freeze it."""
        try:
            super().__init__(**without_removed(data))
        except ValidationError as error:
            raise ScenarioError(problems_of(error, type(self), data)) from None

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        """Set values that follow from several tables: overrides of flows, `network.relay`, `link.packets`.

        Packets pass unchanged only between links that cut segments alike; a chain models IP forwarding.
        """
        values, network = vars(self), self.network  # the scenario is frozen for others only
        of_rate = PACKETS_OF_RATE[self.link.rate]
        if fitting := tuple(name for name in of_rate if fits_beside(self.voice, name)):
            values["link"] = self.link.default(packets=fitting)
        whole = network.topology == "chain" or network.outside_links or self.link.adaptation != "fixed"
        if self.link.bearer == "le":
            whole = True
            values["transport"] = low_energy.with_headers(self.le, self.transport)
        network = network.default(relay="segment" if whole else "packet")
        if not isinstance(network.flows, str):
            le = self.le if self.link.bearer == "le" else None
            flows = tuple(flow.resolved(self.traffic, values["transport"], le) for flow in network.flows)
            network = network.model_copy(update={"flows": flows})
        values["network"] = network
        return self

    @model_validator(mode="after")
    def _check_between_keys(self) -> Self:
        if problems := problems_between_keys(self):
            raise ScenarioError(problems)
        return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scenario:
        """Build a scenario from nested dicts, as read from TOML or JSON.

        Raises:
            ScenarioError: if *data* is no mapping of text keys, or wrong in any other way.
        """
        if not isinstance(data, Mapping):
            raise ScenarioError(bad_value("scenario", data, "a table of tables"))
        for key in data:
            if not isinstance(key, str):
                raise ScenarioError(Problem(f"keys must be texts, not {key!r:.60}"))
        return cls(**data)

    def with_(self, **changes: Any) -> Scenario:
        """Return a copy with some keys changed: ``s.with_(polling__limit=10, radio__model="constant")``.

        A key is written ``table__key``; ``None`` returns it to its default. Defaults that depend on another
        key (``network.flows`` on ``network.topology``) follow it unless they were given explicitly.

        Raises:
            ScenarioError: if a key is unknown or the changed scenario is not valid.
        """
        return self.changed({key.replace("__", "."): value for key, value in changes.items()})

    def changed(self, changes: Mapping[str, Any]) -> Scenario:
        """As :meth:`with_`, with dotted keys: ``s.changed({"polling.limit": 10})``."""
        return Scenario.from_dict(merged(type(self), self.to_dict(resolved=False), changes))

    def value_of(self, key: str) -> Any:
        """Return the value of a dotted key, as `polling.limit` or `network.outside_links[1].rate_kbps`.

        Raises:
            ScenarioError: no table has the key.
        """
        known_field(type(self), key)
        table, name = self._place_of(key)
        found = getattr(table, name)
        if found is None and isinstance(table, Flow) and name not in (*Flow.CHOICES, *ENDS):
            seen, name = self.of_flow(table), "source" if name == "law" else name
            return getattr(seen.traffic if name in Traffic.model_fields else seen.transport, name)
        return found

    def _place_of(self, key: str) -> tuple[Table, str]:
        """Return the table, or the entry of a list, that has a dotted key, and its field there."""
        found: Any = self
        *way, last = key.split(".")
        for part in way:
            written, bracket, number = part.removesuffix("]").partition("[")
            found = getattr(found, _field_of(found, written))
            found = entry_of(found, number, key) if bracket else found
        return found, _field_of(found, last)

    def origin(self, key: str) -> str:
        """Return the source of a value that nobody wrote, as `preset = "linux"`; else an empty text."""
        if field_at(type(self), key) is None:
            return ""
        table, name = self._place_of(key)
        if name in table.model_fields_set:
            return ""
        for choice in table.CHOICES:
            chosen = getattr(table, choice)
            # a preset is one of TCP, and its initial window yields to a smaller receive window
            if PRESETS.get(chosen, {}).get(name, self) == self.value_of(key):
                return f'of {choice} = "{chosen}"'
        return "the default"

    def with_sets(self, sets: Iterable[str]) -> Scenario:
        """Return a copy changed by command-line settings such as ``"polling.limit=10"``.

        Raises:
            ScenarioError: if a setting cannot be read, or the result is not valid.
        """
        return self.changed(parse_sets(type(self), sets))

    def of_flow(self, flow: Flow | None) -> Scenario:
        """Return the scenario with the traffic and the transport that one flow has.

        Args:
            flow: its entry in `network.flows`; None for a flow of a pattern.
        """
        if flow is None or not flow.own:
            return self
        own = {"traffic": flow.applied_to(self.traffic), "transport": flow.applied_to(self.transport)}
        return self.model_copy(update=own)

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files that the scenario reads when it is run."""
        flows = () if isinstance(self.network.flows, str) else self.network.flows
        radios = (self.radio.trace_file, *(link.trace_file for link in self.radio.links))
        arrivals = (self.traffic.arrival_file, *(flow.own.get("arrival_file") for flow in flows))
        return tuple(dict.fromkeys(name for name in (*radios, *arrivals) if name is not None))

    def to_dict(self, *, resolved: bool = True) -> dict[str, Any]:
        """Return nested dicts of plain values, ready for TOML or JSON; unset optional keys are left out.

        Args:
            resolved: include every value on which an answer depends: all keys, presets resolved, and of each
                flow the values in which it differs from the tables. Otherwise only the keys written.
        """
        if not resolved:
            return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
        data = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"network": {"flows"}})
        for place in low_energy.without_effect(self):
            table, _, key = place.partition(".")
            data[table].pop(key, None)
        for name, table in self:
            for choice in table.CHOICES if isinstance(table, Table) else ():
                data.get(name, {}).pop(choice, None)
        flows = self.network.flows
        data["network"]["flows"] = flows if isinstance(flows, str) else [flow.to_dict() for flow in flows]
        return {name: table for name, table in data.items() if table != {}}

    def to_toml(self, *, resolved: bool = True) -> str:
        """Return the scenario as TOML text that loads back to an equal scenario.

        Args:
            resolved: as for :meth:`to_dict`.
        """
        return tomli_w.dumps(self.to_dict(resolved=resolved))

    def table(self) -> TextTable:
        """Return the keys that are given, as a table."""
        given = self.to_dict(resolved=False)
        rows = [
            (f"{table}.{key}", json.dumps(value))
            for table, keys in given.items()
            if isinstance(keys, dict)
            for key, value in keys.items()
        ]
        return TextTable(
            self.title or "Scenario", ("key", "value"), tuple(rows), ("Other keys have defaults.",)
        )

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of a scenario, for editors that complete and check TOML."""
        return cls.model_json_schema(by_alias=True)


def _field_of(table: Table, written: str) -> str:
    """Return the name of the field that a file calls so."""
    fields = type(table).model_fields.items()
    return next(name for name, field in fields if written in (name, field.serialization_alias))
