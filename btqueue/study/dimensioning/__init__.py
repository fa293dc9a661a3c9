"""Dimensioning: choose keys of a scenario so that a metric is best while others stay within bounds."""

from btqueue.study.dimensioning.optimum import Dimensioning, DimensioningInterrupted, dimension

__all__ = ["Dimensioning", "DimensioningInterrupted", "dimension"]
