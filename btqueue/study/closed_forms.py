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
from collections.abc import Callable, Mapping
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


def _answer(closed_form: Callable[..., Any]) -> Any:
    """The same for a delayed answer, whose rate is another one."""
    import sympy

    return _expression(closed_form, rate=sympy.Symbol("Lambda", positive=True))


_QUEUES = (
    ("wait, M/G/1", queueing.single_wait, "vacations.vacation_queue"),
    ("wait, exhaustive vacations", queueing.exhaustive_wait, "vacations.vacation_queue"),
    ("wait, gated vacations", queueing.gated_wait, "polling.polling.solve_polling"),
    ("wait, one-limited vacations", queueing.one_limited_wait, "vacations.vacation_queue"),
    ("wait, exhaustive cycle", queueing.exhaustive_cyclic_wait, "polling.polling.solve_polling"),
    ("wait, gated cycle", queueing.gated_cyclic_wait, "polling.polling.solve_polling"),
    ("wait, one-limited cycle", queueing.one_limited_cyclic_wait, "polling.conservation.conservation_law"),
    (
        "wait, alternating round robin",
        queueing.alternating_round_robin_wait,
        "polling.conservation.conservation_law",
    ),
    (
        "cycle, alternating round robin",
        queueing.alternating_round_robin_cycle,
        "polling.model.PollingModel.mean_cycle",
    ),
    ("cycle", queueing.cycle_time, "vacations.vacation_queue"),
)

_ANSWERS = (
    ("delay of an answer, tick", "s", traffic.tick_delay),
    ("mean square delay of an answer, tick", "s²", traffic.tick_delay_second),
    ("answers alone, tick", "1", traffic.tick_alone),
    ("delay of an answer, timer", "s", traffic.timer_delay),
    ("mean square delay of an answer, timer", "s²", traffic.timer_delay_second),
    ("answers alone, timer", "1", traffic.timer_alone),
)


CHAIN = "its Markov chain, solved in numbers"
"""Twin of entries that need a chain of a few states: an M/M/1/K queue, attempts until an answer, a source."""
PAPER = "the paper's equations, in numbers"
"""Twin of TCP's laws."""


def _queueing_entries() -> list[ClosedForm]:
    here = "btqueue.queueing."
    queue = partial(ClosedForm, notation=notation.QUEUES)
    source = partial(ClosedForm, notation=notation.SOURCES)
    entries = [
        queue(name, "slots", build=partial(_expression, form), twin=here + twin)
        for name, form, twin in _QUEUES
    ]
    for discipline in ("exhaustive", "gated", "one-limited"):
        build = partial(_expression, queueing.weighted_waits, discipline=discipline)
        twin = here + "polling.conservation.conservation_law"
        entries.append(queue(f"conservation law, {discipline}", "slots", build=build, twin=twin))
    entries += [
        queue("loss, M/M/1/K", "1", build=partial(_expression, queueing.lost_share), twin=CHAIN),
        queue(
            "throughput, saturated cycle",
            "packets/slot",
            build=partial(_expression, queueing.saturated_throughput),
            twin=here + "vacations.vacation_queue",
        ),
        source(
            "capacity, token bucket",
            "byte/s",
            build=partial(_expression, traffic.token_bucket_capacity),
            twin=here + "vacations.vacation_queue",
        ),
    ]
    for name, unit, form in (
        ("interrupted source, stop", "1", traffic.interrupted_stop),
        ("interrupted source, go", "1", traffic.interrupted_go),
        ("interrupted source, rate", "packets/slot", traffic.interrupted_rate),
        ("interrupted source, variation", "1", traffic.interrupted_scv),
    ):
        entries.append(source(name, unit, build=partial(_expression, form), twin=CHAIN))
    for name, unit, form in _ANSWERS:
        entries.append(source(name, unit, build=partial(_answer, form), twin="numerical integration"))
    entries.append(
        source(
            "fairness",
            "1",
            build=partial(_expression, traffic.fairness),
            twin="btqueue.network.answers.jain_index",
        )
    )
    return entries


def _radio_entries() -> list[ClosedForm]:
    here = "btqueue.channel."
    radio = partial(ClosedForm, notation=notation.RADIO)
    entries = []
    for packet in PACKET_TYPES.values():
        for bits, form in (("payload", channel.payload_error_rate), ("on air", channel.on_air_error_rate)):
            twin = f"{here}error_rates.{form.__name__}"
            entries.append(
                radio(f"packet error rate, {packet.name} {bits}", "1", build=partial(form, packet), twin=twin)
            )
        build = partial(channel.goodput, packet)
        entries.append(radio(f"goodput, {packet.name}", "kbit/s", build=build, twin=CHAIN))
    data, ack = [PACKET_TYPES["DH5"]] * 4 + [PACKET_TYPES["DH3"]], [PACKET_TYPES["DH3"]]
    entries += [
        radio(
            "mean packet error rate, DH5 on two states",
            "1",
            build=lambda: channel.mean_error_rate(channel.payload_error_rate(PACKET_TYPES["DH5"])),
            twin=here + "packet_trains.train_success",
        ),
        radio(
            "success of a segment and its acknowledgement, two hops",
            "1",
            build=partial(channel.independent_success, data + ack, hops=2),
            twin=here + "packet_trains.train_success",
        ),
        radio("attempts", "1", build=channel.expected_attempts, twin=CHAIN),
        radio("delivered within R attempts", "1", build=_within, twin=CHAIN),
    ]
    ladder = [PACKET_TYPES[name] for name in ("DH5", "DM5", "DM3", "DM1")]
    for fast, robust in itertools.pairwise(ladder):
        build = partial(channel.threshold_equation, fast, robust, bits="payload")
        twin = here + "packet_adaptation.goodput_crossing"
        entries.append(
            radio(f"threshold {fast.name} to {robust.name}, zero of", "kbit/s", build=build, twin=twin)
        )
    return entries


def _within() -> Any:
    import sympy

    return channel.delivered_within(sympy.Symbol("R", positive=True))


def _baseband_entries() -> list[ClosedForm]:
    here = "btqueue.baseband."
    entry = partial(ClosedForm, notation=notation.BASEBAND)
    return [
        entry(
            "rate, one-slot answers",
            "bit/s",
            build=baseband.asymmetric_rate,
            twin=here + "PacketType.asymmetric_kbps",
        ),
        entry(
            "rate, both ways", "bit/s", build=baseband.symmetric_rate, twin=here + "PacketType.symmetric_kbps"
        ),
        entry(
            "success of a coded block",
            "1",
            build=baseband.block_success,
            twin=here + "fec.block_success_rate",
        ),
        entry(
            "rate beside voice",
            "bit/s",
            build=baseband.voice_data_rate,
            twin=here + "voice.data_capacity_kbps",
        ),
        entry(
            "capacity of a ring, each flow", "segments/s", build=baseband.ring_capacity, twin=here + "segment"
        ),
    ]


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
    entry = partial(ClosedForm, notation=notation.PICONET)
    return [
        *(entry(name, unit, build=build, twin=solve) for name, unit, build in forms),
        entry("goodput, window of 4", "segments/s", build=partial(piconet.window_goodput, 4), twin=PAPER),
    ]


def _tcp_entries() -> list[ClosedForm]:
    def law(name: str) -> Callable[[], Any]:
        def build() -> Any:
            from btqueue.transport import closed_forms

            return getattr(closed_forms, name)()

        return build

    entry = partial(ClosedForm, unit="segments/s", notation=notation.TCP, twin=PAPER)
    return [
        entry("send rate, square-root law", build=law("square_root_law")),
        entry("send rate, PFTK short", build=law("pftk_short_law")),
        entry("send rate, PFTK", build=law("pftk_law")),
    ]


@cache
def closed_forms() -> Mapping[str, ClosedForm]:
    """All closed forms by name."""
    entries = [
        *_queueing_entries(), *_baseband_entries(), *_radio_entries(), *_piconet_entries(), *_tcp_entries(),
    ]  # fmt: skip
    return MappingProxyType({entry.name: entry for entry in entries})


def table() -> str:
    """The catalogue as a table in Markdown; of the packet types only DM1 and DH5 are printed."""
    rows = ["| name | unit | expression | symbols | numerical twin |", "|---|---|---|---|---|"]
    for entry in closed_forms().values():
        words = entry.name.replace(",", "").split()
        if any(word in PACKET_TYPES and word not in ("DM1", "DH5") for word in words):
            continue
        symbols = "; ".join(
            f"${_latex_name(name)}$ {meaning} ({unit})" for name, (unit, meaning) in entry.symbols.items()
        )
        rows.append(f"| {entry.name} | {entry.unit} | ${entry.latex()}$ | {symbols} | `{entry.twin}` |")
    return "\n".join(rows) + "\n"


def _latex_name(name: str) -> str:
    import sympy

    return sympy.latex(sympy.Symbol(name))
