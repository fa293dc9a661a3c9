"""What every mechanism runs on: compilation by numba, timers, random numbers, pools and queues of packets."""
