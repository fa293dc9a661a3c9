"""Results of ns-3 for the tests of `btqueue check`, run by an interpreter that has the wheel `ns3` (3.44).

    python make_ns3_files.py [SECONDS]

One NewReno flow without end over two links, of 10 Mbit/s and 1 ms and of 100 kbit/s and 50 ms each way; a
segment carries 1,460 bytes, the receive window is 4 segments, the second link loses 2 % of the data packets,
the least timeout is 1 s. Writes
`ns3_flowmon.xml` (FlowMonitor) and `ns3_sender.pcap.xz` (the sender's packets, without their payload) into
the working folder and prints the receiver's goodput (kbit/s).
"""

import lzma
import subprocess
import sys
from pathlib import Path

from ns import ns  # pyright: ignore[reportMissingImports]

SEGMENT_BYTES, WINDOW_SEGMENTS = 1460, 4
SETTINGS = {
    "ns3::TcpL4Protocol::SocketType": ns.TypeIdValue(ns.TypeId.LookupByName("ns3::TcpNewReno")),
    "ns3::TcpSocket::SegmentSize": ns.UintegerValue(SEGMENT_BYTES),
    "ns3::TcpSocket::DelAckCount": ns.UintegerValue(1),
    "ns3::TcpSocket::InitialCwnd": ns.UintegerValue(1),
    "ns3::TcpSocket::RcvBufSize": ns.UintegerValue(SEGMENT_BYTES * WINDOW_SEGMENTS),
    "ns3::TcpSocketBase::Timestamp": ns.BooleanValue(False),
    "ns3::TcpSocketBase::Sack": ns.BooleanValue(False),
    "ns3::PcapFileWrapper::CaptureSize": ns.UintegerValue(64),
}
LINKS = (("10Mbps", "1ms", "10.1.1.0"), ("100kbps", "50ms", "10.1.2.0"))


def play(seconds: float) -> None:
    """Simulate, and write the XML and the capture."""
    for name, value in SETTINGS.items():
        ns.Config.SetDefault(name, value)
    hosts = ns.NodeContainer()
    hosts.Create(3)
    ns.InternetStackHelper().Install(hosts)
    addresses = ns.Ipv4AddressHelper()
    for place, (rate, delay, network) in enumerate(LINKS):
        helper = ns.PointToPointHelper()
        helper.SetDeviceAttribute("DataRate", ns.StringValue(rate))
        helper.SetChannelAttribute("Delay", ns.StringValue(delay))
        devices = helper.Install(hosts.Get(place), hosts.Get(place + 1))
        addresses.SetBase(ns.Ipv4Address(network), ns.Ipv4Mask("255.255.255.0"))
        interfaces = addresses.Assign(devices)
        if place == 0:
            helper.EnablePcap("sender", devices.Get(0), False)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    errors = ns.CreateObject[ns.RateErrorModel]()
    errors.SetRate(0.02)
    errors.SetUnit(ns.RateErrorModel.ERROR_UNIT_PACKET)
    devices.Get(1).SetAttribute("ReceiveErrorModel", ns.PointerValue(errors))
    receiver = interfaces.GetAddress(1)
    everyone = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), 9).ConvertTo()
    sinks = ns.PacketSinkHelper("ns3::TcpSocketFactory", everyone).Install(hosts.Get(2))
    bulk = ns.BulkSendHelper("ns3::TcpSocketFactory", ns.InetSocketAddress(receiver, 9).ConvertTo())
    bulk.SetAttribute("MaxBytes", ns.UintegerValue(0))
    bulk.SetAttribute("SendSize", ns.UintegerValue(SEGMENT_BYTES))
    sources = bulk.Install(hosts.Get(0))
    for applications in (sinks, sources):
        applications.Start(ns.Seconds(0))
    watch = ns.FlowMonitorHelper()
    monitor = watch.InstallAll()
    monitor.SetAttribute("DelayBinWidth", ns.DoubleValue(0.1))
    ns.Simulator.Stop(ns.Seconds(seconds))
    ns.Simulator.Run()
    monitor.CheckForLostPackets()
    monitor.SerializeToXmlFile("ns3_flowmon.xml", True, False)
    print(sinks.Get(0).__deref__().GetTotalRx() * 8 / 1000 / seconds)
    ns.Simulator.Destroy()


def main() -> None:
    """Simulate in a process of its own, at whose end the capture is complete, and compress it."""
    if sys.argv[2:] == ["play"]:
        play(float(sys.argv[1]))
        return
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    subprocess.run([sys.executable, __file__, seconds, "play"], check=True)
    capture = Path("sender-0-1.pcap")
    Path("ns3_sender.pcap.xz").write_bytes(lzma.compress(capture.read_bytes(), preset=9))
    capture.unlink()


if __name__ == "__main__":
    main()
