"""Studies on top of the two engines.

Here: summaries, the comparison of solver and simulator, provenance. In separate modules, imported when they
are needed: `sweep`, `sensitivity`, `dimensioning`, `check`, `fit`, `closed_forms`.
"""

from btqueue.study.comparison import compare, side_by_side
from btqueue.study.provenance import provenance
from btqueue.study.summary import Estimate, student_half_width, summarise

__all__ = ["Estimate", "compare", "provenance", "side_by_side", "student_half_width", "summarise"]
