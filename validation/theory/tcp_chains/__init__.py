"""The exact Markov chain of TCP in lock-step rounds, which `btqueue.transport.tcp_law` is tabulated from.

The tables of the package are made from it by `validation/theory/make_tcp_laws.py`, and checked against
it.
"""
