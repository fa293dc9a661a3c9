"""Analytic models of transport protocols: windows under losses, Vegas, acknowledgements.

Nothing here knows queues or radio links: loss probabilities, round-trip times and timeouts go in, rates come
out. The square-root laws are in the catalogue `btqueue.study.closed_forms`.
"""
