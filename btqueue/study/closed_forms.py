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

import csv
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.resources import files
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

NOTATIONS: dict[str, dict[str, tuple[str, str]]] = {}
"""Unit and meaning of each symbol, by the part of the catalogue."""
PARAMETERS: dict[str, list[str]] = {}
"""The symbols of each parameter of the queueing functions; several of a sequence, which the catalogue shows
for two queues, or three shares."""
for _row in csv.DictReader(files("btqueue.study").joinpath("symbols.csv").read_text("utf-8").splitlines()):
    NOTATIONS.setdefault(_row["subject"], {})[_row["symbol"]] = _row["unit"], _row["meaning"]
    for _parameter in _row["parameters"].split():
        PARAMETERS.setdefault(_parameter, []).append(_row["symbol"])


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


def _expression(closed_form: Callable[..., Any], **known: Any) -> Any:
    """The expression of a queueing function in the symbols above."""
    given = dict(known)
    for name in inspect.signature(closed_form).parameters.keys() & PARAMETERS.keys() - known.keys():
        symbols = list(map(_symbol, PARAMETERS[name]))
        given[name] = symbols if len(symbols) > 1 else symbols[0]
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
    def mean_of_states() -> Any:
        return channel.mean_error_rate(channel.payload_error_rate(dh5))

    rows: list[Row] = []
    for packet in PACKET_TYPES.values():
        for bits, form in (("payload", channel.payload_error_rate), ("on air", channel.on_air_error_rate)):
            twin = f"btqueue.channel.error_rates.{form.__name__}"
            rows.append((f"packet error rate, {packet.name} {bits}", "1", partial(form, packet), twin))
        rows.append((f"goodput, {packet.name}", "kbit/s", partial(channel.goodput, packet), CHAIN))
    dh5, dh3 = PACKET_TYPES["DH5"], PACKET_TYPES["DH3"]
    delivered = partial(channel.independent_success, [dh5] * 4 + [dh3] * 2, hops=2)
    rows += [
        ("mean packet error rate, DH5 on two states", "1", mean_of_states, TRAINS),
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
    def build(law: str) -> Any:
        from btqueue.transport import closed_forms as laws  # loads SymPy

        return getattr(laws, law)()

    names = {"square-root law": "square_root_law", "PFTK short": "pftk_short_law", "PFTK": "pftk_law"}
    return [(f"send rate, {law}", "segments/s", partial(build, name), PAPER) for law, name in names.items()]


@cache
def closed_forms() -> Mapping[str, ClosedForm]:
    """All closed forms by name."""
    return MappingProxyType({entry.name: entry for subject in SUBJECTS for entry in entries(subject)})


SUBJECTS: Mapping[str, Callable[[], Iterable[Row]]] = {
    "Queues and polling": _queueing_rows,
    "Sources, delayed answers, fairness": _source_rows,
    "Slots and packets": _baseband_rows,
    "Bit errors and packet errors": _radio_rows,
    "TCP over a piconet": _piconet_rows,
    "Laws of TCP": _tcp_rows,
}
"""The parts of the catalogue: their forms."""


def entries(subject: str) -> list[ClosedForm]:
    """Return the forms of a part of the catalogue."""
    rows = SUBJECTS[subject]()
    return [ClosedForm(name, unit, NOTATIONS[subject], build, twin) for name, unit, build, twin in rows]


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
