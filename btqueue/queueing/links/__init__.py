"""What a link does to a packet: retransmission, and reserved slots."""
