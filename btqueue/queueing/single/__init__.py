"""One queue and a server that is always there."""
