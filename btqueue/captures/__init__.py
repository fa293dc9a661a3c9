"""Captures of packets, pcap and pcapng: one place to read and write them."""
