"""Read a results file of any known format, told by its suffix or its first bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from btqueue.captures.files import PCAP_ORDERS, SECTION, SNOOP, BadCapture
from btqueue.files import UnusableFile, require_regular
from btqueue.scenario import Scenario
from btqueue.scenario.topology import topology
from btqueue.study.check.csv_results import read_csv
from btqueue.study.check.flow_monitor import read_flow_monitor
from btqueue.study.check.omnet import read_omnet
from btqueue.study.check.packet_capture import read_capture
from btqueue.study.check.results import BadResults, ForeignResults, unmatched

LARGEST_BYTES = 1_000_000_000
"""Of a file of results; captures of long runs are large."""
Format = Literal["csv", "pcap", "flowmonitor", "omnet"]
SUFFIXES: Mapping[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".pcap": "pcap",
    ".pcapng": "pcap",
    ".cap": "pcap",
    ".xml": "flowmonitor",
    ".flowmon": "flowmonitor",
    ".sca": "omnet",
    ".vec": "omnet",
}
FIRST_BYTES: Mapping[bytes, Format] = {
    **dict.fromkeys((*PCAP_ORDERS, SECTION.to_bytes(4, "big"), SNOOP), "pcap"),
    b"<": "flowmonitor",
    b"version": "omnet",
    b"run,type,module": "omnet",
    b"SQLite format 3": "omnet",
    b"metric": "csv",
}


def read_results(
    path: str | Path,
    scenario: Scenario,
    *,
    format: Format | None = None,
    renamed: Mapping[str, str] | None = None,
    flow: int | None = None,
) -> ForeignResults:
    """Read a results file of another simulator.

    Args:
        path: the file.
        scenario: the simulated scenario; gives header sizes, warm-up and delays where the format needs them.
        format: of the file; by default told from its suffix or its first bytes.
        renamed: their names for our metrics.
        flow: the flow of the scenario, from 1, that the file is about; by default the mean over all, or of a
            capture of one flow the first.

    Raises:
        BadResults: the file is missing, empty, damaged, or of an unknown format.
    """
    path = Path(path)
    flows = len(topology(scenario).flows)
    if flow is not None and not 1 <= flow <= flows:
        raise BadResults(f"--flow {flow}: the scenario has flows 1 to {flows}")
    try:
        require_regular(path, LARGEST_BYTES)
        with path.open("rb") as file:
            head = file.read(16)
        if not head:
            raise BadResults(f"{path.name}: is empty")
        found = _read(path, scenario, format or _format_of(path, head), renamed, flow)
    except BadCapture as error:
        raise BadResults(str(error)) from None
    except UnusableFile as error:
        raise BadResults(f"{path}: {error}") from None
    except OSError as error:
        raise BadResults(f"{path}: cannot be read ({error.strerror or error})") from None
    return replace(found, flow=flow) if flow is not None or flows == 1 else found


def _read(
    path: Path, scenario: Scenario, format: Format, renamed: Mapping[str, str] | None, flow: int | None
) -> ForeignResults:
    if format == "omnet":
        return read_omnet(path, scenario, renamed)
    if format == "csv":
        return read_csv(path, scenario, renamed, flow)
    if format == "pcap":
        found = read_capture(path, scenario, flow=flow)
    else:
        transport = scenario.transport
        found = read_flow_monitor(path, transport.header_bytes, repeats=transport.protocol != "none")
    return replace(found, notes=(*found.notes, *unmatched(renamed, ())))


def _format_of(path: Path, head: bytes) -> Format:
    for beginning, format in FIRST_BYTES.items():
        if head.startswith(beginning):
            return format
    if path.suffix.lower() in SUFFIXES:
        return SUFFIXES[path.suffix.lower()]
    if head.startswith(b"\x89HDF"):
        raise BadResults(f"{path.name}: is netCDF, which is not read here; write CSV with --out FILE.csv")
    raise BadResults(f"{path.name}: its format is unknown; give --format {', '.join(get_args(Format))}")
