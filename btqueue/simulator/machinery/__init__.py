"""The base of all mechanisms: compilation by numba, timers, random numbers, pools and queues of packets."""
