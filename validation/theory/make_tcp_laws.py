"""Make the tables of `btqueue.transport.tcp_law` from TCP's chains.

    python validation/theory/make_tcp_laws.py FOLDER

Nothing but the exact chain (`tcp_chains.lockstep`) and, beyond its windows, the reduced one goes in.
Each law is kept in a folder when it is done, so that a run that was stopped goes on; the same code makes the
same tables.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebval, chebvander
from numpy.typing import NDArray
from tcp_chains.chain import compile_chain
from tcp_chains.lockstep import SegmentCost, segment_cost
from tcp_chains.loss_process import LossProcess
from tcp_chains.lumping import lump
from tcp_chains.newreno_chain import Variant
from tcp_chains.reduced_chain import reduced_structure
from tcp_chains.reduced_cost import reduced_cost

from btqueue.transport.tcp_law import (
    EXACT_WINDOWS,
    LONGEST_WINDOW,
    MOST,
    ONLY_HERE,
    STAGES,
    TABLES,
    UNIT,
    Receiver,
    law_name,
)

Array = NDArray[np.float64]
Cost = Callable[[float, float], SegmentCost]
"""Of a delivered segment, from the losses of segments and acknowledgements."""

NODES, SCALED_NODES = (48, 28), (36, 14)
"""Of the tables, in t and in the share of acknowledgements: of exact laws, and of those scaled from them."""
SCALE, SCALE_SCALED = 0.15, 0.005
"""The scales of t."""
SMALL, SMALL_ACK = 1e-3, 1e-2
"""Losses of segments and of acknowledgements at which leading powers are read off."""


class Law(NamedTuple):
    """A law to tabulate."""

    variant: str
    window: int
    receiver: Receiver = Receiver.AT_ONCE

    @property
    def name(self) -> str:
        """Name of its tables."""
        return law_name(self.variant, self.window, self.receiver)

    @property
    def exact(self) -> bool:
        """Whether it is that of the exact chain."""
        return self.window <= EXACT_WINDOWS

    @property
    def nodes(self) -> tuple[int, int]:
        """Number of nodes along t and the share."""
        return NODES if self.exact else SCALED_NODES

    @property
    def scale(self) -> float:
        """Scale of t."""
        return SCALE if self.exact else SCALE_SCALED

    def cost(self, *, timestamps: bool = True) -> Cost:
        """Return the solver of its chain."""
        if not self.exact:
            return self._scaled()
        chain = compile_chain(
            self.window, variant=Variant(self.variant), timestamps=timestamps, receiver=self.receiver
        )
        lumped = lump(chain)
        return lambda p, q: segment_cost(lumped, LossProcess.independent(p, q))

    def _scaled(self) -> Cost:
        """Return the exact cost at the largest window that allows it, scaled to this one.

        The factor is what the reduced chain makes of the larger window: what it neglects at both cancels.
        """
        exact = largest_exact(self.variant)
        smaller, larger = reduced_structure(EXACT_WINDOWS), reduced_structure(self.window)

        def cost(p: float, q: float) -> SegmentCost:
            more, less = reduced_cost(larger, p, q), reduced_cost(smaller, p, q)
            parts: Any = zip(exact(p, q), more, less, strict=True)
            scaled: Any = (here * up / down if np.any(down) else here for here, up, down in parts)
            return SegmentCost(*scaled)

        return cost


@cache
def largest_exact(variant: str) -> Cost:
    """Return the exact cost at the largest window that allows it; points are remembered."""
    return cache(Law(variant, EXACT_WINDOWS).cost())


NEVER_SILENT = np.r_[-100.0, np.zeros(NODES[0] - 1)]
"""Coefficients of the timeouts for want of any ACK in a large window: too few to be told from none."""


def laws() -> Iterator[Law]:
    """Return all laws, the quick ones first."""
    for window, variant in product(range(1, EXACT_WINDOWS + 1), ("newreno", "sack", "reno", "tahoe")):
        for receiver in Receiver:
            if receiver is Receiver.AT_ONCE or window <= ONLY_HERE["delayed_ack"]:
                yield Law(variant, window, receiver)
    for window in range(EXACT_WINDOWS + 1, LONGEST_WINDOW + 1):
        yield Law("newreno", window)


def tabulated(law: Law) -> dict[str, Any]:
    """Return the tables of a law, by part."""
    cost = law.cost()
    numbers = leading(law, cost)
    silence = silent(cost, numbers[-1]) if law.exact else NEVER_SILENT
    values = [values_at(law, numbers, silence, cost, u, v) for u, v in nodes(law)]
    table = coefficients(law, values)
    parts = {"numbers": numbers, "silence": whole(silence), "table": whole(table)}
    if law.window <= ONLY_HERE["timestamps"]:
        karn = law.cost(timestamps=False)
        parts["stages"] = whole(coefficients(law, [odds_at(karn, u, v) for u, v in nodes(law)]))
    return parts


def places(count: int) -> Array:
    """Return the zeros of a polynomial of Chebyshev, between 0 and 1."""
    return 0.5 + 0.5 * np.cos(np.pi * (np.arange(count) + 0.5) / count)


def nodes(law: Law) -> list[tuple[float, float]]:
    """Return the nodes of a table, as -log(1-p) and -log(1-q)."""
    along, across = (places(count) for count in law.nodes)
    totals = law.scale * np.expm1(np.log1p(MOST / law.scale) * along)
    return [(t * (1.0 - share), t * share) for t, share in product(totals, across)]


def leading(law: Law, cost: Cost) -> Array:
    """Return the numbers of a `TcpLaw` after its window: what it does at small losses."""
    none, data = cost(0.0, 0.0), cost(SMALL, 0.0)
    fewer, more = (np.log(first_timeouts(cost(0.0, q))) for q in (SMALL_ACK, 2.0 * SMALL_ACK))
    one_loss = first_timeouts(data) > SMALL**1.5
    recovers = data.fast_retransmits > 0.0
    acks = np.round((more - fewer) / np.log(2.0))
    return np.array([law.scale, none.rounds, none.delays, one_loss, recovers, acks])


def first_timeouts(cost: SegmentCost) -> float:
    """Return the timeouts of a segment before any doubling."""
    return float(cost.stages[0])


def silent(cost: Cost, acks: float) -> Array:
    """Return the coefficients of the timeouts where acknowledgements alone are lost."""
    v = MOST * places(NODES[0])
    values = [np.log(first_timeouts(cost(0.0, q))) for q in -np.expm1(-v)]
    return in_chebyshev(np.array(values) - acks * np.log(v), 0)


def values_at(law: Law, numbers: Array, silence: Array, cost: Cost, u: float, v: float) -> list[float]:
    """Return what a table holds at -log(1-p) and -log(1-q); `law_rates` turns that round again."""
    _, rounds, delays, one_loss, recovers, acks = numbers
    t, here = u + v, cost(-np.expm1(-u), -np.expm1(-v))
    first = first_timeouts(here) - v**acks * np.exp(chebval(2.0 * v / MOST - 1.0, silence))
    return [
        np.log(here.rounds / rounds) / t,
        np.log(first / (u * (one_loss + (1.0 - one_loss) * t))),
        np.log(here.fast_retransmits / u) if recovers else 0.0,
        np.log(here.sends) / t,
        np.log(here.window / law.window) / t,
        (here.delays - delays) / t,
    ]


def odds_at(cost: Cost, u: float, v: float) -> Array:
    """Return the odds of another doubling, after 0, 1, ... and more, over those with timestamps (log)."""
    stages = cost(-np.expm1(-u), -np.expm1(-v)).stages
    further = stages[1:STAGES] / (stages[: STAGES - 1] - stages[1:STAGES])
    later = stages[STAGES:].sum() / stages[STAGES - 1]
    return np.log([*further, later]) - np.log(np.expm1(u + v))


def coefficients(law: Law, values: list[Any]) -> Array:
    """Values at the nodes -> (rows, X, Y) coefficients, as many for all laws."""
    at_nodes = np.moveaxis(np.reshape(values, (*law.nodes, -1)), -1, 0)
    missing = [(0, most - count) for most, count in zip(NODES, law.nodes, strict=True)]
    return np.pad(in_chebyshev(in_chebyshev(at_nodes, 1), 2), [(0, 0), *missing])


def in_chebyshev(values: Array, axis: int) -> Array:
    """Values at `places` along an axis -> coefficients of polynomials of Chebyshev."""
    count = values.shape[axis]
    solved = np.linalg.inv(chebvander(2.0 * places(count) - 1.0, count - 1))
    return np.moveaxis(np.tensordot(solved, values, (1, axis)), 0, axis)


def whole(values: Array) -> NDArray[np.int32]:
    """Return numbers in multiples of `UNIT`, which pack well.

    Raises:
        OverflowError: they are too large for that.
    """
    if not np.all(np.abs(values) < UNIT * np.iinfo(np.int32).max):
        raise OverflowError(f"coefficients up to {np.abs(values).max():.3g} do not fit")
    return np.rint(values / UNIT).astype(np.int32)


def make(law: Law, folder: Path) -> dict[str, Any]:
    """Return the tables of a law, from the folder if they are there; else keep them there."""
    file = folder / f"{law.name}.npz"
    if not file.exists():
        parts = tabulated(law)
        keep(file, parts)
    with np.load(file) as archive:
        return dict(archive)


def keep(file: Path, arrays: dict[str, Any]) -> None:
    """Write arrays into a file, whole or not at all."""
    part = file.with_suffix(".part")
    with part.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    part.replace(file)


def main() -> None:
    """Make all tables, or some of them in a process of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where finished laws are kept")
    parser.add_argument("--only", nargs="+", metavar="LAW", help="make these and write no common file")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    wanted = [law for law in laws() if not options.only or law.name in options.only]
    made: dict[str, Any] = {}
    for law in wanted:
        print(law.name, file=sys.stderr, flush=True)
        made |= {f"{law.name}.{part}": values for part, values in make(law, options.folder).items()}
    if not options.only:
        keep(TABLES, made)


if __name__ == "__main__":
    main()
