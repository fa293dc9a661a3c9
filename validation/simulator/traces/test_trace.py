"""The log's records, and the table that they become."""

import pytest
from state_tables import tables
from thesis import thesis

FLOW, SEGMENT, PACKET, PORT = 1, 2, 3, 0


def network(plain, log_length=4, logging=True):
    """A flow from node 5 to node 6 has a segment, and a packet of it at a port from node 6 to node 7."""
    records = plain.records
    flows = {"connections": 2, "flow_statistics": 2}
    sim = tables(records, clock=1, segments=4, packets=4, layouts=1, ports=1, log=log_length, **flows)
    sim.clock.logging = logging
    sim.connections.source, sim.connections.destination, sim.connections.cwnd = 5, 6, 2.5
    sim.connections.incarnation = 8
    sim.layouts.ip_bytes, sim.layouts.application = 1500, 1448
    sim.ports.node, sim.ports.peer = 6, 7
    sim.packets.segment, sim.packets.bytes, sim.packets.type = SEGMENT, 339, 1
    segment = sim.segments[SEGMENT]
    segment.flow, segment.kind, segment.number, segment.incarnation = FLOW, records.DATA, 17, 7
    segment.acknowledges, segment.ack, segment.timestamp, segment.echo = True, 9, 1000, 500
    segment.blocks, segment.block_start[:2], segment.block_end[:2] = 2, [12, 20], [14, 21]
    return sim


@pytest.mark.parametrize(
    ("event", "node"),
    [("PACKET_ENQUEUED", 6), ("PACKET_TRANSMITTED", 6), ("PACKET_CORRUPTED", 7), ("PACKET_DELIVERED", 7)],
)
def test_a_packet_is_logged_where_it_is(plain, event, node):
    sim = network(plain)
    plain.trace.packet_event(sim, getattr(plain.trace, event), PORT, PACKET, 1)
    entry = sim.log[0]
    assert (entry.node, entry.port, entry.flow, entry.number) == (node, PORT, FLOW, 17)
    assert (entry.bytes, entry.packet_type) == (339, 1)


@pytest.mark.parametrize(
    ("cwnd", "fast_retransmits", "events"),
    [
        (2.5, 0, []),
        (2.0, 0, ["WINDOW_CHANGED"]),
        (2.5, 1, ["FAST_RETRANSMIT"]),
        (9.0, 1, ["FAST_RETRANSMIT", "WINDOW_CHANGED"]),
    ],
)
def test_what_an_acknowledgement_changed_is_logged(plain, cwnd, fast_retransmits, events):
    sim = network(plain)
    sim.flow_statistics.fast_retransmits = fast_retransmits
    plain.trace.window_event(sim, FLOW, cwnd, 0, 1)
    written = sim.log.event[: sim.clock[0].log_length]
    assert written.tolist() == [getattr(plain.trace, name) for name in events]


def test_a_full_log_keeps_what_it_has_and_counts_what_it_lost(plain):
    sim = network(plain, log_length=2)
    for now in range(1, 6):
        plain.trace.segment_event(sim, plain.trace.SEGMENT_SENT, 5, SEGMENT, now)
    assert sim.log.time.tolist() == [1, 2]
    assert sim.clock[0].log_length == 5
    with pytest.raises(OverflowError, match="3 events"):
        plain.trace_files.drain(sim, [])


def written(plain, tmp_path, *logs):
    """Write the logs, one after the other, and read the table back with pandas."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="tables are written with pyarrow")
    sim = tables(plain.records, ports=1)
    sim.log, sim.ports.node, sim.ports.peer = logs[0], 1, 0
    path = tmp_path / "trace.parquet"
    with plain.trace_files.ParquetSink(path, sim, thesis()) as sink:
        for log in logs:
            sink.write(log)
    return parquet.ParquetFile(path)


def some_log(plain):
    """A segment, a packet and a timeout, at nodes that a scenario of two peripherals has."""
    sim = network(plain)
    sim.connections.source, sim.ports.node, sim.ports.peer = 1, 1, 0
    plain.trace.segment_event(sim, plain.trace.SEGMENT_SENT, 1, SEGMENT, 1_500_000_000)
    plain.trace.packet_event(sim, plain.trace.PACKET_ENQUEUED, PORT, PACKET, 1_500_000_001)
    plain.trace.flow_event(sim, plain.trace.TIMEOUT, FLOW, 2_000_000_000)
    return sim.log[:3]


def test_a_table_reads_back_with_names_units_and_nulls(plain, tmp_path):
    nodes, log = plain.trace_files.node_names(thesis()), some_log(plain)
    file = written(plain, tmp_path, log, log[:1], log)
    assert (file.num_row_groups, file.metadata.num_rows) == (3, 7), "each part of the log is a row group"
    segment, packet, timeout = file.read().to_pylist()[:3]
    assert (segment["event"], segment["kind"], segment["node"]) == ("segment sent", "data", nodes[1])
    assert segment["port"] is None and segment["message"] is None
    assert (segment["flow"], segment["segment"], segment["acknowledged_segments"]) == (FLOW + 1, 17, 9)
    assert segment["sack_blocks"] == [{"start": 12, "end": 14}, {"start": 20, "end": 21}]
    assert (segment["size_bytes"], segment["application_bytes"]) == (1500, 1448)
    assert segment["timestamp_s"] == pytest.approx(1e-6)
    assert packet["port"] == f"{nodes[1]}>{nodes[0]}"
    assert packet["packet_type"] == plain.trace_files.packet_type_names(thesis())[1]
    assert packet["time_s"] == pytest.approx(1.500000001, abs=1e-12)
    assert timeout["kind"] is timeout["segment"] is timeout["size_bytes"] is None
    assert (timeout["event"], timeout["sack_blocks"], timeout["cwnd_segments"]) == ("timeout", [], 2.5)


def test_an_interrupted_run_leaves_a_readable_file(plain, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet", reason="tables are written with pyarrow")
    log = some_log(plain)

    def interrupted(sim, until):
        sim.log[:3] = log
        sim.clock[0].log_length = 3
        raise KeyboardInterrupt

    monkeypatch.setattr(plain.trace_files, "advance", interrupted)
    path = tmp_path / "trace.parquet"
    with pytest.raises(KeyboardInterrupt):
        plain.trace_files.record(thesis(), parquet=path)
    assert parquet.read_table(path).num_rows == 3
