"""Hosts and the way between them: forwarding, processing times, outside links, datagrams."""
