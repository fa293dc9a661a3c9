"""A catalogue of the closed forms of the package: to list, print, differentiate and evaluate.

    >>> from btqueue.study.closed_forms import closed_forms
    >>> wait = closed_forms()["wait, M/G/1"]
    >>> print(wait.expression, "in", wait.unit)
    (b*(k - 1) + b_2*lambda)/(-2*b*lambda + 2) in slots
    >>> print(wait.function("lambda", "b", "b_2", "k")(0.125, 6, 36, 1))
    9.0

Every entry names its *twin*: the function of the package, or the method, that computes the same number
in another way, against which it is tested. SymPy is imported when an expression is first asked for.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from btqueue.baseband import PACKET_TYPES
from btqueue.baseband import closed_forms as baseband
from btqueue.channel import closed_forms as channel
from btqueue.network import closed_forms as piconet
from btqueue.network.closed_forms import Steps
from btqueue.queueing import closed_forms as queueing
from btqueue.queueing import traffic_forms as traffic
from btqueue.text_table import TextTable

if TYPE_CHECKING:
    import sympy

Notation = Mapping[str, tuple[str, str]]
"""Name of a symbol -> (unit, meaning)."""

LONG = 300
"""Characters of LaTeX; a longer form is shown in parts."""

QUEUES: Notation = {
    "lambda": ("packets/slot", "arrival rate"),
    "lambda_1": ("packets/slot", "arrival rate of the first queue"),
    "lambda_2": ("packets/slot", "arrival rate of the second"),
    "b": ("slots", "mean service time"),
    "b_2": ("slots²", "mean square of the service time"),
    "b_11": ("slots", "mean service time of the first queue"),
    "b_12": ("slots", "mean service time of the second"),
    "b_21": ("slots²", "mean square of the service time of the first"),
    "b_22": ("slots²", "mean square of the service time of the second"),
    "k": ("packets", "mean size of a random packet's batch, E[X²]/E[X]"),
    "v": ("slots", "mean vacation"),
    "v_2": ("slots²", "mean square of a vacation"),
    "w": ("slots", "mean walk between queues"),
    "w_2": ("slots²", "mean square of a walk"),
    "s": ("slots", "mean of all walks of a cycle"),
    "s_2": ("slots²", "mean square of all walks of a cycle"),
    "rho": ("1", "load"),
    "K": ("packets", "room, packet in service included"),
    "M": ("packets", "limit of a visit"),
    "N": ("1", "number of queues or stations"),
    "l": ("slots", "mean length of a packet"),
    "l_2": ("slots²", "mean square of a packet's length"),
}

SOURCES: Notation = {
    "r": ("packets/slot", "rate"),
    "c": ("1", "squared coefficient of variation of the gaps"),
    "p": ("1", "probability that an idle slot follows an active one"),
    "q": ("1", "probability that an active slot follows an idle one"),
    "Lambda": ("1/s", "rate of packets that an answer can ride on"),
    "T": ("s", "timer, or time between ticks"),
    "tau": ("byte/s", "token rate"),
    "a": ("byte", "payload of a segment"),
    "g": ("byte", "tokens that a segment costs"),
    "x_1": ("any", "first share"),
    "x_2": ("any", "second share"),
    "x_3": ("any", "third share"),
}

RADIO: Notation = {
    "b": ("1", "bit error rate"),
    "b_G": ("1", "bit error rate in the good state"),
    "b_B": ("1", "bit error rate in the bad state"),
    "rho_G": ("s", "mean good period"),
    "rho_B": ("s", "mean bad period"),
    "h": ("1", "share of packets detected"),
    "s": ("1", "share of bodies intact"),
    "r": ("1", "share of answers decoded"),
    "R": ("1", "most attempts"),
}

BASEBAND: Notation = {
    "u": ("byte", "user payload of a packet"),
    "n": ("slots", "length of a packet"),
    "m": ("slots", "length of its answer"),
    "g": ("slots", "free slots in one piece"),
    "P": ("slots", "period of the reservations"),
    "T_s": ("s", "length of a slot"),
    "N": ("1", "number of peripherals"),
    "D": ("slots", "slots of a segment on one hop"),
    "A": ("slots", "slots of its acknowledgement on one hop"),
    "b": ("1", "bit error rate"),
}

TCP: Notation = {
    "p": ("1", "segment loss"),
    "b": ("segments", "segments for each acknowledgement"),
    "RTT": ("s", "round-trip time"),
    "T_0": ("s", "first timeout"),
    "W_m": ("segments", "receive window"),
}

PICONET: Notation = {
    "N": ("1", "stations"),
    "F": ("frames", "frames of a segment"),
    "D": ("slots", "frames of a segment"),
    "K": ("packets", "packets of an acknowledgement"),
    "A": ("slots", "frames of an acknowledgement"),
    "M": ("frames", "limit of a visit"),
    "v": ("visits", "visits of a lone segment"),
    "f": ("1", "1 if a segment fills its last visit, else 0"),
    "k": ("1", "1 if an acknowledgement fills its visit, else 0"),
    "V": ("visits", "visits that a segment and its acknowledgement fill"),
    "T_s": ("s", "length of a slot"),
    "lambda": ("segments/s", "load of each flow"),
    "tau": ("byte/s", "token rate"),
    "beta": ("byte", "tokens that a bucket holds"),
    "g": ("byte", "tokens for the packets of a segment"),
    "g_A": ("byte", "tokens for an acknowledgement"),
    "b": ("s", "time of the bottleneck for a segment"),
    "e": ("s", "time elsewhere"),
    "h": ("1", "hops"),
    "p": ("1", "error rate of packets, by their time on the air"),
    "W": ("segments", "receive window"),
    "R": ("s", "round trip of a lone segment"),
    "s": ("s", "time of a segment at the slowest link"),
    "B": ("segments", "segments that may wait for that link"),
}


@dataclass(frozen=True)
class ClosedForm:
    """One closed form.

    Attributes:
        name: name of the quantity that it gives.
        unit: unit of the value.
        notation: unit and meaning of the symbols it may contain.
        build: gives the expression.
        twin: the numerical twin, its full name (or in words, where the package has none).
    """

    name: str
    unit: str
    notation: Notation
    build: Callable[[], Any]
    twin: str

    @cached_property
    def expression(self) -> sympy.Expr:
        """The formula as a sympy expression."""
        built = self._built
        return built.whole() if isinstance(built, Steps) else built

    @cached_property
    def _built(self) -> Any:
        return self.build()

    @property
    def symbols(self) -> dict[str, tuple[str, str]]:
        """Unit and meaning of each symbol in the expression, by name."""
        return {name: self.notation[name] for name in sorted(map(str, self.expression.free_symbols))}

    def symbol(self, name: str) -> sympy.Symbol:
        """The symbol of that name.

        Raises:
            ValueError: there is none in the expression.
        """
        symbols: Any = self.expression.free_symbols
        for symbol in symbols:
            if symbol.name == name:
                return symbol
        raise ValueError(f"{self.name!r} has no symbol {name!r}, only {', '.join(self.symbols)}")

    def latex(self) -> str:
        """The expression in LaTeX; of one in steps the result, then each of its parts."""
        import sympy

        steps = isinstance(self._built, Steps)
        return r",\quad ".join(self.lines()) if steps else sympy.latex(self._built)

    def lines(self) -> list[str]:
        """The expression in LaTeX, in lines that fit a page: the result, then the parts of a long form."""
        import sympy

        built = self._built
        if not isinstance(built, Steps):
            whole = sympy.latex(built)
            if len(whole) <= LONG:
                return [whole]
            found: Any = sympy.cse(built, symbols=sympy.numbered_symbols("c_", start=1))
            built = Steps(found[1][0], tuple(found[0]))
        parts = [f"{sympy.latex(symbol)} = {sympy.latex(part)}" for symbol, part in built.parts]
        return [sympy.latex(built.result), *parts]

    def table(self) -> TextTable:
        """Return the symbols with their units and meanings, as a table."""
        rows = tuple((name, *about) for name, about in self.symbols.items())
        return TextTable(f"{self.name} ({self.unit})", ("symbol", "unit", "meaning"), rows)

    def _repr_latex_(self) -> str:
        """Show the formula in a notebook."""
        return f"$\\displaystyle {self.latex()}$"

    def derivative(self, name: str) -> sympy.Expr:
        """Derivative with respect to the symbol of that name.

        Raises:
            ValueError: there is none in the expression.
        """
        symbol, built = self.symbol(name), self._built
        if not isinstance(built, Steps):
            return channel.derivative(built, symbol)
        known: dict[Any, Any] = {}
        slopes: dict[Any, Any] = {}

        def slope(part: Any) -> Any:
            """Return its derivative by the chain rule: small steps take far less time than the whole."""
            free = part.free_symbols
            direct: Any = channel.derivative(part, symbol).xreplace(known) if symbol in free else 0
            ways = [(one, by) for one, by in slopes.items() if one in free and by != 0]
            return direct + sum(channel.derivative(part, one).xreplace(known) * by for one, by in ways)

        for one, part in built.parts:
            slopes[one], known[one] = slope(part), part.xreplace(known)
        return slope(built.result)

    def function(self, *names: str, modules: Any = "numpy") -> Callable[..., Any]:
        """The expression as a function of the symbols of these names, in this order (``sympy.lambdify``).

        Args:
            *names: all symbols of the expression.
            modules: ``"numpy"``, ``"jax"``, ``"mpmath"`` or whatever else sympy writes code for.

        Raises:
            ValueError: a symbol is left out or unknown.
        """
        import sympy

        missing = set(self.symbols) - set(names)
        if missing:
            raise ValueError(f"{self.name!r} needs a place for {', '.join(sorted(missing))} too")
        return sympy.lambdify([self.symbol(name) for name in names], self.expression, modules)


PARAMETERS: Mapping[str, str] = {
    "arrival_rate": "lambda",
    "service_mean": "b",
    "service_second": "b_2",
    "batch_size": "k",
    "vacation_mean": "v",
    "vacation_second": "v_2",
    "walk_mean": "w",
    "walk_second": "w_2",
    "tour_mean": "s",
    "tour_second": "s_2",
    "load": "rho",
    "capacity": "K",
    "limit": "M",
    "queues": "N",
    "stations": "N",
    "length_mean": "l",
    "length_second": "l_2",
    "rate": "r",
    "scv": "c",
    "stop": "p",
    "go": "q",
    "timer": "T",
    "token_rate": "tau",
    "payload": "a",
    "charge": "g",
}
"""The symbol of each parameter of the queueing functions."""

SEQUENCES: Mapping[str, tuple[str, ...]] = {
    "arrival_rates": ("lambda_1", "lambda_2"),
    "service_means": ("b_11", "b_12"),
    "service_seconds": ("b_21", "b_22"),
    "shares": ("x_1", "x_2", "x_3"),
}
"""The symbols of parameters that are sequences; the catalogue shows them for two queues, or three shares."""


def _expression(closed_form: Callable[..., Any], **known: Any) -> Any:
    """The expression of a queueing function in the symbols above."""
    given = dict(known)
    for name in inspect.signature(closed_form).parameters:
        if name in SEQUENCES:
            given.setdefault(name, list(map(_symbol, SEQUENCES[name])))
        elif name in PARAMETERS:
            given.setdefault(name, _symbol(PARAMETERS[name]))
    return queueing.formula(closed_form, **given)


def _symbol(name: str) -> sympy.Symbol:
    import sympy

    return sympy.Symbol(name, positive=True)


CHAIN = "its Markov chain, solved in numbers"
"""Twin of entries that need a chain of a few states: an M/M/1/K queue, attempts until an answer, a source."""
PAPER = "the paper's equations, in numbers"
"""Twin of TCP's laws."""
NUMERICAL = "numerical integration"
"""Twin of delayed answers."""
VACATIONS = "btqueue.queueing.vacations.vacation_queue"
POLLING = "btqueue.queueing.polling.polling.solve_polling"
CONSERVED = "btqueue.queueing.polling.conservation.conservation_law"
CYCLE = "btqueue.queueing.polling.model.PollingModel.mean_cycle"
TRAINS = "btqueue.channel.packet_trains.train_success"
CROSSING = "btqueue.channel.packet_adaptation.goodput_crossing"
JAIN = "btqueue.network.answers.jain_index"

Row = tuple[str, str, Callable[[], Any], str]
"""Name, unit, the function that builds the expression, and the twin."""


def _queueing_rows() -> list[Row]:
    rows = [
        ("wait, M/G/1", queueing.single_wait, VACATIONS),
        ("wait, exhaustive vacations", queueing.exhaustive_wait, VACATIONS),
        ("wait, gated vacations", queueing.gated_wait, POLLING),
        ("wait, one-limited vacations", queueing.one_limited_wait, VACATIONS),
        ("wait, exhaustive cycle", queueing.exhaustive_cyclic_wait, POLLING),
        ("wait, gated cycle", queueing.gated_cyclic_wait, POLLING),
        ("wait, one-limited cycle", queueing.one_limited_cyclic_wait, CONSERVED),
        ("wait, alternating round robin", queueing.alternating_round_robin_wait, CONSERVED),
        ("cycle, alternating round robin", queueing.alternating_round_robin_cycle, CYCLE),
        ("cycle", queueing.cycle_time, VACATIONS),
    ]
    slots: list[Row] = [(name, "slots", partial(_expression, form), twin) for name, form, twin in rows]
    for discipline in ("exhaustive", "gated", "one-limited"):
        build = partial(_expression, queueing.weighted_waits, discipline=discipline)
        slots.append((f"conservation law, {discipline}", "slots", build, CONSERVED))
    saturated = partial(_expression, queueing.saturated_throughput)
    slots.append(("loss, M/M/1/K", "1", partial(_expression, queueing.lost_share), CHAIN))
    slots.append(("throughput, saturated cycle", "packets/slot", saturated, VACATIONS))
    return slots


def _source_rows() -> list[Row]:
    rows = [
        ("capacity, token bucket", "byte/s", traffic.token_bucket_capacity, VACATIONS),
        ("interrupted source, stop", "1", traffic.interrupted_stop, CHAIN),
        ("interrupted source, go", "1", traffic.interrupted_go, CHAIN),
        ("interrupted source, rate", "packets/slot", traffic.interrupted_rate, CHAIN),
        ("interrupted source, variation", "1", traffic.interrupted_scv, CHAIN),
        ("delay of an answer, tick", "s", traffic.tick_delay, NUMERICAL),
        ("mean square delay of an answer, tick", "s²", traffic.tick_delay_second, NUMERICAL),
        ("answers alone, tick", "1", traffic.tick_alone, NUMERICAL),
        ("delay of an answer, timer", "s", traffic.timer_delay, NUMERICAL),
        ("mean square delay of an answer, timer", "s²", traffic.timer_delay_second, NUMERICAL),
        ("answers alone, timer", "1", traffic.timer_alone, NUMERICAL),
        ("fairness", "1", traffic.fairness, JAIN),
    ]

    def build(form: Callable[..., Any], twin: str) -> Any:
        """The expression of a source, or of a delayed answer, whose rate is another one."""
        return _expression(form, **({"rate": _symbol("Lambda")} if twin == NUMERICAL else {}))

    return [(name, unit, partial(build, form, twin), twin) for name, unit, form, twin in rows]


def _radio_rows() -> list[Row]:
    rows: list[Row] = []
    for packet in PACKET_TYPES.values():
        for bits, form in (("payload", channel.payload_error_rate), ("on air", channel.on_air_error_rate)):
            twin = f"btqueue.channel.error_rates.{form.__name__}"
            rows.append((f"packet error rate, {packet.name} {bits}", "1", partial(form, packet), twin))
        rows.append((f"goodput, {packet.name}", "kbit/s", partial(channel.goodput, packet), CHAIN))
    train = [*[PACKET_TYPES["DH5"]] * 4, PACKET_TYPES["DH3"], PACKET_TYPES["DH3"]]
    delivered = partial(channel.independent_success, train, hops=2)
    dh5 = PACKET_TYPES["DH5"]
    mean = lambda: channel.mean_error_rate(channel.payload_error_rate(dh5))  # noqa: E731
    rows += [
        ("mean packet error rate, DH5 on two states", "1", mean, TRAINS),
        ("success of a segment and its acknowledgement, two hops", "1", delivered, TRAINS),
        ("attempts", "1", channel.expected_attempts, CHAIN),
        ("delivered within R attempts", "1", channel.delivered_within, CHAIN),
    ]
    for fast, robust in itertools.pairwise(PACKET_TYPES[name] for name in ("DH5", "DM5", "DM3", "DM1")):
        build = partial(channel.threshold_equation, fast, robust, bits="payload")
        rows.append((f"threshold {fast.name} to {robust.name}, zero of", "kbit/s", build, CROSSING))
    return rows


def _baseband_rows() -> list[Row]:
    here = "btqueue.baseband."
    rows = [
        ("rate, one-slot answers", "bit/s", baseband.asymmetric_rate, "PacketType.asymmetric_kbps"),
        ("rate, both ways", "bit/s", baseband.symmetric_rate, "PacketType.symmetric_kbps"),
        ("success of a coded block", "1", baseband.block_success, "fec.block_success_rate"),
        ("rate beside voice", "bit/s", baseband.voice_data_rate, "voice.data_capacity_kbps"),
        ("capacity of a ring, each flow", "segments/s", baseband.ring_capacity, "segment"),
    ]
    return [(name, unit, build, here + twin) for name, unit, build, twin in rows]


def _piconet_rows() -> list[Row]:
    solve = "btqueue.network.solve"
    ways: tuple[tuple[str, piconet.Way], ...] = (
        ("up a star", "up"), ("down a star", "down"), ("in a ring", "ring"),
    )  # fmt: skip
    carried = [
        (f"round trip, carried {where}{behind}", "s", partial(piconet.carried_round_trip, way, tokens=tokens))
        for where, way in ways
        for behind, tokens in (("", False), (" behind tokens", True))
    ]
    forms = [
        ("round trip, lone segment up a star", "s", piconet.lone_round_trip_up),
        ("round trip, lone segment down a star", "s", piconet.lone_round_trip_down),
        ("round trip, lone segment in a ring", "s", piconet.lone_round_trip_ring),
        *carried,
        ("delay up a star", "s", piconet.delay_up),
        ("carried by a star, each flow", "segments/s", partial(piconet.carried, "up")),
        ("carried by a ring, each flow", "segments/s", partial(piconet.carried, "ring")),
        ("capacity of a star, each flow", "segments/s", piconet.star_capacity),
        ("capacity of a ring under ARQ", "segments/s", piconet.repeated_ring_capacity),
        ("window of one in a star, each flow", "segments/s", piconet.single_window_goodput),
        ("window at the knee of a star", "segments", piconet.window_at_knee),
        ("window over a path", "segments/s", piconet.path_goodput),
        ("saw over a path", "segments/s", piconet.saw_goodput),
    ]
    rows: list[Row] = [(name, unit, build, solve) for name, unit, build in forms]
    rows.append(("goodput, window of 4", "segments/s", partial(piconet.window_goodput, 4), PAPER))
    return rows


def _tcp_rows() -> list[Row]:
    from btqueue.transport import closed_forms as laws

    rows = (
        ("square-root law", laws.square_root_law),
        ("PFTK short", laws.pftk_short_law),
        ("PFTK", laws.pftk_law),
    )
    return [(f"send rate, {law}", "segments/s", build, PAPER) for law, build in rows]


@cache
def closed_forms() -> Mapping[str, ClosedForm]:
    """All closed forms by name."""
    return MappingProxyType({entry.name: entry for subject in SUBJECTS for entry in entries(subject)})


SUBJECTS: Mapping[str, tuple[Notation, Callable[[], Iterable[Row]]]] = {
    "Queues and polling": (QUEUES, _queueing_rows),
    "Sources, delayed answers, fairness": (SOURCES, _source_rows),
    "Slots and packets": (BASEBAND, _baseband_rows),
    "Bit errors and packet errors": (RADIO, _radio_rows),
    "TCP over a piconet": (PICONET, _piconet_rows),
    "Laws of TCP": (TCP, _tcp_rows),
}
"""The parts of the catalogue: their symbols, and their forms."""


def entries(subject: str) -> list[ClosedForm]:
    """Return the forms of a part of the catalogue."""
    symbols, rows = SUBJECTS[subject]
    return [ClosedForm(name, unit, symbols, build, twin) for name, unit, build, twin in rows()]


def table() -> str:
    """The catalogue in Markdown, a block for each subject; of the packet types only DM1 and DH5."""
    return "\n".join(line for subject in SUBJECTS for line in _block(subject))


def _block(subject: str) -> Iterable[str]:
    import sympy

    shown = [
        entry
        for entry in entries(subject)
        if {"DM1", "DH5"}.issuperset(PACKET_TYPES.keys() & entry.name.replace(",", "").split())
    ]
    yield from (f":::{{dropdown}} {subject}: {len(shown)} forms", "")
    symbols = {name: about for entry in shown for name, about in entry.symbols.items()}
    listed = (
        f"${sympy.latex(sympy.Symbol(name))}$ {meaning} ({unit})" for name, (unit, meaning) in symbols.items()
    )
    yield from (f"{'; '.join(listed)}.", "")
    for entry in shown:
        yield from (f"**{entry.name}** ({entry.unit}); twin: `{entry.twin}`", "")
        for line in entry.lines():
            yield from (f"$${line}$$", "")
    yield from (":::", "")
