"""The catalogue of closed forms: each against its numerical twin, its uses, its documentation."""

import doctest
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import closed_forms_page
import jax
import numpy as np
import pytest
import sympy
from commands import python
from scipy import integrate
from wires import wire

import btqueue as bt
from btqueue.baseband import PACKET_TYPES, SLOT_S, fec, voice
from btqueue.channel import TwoStateChannel, error_rates
from btqueue.channel.packet_trains import train_success
from btqueue.network.answers import jain_index
from btqueue.queueing.polling.conservation import conservation_law
from btqueue.queueing.polling.model import polling_model
from btqueue.queueing.polling.polling import solve_polling
from btqueue.queueing.vacations import Discrete, Time, vacation_queue
from btqueue.study.closed_forms import closed_forms as catalogue

FORMS = catalogue()
FOUR_OR_EIGHT = Discrete([4.0, 8.0], [0.5, 0.5])
TEN_TO_TWENTY = Discrete(np.arange(10.0, 21.0), np.full(11, 1 / 11))
THREE_OR_FIVE = {"l": 4.6, "l_2": 21.8}
SERVICE = {"b": 6.0, "b_2": 40.0}
RATE, TIMER = 2.0, 0.5
VACATION = {"v": 15.0, "v_2": 235.0}


def cycle_of_queues(rates, discipline, service=(2.0, 5.0), switch=(1.0, 2.0)):
    """Queues with these arrival rates; mean and mean square of services and of switches."""
    return polling_model(
        arrival_rate=np.array(rates),
        service_mean=service[0],
        service_second=service[1],
        switch_mean=switch[0],
        switch_second=switch[1],
        discipline=discipline,
        limit=1 if discipline == "limited" else None,
    )


def polling_wait(model):
    return solve_polling(model).mean_wait[0]


def conserved_wait(model):
    """Of equal queues, the one unknown of the conservation law."""
    law = conservation_law(model, np.zeros(model.queues))
    return law.total / law.weights.sum()


def conserved(discipline):
    """Of two unlike queues."""
    services, switches = ([2.0, 3.0], [4.0, 18.0]), ([1.0, 2.0], [2.0, 8.0])
    return conservation_law(cycle_of_queues([0.05, 0.08], discipline, services, switches), np.zeros(2)).total


def timed_queue(rate, service, vacation, **room):
    return vacation_queue(rate=rate, service=Time(service), vacations=Time(vacation), **room)


def queue_wait(rate: float, vacations: Discrete | None = TEN_TO_TWENTY, limit: int | None = None) -> float:
    """Batches of three; room for 300 leaves nothing to be lost."""
    solution = vacation_queue(
        rate=rate, service=FOUR_OR_EIGHT, vacations=vacations, capacity=300, batch=3, limit=limit
    )
    assert solution.packet_loss < 1e-10
    return solution.mean_wait


def round_robin():
    return cycle_of_queues([0.04] * 4, "limited", (3.6, 13.6), (1.0, 1.0))


def bucket_capacity():
    """1,460 bytes in five packets at 307.8 bytes of tokens each: the throughput where packets always wait."""
    queue = vacation_queue(rate=1e4, service=Time(307.8 / 31250.0), vacations=None, capacity=20, batch=5)
    assert queue.occupancy[0] < 1e-12
    return queue.throughput * 1460 / 5


def stationary(generator):
    """Stationary law of a chain in continuous time, from its balance and the sum of one."""
    balance = np.vstack([generator.T, np.ones(len(generator))])
    return np.linalg.lstsq(balance, np.eye(len(balance))[-1])[0]


def steps(among):
    """Mean and variance of the steps from state 0 until a chain leaves these states (Kemeny and Snell)."""
    visits = np.linalg.inv(np.eye(len(among)) - among)
    mean = visits.sum(axis=1)
    return mean[0], (2 * visits[0] @ mean - mean[0]) - mean[0] ** 2


def rate_and_variation(stop, go):
    """An interrupted source: share of the active slots, and the scv of the gaps, ``1 + p S`` slots each."""
    law = stationary(np.array([[-stop, stop], [go, -go]]))
    mean, variance = steps([[1 - go]])
    gap = 1 + stop * mean
    return law[0], (stop * (variance + mean**2) - (stop * mean) ** 2) / gap**2


def link_attempts(detected, intact, acknowledged):
    """Undelivered, or delivered and not yet acknowledged: attempts until the acknowledgement arrives."""
    delivered = detected * intact
    among = [[1 - delivered, delivered * (1 - acknowledged)], [0, 1 - detected * acknowledged]]
    return steps(among)[0]


def within(detected, intact, attempts):
    chance = detected * intact
    goes_on = np.array([[1 - chance, chance], [0, 1]])
    return np.linalg.matrix_power(goes_on, attempts)[0, 1]


def goodput(packet, ber):
    """User rate over the attempts of a packet whose parts are hit by bit errors of their own."""
    heard = float((1 - error_rates.access_code_error_rate(ber)) * (1 - error_rates.header_error_rate(ber)))
    intact = 1 - float(error_rates.body_error_rate(packet, ber))
    return packet.asymmetric_kbps / link_attempts(heard, intact, heard)


def answer_moment(power, tick):
    """Moments of min(timer, exponential) from the survival function; the timer is uniform (tick) or fixed."""
    alone = (lambda t: 1 - t / TIMER) if tick else (lambda t: 1.0)
    return integrate.quad(lambda t: power * t ** (power - 1) * math.exp(-RATE * t) * alone(t), 0, TIMER)[0]


def answers_alone(tick):
    density = (lambda t: 1 / TIMER) if tick else (lambda t: RATE)
    answered = integrate.quad(lambda t: math.exp(-RATE * t) * density(t), 0, TIMER)[0]
    return answered if tick else 1 - answered


def pftk(p, b, rtt, rto, room):
    """The full model of Padhye et al. (2000), step by step in numbers."""
    unlimited = (2 + b) / (3 * b) + math.sqrt(8 * (1 - p) / (3 * b * p) + ((2 + b) / (3 * b)) ** 2)
    by_losses = unlimited < room
    window = unlimited if by_losses else room
    through = (1 - p) ** 3
    few = (1 - through) * (1 + through * (1 - (1 - p) ** (window - 3))) / (1 - (1 - p) ** window)
    timeout = min(1.0, few) / (1 - p)
    backoff = 1 + p + sum(2 ** (k - 1) * p**k for k in range(2, 7))
    rounds = b * window / 2 + 1 if by_losses else b * window / 8 + (1 - p) / (p * window) + 2
    return ((1 - p) / p + window + timeout) / (rtt * rounds + timeout * rto * backoff)


def pftk_short(p, b, rtt, rto, room):
    """Their short model."""
    timeouts = rto * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p**2)
    return min(room / rtt, 1 / (rtt * math.sqrt(2 * b * p / 3) + timeouts))


TWO_STATES = TwoStateChannel(ber_good=7e-6, ber_bad=1e-4, good_s=0.4375, bad_s=0.0558)
CHANNEL = {"b_G": 7e-6, "b_B": 1e-4, "rho_G": 0.4375, "rho_B": 0.0558}
SEGMENT = [PACKET_TYPES["DH5"]] * 4 + [PACKET_TYPES["DH3"]]
ACK = [PACKET_TYPES["DH3"]]
DH1 = PACKET_TYPES["DH1"]
LINK = {"h": 0.9, "s": 0.3, "r": 0.8}


@dataclass(frozen=True)
class Twin:
    values: dict
    number: Callable[[], Any]  # computes the value in another way
    rel: float = 1e-9


def independent(packets, hops):
    return train_success(TWO_STATES, packets, hops=hops, observation="published")


FOUR = [0.05] * 4
WALKS = {"w": 1.0, "w_2": 2.0, "b": 2.0, "b_2": 5.0, "N": 4, "lambda": 0.05}
ROUND_ROBIN = {"N": 2, "lambda": 0.04, **THREE_OR_FIVE}
BATCHES = {"lambda": 0.03, "k": 3.0, **SERVICE}
TWO_QUEUES = {"lambda_1": 0.05, "lambda_2": 0.08, "b_11": 2.0, "b_12": 3.0, "b_21": 4.0, "b_22": 18.0}
TWO_QUEUES |= {"s": 3.0, "s_2": 3.0**2 + 1.0 + 4.0}
STOP, GO = 0.03, 0.004
OF_A_SOURCE = dict(zip("rc", rate_and_variation(STOP, GO), strict=True))
ANSWERS = {"Lambda": RATE, "T": TIMER}
TCP = {"p": 0.05, "b": 1.0, "RTT": 0.1, "T_0": 1.0, "W_m": 8.0}
TIGHT = 1e-12

TWINS = {
    "wait, M/G/1": Twin({"lambda": 0.1, "k": 3.0, **SERVICE}, lambda: queue_wait(0.1 / 3, None), TIGHT),
    "wait, exhaustive vacations": Twin({**BATCHES, **VACATION}, lambda: queue_wait(0.01)),
    # polling of one queue is a queue with vacations
    "wait, gated vacations": Twin(
        {"lambda": 0.09, "k": 1.0, **SERVICE, **VACATION},
        lambda: polling_wait(cycle_of_queues([0.09], "gated", (6.0, 40.0), (15.0, 235.0))),
    ),
    "wait, one-limited vacations": Twin({**BATCHES, **VACATION}, lambda: queue_wait(0.01, limit=1)),
    "wait, exhaustive cycle": Twin(WALKS, lambda: polling_wait(cycle_of_queues(FOUR, "exhaustive"))),
    "wait, gated cycle": Twin(WALKS, lambda: polling_wait(cycle_of_queues(FOUR, "gated"))),
    "wait, one-limited cycle": Twin(WALKS, lambda: conserved_wait(cycle_of_queues(FOUR, "limited"))),
    "wait, alternating round robin": Twin(ROUND_ROBIN, lambda: conserved_wait(round_robin())),
    "cycle, alternating round robin": Twin(ROUND_ROBIN, lambda: round_robin().mean_cycle),
    "cycle": Twin({"rho": 0.4, "s": 4.0}, lambda: timed_queue(0.1, 4.0, 4.0, capacity=60).mean_cycle),
    "conservation law, exhaustive": Twin(TWO_QUEUES, lambda: conserved("exhaustive"), TIGHT),
    "conservation law, gated": Twin(TWO_QUEUES, lambda: conserved("gated"), TIGHT),
    "conservation law, one-limited": Twin(TWO_QUEUES, lambda: conserved("limited"), TIGHT),
    "loss, M/M/1/K": Twin(
        {"rho": 0.9, "K": 7},
        lambda: stationary(0.9 * np.eye(8, k=1) + np.eye(8, k=-1) - np.diag([0.9] + 6 * [1.9] + [1]))[-1],
        TIGHT,
    ),
    "throughput, saturated cycle": Twin(
        {"M": 3, "b": 6.0, "w": 2.0}, lambda: timed_queue(10.0, 6.0, 2.0, capacity=20, limit=3).throughput
    ),
    "capacity, token bucket": Twin({"tau": 31250.0, "a": 1460.0, "g": 1539.0}, bucket_capacity, TIGHT),
    "interrupted source, stop": Twin(OF_A_SOURCE, lambda: STOP),
    "interrupted source, go": Twin(OF_A_SOURCE, lambda: GO),
    "interrupted source, rate": Twin({"p": STOP, "q": GO}, lambda: OF_A_SOURCE["r"], TIGHT),
    "interrupted source, variation": Twin({"p": STOP, "q": GO}, lambda: OF_A_SOURCE["c"], TIGHT),
    "delay of an answer, tick": Twin(ANSWERS, lambda: answer_moment(1, True)),
    "mean square delay of an answer, tick": Twin(ANSWERS, lambda: answer_moment(2, True)),
    "answers alone, tick": Twin(ANSWERS, lambda: answers_alone(True)),
    "delay of an answer, timer": Twin(ANSWERS, lambda: answer_moment(1, False)),
    "mean square delay of an answer, timer": Twin(ANSWERS, lambda: answer_moment(2, False)),
    "answers alone, timer": Twin(ANSWERS, lambda: answers_alone(False)),
    "fairness": Twin(
        {"x_1": 4.0, "x_2": 2.0, "x_3": 1.0}, lambda: jain_index(np.array([4.0, 2.0, 1.0])), TIGHT
    ),
    "rate, one-slot answers": Twin(
        {"u": 339, "n": 5, "T_s": SLOT_S}, lambda: 1e3 * PACKET_TYPES["DH5"].asymmetric_kbps, TIGHT
    ),
    "rate, both ways": Twin(
        {"u": 339, "n": 5, "T_s": SLOT_S}, lambda: 1e3 * PACKET_TYPES["DH5"].symmetric_kbps, TIGHT
    ),
    "success of a coded block": Twin({"b": 0.01}, lambda: fec.block_success_rate(0.01), TIGHT),
    "rate beside voice": Twin(
        {"u": 27, "n": 1, "m": 1, "g": 4, "P": 6, "T_s": SLOT_S},
        lambda: 1e3 * voice.data_capacity_kbps(DH1, DH1, voice.VoiceLinks(packet="HV3", links=1))[0],
        TIGHT,
    ),
    "mean packet error rate, DH5 on two states": Twin(
        CHANNEL, lambda: 1 - independent([PACKET_TYPES["DH5"]], 1), TIGHT
    ),
    "success of a segment and its acknowledgement, two hops": Twin(
        CHANNEL, lambda: independent(SEGMENT + ACK, 2), TIGHT
    ),
    "attempts": Twin(LINK, lambda: link_attempts(0.9, 0.3, 0.8), TIGHT),
    "delivered within R attempts": Twin({"h": 0.9, "s": 0.3, "R": 6}, lambda: within(0.9, 0.3, 6), TIGHT),
    "send rate, square-root law": Twin(
        {"p": 0.05, "b": 2.0, "RTT": 0.1}, lambda: math.sqrt(3 / (2 * 2 * 0.05)) / 0.1, TIGHT
    ),
    "send rate, PFTK short": Twin(TCP, lambda: pftk_short(*TCP.values()), TIGHT),
    "send rate, PFTK": Twin(TCP, lambda: pftk(*TCP.values()), TIGHT),
}


STAR = {"N": 3, "F": 5, "D": 28, "A": 4, "K": 1, "M": 15, "v": 1, "f": 0, "k": 0, "V": 0, "T_s": SLOT_S}
LOADED = STAR | {"lambda": 40 / 11.68}
NOISY = {"radio.model": "constant", "radio.per": 0.2}


def of_piconet(metric: str, flows: str, changes) -> float:
    """Three stations, segments of 28 slots of frames, acknowledgements of 4, no token buckets."""
    common = {
        "network.flows": flows, "network.peripherals": 3, "link.arq": "unlimited", "polling.limit": 15,
        "flow_control.enabled": False, "flow_control.baseband_packets": 200, "traffic.load_kbps": 40.0,
    }  # fmt: skip
    return float(bt.solve(bt.load("venugopal-2006/piconet", common | changes))[metric][0])


def lone_round_trip(flows: str, **changes) -> float:
    return of_piconet("rtt_s", flows, {"traffic.load_kbps": 1e-6} | changes)


def delay_up() -> float:
    datagrams = {"transport.protocol": "none", "polling.discipline": "exhaustive"}
    return of_piconet("delay_s", "uplink", datagrams)


def saturated_rate(flows: str, **changes) -> float:
    """Segments a second of a flow where all are saturated."""
    return of_piconet("goodput_kbps", flows, {"traffic.source": "greedy"} | changes) / 11.68


def four_customers() -> float:
    """Of four customers, an exponential server of 0.05 s and a delay of 0.12 s (Gordon & Newell 1967)."""
    weights = [0.12 ** (4 - busy) / math.factorial(4 - busy) * 0.05**busy for busy in range(5)]
    return (1.0 - weights[0] / sum(weights)) / 0.05


def single_segments() -> float:
    """Of three stations in turn: acknowledgement, five frames of the next segment, an empty frame."""
    frames = [3 + 1, *4 * [1 + 5], 1 + 3, 1 + 1]
    return 1.0 / (3 * sum(frames) * SLOT_S)


def over_a_wire(window: int, places: int = 1000) -> float:
    """Segments a second over a wire of 1 Mbit/s, 0.05 s each way: segments of 0.012 s."""
    wired = wire(link={"buffer_packets": places}, transport__receive_window_segments=window)
    return float(bt.solve(wired)["goodput_kbps"].mean()) / 11.68


LONE = 1e-7  # segments a second are few, not none
PATH = {"s": 0.012, "R": 0.1 + 0.012 + 0.00032}
TWINS |= {
    "round trip, lone segment up a star": Twin(STAR, lambda: lone_round_trip("uplink"), LONE),
    "round trip, lone segment down a star": Twin(
        STAR | {"v": 2}, lambda: lone_round_trip("downlink", **{"polling.limit": 3}), LONE
    ),
    "round trip, lone segment in a ring": Twin(STAR, lambda: lone_round_trip("ring"), LONE),
    "carried by a star, each flow": Twin(
        STAR | {"p": 0.2, "lambda": 200 / 11.68}, lambda: saturated_rate("uplink", **NOISY), 1e-7
    ),
    "carried by a ring, each flow": Twin(
        STAR | {"D": 23, "A": 3, "p": 0.2, "lambda": 4.0}, lambda: 4.0, TIGHT
    ),
    "capacity of a star, each flow": Twin(STAR | {"p": 0.2}, lambda: saturated_rate("uplink", **NOISY), 1e-7),
    # of the thesis: 4 DH5 and 1 DH3, an acknowledgement of 1 DH3, on both hops
    "capacity of a ring, each flow": Twin(
        {"N": 2, "D": 23, "A": 3, "T_s": SLOT_S}, lambda: 1 / (2 * 52 * SLOT_S), TIGHT
    ),
    "window of one in a star, each flow": Twin(STAR, single_segments, TIGHT),
    "window at the knee of a star": Twin(
        STAR, lambda: lone_round_trip("uplink") * saturated_rate("uplink"), LONE
    ),
    "capacity of a ring under ARQ": Twin(
        {"N": 3, "D": 23, "A": 3, "T_s": SLOT_S, "h": 2, "p": 0.2},
        lambda: saturated_rate("ring", **NOISY),
        1e-7,  # laws of repetitions are cut at 1e-9
    ),
    "goodput, window of 4": Twin({"b": 0.05, "e": 0.12}, four_customers, TIGHT),
    # visits of 1,000 frames stand for no limit
    "delay up a star": Twin(LOADED, delay_up, 1e-3),
    "window over a path": Twin(PATH | {"W": 6}, lambda: over_a_wire(6), 1e-6),
    "saw over a path": Twin(PATH | {"B": 3}, lambda: over_a_wire(1000, 3), 0.02),
}
for name, packet in PACKET_TYPES.items():
    for place, rate, rel in (
        (f"packet error rate, {name} payload", partial(error_rates.payload_error_rate, packet), TIGHT),
        (f"packet error rate, {name} on air", partial(error_rates.on_air_error_rate, packet), 1e-11),
        (f"goodput, {name}", partial(goodput, packet), 1e-11),
    ):
        TWINS[place] = Twin({"b": 1e-3}, partial(rate, 1e-3), rel)


def test_every_entry_has_a_numerical_twin_here():
    # with tests of their own: in `channel`, and in `crosscheck/test_closed_forms_against_simulation.py`
    elsewhere = {name for name in FORMS if name.startswith(("threshold", "round trip, carried"))}
    assert set(TWINS) | elsewhere == set(FORMS)


@pytest.mark.parametrize("name", TWINS)
def test_expression_equals_its_twin(name):
    twin = TWINS[name]
    values = {symbol: value for symbol, value in twin.values.items() if symbol in FORMS[name].symbols}
    value = FORMS[name].function(*values)(*values.values())
    assert float(value) == pytest.approx(float(twin.number()), rel=twin.rel)


@pytest.mark.parametrize(
    ("loss", "segments_per_ack", "window"),
    [(0.01, 1.0, 64.0), (1e-4, 2.0, 1e9), (0.2, 2.0, 8.0), (0.5, 1.0, 1.5), (1e-4, 2.0, 8.0)],
)
def test_pftk_where_losses_or_the_window_limit_and_where_every_loss_is_a_timeout(
    loss, segments_per_ack, window
):
    values = TCP | {"p": loss, "b": segments_per_ack, "W_m": window}
    for name, number in {"send rate, PFTK": pftk, "send rate, PFTK short": pftk_short}.items():
        value = FORMS[name].function(*values)(*values.values())
        assert value == pytest.approx(number(*values.values()), rel=TIGHT), name


@pytest.mark.parametrize("entry", FORMS.values(), ids=FORMS.keys())
def test_entries_are_documented(entry):
    assert entry.latex()
    assert all(unit and meaning for unit, meaning in entry.symbols.values())
    if entry.twin.startswith("btqueue."):
        module, *attributes = entry.twin.split(".")
        found = importlib.import_module(module)
        for name in attributes:
            try:
                found = getattr(found, name)
            except AttributeError:
                found = importlib.import_module(f"{found.__name__}.{name}")
        assert callable(found) or isinstance(found, property)


def test_symbols_and_functions_are_checked():
    form = FORMS["wait, M/G/1"]
    with pytest.raises(ValueError, match="no symbol 'mu', only b, b_2, k, lambda"):
        form.derivative("mu")
    with pytest.raises(ValueError, match="needs a place for b_2, k"):
        form.function("lambda", "b")


TOKENS = {"tau": 16000.0, "beta": 6000.0, "g": 1600.0, "g_A": 70.0}
IN_STEPS = (
    "wait, one-limited vacations", "conservation law, gated", "goodput, DM5", "delay up a star",
    "saw over a path", "send rate, PFTK",
)  # fmt: skip
POINTS = {name: TWINS[name].values for name in IN_STEPS}
POINTS["round trip, carried in a ring behind tokens"] = LOADED | TOKENS


@pytest.mark.parametrize(("name", "at"), POINTS.items())
def test_derivatives_through_steps_equal_difference_quotients_in_40_digits(name, at):
    form = FORMS[name]
    point: dict[Any, Any] = {form.symbol(n): sympy.Float(at[n], 40) for n in form.symbols}
    step, expression = sympy.Float("1e-12", 40), cast("Any", form.expression)
    for symbol in point:
        low, high = (expression.xreplace(point | {symbol: point[symbol] + h}) for h in (-step, step))
        slope: Any = form.derivative(symbol.name).xreplace(point)
        quotient: Any = sympy.N((high - low) / (2 * step), 30)
        assert float(slope) == pytest.approx(float(quotient), rel=1e-9, abs=1e-15)


def test_a_form_runs_in_jax_and_has_its_gradient_there():
    form = FORMS["wait, one-limited vacations"]
    values = {"lambda": 0.03, "k": 10 / 3, "b": 6.0, "b_2": 40.0, "v": 15.0, "v_2": 235.0}
    function = form.function(*values, modules="jax")
    gradient = jax.grad(function, argnums=tuple(range(len(values))))(*map(float, values.values()))
    for name, slope in zip(values, gradient, strict=True):
        exact = sympy.lambdify([form.symbol(n) for n in values], form.derivative(name))(*values.values())
        assert float(slope) == pytest.approx(float(exact), rel=1e-5)  # single precision


def test_the_documentation_shows_the_catalogue(pytestconfig):
    page = (pytestconfig.rootpath / "docs/explanation/closed-forms.md").read_text("utf-8")
    assert closed_forms_page.page() in page


def test_the_examples_of_the_catalogue():
    assert doctest.testmod(importlib.import_module("btqueue.study.closed_forms")).failed == 0


def test_sympy_is_imported_only_when_a_formula_is_asked_for():
    program = "import sys, btqueue.study.closed_forms as c; c.closed_forms();sys.exit('sympy' in sys.modules)"
    assert python("-c", program).returncode == 0
