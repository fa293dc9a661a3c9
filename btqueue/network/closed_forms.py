"""Closed forms of TCP over the polled air, for printing (``sympy.latex``), differentiating and ``lambdify``.

SymPy is imported when a function is first called, never with the package. A star is a central with ``N``
stations, each with a flow to or from the central, alike; in a ring each station sends to the next one through
the central. Shared symbols (all positive): ``D`` and ``A`` slots of the ``F`` and ``K`` frames of a segment
and of its acknowledgement, each with an empty other half; ``M`` frames of a visit; ``v`` visits that a lone
segment takes, ``f`` 1 where it fills the last of them, else 0; ``k`` the same of an acknowledgement; ``V``
visits that a segment and its acknowledgement fill on all their hops; ``T_s`` slot length in seconds;
``lambda`` segments a second of each flow.

These are the readable reduction of `btqueue.network.stations.queues` to equal flows: all sums over links
become products. Nothing is fitted. Measured errors: docs/explanation/closed-forms.md.
"""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import sympy

Way = Literal["up", "down", "ring"]
"""Of the flows: up a star, down a star, or round a ring."""


class Steps(NamedTuple):
    """A formula in steps, to be read a line at a time.

    Attributes:
        result: in the symbols of the parts and others.
        parts: symbol and expression of each, in the order in which they build on each other.
    """

    result: "sympy.Expr"
    parts: "tuple[tuple[sympy.Symbol, sympy.Expr], ...]"

    def whole(self) -> "sympy.Expr":
        """Return the formula with all parts put in."""
        known: dict[Any, Any] = {}
        for symbol, part in (*self.parts, ("result", self.result)):
            known[symbol] = part.xreplace(known)
        return known["result"]


def _symbols(names: str) -> Any:
    import sympy

    return sympy.symbols(names, positive=True)


def lone_round_trip_up() -> "sympy.Expr":
    """Mean round trip in s of a lone segment from a station: (3 N + D + A - 2 - 2 f + 2 (N - 1) (v - 1)) T_s.

    Half a cycle of ``2 N`` slots until the station is polled, the segment, a cycle until its next visit, and
    the acknowledgement; the last answer slot of both does not count. A visit that is filled has no empty
    frame.
    """
    n, data, ack, visits, full, slot = _symbols("N D A v f T_s")
    return (3 * n + data + ack - 2 - 2 * full + 2 * (n - 1) * (visits - 1)) * slot


def lone_round_trip_down() -> "sympy.Expr":
    """Mean round trip in s of a lone segment to a station: (N + D + A + 2 (N - 1) (v - 1 + f)) T_s.

    The acknowledgement answers the frame that follows the segment, in the next visit if this one is filled.
    """
    n, data, ack, visits, full, slot = _symbols("N D A v f T_s")
    return (n + data + ack + 2 * (n - 1) * (visits - 1 + full)) * slot


def lone_round_trip_ring() -> "sympy.Expr":
    """Mean round trip in s of a lone segment from a station to the next one.

    (N + 2 D + 2 A + 2 - 2 a + 2 (N - 2) (v + f)) T_s: half a cycle until the station is polled, the
    segment up and in the next visit down, the acknowledgement up behind it, and down N - 1 visits later.
    ``a`` is 1 where the acknowledgement fills its visit up.
    """
    n, data, ack, visits, full, slot = _symbols("N D A v f T_s")
    waits = n + 2 - 2 * _answer_fills() + 2 * (n - 2) * (visits + full)
    return (waits + 2 * data + 2 * ack) * slot


def _answer_fills() -> Any:
    """1 if an acknowledgement fills its visit up in a ring, by the visits that are filled in all."""
    visits, full, short, filled = _symbols("v f k V")
    return filled - short - 2 * (visits - 1 + full)


def carried_round_trip(way: Way, *, tokens: bool = False) -> Steps:
    """Mean round trip in s of segments that come at random: R_0 stretched by the others' load, and waits.

    The other N - 1 stations leave a share x of the slots, and a segment makes the next one of its port S
    slots later. With l = lambda T_s segments a slot, u = l S, the residual E of trains under way elsewhere,
    and the wait w = l S² / (2 (1 - u)) behind a station's own segments (Pollaczek and Khinchine):

    * up: R / T_s = (R_0 - A + 1 + E - (1 - f) u (2 N - D / F)) / x + A - 1 + w. Behind the segment the visit
      goes on with chance u, and the acknowledgement follows at once.
    * down: the same, but that nothing stretches the acknowledgement and the frames before it if f = 0.
    * ring: the lone round trip in three parts. Only the other flows stretch the first one. Behind the first
      port its own later segments of the same visit do, too, and a visit that is missed is waited for behind
      half of a flow's work more. An acknowledgement finds l w segments before it that take S slots each.

    A segment takes D + A slots less two for each visit that it fills, twice in a ring, where both halves of
    frames are full with chance l S: a quadratic equation gives x.

    Args:
        way: way of the flows.
        tokens: whether a token bucket is in front of each port (`token_wait`). Of the waits for tokens and
            for the port the longer one counts, here as the root of the sum of their squares.

    Example:
        >>> from btqueue.network.closed_forms import carried_round_trip, lone_round_trip_down
        >>> lone = carried_round_trip("down").whole().subs("lambda", 0)
        >>> print((lone - lone_round_trip_down()).subs({"f": 0, "v": 1}).simplify())
        0
    """
    import sympy

    n, frames, data, packets, ack, limit = _symbols("N F D K A M")
    visits, full, short, filled, slot, rate = _symbols("v f k V T_s lambda")
    left, later, ack_later, use, wait, under_way, met, trip = _symbols("x S S_A u w E sigma R_0")
    load, others, ring = rate * slot, n - 1, way == "ring"
    parts: list[Any] = []
    hops = 2 if ring else 1
    ended = visits - 1 + full  # visits that a lone segment fills
    share = frames / limit
    alone = hops * (data + ack) - 2 * packets + 2 * others * share
    idle = 1 - others * load * (hops * (data + ack) - 2 * filled)
    if ring:
        alone -= 2 * share + 2 * packets
        behind = 2 * (ack - packets) + 2 * others * packets / limit
        saved = 2 * (frames - ended) + 2 * (packets - short)
        root = sympy.sqrt(idle**2 + 4 * others * load**2 * saved * alone)
        parts += [(left, (idle + root) / 2), (later, alone / left), (ack_later, behind / left)]
        parts += [(met, load * later), (use, load * (later + ack_later))]
        parts += [(wait, load * (later**2 + ack_later**2) / (2 * (1 - use)))]
    else:
        parts += [(left, idle), (later, alone / left), (use, load * later)]
        parts += [(wait, load * later**2 / (2 * (1 - use)))]
    net = data - 2 * ended
    part, together = data / visits, (1 - full) * ack
    own = net**2 * (limit**2 * ended + (frames - limit * ended) ** 2) / frames**2
    more = ack**2 + 2 * together * net / visits  # of an acknowledgement that follows a segment in its visit
    if way == "up":
        parts += [(trip, lone_round_trip_up() / slot), (under_way, others * load * own / 2)]
        goes_on = (1 - full) * use * (2 * n - data / frames)
        total = ack - 1 + (trip - ack + 1 + under_way - goes_on) / left
    elif way == "down":
        parts += [(under_way, others * load * (own + (1 - full) * more) / 2)]
        stretched = n + under_way + (visits - 1) * (2 * others + part) + full * (2 * others + part - 1)
        total = stretched / left + (1 - full) * (part + use * (data / frames - 2)) + ack + full
    else:
        relayed = 4 * own + 4 * together * net / visits + ack**2
        parts += [(under_way, load * ((n - 2) * relayed + own + own + more) / 2)]
        each = (1 - left) / others
        following = sympy.Min(sympy.Max(limit / frames - 1, 0), 1) / 2
        first = n + under_way + (1 - full) * part + ack + 2 * (1 - _answer_fills()) + 2 * (n - 2)
        missed = (visits - 1) * (2 * part + 2 * (n - 2)) + full * (part + 2 * others)
        total = first / left + (part + 2 - 2 * full) / (left - following * each) + missed / (left - each / 2)
        total += ack - 1 - 4 * (frames - ended) * met
    answer = met * wait if ring else 0
    if tokens:
        theta, factor, tokens_wait, ack_tokens = _symbols("theta C w_T w_A")
        parts += token_tail(ring=ring)
        crossed = hops * data + 2 * (n - hops) * (visits - 1)
        ahead = (frames - 1) / frames * crossed / left * slot
        parts += [(tokens_wait, token_wait(theta, factor, ahead=ahead) / slot)]
        if ring:
            parts += [(ack_tokens, token_wait(theta, factor, ack=True) / slot)]
            answer = sympy.sqrt(answer**2 + ack_tokens**2)
        wait = sympy.sqrt(wait**2 + tokens_wait**2)
    return Steps((total + wait + answer) * slot, tuple(parts))


def token_tail(*, ring: bool) -> "list[tuple[sympy.Symbol, sympy.Expr]]":
    """Rate theta in 1/s and factor C of the exponential tail of the tokens that are missing in a bucket.

    They are the work of an M/G/1 server (Cramér and Lundberg): with use rho, and mean m and variance v of the
    rest of a price, rho E exp(theta rest) = 1. The rest is taken for normal, which is exact to the third
    power of theta: theta = (sqrt(m² - 2 v ln rho) - m) / v, and C = (1 - rho) / (theta (m + v theta)).
    In a ring a bucket also grants the tokens for acknowledgements.
    """
    import sympy

    rate, tokens, price, less = _symbols("lambda tau g g_A")
    theta, factor, use, mean, variance = _symbols("theta C rho_T m_T v_T")
    prices = [price / tokens] + ([less / tokens] if ring else [])
    first, second, third = (sympy.Add(*(one**power for one in prices)) for power in (1, 2, 3))
    return [
        (use, rate * first),
        (mean, second / (2 * first)),
        (variance, third / (3 * first) - mean**2),
        (theta, (sympy.sqrt(mean**2 - 2 * variance * sympy.log(use)) - mean) / variance),
        (factor, (1 - use) / (theta * (mean + variance * theta))),
    ]


def token_wait(
    theta: "sympy.Expr", factor: "sympy.Expr", *, ahead: "sympy.Expr | int" = 0, ack: bool = False
) -> "sympy.Expr":
    """Mean wait in s for the tokens of a segment or an acknowledgement: C exp(-theta y) / theta.

    y is the tokens that the bucket holds beyond the price, and the time in which the first packets of the
    segment are on the air, while the last one waits.
    """
    import sympy

    tokens, price, less, depth = _symbols("tau g g_A beta")
    return factor / theta * sympy.exp(-theta * ((depth - (less if ack else price)) / tokens + ahead))


def star_capacity() -> "sympy.Expr":
    """Segments a second of each flow of a saturated star: (1 - p) / (N (D + A - 2 K) T_s).

    N peripherals; D and A slots of the frames of a segment and of its acknowledgement, K packets of the
    acknowledgement, T_s seconds of a slot. The K packets fill K empty halves of the segment's frames, which
    saves 2 K slots. Packets are repeated until they arrive; p is their error rate, weighted by their slots.
    """
    n, data, ack, packets, slot, errors = _symbols("N D A K T_s p")
    return (1 - errors) / (n * (data + ack - 2 * packets) * slot)


def carried(way: Way) -> "sympy.Expr":
    """Segments a second of each flow: the load, or the capacity if that is less."""
    import sympy

    capacity = repeated_ring_capacity().subs(_symbols("h"), 2) if way == "ring" else star_capacity()
    return sympy.Min(_symbols("lambda"), capacity)


def single_window_goodput() -> "sympy.Expr":
    """Segments a second of each flow of a star whose windows are one segment: 1 / (N (D + A + 2) T_s).

    Each visit brings an acknowledgement, the segment that it lets out, or the other way round, and an empty
    frame. From a window of two on visits go on until they are full.
    """
    n, data, ack, slot = _symbols("N D A T_s")
    return 1 / (n * (data + ack + 2) * slot)


def window_at_knee() -> "sympy.Expr":
    """Window in segments with which a lone round trip up a star would fill all its slots."""
    return lone_round_trip_up() * star_capacity().subs(_symbols("p"), 0)


def path_goodput() -> "sympy.Expr":
    """Segments a second of a window ``W`` over wires: W / R, or 1 / s, the rate of the slowest.

    ``R`` is the round trip in s of a lone segment. Exact for one flow with segments of one size.
    """
    import sympy

    window, trip, service = _symbols("W R s")
    return sympy.Min(window / trip, 1 / service)


def saw_goodput() -> "sympy.Expr":
    """Segments a second of a window that overflows a buffer of ``B`` segments again and again.

    The saw of `btqueue.network.stations.transport.saw` with sums for integrals: path and buffer hold
    P + B - 1 segments, P = R / s, since of the path and of the window half a segment is lost to whole
    numbers. A window grows from half of P + B to P + B, c² = h² + 2 n, then pass the window before the loss,
    the duplicates behind it, and the repetition: n = 3 (P + B)² / 8 + 2 (P + B) - 1 segments. The wire is
    idle for q² / 2 + q services where the half is less than the path, q = (P - B) / 2. So the goodput is
    n / (s (n + q² / 2 + q)), between 3/4 and all of the rate.
    """
    import sympy

    trip, service, buffer = _symbols("R s B")
    path = trip / service
    sent = sympy.Rational(3, 8) * (path + buffer) ** 2 + 2 * (path + buffer) - 1
    empty = sympy.Max(path - buffer, 0) / 2
    return sent / (service * (sent + empty**2 / 2 + empty))


def window_goodput(window: int) -> "sympy.Expr":
    """Segments a second of a flow that keeps `window` segments under way: a closed queueing network.

    A bottleneck takes ``b`` seconds a segment, the rest of the round trip ``e`` seconds: with exponential
    ``b`` the rate is G(W - 1) / G(W), where G(W) is the sum of b^(W - j) e^j / j! over j = 0..W (A. K.
    Erlang's loss formula).
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
