"""Scenarios in which all that a test does not say is as in Venugopal 2006: its links, buffers and TCP."""

from collections.abc import Mapping
from typing import Any

from btqueue.scenario import Scenario
from btqueue.scenario.overrides import copied

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "link": {"packets": ("DH5", "DH3"), "arq": "none"},
    "flow_control": {"enabled": True, "baseband_packets": 20},
    "transport": {"preset": "thesis"},
}


def thesis_of(tables: Mapping[str, Any]) -> Scenario:
    """Return the scenario with these tables, and the thesis' settings where they set nothing."""
    data = copied(tables)
    for name, settings in SETTINGS.items():
        given = data.get(name, {})
        if isinstance(given, Mapping):  # and no table that is whole
            data[name] = {**settings, **given}
    return Scenario.from_dict(data)


def thesis(**tables: Any) -> Scenario:
    """Return the scenario with these tables, and the thesis' settings where they set nothing."""
    return thesis_of(tables)


def over_wires(*links: Mapping[str, Any], flows: Any = None) -> dict[str, Any]:
    """Return the table `network` of outside links and an idle piconet, with flows from end to end."""
    return {
        "topology": "custom",
        "piconet_list": [{"name": "idle", "central": "c", "peripherals": ["p"]}],
        "outside_links": list(links),
        "flows": flows or [{"from": link["from"], "to": link["to"]} for link in links],
    }
