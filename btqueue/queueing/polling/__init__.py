"""One server for several queues."""
