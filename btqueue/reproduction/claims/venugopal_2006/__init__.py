"""Venugopal (2006): the record describes nearly all checks itself; procedures hold the others."""

from btqueue.reproduction.claims.venugopal_2006.procedures import PROCEDURES

__all__ = ["PROCEDURES"]
