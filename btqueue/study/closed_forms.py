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

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from btqueue.baseband import PACKET_TYPES
from btqueue.baseband import closed_forms as baseband
from btqueue.channel import closed_forms as channel
from btqueue.network import closed_forms as piconet
from btqueue.queueing import closed_forms as queueing
from btqueue.queueing import traffic_forms as traffic
from btqueue.study import notation
from btqueue.study.closed_form import ClosedForm

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
    import sympy

    given = dict(known)
    for name in inspect.signature(closed_form).parameters:
        if name in SEQUENCES:
            given.setdefault(name, [sympy.Symbol(symbol, positive=True) for symbol in SEQUENCES[name]])
        elif name in PARAMETERS:
            given.setdefault(name, sympy.Symbol(PARAMETERS[name], positive=True))
    return queueing.formula(closed_form, **given)


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


def _entries(symbols: notation.Notation, rows: Iterable[Row]) -> list[ClosedForm]:
    return [ClosedForm(name, unit, symbols, build, twin) for name, unit, build, twin in rows]


def _queueing_entries() -> list[ClosedForm]:
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
    return _entries(notation.QUEUES, slots)


def _source_entries() -> list[ClosedForm]:
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
    return _entries(
        notation.SOURCES,
        ((name, unit, partial(_source, form, twin), twin) for name, unit, form, twin in rows),
    )


def _source(closed_form: Callable[..., Any], twin: str) -> Any:
    """The expression of a source, or of a delayed answer, whose rate is another one."""
    import sympy

    own = {"rate": sympy.Symbol("Lambda", positive=True)} if twin == NUMERICAL else {}
    return _expression(closed_form, **own)


def _radio_entries() -> list[ClosedForm]:
    rows: list[Row] = []
    for packet in PACKET_TYPES.values():
        for bits, form in (("payload", channel.payload_error_rate), ("on air", channel.on_air_error_rate)):
            twin = f"btqueue.channel.error_rates.{form.__name__}"
            rows.append((f"packet error rate, {packet.name} {bits}", "1", partial(form, packet), twin))
        rows.append((f"goodput, {packet.name}", "kbit/s", partial(channel.goodput, packet), CHAIN))
    train = [*[PACKET_TYPES["DH5"]] * 4, PACKET_TYPES["DH3"], PACKET_TYPES["DH3"]]
    delivered = partial(channel.independent_success, train, hops=2)
    rows += [
        ("mean packet error rate, DH5 on two states", "1", _mean_of_states, TRAINS),
        ("success of a segment and its acknowledgement, two hops", "1", delivered, TRAINS),
        ("attempts", "1", channel.expected_attempts, CHAIN),
        ("delivered within R attempts", "1", _within, CHAIN),
    ]
    for fast, robust in itertools.pairwise(PACKET_TYPES[name] for name in ("DH5", "DM5", "DM3", "DM1")):
        build = partial(channel.threshold_equation, fast, robust, bits="payload")
        rows.append((f"threshold {fast.name} to {robust.name}, zero of", "kbit/s", build, CROSSING))
    return _entries(notation.RADIO, rows)


def _mean_of_states() -> Any:
    return channel.mean_error_rate(channel.payload_error_rate(PACKET_TYPES["DH5"]))


def _within() -> Any:
    import sympy

    return channel.delivered_within(sympy.Symbol("R", positive=True))


def _baseband_entries() -> list[ClosedForm]:
    here = "btqueue.baseband."
    rows = [
        ("rate, one-slot answers", "bit/s", baseband.asymmetric_rate, "PacketType.asymmetric_kbps"),
        ("rate, both ways", "bit/s", baseband.symmetric_rate, "PacketType.symmetric_kbps"),
        ("success of a coded block", "1", baseband.block_success, "fec.block_success_rate"),
        ("rate beside voice", "bit/s", baseband.voice_data_rate, "voice.data_capacity_kbps"),
        ("capacity of a ring, each flow", "segments/s", baseband.ring_capacity, "segment"),
    ]
    return _entries(notation.BASEBAND, ((name, unit, build, here + twin) for name, unit, build, twin in rows))


def _piconet_entries() -> list[ClosedForm]:
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
    return _entries(notation.PICONET, rows)


def _tcp_entries() -> list[ClosedForm]:
    laws = {"square-root law": "square_root_law", "PFTK short": "pftk_short_law", "PFTK": "pftk_law"}
    return _entries(
        notation.TCP,
        ((f"send rate, {law}", "segments/s", partial(_tcp_law, name), PAPER) for law, name in laws.items()),
    )


def _tcp_law(name: str) -> Any:
    from btqueue.transport import closed_forms

    return getattr(closed_forms, name)()


@cache
def closed_forms() -> Mapping[str, ClosedForm]:
    """All closed forms by name."""
    return MappingProxyType({entry.name: entry for entries in SUBJECTS.values() for entry in entries()})


SUBJECTS: Mapping[str, Callable[[], list[ClosedForm]]] = {
    "Queues and polling": _queueing_entries,
    "Sources, delayed answers, fairness": _source_entries,
    "Slots and packets": _baseband_entries,
    "Bit errors and packet errors": _radio_entries,
    "TCP over a piconet": _piconet_entries,
    "Laws of TCP": _tcp_entries,
}
"""The parts of the catalogue; the entries of a part share their symbols."""


def table() -> str:
    """The catalogue in Markdown, a block for each subject; of the packet types only DM1 and DH5."""
    return "\n".join(line for subject in SUBJECTS for line in _block(subject))


def _block(subject: str) -> Iterable[str]:
    entries = [
        entry
        for entry in SUBJECTS[subject]()
        if {"DM1", "DH5"}.issuperset(PACKET_TYPES.keys() & entry.name.replace(",", "").split())
    ]
    yield from (f":::{{dropdown}} {subject}: {len(entries)} forms", "")
    symbols = {name: about for entry in entries for name, about in entry.symbols.items()}
    listed = (f"${_latex_name(name)}$ {meaning} ({unit})" for name, (unit, meaning) in symbols.items())
    yield from (f"{'; '.join(listed)}.", "")
    for entry in entries:
        yield from (f"**{entry.name}** ({entry.unit}); twin: `{entry.twin}`", "")
        for line in entry.lines():
            yield from (f"$${line}$$", "")
    yield from (":::", "")


def _latex_name(name: str) -> str:
    import sympy

    return sympy.latex(sympy.Symbol(name))
