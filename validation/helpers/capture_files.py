"""Captures that lie beside the tests of `study.check`, and captures in another format."""

import io
import lzma
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "study" / "check" / "data"


def unpacked(name: str, folder: Path) -> Path:
    """Write a capture into a folder; return its path."""
    path = folder / name
    path.write_bytes(lzma.decompress((DATA / f"{name}.xz").read_bytes()))
    return path


def as_pcapng(content: bytes) -> bytes:
    """Return a pcap file as pcapng."""
    dpkt = pytest.importorskip("dpkt", reason="another writer of captures")
    source, file = dpkt.pcap.Reader(io.BytesIO(content)), io.BytesIO()
    writer = dpkt.pcapng.Writer(file, snaplen=source.snaplen, linktype=source.datalink())
    for time, raw in source:
        writer.writepkt(raw, float(time))
    return file.getvalue()
