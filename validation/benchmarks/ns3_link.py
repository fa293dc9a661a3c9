"""A bulk TCP flow over one link in ns-3, run by an interpreter that has the wheel `ns3`.

    python ns3_link.py RATE_KBPS DELAY_MS LOSS SECONDS

NewReno, segments of 1,460 bytes, no delayed acknowledgements, independent loss of data packets. Prints one
JSON object: CPU seconds of the run, events executed, goodput (kbit/s).
"""

import json
import sys
import time

from ns import ns  # pyright: ignore[reportMissingImports]


def settings():
    """Return ns-3's attributes that differ from its defaults."""
    return {
        "ns3::TcpL4Protocol::SocketType": ns.TypeIdValue(ns.TypeId.LookupByName("ns3::TcpNewReno")),
        "ns3::TcpSocket::SegmentSize": ns.UintegerValue(1460),
        "ns3::TcpSocket::DelAckCount": ns.UintegerValue(1),
        "ns3::TcpSocketBase::Timestamp": ns.BooleanValue(False),
    }


def link(rate_kbps, delay_ms, loss):
    """Build two hosts and the link, and return (hosts, address of the receiver)."""
    hosts = ns.NodeContainer()
    hosts.Create(2)
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{rate_kbps:.0f}kbps"))
    helper.SetChannelAttribute("Delay", ns.StringValue(f"{delay_ms}ms"))
    devices = helper.Install(hosts)
    errors = ns.CreateObject[ns.RateErrorModel]()
    errors.SetRate(loss)
    errors.SetUnit(ns.RateErrorModel.ERROR_UNIT_PACKET)
    devices.Get(1).SetAttribute("ReceiveErrorModel", ns.PointerValue(errors))
    ns.InternetStackHelper().Install(hosts)
    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address("10.1.1.0"), ns.Ipv4Mask("255.255.255.0"))
    return hosts, addresses.Assign(devices).GetAddress(1)


def main():
    """Simulate and print what came out."""
    rate_kbps, delay_ms, loss, seconds = (float(value) for value in sys.argv[1:5])
    for name, value in settings().items():
        ns.Config.SetDefault(name, value)
    hosts, receiver = link(rate_kbps, delay_ms, loss)
    everyone = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), 9).ConvertTo()
    sinks = ns.PacketSinkHelper("ns3::TcpSocketFactory", everyone).Install(hosts.Get(1))
    bulk = ns.BulkSendHelper("ns3::TcpSocketFactory", ns.InetSocketAddress(receiver, 9).ConvertTo())
    bulk.SetAttribute("MaxBytes", ns.UintegerValue(0))
    sources = bulk.Install(hosts.Get(0))
    for applications in (sinks, sources):
        applications.Start(ns.Seconds(0))
    ns.Simulator.Stop(ns.Seconds(seconds))
    start = time.process_time()
    ns.Simulator.Run()
    cpu = time.process_time() - start
    received = sinks.Get(0).__deref__().GetTotalRx()
    result = {
        "cpu_s": cpu,
        "events": int(ns.Simulator.GetEventCount()),
        "goodput_kbps": received * 8 / 1000 / seconds,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
