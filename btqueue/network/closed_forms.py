"""Symbolic twins of the piconet's queues, for printing (``sympy.latex``), differentiating and ``lambdify``.

SymPy is imported when a function is first called, never with the package. A star is a central with ``N``
stations, each with a flow to or from the central, alike. Shared symbols (all positive): ``D`` and ``A`` slots
of the frames of a segment and of its acknowledgement, each with an empty other half; ``K`` packets of the
acknowledgement; ``T_s`` slot length in seconds; ``lambda`` segments a second of each flow. A segment fits
into one visit with a frame to spare.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sympy


def lone_round_trip_up() -> "sympy.Expr":
    """Mean round trip in s of a lone segment from a station: (3 N + D + A - 2) T_s.

    Half a cycle of ``2 N`` slots until the station is polled, the segment, a cycle until its next visit, and
    the acknowledgement; of both the last answer is not waited for.
    """
    import sympy

    stations, data, ack, slot = sympy.symbols("N D A T_s", positive=True)
    return (3 * stations + data + ack - 2) * slot


def lone_round_trip_down() -> "sympy.Expr":
    """Mean round trip in s of a lone segment to a station: (N + D + A) T_s.

    The acknowledgement answers the frame that follows the segment.
    """
    import sympy

    stations, data, ack, slot = sympy.symbols("N D A T_s", positive=True)
    return (stations + data + ack) * slot


def star_capacity() -> "sympy.Expr":
    """Segments a second of each flow of a saturated star: 1 / (N (D + A - 2 K) T_s).

    A packet of an acknowledgement takes the place of an empty half of a frame.
    """
    import sympy

    stations, data, ack, packets, slot = sympy.symbols("N D A K T_s", positive=True)
    return 1 / (stations * (data + ack - 2 * packets) * slot)


def window_at_knee() -> "sympy.Expr":
    """Window in segments with which a lone round trip up a star would fill all its slots."""
    return lone_round_trip_up() * star_capacity()


def window_goodput(window: int) -> "sympy.Expr":
    """Segments a second of a flow that keeps so many segments under way: a closed queueing network.

    A bottleneck takes ``b`` seconds a segment, all else ``e`` seconds: with exponential ``b`` the rate is
    G(W - 1) / G(W), where G(W) is the sum of b^(W - j) e^j / j! over j = 0..W (A. K. Erlang's loss formula).
    """
    import sympy

    service, elsewhere = sympy.symbols("b e", positive=True)
    ways = [
        sympy.Add(*(service ** (most - j) * elsewhere**j / sympy.factorial(j) for j in range(most + 1)))
        for most in (window - 1, window)
    ]
    return ways[0] / ways[1]


def delay_up() -> "sympy.Expr":
    """Mean delay in s of segments up a star whose visits have no limit, without a transport protocol.

    With the load rho = (N - 1) lambda D T_s of the other stations and the service S = D T_s / (1 - rho):
    N T_s / (1 - rho) + (D - 1) T_s + rho D T_s / (2 (1 - rho)) + lambda S² / (2 (1 - lambda S)).
    """
    import sympy

    stations, data, slot, rate = sympy.symbols("N D T_s lambda", positive=True)
    others = (stations - 1) * rate * data * slot
    service = data * slot / (1 - others)
    until_polled = (stations * slot + others * data * slot / 2) / (1 - others)
    return until_polled + (data - 1) * slot + rate * service**2 / (2 * (1 - rate * service))


def repeated_ring_capacity() -> "sympy.Expr":
    """Segments a second of each flow of a saturated ring whose links repeat packets until they are there.

    (1 - p) / (h N (D + A) T_s): ``p`` is the error rate of every packet, ``h`` the hops of a flow, two in one
    piconet. All slots carry data, so ``D`` and ``A`` are slots of packets alone.
    """
    import sympy

    stations, data, ack, slot, hops, errors = sympy.symbols("N D A T_s h p", positive=True)
    return (1 - errors) / (hops * stations * (data + ack) * slot)
