"""Studies on top of the two engines: summaries, the comparison of solver and simulator, provenance."""

from btqueue.study.comparison import compare, side_by_side
from btqueue.study.provenance import provenance
from btqueue.study.summary import Estimate, MetricSummary, student_half_width, summarise

__all__ = [
    "Estimate",
    "MetricSummary",
    "compare",
    "provenance",
    "side_by_side",
    "student_half_width",
    "summarise",
]
