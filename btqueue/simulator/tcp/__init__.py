"""TCP: the sender and the receiver, loss recovery, timers, and the opening of a connection."""
