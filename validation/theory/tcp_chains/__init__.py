"""The exact Markov chain of TCP in lock-step rounds, which `btqueue.transport.tcp_law` is tabulated from.

The tables of the package are made from it by `validation/theory/make_tcp_laws.py`, and checked against
it.
"""

MAX_BACKOFF = 6  # 2**6 = 64: the usual cap on the doubling of the retransmission timer
